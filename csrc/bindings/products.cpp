#include "bindings/products.hpp"

#include <algorithm>

#include "bindings/polling.hpp"
#include "bindings/register.hpp"
#include "core/errors.hpp"

namespace cstonet {
namespace {

Columns columns_view(const FloatArray& array, Index rows) {
  require(array.ndim() == 2 && array.shape(0) == rows, "one row of every array per row");
  return {.data = array.data(), .width = array.shape(1)};
}

SlopeNetwork network_of(py::handle net) {
  NetworkSpec spec = network_from_python(net.attr("spec"));
  Parameters parameters =
      parameters_from_python(spec, py::list(net.attr("weights")), py::list(net.attr("biases")));
  return {.spec = std::move(spec),
          .parameters = std::move(parameters),
          .inputs = indices_from_array(net.attr("inputs").cast<IndexArray>())};
}

}  // namespace

PyProducts products_from_python(py::handle described) {
  const auto residuals = described.attr("residuals").cast<FloatArray>();
  const auto given = described.attr("given").cast<FloatArray>();
  const auto treatment = described.attr("treatment").cast<FloatArray>();
  const py::object network = described.attr("network");
  const auto table = described.attr("table").cast<IndexArray>();
  const auto scale = described.attr("scale").cast<FloatArray>();
  require(residuals.ndim() == 2, "residuals have a row per row and a column per predictor");
  require(table.ndim() == 2 && table.shape(1) == 3 && scale.size() == table.shape(0),
          "a direction has a predictor, a kind, a number and a scale");
  PyProducts made{.residuals = residuals, .given = given, .treatment = treatment, .products = {}};
  Products& products = made.products;
  products.rows = residuals.shape(0);
  products.residuals = columns_view(residuals, products.rows);
  products.given = columns_view(given, products.rows);
  if (!network.is_none()) {
    products.network = network_of(network);
    products.treatment = columns_view(treatment, products.rows);
    require(products.treatment.width <= products.network->spec.visible_columns(),
            "the network has fewer visible units than there are treatments");
  }
  for (Index k = 0; k < table.shape(0); ++k) {
    const Index kind = table.at(k, 1);
    require(kind >= 0 && kind <= static_cast<Index>(DirectionKind::member),
            "there is no such kind of direction");
    products.directions.push_back({.predictor = table.at(k, 0),
                                   .kind = static_cast<DirectionKind>(kind),
                                   .which = table.at(k, 2),
                                   .scale = scale.data()[k]});
  }
  return made;
}

namespace {

DoubleArray moments(const py::object& described, const PyDataset& dataset, const IndexArray& rows,
                    int threads) {
  const PyProducts made = products_from_python(described);
  const std::vector<Index> wanted = rows_from_array(rows, dataset.data);
  require(std::ssize(wanted) == made.products.rows, "one row of products per row");
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
                  int threads) {
  const PyProducts made = products_from_python(described);
  const std::vector<Index> wanted = rows_from_array(rows, dataset.data);
  require(std::ssize(wanted) == made.products.rows, "one row of products per row");
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
