// Passes over a whole network: a backward sweep, updates, moves among candidates, pruning.
#include <numeric>
#include <optional>

#include "bindings/call.hpp"
#include "bindings/convert.hpp"
#include "core/missing.hpp"
#include "core/optimizer.hpp"
#include "core/prior.hpp"
#include "core/sghmc.hpp"
#include "core/sparse.hpp"
#include "seams.hpp"

namespace cstonet::seams {
namespace {

struct SweepCall {
  py::object network, sampler_options;
  py::list weights, biases;
  FloatArray x, visible, row_weight;
  std::vector<double> variances, step;
  Stream stream{};
  std::uint32_t iteration = 0;
  std::optional<FloatArray> offset;
};

struct SweepResult {
  py::list weight_gradients, bias_gradients, displacements, outputs;
  DoubleArray log_likelihood;
};

FloatArray bias_array(const LayerGradient& g) {
  return array_from_floats(std::span(g.bias).first(g.weights.columns()));
}

// How many rows there are of covariates and of visible units, if they are those of the network.
Index require_batch(const NetworkSpec& spec, const FloatArray& x, const FloatArray& visible) {
  require_shape(x, "x", {kAny, spec.inputs});
  require_shape(visible, "visible", {x.shape(0), spec.visible_columns()});
  return x.shape(0);
}

SweepResult sweep(const SweepCall& call) {
  const NetworkSpec spec = network_from_python(call.network);
  const auto options = from_python<SamplerOptions>(call.sampler_options);
  const Parameters parameters = parameters_from_python(spec, call.weights, call.biases);
  const Index rows = require_batch(spec, call.x, call.visible);
  require_shape(call.row_weight, "row_weight", {rows});
  if (call.offset) require_shape(*call.offset, "offset", {rows, spec.visible_columns()});
  require_count(options.variance.size(), "sampler_options.variance", spec.hidden_layers());
  require_count(call.variances.size(), "variances", std::ssize(visible_blocks(spec)));
  require_count(call.step.size(), "step", spec.hidden_layers());
  const Batch batch{.inputs = panel_from_array(call.x, "x"),
                    .visible = panel_from_array(call.visible, "visible"),
                    .weight = floats_from_array(call.row_weight, "row_weight"),
                    .offset = call.offset ? panel_from_array(*call.offset, "offset") : Panel()};
  std::vector<LayerState> states;
  std::vector<LayerGradient> gradients;
  allocate(spec, batch.rows(), states);
  allocate(spec, gradients);
  BackwardSampler sampler(spec, options, batch.rows());
  forward(spec, parameters, batch, states);
  sampler.impute(parameters, batch, call.variances, call.step, random_stream(call.stream),
                 call.iteration, states);
  SweepResult out;
  out.log_likelihood = array_from_doubles(sampler.log_likelihood(batch, call.variances));
  for (Index i = 0; i < spec.hidden_layers(); ++i) {
    out.displacements.append(array_from_panel(sampler.displacement(i)));
    out.outputs.append(array_from_panel(states[i].output));
  }
  sampler.gradients(batch, states, gradients);
  for (const LayerGradient& g : gradients) {
    out.weight_gradients.append(array_from_panel(g.weights));
    out.bias_gradients.append(bias_array(g));
  }
  return out;
}

struct UpdateCall {
  py::object network, optimizer_options;
  py::list weights, biases, weight_gradients, bias_gradients;
  double batch_weight = 0;
  std::vector<double> rate, layer_variance;
  std::array<double, 3> prior{};  // inclusion, spike, slab
  double prior_weight = 0;
  bool penalize_bias = false;
};

// Applies a list of gradients, one update each, and returns the parameters.
py::tuple update(const UpdateCall& call) {
  const NetworkSpec spec = network_from_python(call.network);
  Parameters parameters = parameters_from_python(spec, call.weights, call.biases);
  require_count(call.rate.size(), "rate", spec.depth());
  require_count(call.layer_variance.size(), "layer_variance", spec.depth());
  require_count(call.bias_gradients.size(), "bias_gradients",
                static_cast<Index>(call.weight_gradients.size()));
  Optimizer optimizer(spec, from_python<OptimizerOptions>(call.optimizer_options));
  const MixturePrior prior{
      .inclusion = call.prior[0], .spike_variance = call.prior[1], .slab_variance = call.prior[2]};
  for (std::size_t k = 0; k < call.weight_gradients.size(); ++k) {
    std::vector<LayerGradient> gradients;
    allocate(spec, gradients);
    // Read as parameters are: their shapes are the same.
    const Parameters read = parameters_from_python(spec, call.weight_gradients[k].cast<py::list>(),
                                                   call.bias_gradients[k].cast<py::list>());
    for (std::size_t i = 0; i < gradients.size(); ++i)
      gradients[i] = {.weights = read.layers[i].weights, .bias = read.layers[i].bias};
    optimizer.update(gradients, call.batch_weight, call.rate, call.layer_variance,
                     prior.pass(call.prior_weight), call.penalize_bias, parameters);
  }
  py::list weights, biases;
  for (const LayerParameters& theta : parameters.layers) {
    weights.append(array_from_panel(theta.weights));
    biases.append(array_from_bias(theta));
  }
  return py::make_tuple(weights, biases);
}

struct MoveCall {
  py::object network;
  py::list weights, biases;
  FloatArray x;
  IndexArray first, column;  // the gaps
  FloatArray values, log_weight, visible;
  std::vector<double> variances;
  Stream stream{};
  std::uint32_t steps = 0;
};

// Where `steps` moves take every row from candidate 0.
std::vector<Index> move(const MoveCall& call) {
  const NetworkSpec spec = network_from_python(call.network);
  const Parameters parameters = parameters_from_python(spec, call.weights, call.biases);
  const Index count = require_batch(spec, call.x, call.visible);
  require_count(call.variances.size(), "variances", std::ssize(visible_blocks(spec)));
  require_shape(call.first, "first", {count + 1});
  Batch batch{.inputs = panel_from_array(call.x, "x"),
              .visible = panel_from_array(call.visible, "visible"),
              .weight = {}};
  Candidates candidates;
  candidates.gaps = {.first = indices_from_array(call.first, "first"),
                     .column = indices_from_array(call.column, "column")};
  candidates.values = panel_from_array(call.values, "values");
  candidates.log_weight = panel_from_array(call.log_weight, "log_weight");
  candidates.draws = candidates.values.columns();
  candidates.prepare(spec.inputs);
  std::vector<Index> rows(batch.rows()), inputs(spec.inputs);
  std::iota(rows.begin(), rows.end(), Index{0});
  std::iota(inputs.begin(), inputs.end(), Index{0});
  const RandomStream random = random_stream(call.stream);
  const Model model{.spec = spec, .parameters = parameters, .variances = call.variances};
  std::vector<LayerState> states;
  allocate(spec, batch.rows(), states);
  Imputer imputer(candidates, batch.rows(), inputs, spec.inputs);
  for (std::uint32_t step = 0; step < call.steps; ++step) {
    for (Index i = 0; i < batch.rows(); ++i) imputer.fill(i, batch.inputs.row(i));
    forward(spec, parameters, batch, states);
    imputer.move(model, rows, batch, states, random, step, 0);
  }
  return imputer.current();
}

// Prunes, then tells which inputs reach each visible block.
py::tuple prune_and_trace(py::object network, const py::list& weights, const py::list& biases,
                          double threshold) {
  const NetworkSpec spec = network_from_python(network);
  Parameters parameters = parameters_from_python(spec, weights, biases);
  prune(spec, threshold, false, parameters);
  py::list masks, paths;
  for (const LayerParameters& theta : parameters.layers) masks.append(array_from_panel(theta.mask));
  for (const VisibleBlock& block : visible_blocks(spec))
    paths.append(reaches(spec, parameters, block));
  return py::make_tuple(masks, paths);
}

// The biases once they are pruned with the weights.
py::list prune_biases(py::object network, const py::list& weights, const py::list& biases,
                      double threshold) {
  const NetworkSpec spec = network_from_python(network);
  Parameters parameters = parameters_from_python(spec, weights, biases);
  prune(spec, threshold, true, parameters);
  py::list out;
  for (const LayerParameters& theta : parameters.layers) out.append(array_from_bias(theta));
  return out;
}

// Of every visible block and input: the probability of the most probable path.
std::vector<std::vector<double>> most_probable_paths(py::object network, const py::list& weights,
                                                     const py::list& biases, double inclusion,
                                                     double spike, double slab) {
  const NetworkSpec spec = network_from_python(network);
  const Parameters parameters = parameters_from_python(spec, weights, biases);
  const MixturePrior prior{.inclusion = inclusion, .spike_variance = spike, .slab_variance = slab};
  std::vector<std::vector<double>> paths;
  for (const VisibleBlock& block : visible_blocks(spec))
    paths.push_back(slab_paths(spec, parameters, prior, block));
  return paths;
}

}  // namespace

void register_passes(py::module_& m) {
  py::class_<SweepResult>(m, "SweepResult")
      .def_readonly("weight_gradients", &SweepResult::weight_gradients)
      .def_readonly("bias_gradients", &SweepResult::bias_gradients)
      .def_readonly("displacements", &SweepResult::displacements)
      .def_readonly("outputs", &SweepResult::outputs)
      .def_readonly("log_likelihood", &SweepResult::log_likelihood);
  using S = SweepCall;
  m.def("sweep", unpacked(sweep, &S::network, &S::sampler_options, &S::weights, &S::biases, &S::x,
                          &S::visible, &S::row_weight, &S::variances, &S::step, &S::stream,
                          &S::iteration, &S::offset));
  using U = UpdateCall;
  m.def("update", unpacked(update, &U::network, &U::optimizer_options, &U::weights, &U::biases,
                           &U::weight_gradients, &U::bias_gradients, &U::batch_weight, &U::rate,
                           &U::layer_variance, &U::prior, &U::prior_weight, &U::penalize_bias));
  using M = MoveCall;
  m.def("move_candidates",
        unpacked(move, &M::network, &M::weights, &M::biases, &M::x, &M::first, &M::column,
                 &M::values, &M::log_weight, &M::visible, &M::variances, &M::stream, &M::steps));
  m.def("prune_and_trace", prune_and_trace);
  m.def("prune_biases", prune_biases);
  m.def("most_probable_paths", most_probable_paths);
}

}  // namespace cstonet::seams
