// Single formulas of the core, so that the tests can hold each against its NumPy twin.
#include <array>

#include "bindings/convert.hpp"
#include "bindings/register.hpp"
#include "core/bic.hpp"
#include "core/errors.hpp"
#include "core/optimizer.hpp"
#include "core/prior.hpp"
#include "core/schedule.hpp"
#include "core/sghmc.hpp"
#include "core/sparse.hpp"

namespace cstonet {
namespace {

MixturePrior mixture(double inclusion, double spike, double slab) {
  return {inclusion, spike, slab};
}

FloatArray prior_gradient(const FloatArray& w, double inclusion, double spike, double slab) {
  FloatArray out(w.size());
  kernels().prior_gradient(mixture(inclusion, spike, slab).pass(1.0), w.data(), w.size(),
                           out.mutable_data());
  return out;
}

FloatArray residual(const std::string& family, double variance, const FloatArray& y,
                    const FloatArray& eta) {
  const Index n = y.shape(0), size = y.shape(1);
  Block block{family == "gaussian"    ? Family::gaussian
              : family == "bernoulli" ? Family::bernoulli
                                      : Family::categorical,
              size,
              true,
              false,
              1.0,
              0};
  FloatArray out({n, size});
  visible_residual(block, variance, n, y.data(), size, eta.data(), size, out.mutable_data(), size);
  return out;
}

DoubleArray family_log_density(const std::string& family, double variance, const FloatArray& y,
                               const FloatArray& eta) {
  const Index n = y.shape(0), size = y.shape(1);
  const Family kind = family == "gaussian"    ? Family::gaussian
                      : family == "bernoulli" ? Family::bernoulli
                                              : Family::categorical;
  std::vector<double> out;
  for (Index i = 0; i < n; ++i)
    out.push_back(log_density(kind, size, variance, y.data(i, 0), eta.data(i, 0)));
  return array_from_doubles(out);
}

struct SweepResult {
  py::list weight_gradients, bias_gradients, displacements, outputs;
  DoubleArray log_likelihood;
};

SweepResult sweep(py::object network, py::object sampler_options, const py::list& weights,
                  const py::list& biases, const FloatArray& x, const FloatArray& visible,
                  const FloatArray& row_weight, const std::vector<double>& variances,
                  const std::vector<double>& step, std::array<std::uint64_t, 4> stream,
                  std::uint32_t iteration) {
  const NetworkSpec spec = network_from_python(network);
  const auto options = from_python<SamplerOptions>(sampler_options);
  const Parameters parameters = parameters_from_python(spec, weights, biases);
  Batch batch{panel_from_array(x), panel_from_array(visible), floats_from_array(row_weight)};
  std::vector<LayerState> states;
  std::vector<LayerGradient> gradients;
  allocate(spec, batch.rows(), states);
  allocate(spec, gradients);
  BackwardSampler sampler(spec, options, batch.rows());
  forward(spec, parameters, batch, states);
  sampler.impute(parameters, batch, variances, step,
                 RandomStream(stream[0], stream[1], stream[2], stream[3]), iteration, states);
  SweepResult out;
  out.log_likelihood = array_from_doubles(sampler.log_likelihood(batch, variances));
  for (Index i = 0; i < spec.hidden_layers(); ++i) {
    out.displacements.append(array_from_panel(sampler.displacement(i)));
    out.outputs.append(array_from_panel(states[static_cast<std::size_t>(i)].output));
  }
  sampler.gradients(batch, states, gradients);
  for (const LayerGradient& g : gradients) {
    out.weight_gradients.append(array_from_panel(g.weights));
    out.bias_gradients.append(array_from_floats(g.bias.data(), g.weights.columns()));
  }
  return out;
}

// Applies a list of gradients, one update each, and returns the parameters.
py::tuple update(py::object network, py::object optimizer_options, const py::list& weights,
                 const py::list& biases, const py::list& weight_gradients,
                 const py::list& bias_gradients, double batch_weight,
                 const std::vector<double>& rate, const std::vector<double>& layer_variance,
                 std::array<double, 3> prior, double prior_weight, bool penalize_bias) {
  const NetworkSpec spec = network_from_python(network);
  const auto options = from_python<OptimizerOptions>(optimizer_options);
  Parameters parameters = parameters_from_python(spec, weights, biases);
  Optimizer optimizer(spec, options);
  const PriorPass pass = mixture(prior[0], prior[1], prior[2]).pass(prior_weight);
  for (std::size_t k = 0; k < weight_gradients.size(); ++k) {
    std::vector<LayerGradient> gradients;
    allocate(spec, gradients);
    const auto gw = weight_gradients[k].cast<py::list>();
    const auto gb = bias_gradients[k].cast<py::list>();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      gradients[i].weights = panel_from_array(gw[i].cast<FloatArray>());
      const Floats b = floats_from_array(gb[i].cast<FloatArray>());
      std::copy(b.begin(), b.end(), gradients[i].bias.begin());
    }
    optimizer.update(gradients, batch_weight, rate, layer_variance, pass, penalize_bias,
                     parameters);
  }
  py::list w, b;
  for (const LayerParameters& theta : parameters.layers) {
    w.append(array_from_panel(theta.weights));
    b.append(array_from_floats(theta.bias.data(), theta.weights.columns()));
  }
  return py::make_tuple(w, b);
}

FloatArray normals(std::array<std::uint64_t, 4> stream, std::uint32_t purpose, std::uint32_t a,
                   std::uint32_t b, Index n) {
  FloatArray out(n);
  RandomStream(stream[0], stream[1], stream[2], stream[3])
      .normals(static_cast<Purpose>(purpose), a, b, n, out.mutable_data());
  return out;
}

py::array_t<std::uint32_t> random_bits(std::array<std::uint32_t, 2> key,
                                       std::array<std::uint32_t, 3> counter, Index n) {
  py::array_t<std::uint32_t> out(n);
  kernels().random_bits(key.data(), counter.data(), n, out.mutable_data());
  return out;
}

// (ψ(z), ψ(z + d) - ψ(z)).
py::tuple activation(const std::string& kind, const FloatArray& z, const FloatArray& d) {
  const Activation a = kind == "tanh"      ? Activation::tanh
                       : kind == "sigmoid" ? Activation::sigmoid
                                           : Activation::relu;
  FloatArray value(z.size()), shifted(z.size()), change(z.size());
  kernels().activate(a, z.data(), z.size(), value.mutable_data());
  kernels().activate_shifted(a, z.data(), d.data(), z.size(), shifted.mutable_data(),
                             change.mutable_data());
  return py::make_tuple(value, change);
}

// a b (transpose = false) or a' b, through the product kernel.
FloatArray multiply(const FloatArray& a, const FloatArray& b, bool transpose) {
  const Panel left = panel_from_array(a), right = panel_from_array(b);
  const Index rows = transpose ? left.columns() : left.rows();
  Panel out(rows, right.columns());
  kernels().multiply(left.data(), transpose ? 1 : left.stride(), transpose ? left.stride() : 1,
                     right.data(), right.stride(), nullptr, out.data(), out.stride(), rows,
                     right.rows(), out.stride());
  return array_from_panel(out);
}

// Prunes, then tells which inputs reach each visible block.
py::tuple prune_and_trace(py::object network, const py::list& weights, const py::list& biases,
                          double threshold) {
  const NetworkSpec spec = network_from_python(network);
  Parameters parameters = parameters_from_python(spec, weights, biases);
  prune(spec, threshold, parameters);
  py::list masks, paths;
  for (const LayerParameters& theta : parameters.layers) masks.append(array_from_panel(theta.mask));
  for (const VisibleBlock& block : visible_blocks(spec))
    paths.append(reaches(spec, parameters, block));
  return py::make_tuple(masks, paths);
}

}  // namespace

void register_seams(py::module_& m) {
  py::class_<SweepResult>(m, "SweepResult")
      .def_readonly("weight_gradients", &SweepResult::weight_gradients)
      .def_readonly("bias_gradients", &SweepResult::bias_gradients)
      .def_readonly("displacements", &SweepResult::displacements)
      .def_readonly("outputs", &SweepResult::outputs)
      .def_readonly("log_likelihood", &SweepResult::log_likelihood);
  m.def("prior_gradient", prior_gradient);
  m.def("prior_threshold", [](double inclusion, double spike, double slab) {
    return mixture(inclusion, spike, slab).threshold();
  });
  m.def("prior_log_density", [](double w, double inclusion, double spike, double slab) {
    return mixture(inclusion, spike, slab).log_density(w);
  });
  m.def("residual", residual);
  m.def("log_density", family_log_density);
  m.def("sweep", sweep);
  m.def("update", update);
  m.def("normals", normals);
  m.def("random_bits", random_bits);
  m.def("activation", activation);
  m.def("multiply", multiply);
  m.def("prune_and_trace", prune_and_trace);
  m.def("bic", &bic);
  m.def("rates_at", [](py::object stage, int epoch) {
    return rates_at(from_python<StageOptions>(stage), epoch);
  });
  m.def("steps_at", [](py::object stage, int epoch) {
    return steps_at(from_python<StageOptions>(stage), epoch);
  });
  m.def("spike_at", [](py::object prior, py::object stage, int epoch) {
    return spike_at(from_python<PriorOptions>(prior), from_python<StageOptions>(stage), epoch);
  });
  m.def("option_fields", [] {
    py::dict all;
    all["SamplerOptions"] = field_names<SamplerOptions>();
    all["PriorOptions"] = field_names<PriorOptions>();
    all["OptimizerOptions"] = field_names<OptimizerOptions>();
    all["StageOptions"] = field_names<StageOptions>();
    all["TrainingOptions"] = field_names<TrainingOptions>();
    return all;
  });
  m.def("levels", [] {
    const char* names[4];
    const int count = available_levels(names);
    return std::vector<std::string>(names, names + count);
  });
  m.def("level", [] { return std::string(kernels().level); });
  m.def("use_level", [](const std::string& name) {
    require(select_level(name.c_str()), "no kernels for level '" + name + "' on this machine");
  });
}

}  // namespace cstonet
