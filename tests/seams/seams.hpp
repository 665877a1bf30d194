// What the files of the tests' own extension share.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <string>

#include "core/rng.hpp"
#include "core/types.hpp"

namespace cstonet::seams {

using Stream = std::array<std::uint64_t, 4>;  // seed, fold, start, network

// The count itself; throws InvalidArgument, with the argument's name, if it is none.
Index checked_count(Index count, const std::string& name);

RandomStream random_stream(const Stream& stream);

void register_formulas(pybind11::module_& m);
void register_options(pybind11::module_& m);
void register_passes(pybind11::module_& m);
void register_rates(pybind11::module_& m);

}  // namespace cstonet::seams
