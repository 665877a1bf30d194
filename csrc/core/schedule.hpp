// Rates and step sizes as they change over the epochs of a stage.
#pragma once

#include <vector>

#include "core/options.hpp"

namespace cstonet {

// `epoch` counts from 0 within the stage.
std::vector<double> rates_at(const StageOptions& stage, int epoch);
std::vector<double> steps_at(const StageOptions& stage, int epoch);

// Spike variance at an epoch of a stage with the prior.
double spike_at(const PriorOptions& prior, const StageOptions& stage, int epoch);

}  // namespace cstonet
