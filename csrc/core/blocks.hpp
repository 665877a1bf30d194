// Blocks of units: a family, whether it is observed, whether it feeds the next layer. All the
// trainer asks of a family is its log-density and the derivative of that with respect to the
// linear predictor (the residual).
#pragma once

#include <vector>

#include "core/types.hpp"

namespace cstonet {

enum class Family : int { gaussian = 0, bernoulli = 1, categorical = 2 };

struct Block {
  Family family;
  Index size;     // units; a categorical block of K levels has K-1, the first level being zero
  bool visible;   // observed, else imputed
  bool feeds;     // is an input of the next layer
  double weight;  // factor on its log-likelihood, 1 in a proper model
  Index column;   // first column among the visible data (visible blocks only)
};

// residual(i, j) = d log π / d η(i, j) for the block's `size` units.
//   gaussian: (y - η)/σ²;  bernoulli: y - 1/(1+e^-η);  categorical: y_j - e^η_j / (1 + Σ e^η).
// y, eta and residual point at the block's first unit; *_row are row strides.
void visible_residual(const Block& block, double variance, Index rows, const float* y, Index y_row,
                      const float* eta, Index eta_row, float* residual, Index residual_row);

// log π(y | η) of one row of a visible block, without the factor `weight`.
double log_density(Family family, Index size, double variance, const float* y, const float* eta);

// Mean of each unit given its linear predictor: η, 1/(1+e^-η), softmax without the first level.
void mean_from_predictor(Family family, Index size, const float* eta, float* mean);

}  // namespace cstonet
