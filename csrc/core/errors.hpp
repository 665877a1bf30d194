// What can go wrong inside the core. The bindings turn these into Python exceptions.
#pragma once

#include <stdexcept>
#include <string>

namespace cstonet {

// A caller broke the contract of a function: shapes, ranges, an impossible network.
struct InvalidArgument : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// Training left the finite numbers.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The user interrupted the run.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

inline void require(bool condition, const std::string& message) {
  if (!condition) throw InvalidArgument(message);
}

}  // namespace cstonet
