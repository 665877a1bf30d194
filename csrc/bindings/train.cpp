// Training and prediction.
#include <algorithm>
#include <limits>

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
  const auto outcomes = std::count_if(blocks.begin(), blocks.end(), is_outcome);
  const auto treatments = static_cast<Index>(blocks.size()) - outcomes;
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
    std::copy(rows[i].begin(), rows[i].end(), out.mutable_data() + i * columns);
  return out;
}

// The weights a network may have: None for all, else one 0/1 matrix per layer.
std::vector<Panel> structure_from_python(const NetworkSpec& spec, const py::object& structure) {
  std::vector<Panel> allowed;
  if (structure.is_none()) return allowed;
  for (py::handle item : structure) allowed.push_back(panel_from_array(item.cast<FloatArray>()));
  require(static_cast<Index>(allowed.size()) == spec.depth(), "one structure matrix per layer");
  const Parameters shapes(spec);
  for (std::size_t i = 0; i < allowed.size(); ++i)
    require(allowed[i].rows() == shapes.layers[i].weights.rows() &&
                allowed[i].columns() == shapes.layers[i].weights.columns(),
            "layer " + std::to_string(i + 1) + ": the structure does not fit the network");
  return allowed;
}

std::vector<TaskResult> train(py::object network, py::object options, const PyDataset& dataset,
                              const IndexArray& inputs, const FloatArray& visible,
                              const FloatArray& row_weight, const py::list& tasks,
                              std::uint64_t seed, int threads, const py::object& progress,
                              const py::object& structure, const Candidates* candidates, bool trace,
                              std::uint64_t network_id) {
  const NetworkSpec spec = network_from_python(network);
  const auto training = from_python<TrainingOptions>(options);
  const Dataset& data = dataset.data;
  const std::vector<Index> columns = columns_from_array(inputs, data);
  const Panel values = panel_from_array(visible);
  const Floats weights = floats_from_array(row_weight);
  require(static_cast<Index>(columns.size()) == spec.inputs, "one covariate per network input");
  require(values.rows() == data.rows() && values.columns() == spec.visible_columns(),
          "one row per observation and one column per visible unit");
  require(static_cast<Index>(weights.size()) == data.rows(), "one weight per row");
  require(static_cast<Index>(training.sampler.variance.size()) == spec.hidden_layers(),
          "one latent variance per hidden layer");
  for (const StageOptions& stage : training.stages)
    require(static_cast<Index>(stage.rate.size()) == spec.depth() &&
                static_cast<Index>(stage.step.size()) == spec.hidden_layers(),
            "one rate per layer and one step per hidden layer");
  if (candidates)
    require(candidates->gaps.rows() == data.rows(), "candidates list the gaps of every row");
  std::vector<Task> work;
  for (py::handle item : tasks) {
    const auto t = item.cast<py::tuple>();
    work.push_back({t[0].cast<Index>(), t[1].cast<Index>(),
                    indices_from_array(t[2].cast<IndexArray>()),
                    indices_from_array(t[3].cast<IndexArray>())});
    for (const auto* rows : {&work.back().fit_rows, &work.back().validation_rows})
      for (Index row : *rows)
        require(row >= 0 && row < data.rows(), "a task names a row that does not exist");
    require(!work.back().fit_rows.empty(), "a task has no rows");
  }

  const std::vector<Panel> allowed = structure_from_python(spec, structure);
  std::vector<TaskResult> results(work.size());
  Hooks hooks;
  run_released(hooks, progress, [&] {
    const Problem problem{spec,    training, data,       columns,    values, weights,
                          allowed, seed,     network_id, candidates, trace};
    run_tasks(static_cast<long>(work.size()), threads, hooks, [&](long i) {
      const auto at = static_cast<std::size_t>(i);
      results[at] = Trainer(problem, work[at], hooks).run();
    });
  });
  return results;
}

py::array_t<float> predict_means(py::object network, const py::list& weights,
                                 const py::list& biases, const IndexArray& inputs,
                                 const PyDataset& dataset, const IndexArray& rows,
                                 const FloatArray& clamp, int threads) {
  const NetworkSpec spec = network_from_python(network);
  const Parameters parameters = parameters_from_python(spec, weights, biases);
  const Dataset& data = dataset.data;
  const std::vector<Index> columns = columns_from_array(inputs, data);
  const std::vector<Index> wanted = indices_from_array(rows);
  const Panel settings = panel_from_array(clamp);
  for (Index row : wanted) require(row >= 0 && row < data.rows(), "a row does not exist");

  std::vector<Panel> out;
  Hooks hooks;
  run_released(hooks, py::none(), [&] {
    out = predict(spec, parameters, columns, data, wanted, settings, threads, hooks);
  });
  const auto settings_n = static_cast<Index>(out.size());
  const auto n = static_cast<Index>(wanted.size());
  const Index units = spec.visible_columns();
  FloatArray array({settings_n, n, units});
  for (Index s = 0; s < settings_n; ++s)
    for (Index i = 0; i < n; ++i)
      std::copy_n(out[static_cast<std::size_t>(s)].row(i), units,
                  array.mutable_data() + (s * n + i) * units);
  return array;
}

}  // namespace

void register_train(py::module_& m) {
  py::class_<TaskResult>(m, "TaskResult")
      .def_property_readonly("weights",
                             [](const TaskResult& r) {
                               return per_layer(r, [](const LayerParameters& theta) {
                                 return array_from_panel(theta.weights);
                               });
                             })
      .def_property_readonly("masks",
                             [](const TaskResult& r) {
                               return per_layer(r, [](const LayerParameters& theta) {
                                 return array_from_panel(theta.mask);
                               });
                             })
      .def_property_readonly("biases",
                             [](const TaskResult& r) {
                               return per_layer(r, [](const LayerParameters& theta) {
                                 return array_from_floats(theta.bias.data(),
                                                          theta.weights.columns());
                               });
                             })
      .def_property_readonly("inputs",
                             [](const TaskResult& r) {
                               return py::array_t<std::int64_t>(static_cast<Index>(r.inputs.size()),
                                                                r.inputs.data());
                             })
      .def_property_readonly("variances",
                             [](const TaskResult& r) { return array_from_doubles(r.variances); })
      .def_property_readonly(
          "log_likelihood",
          [](const TaskResult& r) { return array_from_doubles(r.log_likelihood); })
      .def_readonly("bic", &TaskResult::bic)
      .def_readonly("rows", &TaskResult::rows)
      .def_property_readonly("nonzero",
                             [](const TaskResult& r) { return r.parameters.nonzero_weights(); })
      .def_readonly("reaches", &TaskResult::reaches)
      .def_property_readonly("trace", trace_array)
      .def_readonly("failure", &TaskResult::failure);

  m.def("train", train, py::arg("network"), py::arg("options"), py::arg("data"), py::arg("inputs"),
        py::arg("visible").noconvert(), py::arg("row_weight").noconvert(), py::arg("tasks"),
        py::arg("seed"), py::arg("threads"), py::arg("progress") = py::none(),
        py::arg("structure") = py::none(),
        py::arg("candidates").none(true) = static_cast<const Candidates*>(nullptr),
        py::arg("trace") = true, py::arg("network_id") = 0);
  m.def(
      "trace_columns",
      [](py::object network) { return trace_columns(network_from_python(network)); },
      py::arg("network"));
  m.def("predict", predict_means, py::arg("network"), py::arg("weights"), py::arg("biases"),
        py::arg("inputs"), py::arg("data"), py::arg("rows"), py::arg("clamp").noconvert(),
        py::arg("threads"));
}

}  // namespace cstonet
