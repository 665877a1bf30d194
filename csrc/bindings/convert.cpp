#include "bindings/convert.hpp"

#include <algorithm>
#include <utility>

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
  require_count(weights.size(), "weights", spec.depth());
  require_count(biases.size(), "biases", spec.depth());
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerParameters& theta = parameters.layers[i];
    const std::string layer = " of layer " + std::to_string(i + 1);
    const auto w = array_from<FloatArray>(weights[i], "weights" + layer);
    const auto b = array_from<FloatArray>(biases[i], "biases" + layer);
    require_shape(w, "weights" + layer, {theta.weights.rows(), theta.weights.columns()});
    require_shape(b, "biases" + layer, {theta.weights.columns()});
    theta.weights = panel_from_array(w, "weights");
    std::copy_n(b.data(), b.size(), theta.bias.begin());
  }
  return parameters;
}

namespace {

std::string shape_text(std::span<const Index> shape) {
  if (shape.empty()) return "a single number";
  std::string text;
  for (Index size : shape)
    text += (text.empty() ? "" : " x ") + (size == kAny ? "any" : std::to_string(size));
  return text;
}

std::span<const Index> shape_of(const py::array& array) {
  return {array.shape(), static_cast<std::size_t>(array.ndim())};
}

}  // namespace

void require_shape(const py::array& array, const std::string& name,
                   const std::vector<Index>& shape) {
  const auto fits = [](Index given, Index wanted) { return wanted == kAny || given == wanted; };
  require(
      std::ranges::equal(shape_of(array), shape, fits),
      name + " needs an array of " + shape_text(shape) + ", not of " + shape_text(shape_of(array)));
}

void require_count(std::size_t count, const std::string& name, Index wanted) {
  require(std::cmp_equal(count, wanted),
          name + " needs " + std::to_string(wanted) + " entries, not " + std::to_string(count));
}

Panel panel_from_array(const FloatArray& array, const std::string& name) {
  require_shape(array, name, {kAny, kAny});
  Panel panel(array.shape(0), array.shape(1));
  for (Index i = 0; i < panel.rows(); ++i)
    std::copy_n(array.data() + i * panel.columns(), panel.columns(), panel.row(i).begin());
  return panel;
}

Floats floats_from_array(const FloatArray& array, const std::string& name) {
  require_shape(array, name, {kAny});
  return Floats(array.data(), array.data() + array.size());
}

std::vector<Index> indices_from_array(const IndexArray& array, const std::string& name) {
  require_shape(array, name, {kAny});
  return std::vector<Index>(array.data(), array.data() + array.size());
}

namespace {

std::vector<Index> numbers_below(Index end, const IndexArray& array, const std::string& name,
                                 const std::string& what) {
  std::vector<Index> numbers = indices_from_array(array, name);
  for (Index k : numbers)
    require(k >= 0 && k < end, name + ": " + what + " " + std::to_string(k) + " does not exist");
  return numbers;
}

}  // namespace

std::vector<Index> columns_from_array(const IndexArray& array, const std::string& name,
                                      const Dataset& data) {
  return numbers_below(data.columns(), array, name, "covariate");
}

std::vector<Index> rows_from_array(const IndexArray& array, const std::string& name,
                                   const Dataset& data) {
  return numbers_below(data.rows(), array, name, "row");
}

void require_gaps_of(const Dataset& data, const Gaps& gaps, const std::string& name) {
  require(gaps.rows() == data.rows(), name + " needs the gaps of " + std::to_string(data.rows()) +
                                          " rows, not of " + std::to_string(gaps.rows()));
  const auto exists = [&](Index column) { return column < data.columns(); };
  require(std::ranges::all_of(gaps.column, exists),
          name + " has gaps in columns that do not exist");
}

Columns offset_view(const std::optional<FloatArray>& offset, const std::vector<Index>& shape) {
  if (!offset) return {};
  require_shape(*offset, "offset", shape);
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

bool is_double(const py::array& x, const std::string& name) {
  const bool wide = py::isinstance<py::array_t<double>>(x);
  require(wide || py::isinstance<py::array_t<float>>(x), name + " must be float32 or float64");
  return wide;
}

std::span<const double> view(const DoubleArray& values, const std::string& name, Index columns) {
  require_shape(values, name, {columns});
  return {values.data(), static_cast<std::size_t>(values.size())};
}

// A view of a float32 or float64 matrix with any strides; keeps nothing alive.
Source source_from_array(const py::array& x, const DoubleArray& center,
                         const DoubleArray& inverse_scale, double limit) {
  require_shape(x, "x", {kAny, kAny});
  return {.data = x.data(),
          .is_double = is_double(x, "x"),
          .rows = x.shape(0),
          .columns = x.shape(1),
          .row_stride = x.strides(0),
          .column_stride = x.strides(1),
          .center = view(center, "center", x.shape(1)),
          .inverse_scale = view(inverse_scale, "inverse_scale", x.shape(1)),
          .limit = limit};
}

// Read as they stand: in one piece, and where numbers of their kind may stand.
void require_vector(const py::array& x, const std::string& name) {
  require_shape(x, name, {kAny});
  const int wanted = int{py::array::c_style} | int{py::detail::npy_api::NPY_ARRAY_ALIGNED_};
  require((x.flags() & wanted) == wanted, name + " must be contiguous");
}

// The same for the three arrays of a compressed matrix.
Compressed source_from_arrays(const py::array& values, const py::array& row_index,
                              const py::array& first_entry, Index rows, const DoubleArray& center,
                              const DoubleArray& inverse_scale, double limit) {
  require_vector(values, "values");
  require_vector(row_index, "row_index");
  require_vector(first_entry, "first_entry");
  const bool wide = py::isinstance<py::array_t<std::int64_t>>(row_index);
  require(wide ? py::isinstance<py::array_t<std::int64_t>>(first_entry)
               : py::isinstance<py::array_t<std::int32_t>>(row_index) &&
                     py::isinstance<py::array_t<std::int32_t>>(first_entry),
          "row_index and first_entry must both be int32 or both int64");
  require(first_entry.size() >= 1, "first_entry needs at least one entry");
  require(rows >= 0, "rows must not be negative");
  require_shape(row_index, "row_index", {values.size()});
  const Index columns = first_entry.size() - 1;
  const Compressed source{.values = values.data(),
                          .is_double = is_double(values, "values"),
                          .row_index = row_index.data(),
                          .first_entry = first_entry.data(),
                          .is_wide = wide,
                          .rows = rows,
                          .columns = columns,
                          .center = view(center, "center", columns),
                          .inverse_scale = view(inverse_scale, "inverse_scale", columns),
                          .limit = limit};
  require(source.first(columns) == values.size(),
          "first_entry of a sparse matrix ends with the number of its entries");
  return source;
}

}  // namespace

PyDataset::PyDataset(py::array x, DoubleArray center, DoubleArray inverse_scale, double most,
                     std::size_t pack_bytes)
    : kept{x, center, inverse_scale},
      limit(most),
      data(source_from_array(x, center, inverse_scale, most), pack_bytes) {}

PyDataset::PyDataset(py::array values, py::array row_index, py::array first_entry, Index rows,
                     DoubleArray center, DoubleArray inverse_scale, double most)
    : kept{values, row_index, first_entry, center, inverse_scale},
      limit(most),
      data(source_from_arrays(values, row_index, first_entry, rows, center, inverse_scale, most)) {}

PyDataset::PyDataset(const PyDataset& base, Dataset completed)
    : kept(base.kept), limit(base.limit), is_completed(true), data(std::move(completed)) {}

}  // namespace cstonet
