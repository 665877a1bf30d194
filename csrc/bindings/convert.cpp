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

namespace {

std::string shape_text(std::span<const Index> shape) {
  std::string text;
  for (Index size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

}  // namespace

Columns offset_view(const std::optional<FloatArray>& offset, const std::vector<Index>& shape) {
  if (!offset) return {};
  const std::span<const Index> given(offset->shape(), static_cast<std::size_t>(offset->ndim()));
  require(std::ranges::equal(given, shape),
          "offsets are needed for every row and visible unit: an array of " + shape_text(shape) +
              ", not of " + shape_text(given));
  return {.data = offset->data(), .width = shape.back()};
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

bool is_double(const py::array& x) {
  const bool wide = py::isinstance<py::array_t<double>>(x);
  require(wide || py::isinstance<py::array_t<float>>(x),
          "the covariates must be float32 or float64");
  return wide;
}

std::span<const double> view(const DoubleArray& values, Index columns) {
  require(values.size() == columns, "one center and one scale per covariate");
  return {values.data(), static_cast<std::size_t>(values.size())};
}

// A view of a float32 or float64 matrix with any strides; keeps nothing alive.
Source source_from_array(const py::array& x, const DoubleArray& center,
                         const DoubleArray& inverse_scale, double limit) {
  require(x.ndim() == 2, "the covariates must be a two-dimensional array");
  return {.data = x.data(),
          .is_double = is_double(x),
          .rows = x.shape(0),
          .columns = x.shape(1),
          .row_stride = x.strides(0),
          .column_stride = x.strides(1),
          .center = view(center, x.shape(1)),
          .inverse_scale = view(inverse_scale, x.shape(1)),
          .limit = limit};
}

bool is_contiguous(const py::array& x) {
  return x.ndim() == 1 && (x.flags() & py::array::c_style) != 0;
}

// The same for the three arrays of a compressed matrix.
Compressed source_from_arrays(const py::array& values, const py::array& row_index,
                              const py::array& first_entry, Index rows, const DoubleArray& center,
                              const DoubleArray& inverse_scale, double limit) {
  require(is_contiguous(values) && is_contiguous(row_index) && is_contiguous(first_entry),
          "a sparse matrix has contiguous arrays");
  const bool wide = py::isinstance<py::array_t<std::int64_t>>(row_index);
  require(wide ? py::isinstance<py::array_t<std::int64_t>>(first_entry)
               : py::isinstance<py::array_t<std::int32_t>>(row_index) &&
                     py::isinstance<py::array_t<std::int32_t>>(first_entry),
          "indices of a sparse matrix must be int32 or int64");
  require(first_entry.size() >= 1 && row_index.size() == values.size(),
          "a sparse matrix has one row per stored entry");
  const Index columns = first_entry.size() - 1;
  const Compressed source{.values = values.data(),
                          .is_double = is_double(values),
                          .row_index = row_index.data(),
                          .first_entry = first_entry.data(),
                          .is_wide = wide,
                          .rows = rows,
                          .columns = columns,
                          .center = view(center, columns),
                          .inverse_scale = view(inverse_scale, columns),
                          .limit = limit};
  require(source.first(columns) == values.size(), "a sparse matrix ends with its last entry");
  return source;
}

}  // namespace

PyDataset::PyDataset(py::array x, DoubleArray center, DoubleArray inverse_scale, double limit,
                     std::size_t pack_bytes)
    : kept{x, center, inverse_scale},
      limit(limit),
      data(source_from_array(x, center, inverse_scale, limit), pack_bytes) {}

PyDataset::PyDataset(py::array values, py::array row_index, py::array first_entry, Index rows,
                     DoubleArray center, DoubleArray inverse_scale, double limit)
    : kept{values, row_index, first_entry, center, inverse_scale},
      limit(limit),
      data(source_from_arrays(values, row_index, first_entry, rows, center, inverse_scale, limit)) {
}

PyDataset::PyDataset(const PyDataset& base, Dataset completed)
    : kept(base.kept), limit(base.limit), is_completed(true), data(std::move(completed)) {}

}  // namespace cstonet
