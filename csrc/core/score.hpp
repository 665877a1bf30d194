// Score tests of weights that are not in the network: which covariate, if connected, would raise
// the likelihood?
//
// For each of the covariates x_j (standardised) listed and every column g_k of the products
// (residual times the slope of the predictor in the unit the weight would feed), the
// self-normalised score is
//   z = Σ_i g_ik f(x_ij) / sqrt(Σ_i g_ik² f(x_ij)²)
// for f(x) = x (linear) and f(x) = x² - mean x² (square). Self-normalisation needs no estimate of
// the noise and cannot be fooled by a few large rows: |z| is at most the root of the number of rows
// that take part. The sums are additive over rows: those of parts of the rows can be computed where
// these are. Rows are read in blocks, in their order, so that memory does not grow with them.
#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "core/data.hpp"
#include "core/directions.hpp"
#include "core/hooks.hpp"

namespace cstonet {

// Sums of a feature f of some covariates: Σ g f and Σ g² f², directions x covariates each.
struct FeatureSums {
  std::vector<double> sum, squares;
};

struct ScoreSums {
  Index directions, covariates;
  FeatureSums linear, square;  // the latter empty where squares are not asked for

  ScoreSums(Index directions, Index covariates, bool with_squares);
  void add(const ScoreSums& other);
};

struct ScoreRequest {
  const Dataset& data;
  std::span<const Index> rows;
  std::span<const Index> covariates;
  // Mean of x² over all rows that the scores are for, one per covariate; empty: no squares.
  std::span<const double> mean_squares;
  const Products& products;
  int threads;
  // Covariates are scored less what others explain of them: x - slopes(0) - Σ_s slopes(s + 1) x_s,
  // one column of slopes per covariate. Null: they are scored as they are.
  std::span<const Index> others = {};
  const Panel* slopes = nullptr;

  bool with_squares() const { return !mean_squares.empty(); }
};

// Called with the sums of the covariates first .. first + sums.covariates - 1 among those listed,
// once for each of them; maybe from several threads at once.
using TakeSums = std::function<void(Index first, const ScoreSums& sums)>;

void score_sums(const ScoreRequest& request, Hooks& hooks, const TakeSums& take);

// z of a pair of sums; a feature that vanishes scores zero.
inline float score(double sum, double squares) {
  return squares > 0.0 ? static_cast<float>(sum / std::sqrt(squares)) : 0.0f;
}

// Σ x² over the rows, of every covariate of the data. Additive over rows as well.
std::vector<double> square_sums(const Dataset& data, std::span<const Index> rows, int threads,
                                Hooks& hooks);

}  // namespace cstonet
