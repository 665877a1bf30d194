#include "bindings/convert.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace cstonet {

NetworkSpec network_from_python(py::handle network) {
  NetworkSpec spec{.inputs = network.attr("inputs").cast<Index>(),
                   .activation = from_python<Activation>(network.attr("activation")),
                   .layers = {}};
  Index column = 0;
  for (py::handle layer : network.attr("layers")) {
    LayerSpec converted;
    for (py::handle item : layer) {
      const bool visible = item.attr("visible").cast<bool>();
      converted.blocks.push_back({.family = from_python<Family>(item.attr("family")),
                                  .size = item.attr("size").cast<Index>(),
                                  .visible = visible,
                                  .feeds = item.attr("feeds").cast<bool>(),
                                  .weight = item.attr("weight").cast<double>(),
                                  .column = visible ? column : -1});
      if (visible) column += converted.blocks.back().size;
    }
    spec.layers.push_back(std::move(converted));
  }
  spec.validate();
  return spec;
}

Parameters parameters_from_python(const NetworkSpec& spec, const py::list& weights,
                                  const py::list& biases) {
  Parameters parameters(spec);
  require(weights.size() == spec.layers.size() && biases.size() == spec.layers.size(),
          "one weight matrix and one bias vector per layer");
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerParameters& theta = parameters.layers[i];
    const Panel w = panel_from_array(weights[i].cast<FloatArray>());
    const Floats b = floats_from_array(biases[i].cast<FloatArray>());
    require(w.rows() == theta.weights.rows() && w.columns() == theta.weights.columns() &&
                std::ssize(b) == w.columns(),
            "layer " + std::to_string(i + 1) + ": parameters do not fit the network");
    theta.weights = w;
    std::copy(b.begin(), b.end(), theta.bias.begin());
  }
  return parameters;
}

Panel panel_from_array(const FloatArray& array) {
  require(array.ndim() == 2, "a two-dimensional array is needed");
  Panel panel(array.shape(0), array.shape(1));
  for (Index i = 0; i < panel.rows(); ++i)
    std::copy_n(array.data() + i * panel.columns(), panel.columns(), panel.row(i).begin());
  return panel;
}

Floats floats_from_array(const FloatArray& array) {
  require(array.ndim() == 1, "a one-dimensional array is needed");
  return Floats(array.data(), array.data() + array.size());
}

std::vector<Index> indices_from_array(const IndexArray& array) {
  require(array.ndim() == 1, "a one-dimensional array is needed");
  return std::vector<Index>(array.data(), array.data() + array.size());
}

std::vector<Index> columns_from_array(const IndexArray& array, const Dataset& data) {
  std::vector<Index> columns = indices_from_array(array);
  for (Index column : columns)
    require(column >= 0 && column < data.columns(), "a covariate does not exist");
  return columns;
}

std::vector<Index> rows_from_array(const IndexArray& array, const Dataset& data) {
  std::vector<Index> rows = indices_from_array(array);
  for (Index row : rows) require(row >= 0 && row < data.rows(), "a row does not exist");
  return rows;
}

FloatArray array_from_panel(const Panel& panel) {
  FloatArray array({panel.rows(), panel.columns()});
  for (Index i = 0; i < panel.rows(); ++i)
    std::ranges::copy(panel.row(i), array.mutable_data() + i * panel.columns());
  return array;
}

FloatArray array_from_floats(std::span<const float> values) {
  return FloatArray(std::ssize(values), values.data());
}

DoubleArray array_from_doubles(std::span<const double> values) {
  return DoubleArray(std::ssize(values), values.data());
}

FloatArray array_from_bias(const LayerParameters& theta) {
  return array_from_floats(std::span(theta.bias).first(theta.weights.columns()));
}

namespace {

// A view of a float32 or float64 matrix with any strides; keeps nothing alive.
Source source_from_array(const py::array& x, const DoubleArray& center,
                         const DoubleArray& inverse_scale, double limit) {
  require(x.ndim() == 2, "the covariates must be a two-dimensional array");
  const bool is_double = py::isinstance<py::array_t<double>>(x);
  require(is_double || py::isinstance<py::array_t<float>>(x),
          "the covariates must be float32 or float64");
  require(center.size() == x.shape(1) && inverse_scale.size() == x.shape(1),
          "one center and one scale per covariate");
  const auto view = [](const DoubleArray& values) {
    return std::span<const double>(values.data(), values.size());
  };
  return {.data = x.data(),
          .is_double = is_double,
          .rows = x.shape(0),
          .columns = x.shape(1),
          .row_stride = x.strides(0),
          .column_stride = x.strides(1),
          .center = view(center),
          .inverse_scale = view(inverse_scale),
          .limit = limit};
}

}  // namespace

PyDataset::PyDataset(py::array x, DoubleArray center, DoubleArray inverse_scale, double limit,
                     std::size_t pack_bytes)
    : x(std::move(x)),
      center(std::move(center)),
      inverse_scale(std::move(inverse_scale)),
      data(source_from_array(this->x, this->center, this->inverse_scale, limit), pack_bytes) {}

PyDataset::PyDataset(const PyDataset& base, Dataset completed)
    : x(base.x),
      center(base.center),
      inverse_scale(base.inverse_scale),
      data(std::move(completed)) {}

}  // namespace cstonet
