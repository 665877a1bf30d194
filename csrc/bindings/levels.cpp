// Which instruction-set level the kernels of this module run at: the best that the CPU has, unless
// CSTONET_LEVEL in the environment names another. A level that is not there ends the import.
#include <pybind11/stl.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "bindings/register.hpp"
#include "core/errors.hpp"
#include "kernels/kernels.hpp"

namespace cstonet {
namespace {

std::vector<std::string> levels() {
  const char* names[4];
  const int count = available_levels(names);
  return std::vector<std::string>(names, names + count);
}

void use_level(const std::string& name, const std::string& asked_by) {
  if (select_level(name.c_str())) return;
  std::string known;
  for (const std::string& level : levels()) known += (known.empty() ? "" : ", ") + level;
  throw InvalidArgument(asked_by + ": no kernels for level '" + name +
                        "' on this machine, which has " + known);
}

}  // namespace

void register_levels(pybind11::module_& m) {
  m.def("levels", levels);
  m.def("level", [] { return std::string(kernels().level); });
  m.def("use_level", [](const std::string& name) { use_level(name, "use_level"); });
  const char* wanted = std::getenv("CSTONET_LEVEL");
  if (wanted && *wanted) use_level(wanted, "CSTONET_LEVEL");
}

}  // namespace cstonet
