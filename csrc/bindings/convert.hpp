// Between Python objects and the core's types. No arithmetic.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "bindings/names.hpp"
#include "core/data.hpp"
#include "core/network.hpp"
#include "core/options.hpp"

namespace cstonet {
namespace py = pybind11;

using FloatArray = py::array_t<float, py::array::c_style>;
using DoubleArray = py::array_t<double, py::array::c_style>;
using IndexArray = py::array_t<std::int64_t, py::array::c_style>;

// A struct that lists its fields once, as those of core/options.hpp do.
struct AnyVisitor {
  template <class T>
  void operator()(const char*, T&) {}
};
template <class T>
concept HasFields = requires(T value) { value.fields(AnyVisitor{}); };

template <class T>
concept Enum = std::is_enum_v<T>;

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
T from_python(py::handle object);

struct FieldReader {
  py::handle object;
  template <class T>
  void operator()(const char* name, T& field) const {
    field = from_python<T>(object.attr(name));
  }
};

// Copies a Python dataclass into the option struct with the same field names, recursively; words
// become enums.
template <class T>
T from_python(py::handle object) {
  if constexpr (HasFields<T>) {
    T value{};
    value.fields(FieldReader{object});
    return value;
  } else if constexpr (kIsVector<T>) {
    T values;
    for (py::handle item : object) values.push_back(from_python<typename T::value_type>(item));
    return values;
  } else if constexpr (Enum<T>) {
    return from_word<T>(object.cast<std::string>());
  } else {
    return object.cast<T>();
  }
}

// How many threads to work on: any whole number of Python's, held to what an int holds.
struct ThreadCount {
  int value = 1;
  operator int() const { return value; }
};

// What follows takes the name of the argument, which is what an InvalidArgument begins with.
//
// Of any length along a dimension of the shape that is -1.
constexpr Index kAny = -1;
void require_shape(const py::array& array, const std::string& name,
                   const std::vector<Index>& shape);
void require_count(std::size_t count, const std::string& name, Index wanted);

// An entry of a list, or an attribute, that must be an array.
template <class Array>
Array array_from(py::handle object, const std::string& name) {
  Array array = Array::ensure(object);
  require(static_cast<bool>(array), name + " needs an array of numbers of the kernel's type");
  return array;
}

NetworkSpec network_from_python(py::handle network);
// Of the arguments `weights` and `biases`.
Parameters parameters_from_python(const NetworkSpec& spec, const py::list& weights,
                                  const py::list& biases);

Panel panel_from_array(const FloatArray& array, const std::string& name);
Floats floats_from_array(const FloatArray& array, const std::string& name);
std::vector<Index> indices_from_array(const IndexArray& array, const std::string& name);
// Numbers of covariates, or of rows, each of which must exist.
std::vector<Index> columns_from_array(const IndexArray& array, const std::string& name,
                                      const Dataset& data);
std::vector<Index> rows_from_array(const IndexArray& array, const std::string& name,
                                   const Dataset& data);
// Throws unless every row of the data has its gaps listed, in columns that there are.
void require_gaps_of(const Dataset& data, const Gaps& gaps, const std::string& name);
// A view of the argument `offset`, of visible units, which must have this shape; of none: no
// columns.
Columns offset_view(const std::optional<FloatArray>& offset, const std::vector<Index>& shape);
FloatArray array_from_panel(const Panel& panel);
FloatArray array_from_floats(std::span<const float> values);
DoubleArray array_from_doubles(std::span<const double> values);
// The biases of a layer without their padding.
FloatArray array_from_bias(const LayerParameters& theta);

// The user's covariates as Python holds them: the arrays are kept alive beside the core's view.
struct PyDataset {
  std::vector<py::array> kept;
  double limit;
  bool is_completed = false;  // holds values that none of these arrays has
  Dataset data;

  // Of a matrix with any strides.
  PyDataset(py::array x, DoubleArray center, DoubleArray inverse_scale, double most,
            std::size_t pack_bytes);
  // Of the arrays of a compressed matrix (CSC) of so many rows.
  PyDataset(py::array values, py::array row_index, py::array first_entry, Index rows,
            DoubleArray center, DoubleArray inverse_scale, double most);
  PyDataset(const PyDataset& base, Dataset completed);
};

}  // namespace cstonet

template <>
struct pybind11::detail::type_caster<cstonet::ThreadCount> {
  PYBIND11_TYPE_CASTER(cstonet::ThreadCount, const_name("int"));

  bool load(handle source, bool) {
    if (!PyIndex_Check(source.ptr())) return false;
    const Py_ssize_t number = PyNumber_AsSsize_t(source.ptr(), nullptr);  // the nearest it can be
    if (number == -1 && PyErr_Occurred()) throw error_already_set();
    value.value =
        static_cast<int>(std::clamp<Py_ssize_t>(number, 1, std::numeric_limits<int>::max()));
    return true;
  }
};
