// Seams between the kernel and its NumPy twins: an extension for the tests alone, linked from the
// objects of the C++ tests. No wheel carries it.
#include "bindings/register.hpp"
#include "seams.hpp"

PYBIND11_MODULE(_cstonet_seams, m) {
  m.doc() = "Single formulas and passes of the kernel, for the tests.";
  cstonet::seams::register_formulas(m);
  cstonet::seams::register_options(m);
  cstonet::seams::register_passes(m);
  cstonet::seams::register_rates(m);
  cstonet::register_levels(m);
}
