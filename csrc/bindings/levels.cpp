// Which instruction-set level the kernels of this module run at.
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/register.hpp"
#include "core/errors.hpp"
#include "kernels/kernels.hpp"

namespace cstonet {

void register_levels(pybind11::module_& m) {
  m.def("levels", [] {
    const char* names[4];
    const int count = available_levels(names);
    return std::vector<std::string>(names, names + count);
  });
  m.def("level", [] { return std::string(kernels().level); });
  m.def("use_level", [](const std::string& name) {
    require(select_level(name.c_str()), "no kernels for level '" + name + "' on this machine");
  });
}

}  // namespace cstonet
