// Between Python objects and the core's types. No arithmetic.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <type_traits>
#include <vector>

#include "core/data.hpp"
#include "core/network.hpp"
#include "core/options.hpp"

namespace cstonet {
namespace py = pybind11;

using FloatArray = py::array_t<float, py::array::c_style>;
using DoubleArray = py::array_t<double, py::array::c_style>;
using IndexArray = py::array_t<std::int64_t, py::array::c_style>;

template <class T, class = void>
struct HasFields : std::false_type {};
struct AnyVisitor {
  template <class T>
  void operator()(const char*, T&) {}
};
template <class T>
struct HasFields<T, std::void_t<decltype(std::declval<T&>().fields(AnyVisitor{}))>>
    : std::true_type {};

// Copies a Python dataclass into the option struct with the same field names, recursively.
template <class T>
T from_python(py::handle object);

struct FieldReader {
  py::handle object;
  template <class T>
  void operator()(const char* name, T& field) const {
    field = from_python<T>(object.attr(name));
  }
};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <class T>
T from_python(py::handle object) {
  if constexpr (HasFields<T>::value) {
    T value;
    value.fields(FieldReader{object});
    return value;
  } else if constexpr (IsVector<T>::value) {
    T values;
    for (py::handle item : object) values.push_back(from_python<typename T::value_type>(item));
    return values;
  } else {
    return object.cast<T>();
  }
}

// Names of a struct's fields, for the test that Python and C++ agree.
struct FieldNames {
  std::vector<std::string>& names;
  template <class T>
  void operator()(const char* name, T&) const {
    names.emplace_back(name);
  }
};

template <class T>
std::vector<std::string> field_names() {
  T value{};
  std::vector<std::string> names;
  value.fields(FieldNames{names});
  return names;
}

NetworkSpec network_from_python(py::handle network);
Parameters parameters_from_python(const NetworkSpec& spec, const py::list& weights,
                                  const py::list& biases);

Panel panel_from_array(const FloatArray& array);
Floats floats_from_array(const FloatArray& array);
std::vector<Index> indices_from_array(const IndexArray& array);
// Numbers of covariates, each of which must exist.
std::vector<Index> columns_from_array(const IndexArray& array, const Dataset& data);
FloatArray array_from_panel(const Panel& panel);
FloatArray array_from_floats(const float* values, Index n);
DoubleArray array_from_doubles(const std::vector<double>& values);

// The user's covariates as Python holds them: the arrays are kept alive beside the core's view.
struct PyDataset {
  py::array x;
  DoubleArray center, inverse_scale;
  Dataset data;

  PyDataset(py::array x, DoubleArray center, DoubleArray inverse_scale, double limit,
            std::size_t pack_bytes);
  PyDataset(const PyDataset& base, Dataset completed);
};

}  // namespace cstonet
