// Runs a piece of the core without the GIL while Python's signals and a progress callback are
// served by the calling thread.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "core/hooks.hpp"

namespace cstonet {
namespace py = pybind11;

template <class Work>
void run_released(Hooks& hooks, const py::object& progress, Work&& work) {
  hooks.poll = [&](long epochs) {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!progress.is_none()) progress(epochs);
    return false;
  };
  const py::gil_scoped_release release;
  std::forward<Work>(work)();
}

}  // namespace cstonet
