// Missing covariates: where they are, candidates for them, and what a network says about these.
#include "core/missing.hpp"

#include <array>

#include "bindings/convert.hpp"
#include "bindings/polling.hpp"
#include "bindings/register.hpp"
#include "core/errors.hpp"

namespace cstonet {
namespace {

Gaps gaps_from_arrays(const IndexArray& first, const IndexArray& column, Index columns) {
  Gaps gaps{indices_from_array(first), indices_from_array(column)};
  gaps.validate(columns);
  return gaps;
}

Candidates candidates_from_arrays(const IndexArray& first, const IndexArray& column, Index columns,
                                  const FloatArray& values, const FloatArray& log_weight) {
  Candidates candidates;
  candidates.gaps = gaps_from_arrays(first, column, columns);
  candidates.values = panel_from_array(values);
  candidates.log_weight = panel_from_array(log_weight);
  candidates.draws = candidates.values.columns();
  candidates.prepare(columns);
  return candidates;
}

PyDataset completed(const PyDataset& base, std::shared_ptr<Gaps> gaps, const FloatArray& values) {
  return PyDataset(base, base.data.completed(std::move(gaps), floats_from_array(values)));
}

FloatArray log_likelihood(py::object network, const py::list& weights, const py::list& biases,
                          const IndexArray& inputs, const PyDataset& dataset,
                          const Candidates& candidates, const FloatArray& visible,
                          const std::vector<double>& variances, int threads) {
  const NetworkSpec spec = network_from_python(network);
  const Parameters parameters = parameters_from_python(spec, weights, biases);
  const std::vector<Index> columns = indices_from_array(inputs);
  const Panel values = panel_from_array(visible);
  require(static_cast<Index>(columns.size()) == spec.inputs, "one covariate per network input");
  for (Index column : columns)
    require(column >= 0 && column < dataset.data.columns(), "a column does not exist");
  require(candidates.gaps.rows() == dataset.data.rows(), "candidates list the gaps of every row");
  require(values.rows() == dataset.data.rows() && values.columns() == spec.visible_columns(),
          "one row per observation and one column per visible unit");
  require(variances.size() == visible_blocks(spec).size(), "one variance per visible block");
  Panel out;
  Hooks hooks;
  run_released(hooks, py::none(), [&] {
    candidate_log_likelihood(spec, parameters, columns, dataset.data, candidates, values, variances,
                             threads, hooks, out);
  });
  return array_from_panel(out);
}

// Seam for the NumPy twin: where `steps` moves take every row from candidate 0.
std::vector<Index> move(py::object network, const py::list& weights, const py::list& biases,
                        const FloatArray& x, const Candidates& candidates,
                        const FloatArray& visible, const std::vector<double>& variances,
                        const std::array<std::uint64_t, 4>& stream, std::uint32_t steps) {
  const NetworkSpec spec = network_from_python(network);
  const Parameters parameters = parameters_from_python(spec, weights, biases);
  Batch batch;
  batch.inputs = panel_from_array(x);
  batch.visible = panel_from_array(visible);
  batch.weight.assign(static_cast<std::size_t>(batch.rows()), 1.0f);
  std::vector<Index> all(static_cast<std::size_t>(batch.rows()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Index>(i);
  std::vector<Index> inputs(static_cast<std::size_t>(spec.inputs));
  for (std::size_t j = 0; j < inputs.size(); ++j) inputs[j] = static_cast<Index>(j);
  const RandomStream random(stream[0], stream[1], stream[2], stream[3]);
  std::vector<LayerState> states;
  allocate(spec, batch.rows(), states);
  Imputer imputer(candidates, batch.rows());
  imputer.connect(inputs, spec.inputs);
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (Index i = 0; i < batch.rows(); ++i) imputer.fill(i, batch.inputs.row(i));
    forward(spec, parameters, batch, states);
    imputer.move(spec, parameters, all.data(), batch, states, variances, random, step, 0);
  }
  return imputer.current();
}

}  // namespace

void register_missing(py::module_& m) {
  py::class_<Gaps, std::shared_ptr<Gaps>>(m, "Gaps").def(
      py::init(&gaps_from_arrays), py::arg("first"), py::arg("column"), py::arg("columns"));
  py::class_<Candidates>(m, "Candidates")
      .def(py::init(&candidates_from_arrays), py::arg("first"), py::arg("column"),
           py::arg("columns"), py::arg("values").noconvert(), py::arg("log_weight").noconvert());
  m.def("completed", completed, py::arg("data"), py::arg("gaps"), py::arg("values").noconvert());
  m.def("candidate_log_likelihood", log_likelihood, py::arg("network"), py::arg("weights"),
        py::arg("biases"), py::arg("inputs"), py::arg("data"), py::arg("candidates"),
        py::arg("visible").noconvert(), py::arg("variances"), py::arg("threads"));
  m.def("move_candidates", move);
}

}  // namespace cstonet
