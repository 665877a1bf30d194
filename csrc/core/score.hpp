// Score tests of weights that are not in the network: which covariate, if connected, would raise
// the likelihood?
#pragma once

#include <vector>

#include "core/data.hpp"
#include "core/hooks.hpp"

namespace cstonet {

// For each of the covariates x_j (standardised) listed in `covariates` and every column g_k of
// `directions` (residual times the slope of the predictor in the unit the weight would feed), the
// self-normalised score
//   z = Σ_i g_ik f(x_ij) / sqrt(Σ_i g_ik² f(x_ij)²)
// for f(x) = x (linear) and f(x) = x² - mean x² (square). Each result is covariates x directions.
// Self-normalisation needs no estimate of the noise and cannot be fooled by a few large rows:
// |z| is at most the root of the number of rows that take part.
void score_tests(const Dataset& data, const std::vector<Index>& rows,
                 const std::vector<Index>& covariates, const Panel& directions, int threads,
                 Hooks& hooks, Panel& linear, Panel& square);

}  // namespace cstonet
