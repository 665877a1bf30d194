#include "core/blocks.hpp"

#include <algorithm>
#include <array>
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

// Predictors of counts are held within this distance of zero, the log of their mean in the data:
// far outside, e^η is beyond what the rest of the arithmetic can take.
constexpr double kFarthestLog = 30.0;
// Pearson's error is divided by at least this share of the mean: a count where next to none are
// expected would otherwise be all there is to the dispersion.
constexpr double kLeastMean = 0.01;

double log_mean(double eta) { return std::clamp(eta, -kFarthestLog, kFarthestLog); }

// The deviance 2 (y log(y/μ) - y + μ) of a count.
double deviance(double y, double eta) {
  const double log_mu = log_mean(eta);
  return 2 * ((y > 0 ? y * (std::log(y) - log_mu) : 0.0) - y + std::exp(log_mu));
}

// Rows of one unit handled at once: few enough for the stack, enough to fill registers.
constexpr Index kRun = 64;

// Calls body(first row, unit, predictors) for runs of rows of every unit of the block.
template <class Body>
void for_runs(const VisibleBlock& v, const Panel& predictor, Body body) {
  std::array<float, kRun> eta;
  for (Index unit = 0; unit < v.block.size; ++unit)
    for (Index row = 0; row < predictor.rows(); row += kRun) {
      const Index count = std::min(kRun, predictor.rows() - row);
      for (Index k = 0; k < count; ++k) eta[k] = predictor(row + k, v.unit + unit);
      body(row, unit, std::span<const float>(eta).first(count));
    }
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
    case Family::poisson:
      std::ranges::transform(eta, mean.begin(),
                             [](double x) { return static_cast<float>(std::exp(log_mean(x))); });
      break;
  }
}

double squared_error(Family family, float y, float eta) {
  if (family == Family::poisson) {
    const double mu = std::exp(log_mean(eta));
    return (y - mu) * (y - mu) / std::max(mu, kLeastMean);
  }
  const double e = y - eta;
  return e * e;
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
    case Family::poisson:
      for (Index j = 0; j < std::ssize(y); ++j)
        total -= 0.5 * (kLogTwoPi + std::log(variance) + deviance(y[j], eta[j]) / variance);
      break;
  }
  return total;
}

double log_density(const VisibleBlock& v, double variance, const Panel& visible,
                   const Panel& predictor, Index row) {
  return log_density(v.block.family, variance, v.observed(visible, row), v.units(predictor, row));
}

double log_likelihood(const VisibleBlock& v, double variance, const Panel& visible,
                      const Panel& predictor, std::span<const float> weight) {
  const auto weight_of = [weight](Index row) { return weight.empty() ? 1.0 : double{weight[row]}; };
  double total = 0.0;
  switch (v.block.family) {
    case Family::gaussian: {
      const double constant = kLogTwoPi + std::log(variance), scale = 1 / variance;
      for (Index i = 0; i < visible.rows(); ++i)
        for (Index j = 0; j < v.block.size; ++j) {
          const double e = double{v.observed(visible, i)[j]} - v.units(predictor, i)[j];
          total -= 0.5 * weight_of(i) * (constant + e * e * scale);
        }
      break;
    }
    case Family::bernoulli:
      for_runs(v, predictor, [&](Index row, Index unit, std::span<const float> eta) {
        std::array<double, kRun> normalizer;
        kernels().softplus(eta.data(), std::ssize(eta), normalizer.data());
        for (Index k = 0; k < std::ssize(eta); ++k)
          total += weight_of(row + k) *
                   (double{v.observed(visible, row + k)[unit]} * eta[k] - normalizer[k]);
      });
      break;
    case Family::categorical:
    case Family::poisson:
      for (Index i = 0; i < visible.rows(); ++i)
        total += weight_of(i) * log_density(v, variance, visible, predictor, i);
      break;
  }
  return total;
}

void visible_residual(const VisibleBlock& v, double variance, const Panel& visible,
                      const Panel& predictor, Panel& residual) {
  const auto weighted = [weight = v.block.weight](double y, double mean) {
    return static_cast<float>(weight * (y - mean));
  };
  switch (v.block.family) {
    case Family::gaussian: {
      const double scale = v.block.weight / variance;
      const float *y = visible.data() + v.block.column, *eta = predictor.data() + v.unit;
      float* r = residual.data() + v.unit;
      for (Index i = 0; i < visible.rows(); ++i)
        for (Index j = 0; j < v.block.size; ++j)
          r[i * residual.stride() + j] = static_cast<float>(
              scale * (double{y[i * visible.stride() + j]} - eta[i * predictor.stride() + j]));
      break;
    }
    case Family::bernoulli:
      for_runs(v, predictor, [&](Index row, Index unit, std::span<const float> eta) {
        std::array<float, kRun> mean;
        kernels().logistic(eta.data(), std::ssize(eta), mean.data());
        const float* y = visible.data() + row * visible.stride() + v.block.column + unit;
        float* r = residual.data() + row * residual.stride() + v.unit + unit;
        for (Index k = 0; k < std::ssize(eta); ++k)
          r[k * residual.stride()] = weighted(y[k * visible.stride()], mean[k]);
      });
      break;
    case Family::categorical:
      for (Index i = 0; i < visible.rows(); ++i) {
        const std::span<const float> y = v.observed(visible, i);
        const std::span<float> r = v.units(residual, i);
        mean_from_predictor(v.block.family, v.units(predictor, i), r);
        for (Index j = 0; j < v.block.size; ++j) r[j] = weighted(y[j], r[j]);
      }
      break;
    case Family::poisson:
      for (Index i = 0; i < visible.rows(); ++i)
        for (Index j = 0; j < v.block.size; ++j) {
          const double mu = std::exp(log_mean(v.units(predictor, i)[j]));
          v.units(residual, i)[j] = static_cast<float>(v.block.weight / variance *
                                                       (double{v.observed(visible, i)[j]} - mu));
        }
      break;
  }
}

}  // namespace cstonet
