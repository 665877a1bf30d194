// The covariates, and what is computed from them column by column.
#include <algorithm>
#include <numeric>
#include <optional>

#include "bindings/convert.hpp"
#include "bindings/polling.hpp"
#include "bindings/register.hpp"
#include "core/errors.hpp"
#include "core/score.hpp"

namespace cstonet {
namespace {

FloatArray gather(const PyDataset& dataset, const IndexArray& rows, const IndexArray& columns) {
  const std::vector<Index> wanted = rows_from_array(rows, dataset.data);
  const std::vector<Index> subset = columns_from_array(columns, dataset.data);
  Panel out(std::ssize(wanted), std::ssize(subset));
  dataset.data.gather(wanted, subset, out);
  return array_from_panel(out);
}

FloatArray score_statistics(const PyDataset& dataset, const IndexArray& rows,
                            const FloatArray& directions, int threads, const py::object& progress,
                            const std::optional<IndexArray>& covariates) {
  const std::vector<Index> wanted = rows_from_array(rows, dataset.data);
  std::vector<Index> columns(dataset.data.columns());
  std::iota(columns.begin(), columns.end(), Index{0});
  if (covariates) columns = columns_from_array(*covariates, dataset.data);
  const Panel g = panel_from_array(directions);
  require(g.rows() == std::ssize(wanted), "one row of directions per row");
  Panel linear, square;
  Hooks hooks;
  run_released(hooks, progress, [&] {
    score_tests(dataset.data, wanted, columns, g, threads, hooks, linear, square);
  });
  const Index p = linear.rows(), k = linear.columns();
  FloatArray out({Index{2}, p, k});
  for (Index j = 0; j < p; ++j) {
    std::ranges::copy(linear.row(j), out.mutable_data() + j * k);
    std::ranges::copy(square.row(j), out.mutable_data() + (p + j) * k);
  }
  return out;
}

}  // namespace

void register_data(py::module_& m) {
  py::class_<PyDataset>(m, "Dataset")
      .def(py::init<py::array, DoubleArray, DoubleArray, double, std::size_t>(),
           py::arg("x").noconvert(), py::arg("center"), py::arg("inverse_scale"), py::arg("limit"),
           py::arg("pack_bytes"))
      .def_property_readonly("rows", [](const PyDataset& d) { return d.data.rows(); })
      .def_property_readonly("columns", [](const PyDataset& d) { return d.data.columns(); })
      .def_property_readonly("is_packed", [](const PyDataset& d) { return d.data.is_packed(); })
      .def("gather", gather, py::arg("rows"), py::arg("columns"));
  m.def("score_statistics", score_statistics, py::arg("data"), py::arg("rows"),
        py::arg("directions").noconvert(), py::arg("threads"), py::arg("progress") = py::none(),
        py::arg("covariates") = py::none());
}

}  // namespace cstonet
