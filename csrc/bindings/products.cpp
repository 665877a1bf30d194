#include "bindings/products.hpp"

#include <algorithm>

#include "bindings/polling.hpp"
#include "bindings/register.hpp"
#include "core/errors.hpp"

namespace cstonet {
namespace {

Columns columns_view(const FloatArray& array, const std::string& name, Index rows) {
  require_shape(array, name, {rows, kAny});
  return {.data = array.data(), .width = array.shape(1)};
}

SlopeNetwork network_of(py::handle net) {
  NetworkSpec spec = network_from_python(net.attr("spec"));
  Parameters parameters =
      parameters_from_python(spec, py::list(net.attr("weights")), py::list(net.attr("biases")));
  return {
      .spec = std::move(spec),
      .parameters = std::move(parameters),
      .inputs = indices_from_array(array_from<IndexArray>(net.attr("inputs"), "inputs"), "inputs")};
}

}  // namespace

PyProducts products_from_python(py::handle described) {
  const auto residuals = array_from<FloatArray>(described.attr("residuals"), "residuals");
  const auto given = array_from<FloatArray>(described.attr("given"), "given");
  const auto treatment = array_from<FloatArray>(described.attr("treatment"), "treatment");
  const py::object network = described.attr("network");
  const auto table = array_from<IndexArray>(described.attr("table"), "table");
  const auto scale = array_from<FloatArray>(described.attr("scale"), "scale");
  require_shape(residuals, "residuals", {kAny, kAny});
  require_shape(table, "table", {kAny, 3});  // predictor, kind, number
  require_shape(scale, "scale", {table.shape(0)});
  PyProducts made{.residuals = residuals, .given = given, .treatment = treatment, .products = {}};
  Products& products = made.products;
  products.rows = residuals.shape(0);
  products.residuals = columns_view(residuals, "residuals", products.rows);
  products.given = columns_view(given, "given", products.rows);
  if (!network.is_none()) {
    products.network = network_of(network);
    products.treatment = columns_view(treatment, "treatment", products.rows);
    require(products.treatment.width <= products.network->spec.visible_columns(),
            "treatment has more columns than the network has visible units");
  }
  for (Index k = 0; k < table.shape(0); ++k) {
    const Index kind = table.at(k, 1);
    require(kind >= 0 && kind <= static_cast<Index>(DirectionKind::member),
            "table: there is no such kind of direction");
    products.directions.push_back({.predictor = table.at(k, 0),
                                   .kind = static_cast<DirectionKind>(kind),
                                   .which = table.at(k, 2),
                                   .scale = scale.data()[k]});
  }
  return made;
}

namespace {

DoubleArray moments(const py::object& described, const PyDataset& dataset, const IndexArray& rows,
                    ThreadCount threads) {
  const PyProducts made = products_from_python(described);
  const std::vector<Index> wanted = rows_from_array(rows, "rows", dataset.data);
  require_shape(rows, "rows", {made.products.rows});
  std::vector<Moments> all;
  Hooks hooks;
  run_released(hooks, py::none(),
               [&] { all = product_moments(made.products, dataset.data, wanted, threads, hooks); });
  DoubleArray out({Index{2}, made.products.size()});
  for (Index k = 0; k < made.products.size(); ++k) {
    out.mutable_at(0, k) = all[k].mean;
    out.mutable_at(1, k) = all[k].squares / std::max(all[k].rows, 1.0);
  }
  return out;
}

FloatArray values(const py::object& described, const PyDataset& dataset, const IndexArray& rows,
                  ThreadCount threads) {
  const PyProducts made = products_from_python(described);
  const std::vector<Index> wanted = rows_from_array(rows, "rows", dataset.data);
  require_shape(rows, "rows", {made.products.rows});
  FloatArray out({std::ssize(wanted), made.products.size()});
  const std::span<float> to(out.mutable_data(), static_cast<std::size_t>(out.size()));
  Hooks hooks;
  run_released(hooks, py::none(),
               [&] { product_values(made.products, dataset.data, wanted, threads, hooks, to); });
  return out;
}

}  // namespace

void register_products(py::module_& m) {
  m.def("product_moments", moments, py::arg("products"), py::arg("data"), py::arg("rows"),
        py::arg("threads"));
  m.def("product_values", values, py::arg("products"), py::arg("data"), py::arg("rows"),
        py::arg("threads"));
}

}  // namespace cstonet
