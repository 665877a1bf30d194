// Blocks of units: a family, whether it is observed, whether it feeds the next layer. All the
// trainer asks of a family is its log-density and the derivative of that with respect to the
// linear predictor (the residual).
#pragma once

#include <span>

#include "core/types.hpp"

namespace cstonet {

enum class Family : int { gaussian = 0, bernoulli = 1, categorical = 2, poisson = 3 };

// Whether a family has a variance, or dispersion, of its own that training measures.
constexpr bool has_variance(Family family) {
  return family == Family::gaussian || family == Family::poisson;
}

struct Block {
  Family family;
  Index size;     // units; a categorical block of K levels has K-1, the first level being zero
  bool visible;   // observed, else imputed
  bool feeds;     // is an input of the next layer
  double weight;  // factor on its log-likelihood, 1 in a proper model; 1/temperature of an outcome
  Index column;   // first column among the visible data (visible blocks only)
};

// A visible block and where it stands in a network.
struct VisibleBlock {
  Index layer;
  Index unit;  // its first among the layer's
  Block block;

  // What was observed in a row of the visible data.
  std::span<const float> observed(const Panel& visible, Index row) const {
    return visible.row(row).subspan(block.column, block.size);
  }
  // The block's entries in a row of a panel with one column per unit of the layer.
  std::span<const float> units(const Panel& panel, Index row) const {
    return panel.row(row).subspan(unit, block.size);
  }
  std::span<float> units(Panel& panel, Index row) const {
    return panel.row(row).subspan(unit, block.size);
  }
};

// Mean of each unit given its linear predictor: η, 1/(1+e^-η), softmax without the first level,
// e^η.
void mean_from_predictor(Family family, std::span<const float> eta, std::span<float> mean);

// Square of y's distance from its mean given η, whose expectation is the variance, or the
// dispersion, of a family that has one: (y - η)², or Pearson's (y - e^η)² / e^η.
double squared_error(Family family, float y, float eta);

// log π(y | η) of the units of a block, without the factor `weight`. Of counts it is the extended
// quasi-likelihood of Nelder and Pregibon (1987) with variance φμ, without what depends on y alone:
// -½ (log 2πφ + d/φ), in which d = 2 (y log(y/μ) - y + μ) is the deviance and μ = e^η.
double log_density(Family family, double variance, std::span<const float> y,
                   std::span<const float> eta);
// The same for a visible block in a row of the data, given its layer's linear predictors.
double log_density(const VisibleBlock& v, double variance, const Panel& visible,
                   const Panel& predictor, Index row);

// Σ over the rows of the visible data of weight times log density, again without the block's own
// factor; no weights: all one.
double log_likelihood(const VisibleBlock& v, double variance, const Panel& visible,
                      const Panel& predictor, std::span<const float> weight);

// Writes d log π / d η of the block's units into `residual`, for every row.
//   gaussian: (y - η)/σ²;  bernoulli: y - 1/(1+e^-η);  categorical: y_j - e^η_j / (1 + Σ e^η);
//   poisson: (y - e^η)/φ.
void visible_residual(const VisibleBlock& v, double variance, const Panel& visible,
                      const Panel& predictor, Panel& residual);

}  // namespace cstonet
