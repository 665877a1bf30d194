#include "core/prior.hpp"

#include <algorithm>
#include <cmath>

#include "core/constants.hpp"

namespace cstonet {

double MixturePrior::threshold() const {
  const double log_ratio =
      std::log((1 - inclusion) / inclusion) + 0.5 * std::log(slab_variance / spike_variance);
  // With a heavy slab the slab wins everywhere: nothing is pruned.
  if (log_ratio <= 0) return 0.0;
  return std::sqrt(2 * spike_variance * slab_variance / (slab_variance - spike_variance) *
                   log_ratio);
}

double MixturePrior::log_density(double w) const {
  const double spike =
      std::log(1 - inclusion) - 0.5 * std::log(spike_variance) - w * w / (2 * spike_variance);
  const double slab =
      std::log(inclusion) - 0.5 * std::log(slab_variance) - w * w / (2 * slab_variance);
  const double top = std::max(spike, slab);
  return top + std::log(std::exp(spike - top) + std::exp(slab - top)) - 0.5 * kLogTwoPi;
}

double MixturePrior::log_odds() const {
  return std::log(inclusion / (1 - inclusion)) + 0.5 * std::log(spike_variance / slab_variance);
}

double MixturePrior::half_gap() const { return 0.5 * (1 / spike_variance - 1 / slab_variance); }

double MixturePrior::slab_probability(double w) const {
  return 1 / (1 + std::exp(-(log_odds() + half_gap() * w * w)));
}

PriorPass MixturePrior::pass(double weight) const {
  return {.log_odds = static_cast<float>(log_odds()),
          .half_gap = static_cast<float>(half_gap()),
          .inverse_spike = static_cast<float>(1 / spike_variance),
          .inverse_slab = static_cast<float>(1 / slab_variance),
          .weight = static_cast<float>(weight)};
}

PriorPass MixturePrior::slab_pass(double weight) const {
  const auto inverse = static_cast<float>(1 / slab_variance);
  return {.log_odds = 0.0f,
          .half_gap = 0.0f,
          .inverse_spike = inverse,
          .inverse_slab = inverse,
          .weight = static_cast<float>(weight)};
}

double annealed_spike(double from, double to, double share) {
  return from * std::pow(to / from, std::clamp(share, 0.0, 1.0));
}

}  // namespace cstonet
