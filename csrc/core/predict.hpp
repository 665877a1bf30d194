// Prediction by the plain network: noise ignored, visible units clamped (paper, section 2).
#pragma once

#include <span>
#include <vector>

#include "core/data.hpp"
#include "core/hooks.hpp"
#include "core/network.hpp"

namespace cstonet {

// Means of every visible unit for the listed rows, under each row of `clamp` (settings of the
// visible units: only those that feed forward matter). `inputs` are the covariates behind the rows
// of the first layer. `offset` has a row of visible columns for every row under the first setting,
// then for every row under the second, and so on; or no columns: none. Result: out[setting] is
// rows x visible columns.
std::vector<Panel> predict(const NetworkSpec& spec, const Parameters& parameters,
                           const std::vector<Index>& inputs, const Dataset& data,
                           const std::vector<Index>& rows, const Panel& clamp,
                           const Columns& offset, int threads, Hooks& hooks);

// The same with the visible units that feed forward at what was observed of each row: `received`
// and `offset` have a row for each of `rows`. Written to `out`, rows x visible columns without
// gaps.
void predict_received(const NetworkSpec& spec, const Parameters& parameters,
                      const std::vector<Index>& inputs, const Dataset& data,
                      const std::vector<Index>& rows, const Columns& received,
                      const Columns& offset, int threads, Hooks& hooks, std::span<float> out);

}  // namespace cstonet
