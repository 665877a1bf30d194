#include "bindings/convert.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace cstonet {
namespace {

Family family_from_name(const std::string& name) {
  if (name == "gaussian") return Family::gaussian;
  if (name == "bernoulli") return Family::bernoulli;
  require(name == "categorical", "unknown family '" + name + "'");
  return Family::categorical;
}

Activation activation_from_name(const std::string& name) {
  if (name == "tanh") return Activation::tanh;
  if (name == "sigmoid") return Activation::sigmoid;
  require(name == "relu", "unknown activation '" + name + "'");
  return Activation::relu;
}

}  // namespace

NetworkSpec network_from_python(py::handle network) {
  NetworkSpec spec;
  spec.inputs = network.attr("inputs").cast<Index>();
  spec.activation = activation_from_name(network.attr("activation").cast<std::string>());
  Index column = 0;
  for (py::handle layer : network.attr("layers")) {
    LayerSpec converted;
    for (py::handle item : layer) {
      Block block;
      block.family = family_from_name(item.attr("family").cast<std::string>());
      block.size = item.attr("size").cast<Index>();
      block.visible = item.attr("visible").cast<bool>();
      block.feeds = item.attr("feeds").cast<bool>();
      block.weight = item.attr("weight").cast<double>();
      block.column = block.visible ? column : -1;
      if (block.visible) column += block.size;
      converted.blocks.push_back(block);
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
                static_cast<Index>(b.size()) == w.columns(),
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
    std::copy_n(array.data() + i * panel.columns(), panel.columns(), panel.row(i));
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

FloatArray array_from_panel(const Panel& panel) {
  FloatArray array({panel.rows(), panel.columns()});
  for (Index i = 0; i < panel.rows(); ++i)
    std::copy_n(panel.row(i), panel.columns(), array.mutable_data() + i * panel.columns());
  return array;
}

FloatArray array_from_floats(const float* values, Index n) { return FloatArray(n, values); }

DoubleArray array_from_doubles(const std::vector<double>& values) {
  return DoubleArray(static_cast<Index>(values.size()), values.data());
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
  return {x.data(),     is_double,     x.shape(0),           x.shape(1), x.strides(0),
          x.strides(1), center.data(), inverse_scale.data(), limit};
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
