#include "core/blocks.hpp"

#include <algorithm>
#include <cmath>

#include "core/constants.hpp"

namespace cstonet {
namespace {

double log1p_exp(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

// log(1 + Σ exp η): the log normalizer of a categorical block whose first level has η = 0.
double log_normalizer(std::span<const float> eta) {
  double top = 0.0;
  for (double x : eta) top = std::max(top, x);
  double sum = std::exp(-top);
  for (double x : eta) sum += std::exp(x - top);
  return top + std::log(sum);
}

}  // namespace

void mean_from_predictor(Family family, std::span<const float> eta, std::span<float> mean) {
  switch (family) {
    case Family::gaussian:
      std::ranges::copy(eta, mean.begin());
      break;
    case Family::bernoulli:
      std::ranges::transform(eta, mean.begin(), [](double x) {
        return static_cast<float>(1.0 / (1.0 + std::exp(-x)));
      });
      break;
    case Family::categorical: {
      const double log_sum = log_normalizer(eta);
      std::ranges::transform(eta, mean.begin(), [log_sum](double x) {
        return static_cast<float>(std::exp(x - log_sum));
      });
      break;
    }
  }
}

double log_density(Family family, double variance, std::span<const float> y,
                   std::span<const float> eta) {
  double total = 0.0;
  switch (family) {
    case Family::gaussian:
      for (Index j = 0; j < std::ssize(y); ++j) {
        const double e = double{y[j]} - eta[j];
        total -= 0.5 * (kLogTwoPi + std::log(variance) + e * e / variance);
      }
      break;
    case Family::bernoulli:
      for (Index j = 0; j < std::ssize(y); ++j) total += double{y[j]} * eta[j] - log1p_exp(eta[j]);
      break;
    case Family::categorical:
      for (Index j = 0; j < std::ssize(y); ++j) total += double{y[j]} * eta[j];
      total -= log_normalizer(eta);
      break;
  }
  return total;
}

double log_density(const VisibleBlock& v, double variance, const Panel& visible,
                   const Panel& predictor, Index row) {
  return log_density(v.block.family, variance, v.observed(visible, row), v.units(predictor, row));
}

void visible_residual(const VisibleBlock& v, double variance, const Panel& visible,
                      const Panel& predictor, Panel& residual) {
  const double scale = v.block.weight / (v.block.family == Family::gaussian ? variance : 1.0);
  for (Index i = 0; i < visible.rows(); ++i) {
    const std::span<const float> y = v.observed(visible, i);
    const std::span<float> r = v.units(residual, i);
    mean_from_predictor(v.block.family, v.units(predictor, i), r);
    for (Index j = 0; j < v.block.size; ++j)
      r[j] = static_cast<float>(scale * (double{y[j]} - r[j]));
  }
}

}  // namespace cstonet
