// Residuals times directions as Python describes them.
#pragma once

#include <vector>

#include "bindings/convert.hpp"
#include "core/directions.hpp"

namespace cstonet {

// The arrays are kept alive beside the core's view of them.
struct PyProducts {
  FloatArray residuals, given, treatment;
  Products products;
};

// From a cstonet.network.products.Products.
PyProducts products_from_python(py::handle described);

}  // namespace cstonet
