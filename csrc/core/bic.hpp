// Model choice among starts.
#pragma once

#include <cmath>

#include "core/types.hpp"

namespace cstonet {

// BIC = -2 log-likelihood + |γ| log n.
inline double bic(double log_likelihood, Index nonzero, double n) {
  return -2.0 * log_likelihood + static_cast<double>(nonzero) * std::log(n);
}

}  // namespace cstonet
