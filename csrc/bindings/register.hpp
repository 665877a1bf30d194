// One register function per binding file.
#pragma once

#include <pybind11/pybind11.h>

namespace cstonet {

void register_data(pybind11::module_& m);
void register_missing(pybind11::module_& m);
void register_products(pybind11::module_& m);
void register_train(pybind11::module_& m);
void register_levels(pybind11::module_& m);

}  // namespace cstonet
