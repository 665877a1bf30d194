// Missing covariates: where they are, candidates for them, and what a network says about these.
#include "core/missing.hpp"

#include "bindings/call.hpp"
#include "bindings/convert.hpp"
#include "bindings/polling.hpp"
#include "bindings/register.hpp"
#include "core/errors.hpp"

namespace cstonet {
namespace {

Gaps gaps_from_arrays(const IndexArray& first, const IndexArray& column, Index columns) {
  Gaps gaps{indices_from_array(first, "first"), indices_from_array(column, "column")};
  gaps.validate(columns);
  return gaps;
}

Candidates candidates_from_arrays(const IndexArray& first, const IndexArray& column, Index columns,
                                  const FloatArray& values, const FloatArray& log_weight) {
  Candidates candidates;
  candidates.gaps = gaps_from_arrays(first, column, columns);
  candidates.values = panel_from_array(values, "values");
  candidates.log_weight = panel_from_array(log_weight, "log_weight");
  candidates.draws = candidates.values.columns();
  candidates.prepare(columns);
  return candidates;
}

PyDataset completed(const PyDataset& base, std::shared_ptr<Gaps> gaps, const FloatArray& values) {
  require_shape(values, "values", {gaps->entries()});
  require_gaps_of(base.data, *gaps, "gaps");
  return PyDataset(base, base.data.completed(std::move(gaps), floats_from_array(values, "values")));
}

struct LikelihoodCall {
  py::object network;
  py::list weights, biases;
  IndexArray inputs;
  const PyDataset* data = nullptr;
  const Candidates* candidates = nullptr;
  FloatArray visible;
  std::vector<double> variances;
  ThreadCount threads;
  std::optional<FloatArray> offset;
};

FloatArray log_likelihood(const LikelihoodCall& call) {
  const NetworkSpec spec = network_from_python(call.network);
  const Parameters parameters = parameters_from_python(spec, call.weights, call.biases);
  const Dataset& data = call.data->data;
  require_shape(call.inputs, "inputs", {spec.inputs});
  const std::vector<Index> columns = columns_from_array(call.inputs, "inputs", data);
  require_shape(call.visible, "visible", {data.rows(), spec.visible_columns()});
  const Panel values = panel_from_array(call.visible, "visible");
  require_gaps_of(data, call.candidates->gaps, "candidates");
  require_count(call.variances.size(), "variances", std::ssize(visible_blocks(spec)));
  const Columns offset = offset_view(call.offset, {data.rows(), spec.visible_columns()});
  const Model model{.spec = spec, .parameters = parameters, .variances = call.variances};
  Panel out;
  Hooks hooks;
  run_released(hooks, py::none(), [&] {
    out = candidate_log_likelihood(model, columns, data, *call.candidates, values, offset,
                                   call.threads, hooks);
  });
  return array_from_panel(out);
}

}  // namespace

void register_missing(py::module_& m) {
  py::class_<Gaps, std::shared_ptr<Gaps>>(m, "Gaps").def(
      py::init(&gaps_from_arrays), py::arg("first"), py::arg("column"), py::arg("columns"));
  py::class_<Candidates>(m, "Candidates")
      .def(py::init(&candidates_from_arrays), py::arg("first"), py::arg("column"),
           py::arg("columns"), py::arg("values").noconvert(), py::arg("log_weight").noconvert());
  m.def("completed", completed, py::arg("data"), py::arg("gaps"), py::arg("values").noconvert());
  using Call = LikelihoodCall;
  m.def("candidate_log_likelihood",
        unpacked(log_likelihood, &Call::network, &Call::weights, &Call::biases, &Call::inputs,
                 &Call::data, &Call::candidates, &Call::visible, &Call::variances, &Call::threads,
                 &Call::offset),
        py::arg("network"), py::arg("weights"), py::arg("biases"), py::arg("inputs"),
        py::arg("data").none(false), py::arg("candidates").none(false),
        py::arg("visible").noconvert(), py::arg("variances"), py::arg("threads"),
        py::arg("offset") = py::none());
}

}  // namespace cstonet
