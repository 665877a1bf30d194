// Training and prediction.
#include <algorithm>
#include <limits>

#include "bindings/call.hpp"
#include "bindings/convert.hpp"
#include "bindings/polling.hpp"
#include "bindings/register.hpp"
#include "core/errors.hpp"
#include "core/predict.hpp"
#include "core/trainer.hpp"

namespace cstonet {
namespace {

template <class Get>
py::list per_layer(const TaskResult& result, Get&& get) {
  py::list out;
  for (const LayerParameters& theta : result.parameters.layers) out.append(get(theta));
  return out;
}

// What a trace calls the visible blocks: those of the last layer are outcomes, those below it the
// treatment; numbered where there are several.
std::vector<std::string> block_names(const NetworkSpec& spec) {
  const std::vector<VisibleBlock> blocks = visible_blocks(spec);
  const auto is_outcome = [&](const VisibleBlock& v) { return v.layer == spec.hidden_layers(); };
  const Index outcomes = std::ranges::count_if(blocks, is_outcome);
  const Index treatments = std::ssize(blocks) - outcomes;
  std::vector<std::string> names;
  for (Index b = 0; b < treatments + outcomes; ++b) {
    const bool outcome = b >= treatments;
    std::string name = outcome ? "outcome" : "treatment";
    if ((outcome ? outcomes : treatments) > 1)
      name += std::to_string(1 + b - (outcome ? treatments : 0));
    names.push_back(std::move(name));
  }
  return names;
}

// Names of the columns of a trace, in the order of trace_row.
std::vector<std::string> trace_columns(const NetworkSpec& spec) {
  std::vector<std::string> names{"stage", "epoch", "spike_variance", "nonzero"};
  for (Index i = 0; i < spec.depth(); ++i)
    names.push_back("log_likelihood_" + std::to_string(i + 1));
  for (const std::string& block : block_names(spec)) {
    names.push_back("held_out_" + block);
    names.push_back(block + "_variance");
  }
  return names;
}

// One epoch's values, in the order of trace_columns.
std::vector<double> trace_row(const EpochRecord& r) {
  std::vector<double> row{static_cast<double>(r.stage), static_cast<double>(r.epoch), r.spike,
                          static_cast<double>(r.nonzero)};
  row.insert(row.end(), r.layer_likelihood.begin(), r.layer_likelihood.end());
  for (std::size_t b = 0; b < r.variances.size(); ++b) {
    row.push_back(r.validation.empty() ? std::numeric_limits<double>::quiet_NaN()
                                       : r.validation[b]);
    row.push_back(r.variances[b]);
  }
  return row;
}

DoubleArray trace_array(const TaskResult& result) {
  std::vector<std::vector<double>> rows;
  for (const EpochRecord& record : result.trace) rows.push_back(trace_row(record));
  const std::size_t columns = rows.empty() ? 0 : rows.front().size();
  DoubleArray out({rows.size(), columns});
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::ranges::copy(rows[i], out.mutable_data() + i * columns);
  return out;
}

// The weights a network may have: None for all, else one 0/1 matrix per layer.
std::vector<Panel> structure_from_python(const NetworkSpec& spec, const py::object& structure) {
  std::vector<Panel> allowed;
  if (structure.is_none()) return allowed;
  for (py::handle item : structure)
    allowed.push_back(panel_from_array(array_from<FloatArray>(item, "structure"), "structure"));
  require_count(allowed.size(), "structure", spec.depth());
  const Parameters shapes(spec);
  for (std::size_t i = 0; i < allowed.size(); ++i)
    require(allowed[i].rows() == shapes.layers[i].weights.rows() &&
                allowed[i].columns() == shapes.layers[i].weights.columns(),
            "structure of layer " + std::to_string(i + 1) + " does not fit the network");
  return allowed;
}

struct TrainCall {
  py::object network, options;
  const PyDataset* data = nullptr;
  IndexArray inputs;
  FloatArray visible, row_weight;
  py::list tasks;  // of (fold, start, rows to fit, rows to validate)
  std::uint64_t seed = 0;
  ThreadCount threads;
  py::object progress, structure;
  const Candidates* candidates = nullptr;
  const TaskResult* previous = nullptr;
  IndexArray carried;  // of every input: which one it is of the previous network, or -1
  bool trace = true;
  std::uint64_t network_id = 0;
  std::optional<FloatArray> offset;
};

void check_options(const TrainingOptions& options, const NetworkSpec& spec) {
  require(options.batch_size > 0 && options.epoch_rows > 0,
          "options: batch_size and epoch_rows must be positive");
  require_count(options.sampler.variance.size(), "options.sampler.variance", spec.hidden_layers());
  for (const StageOptions& stage : options.stages) {
    require_count(stage.rate.size(), "options.stages: rate", spec.depth());
    require_count(stage.step.size(), "options.stages: step", spec.hidden_layers());
  }
}

// A network that training goes on from must have the same layers, on whatever inputs.
void check_previous(const TaskResult& previous, const std::vector<Index>& carried,
                    const NetworkSpec& spec) {
  const auto known = [&](Index k) { return k >= -1 && k < std::ssize(previous.inputs); };
  require(std::ssize(carried) == spec.inputs && std::ranges::all_of(carried, known),
          "carried needs an input of the previous network, or -1, per input of this one");
  const Parameters shapes(spec);
  require(previous.failure.empty() && previous.parameters.layers.size() == shapes.layers.size(),
          "previous: the network was not trained, or has another depth");
  for (std::size_t i = 0; i < shapes.layers.size(); ++i) {
    const Panel &theirs = previous.parameters.layers[i].weights, &ours = shapes.layers[i].weights;
    require(theirs.columns() == ours.columns() && (i == 0 || theirs.rows() == ours.rows()),
            "previous: the network has other units in layer " + std::to_string(i + 1));
  }
}

std::vector<Task> tasks_from_python(const py::list& tasks, const Dataset& data) {
  std::vector<Task> work;
  for (py::handle item : tasks) {
    const auto t = item.cast<py::tuple>();
    require_count(t.size(), "tasks: each", 4);
    const auto rows = [&](std::size_t k) {
      return rows_from_array(array_from<IndexArray>(t[k], "tasks"), "tasks", data);
    };
    work.push_back({.fold = t[0].cast<Index>(),
                    .start = t[1].cast<Index>(),
                    .fit_rows = rows(2),
                    .validation_rows = rows(3)});
    require(!work.back().fit_rows.empty(), "tasks: one has no rows");
  }
  return work;
}

std::vector<TaskResult> train(const TrainCall& call) {
  const NetworkSpec spec = network_from_python(call.network);
  const auto options = from_python<TrainingOptions>(call.options);
  check_options(options, spec);
  const Dataset& data = call.data->data;
  require_shape(call.inputs, "inputs", {spec.inputs});
  const std::vector<Index> inputs = columns_from_array(call.inputs, "inputs", data);
  require_shape(call.visible, "visible", {data.rows(), spec.visible_columns()});
  require_shape(call.row_weight, "row_weight", {data.rows()});
  const std::vector<Index> carried = indices_from_array(call.carried, "carried");
  if (call.previous) check_previous(*call.previous, carried, spec);
  if (call.candidates) require_gaps_of(data, call.candidates->gaps, "candidates");
  const std::vector<Task> tasks = tasks_from_python(call.tasks, data);
  const std::vector<Panel> structure = structure_from_python(spec, call.structure);
  const Problem problem{
      .spec = spec,
      .options = options,
      .data = data,
      .inputs = inputs,
      .visible = {.data = call.visible.data(), .width = call.visible.shape(1)},
      .offset = offset_view(call.offset, {data.rows(), spec.visible_columns()}),
      .row_weight = {call.row_weight.data(), static_cast<std::size_t>(call.row_weight.size())},
      .structure = structure,
      .seed = call.seed,
      .network = call.network_id,
      .candidates = call.candidates,
      .previous = call.previous,
      .carried = carried,
      .trace = call.trace};
  std::vector<TaskResult> results(tasks.size());
  Hooks hooks;
  run_released(hooks, call.progress, [&] {
    run_tasks(std::ssize(tasks), call.threads, hooks,
              [&](long i) { results[i] = Trainer(problem, tasks[i], hooks).run(); });
  });
  return results;
}

py::array_t<float> predict_means(py::object network, const py::list& weights,
                                 const py::list& biases, const IndexArray& inputs,
                                 const PyDataset& dataset, const IndexArray& rows,
                                 const FloatArray& clamp, ThreadCount threads,
                                 const std::optional<FloatArray>& offset) {
  const NetworkSpec spec = network_from_python(network);
  const Parameters parameters = parameters_from_python(spec, weights, biases);
  const Dataset& data = dataset.data;
  require_shape(inputs, "inputs", {spec.inputs});
  const std::vector<Index> columns = columns_from_array(inputs, "inputs", data);
  const std::vector<Index> wanted = rows_from_array(rows, "rows", data);
  const Index n = std::ssize(wanted), units = spec.visible_columns();
  require_shape(clamp, "clamp", {kAny, units});
  const Panel settings = panel_from_array(clamp, "clamp");
  const Columns known = offset_view(offset, {settings.rows(), n, units});

  std::vector<Panel> out;
  Hooks hooks;
  run_released(hooks, py::none(), [&] {
    out = predict(spec, parameters, columns, data, wanted, settings, known, threads, hooks);
  });
  FloatArray array({settings.rows(), n, units});
  for (Index s = 0; s < settings.rows(); ++s)
    for (Index i = 0; i < n; ++i)
      std::ranges::copy(out[s].row(i), array.mutable_data() + (s * n + i) * units);
  return array;
}

FloatArray predict_received_means(py::object network, const py::list& weights,
                                  const py::list& biases, const IndexArray& inputs,
                                  const PyDataset& dataset, const IndexArray& rows,
                                  const FloatArray& received, ThreadCount threads,
                                  const std::optional<FloatArray>& offset) {
  const NetworkSpec spec = network_from_python(network);
  const Parameters parameters = parameters_from_python(spec, weights, biases);
  require_shape(inputs, "inputs", {spec.inputs});
  const std::vector<Index> columns = columns_from_array(inputs, "inputs", dataset.data);
  const std::vector<Index> wanted = rows_from_array(rows, "rows", dataset.data);
  require_shape(received, "received", {std::ssize(wanted), kAny});
  require(received.shape(1) <= spec.visible_columns(),
          "received has more columns than the network has visible units");
  FloatArray out({std::ssize(wanted), spec.visible_columns()});
  const std::span<float> to(out.mutable_data(), static_cast<std::size_t>(out.size()));
  const Columns treatment{.data = received.data(), .width = received.shape(1)};
  const Columns known = offset_view(offset, {out.shape(0), out.shape(1)});
  Hooks hooks;
  run_released(hooks, py::none(), [&] {
    predict_received(spec, parameters, columns, dataset.data, wanted, treatment, known, threads,
                     hooks, to);
  });
  return out;
}

void register_result(py::module_& m) {
  const auto weights = [](const LayerParameters& theta) { return array_from_panel(theta.weights); };
  const auto masks = [](const LayerParameters& theta) { return array_from_panel(theta.mask); };
  using Result = TaskResult;
  py::class_<Result>(m, "TaskResult")
      .def_property_readonly("weights", [=](const Result& r) { return per_layer(r, weights); })
      .def_property_readonly("masks", [=](const Result& r) { return per_layer(r, masks); })
      .def_property_readonly("biases",
                             [](const Result& r) { return per_layer(r, array_from_bias); })
      .def_property_readonly("inputs",
                             [](const Result& r) {
                               return py::array_t<std::int64_t>(std::ssize(r.inputs),
                                                                r.inputs.data());
                             })
      .def_property_readonly("variances",
                             [](const Result& r) { return array_from_doubles(r.variances); })
      .def_property_readonly("log_likelihood",
                             [](const Result& r) { return array_from_doubles(r.log_likelihood); })
      .def_readonly("bic", &Result::bic)
      .def_readonly("rows", &Result::rows)
      .def_property_readonly("nonzero",
                             [](const Result& r) { return r.parameters.nonzero_weights(); })
      .def_readonly("reaches", &Result::reaches)
      .def_property_readonly("slab_paths",
                             [](const Result& r) {
                               py::list blocks;
                               for (const std::vector<double>& paths : r.slab_paths)
                                 blocks.append(array_from_doubles(paths));
                               return blocks;
                             })
      .def_property_readonly("trace", trace_array)
      .def_readonly("failure", &Result::failure);
}

}  // namespace

void register_train(py::module_& m) {
  register_result(m);
  using Call = TrainCall;
  m.def("train",
        unpacked(train, &Call::network, &Call::options, &Call::data, &Call::inputs, &Call::visible,
                 &Call::row_weight, &Call::tasks, &Call::seed, &Call::threads, &Call::progress,
                 &Call::structure, &Call::candidates, &Call::previous, &Call::carried, &Call::trace,
                 &Call::network_id, &Call::offset),
        py::arg("network"), py::arg("options"), py::arg("data").none(false), py::arg("inputs"),
        py::arg("visible").noconvert(), py::arg("row_weight").noconvert(), py::arg("tasks"),
        py::arg("seed"), py::arg("threads"), py::arg("progress") = py::none(),
        py::arg("structure") = py::none(),
        py::arg("candidates").none(true) = static_cast<const Candidates*>(nullptr),
        py::arg("previous").none(true) = static_cast<const TaskResult*>(nullptr),
        py::arg("carried") = IndexArray(0), py::arg("trace") = true, py::arg("network_id") = 0,
        py::arg("offset") = py::none());
  m.def(
      "trace_columns",
      [](py::object network) { return trace_columns(network_from_python(network)); },
      py::arg("network"));
  m.def("predict", predict_means, py::arg("network"), py::arg("weights"), py::arg("biases"),
        py::arg("inputs"), py::arg("data"), py::arg("rows"), py::arg("clamp").noconvert(),
        py::arg("threads"), py::arg("offset") = py::none());
  m.def("predict_received", predict_received_means, py::arg("network"), py::arg("weights"),
        py::arg("biases"), py::arg("inputs"), py::arg("data"), py::arg("rows"),
        py::arg("received").noconvert(), py::arg("threads"), py::arg("offset") = py::none());
}

}  // namespace cstonet
