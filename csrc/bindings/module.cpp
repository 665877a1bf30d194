#include "bindings/convert.hpp"
#include "bindings/register.hpp"
#include "core/errors.hpp"

PYBIND11_MODULE(_core, m) {
  namespace py = pybind11;
  m.doc() = "Compiled kernel of cstonet. Internal: the Python layer checks every argument first.";
  cstonet::register_levels(m);  // first: an import that this ends may be tried again
  py::register_exception<cstonet::Diverged>(m, "Diverged", PyExc_RuntimeError);
  cstonet::register_data(m);
  cstonet::register_missing(m);
  cstonet::register_products(m);
  cstonet::register_train(m);
}
