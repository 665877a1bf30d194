#include "core/blocks.hpp"

#include <algorithm>
#include <cmath>

namespace cstonet {
namespace {

constexpr double kLogTwoPi = 1.8378770664093454836;

double log1p_exp(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

// log(1 + Σ exp η): the log normalizer of a categorical block whose first level has η = 0.
double log_normalizer(Index size, const float* eta) {
  double top = 0.0;
  for (Index j = 0; j < size; ++j) top = std::max<double>(top, eta[j]);
  double sum = std::exp(-top);
  for (Index j = 0; j < size; ++j) sum += std::exp(eta[j] - top);
  return top + std::log(sum);
}

}  // namespace

void mean_from_predictor(Family family, Index size, const float* eta, float* mean) {
  switch (family) {
    case Family::gaussian:
      std::copy(eta, eta + size, mean);
      break;
    case Family::bernoulli:
      for (Index j = 0; j < size; ++j)
        mean[j] = static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(eta[j]))));
      break;
    case Family::categorical: {
      const double log_sum = log_normalizer(size, eta);
      for (Index j = 0; j < size; ++j) mean[j] = static_cast<float>(std::exp(eta[j] - log_sum));
      break;
    }
  }
}

void visible_residual(const Block& block, double variance, Index rows, const float* y, Index y_row,
                      const float* eta, Index eta_row, float* residual, Index residual_row) {
  const double scale = block.weight / (block.family == Family::gaussian ? variance : 1.0);
  for (Index i = 0; i < rows; ++i) {
    float* r = residual + i * residual_row;
    mean_from_predictor(block.family, block.size, eta + i * eta_row, r);
    for (Index j = 0; j < block.size; ++j)
      r[j] = static_cast<float>(scale * (static_cast<double>(y[i * y_row + j]) - r[j]));
  }
}

double log_density(Family family, Index size, double variance, const float* y, const float* eta) {
  double total = 0.0;
  switch (family) {
    case Family::gaussian:
      for (Index j = 0; j < size; ++j) {
        const double e = static_cast<double>(y[j]) - eta[j];
        total -= 0.5 * (kLogTwoPi + std::log(variance) + e * e / variance);
      }
      break;
    case Family::bernoulli:
      for (Index j = 0; j < size; ++j)
        total += static_cast<double>(y[j]) * eta[j] - log1p_exp(eta[j]);
      break;
    case Family::categorical:
      for (Index j = 0; j < size; ++j) total += static_cast<double>(y[j]) * eta[j];
      total -= log_normalizer(size, eta);
      break;
  }
  return total;
}

}  // namespace cstonet
