// Prediction by the plain network: noise ignored, visible units clamped (paper, section 2).
#pragma once

#include <vector>

#include "core/data.hpp"
#include "core/hooks.hpp"
#include "core/network.hpp"

namespace cstonet {

// Means of every visible unit for the listed rows, under each row of `clamp` (settings of the
// visible units: only those that feed forward matter). `inputs` are the covariates behind the rows
// of the first layer. Result: out[setting] is rows x visible columns.
std::vector<Panel> predict(const NetworkSpec& spec, const Parameters& parameters,
                           const std::vector<Index>& inputs, const Dataset& data,
                           const std::vector<Index>& rows, const Panel& clamp, int threads,
                           Hooks& hooks);

}  // namespace cstonet
