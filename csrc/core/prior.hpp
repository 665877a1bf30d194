// The mixture-Gaussian prior λ N(0, σ1²) + (1-λ) N(0, σ0²) on a weight (paper eq. 7).
#pragma once

#include "kernels/kernels.hpp"

namespace cstonet {

struct MixturePrior {
  double inclusion;       // λ_n
  double spike_variance;  // σ²_{0,n}
  double slab_variance;   // σ²_{1,n}

  // |θ| above which the slab explains a weight better than the spike: weights below are pruned.
  double threshold() const;
  double log_density(double w) const;
  // The slab's log-odds at w are log_odds() + half_gap() w².
  double log_odds() const;
  double half_gap() const;
  // Posterior probability that a weight with this value belongs to the slab; above one half where
  // |w| exceeds the threshold.
  double slab_probability(double w) const;
  // For the update kernels; the gradient is multiplied by `weight`.
  PriorPass pass(double weight) const;
  // The slab alone, as if every weight were known to be needed: a ridge penalty.
  PriorPass slab_pass(double weight) const;
  static PriorPass off() { return PriorPass{}; }
};

// Spike variance after `share` of the annealing: geometric from `from` to `to`.
double annealed_spike(double from, double to, double share);

}  // namespace cstonet
