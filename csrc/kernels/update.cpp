// Elementwise passes over parameters: the update, fused with the prior's pull.
#include "kernels/level.hpp"
#include "kernels/math.hpp"

namespace cstonet {
namespace CSTONET_LEVEL {
namespace {

inline float log_prior_slope(const PriorPass& prior, float w) {
  // Posterior odds of the spike, capped where the slab no longer counts. Written with odds, the
  // slab's pull does not cancel against the far larger 1/σ0² of the spike.
  const float log_odds = prior.log_odds + prior.half_gap * w * w;
  const float spike = exp_fast(log_odds > -40.0f ? -log_odds : 40.0f);
  return -w * (prior.inverse_slab + spike * prior.inverse_spike) / (1.0f + spike);
}

// What the prior adds to a weight's gradient. The slab alone pulls in proportion to the weight, and
// no prior not at all: neither needs the exponential.
struct NoPrior {
  static inline float pull(const PriorPass&, float) { return 0.0f; }
};
struct RidgePrior {
  static inline float pull(const PriorPass& prior, float w) {
    return prior.weight * (-w * prior.inverse_slab);
  }
};
struct MixturePull {
  static inline float pull(const PriorPass& prior, float w) {
    return prior.weight * log_prior_slope(prior, w);
  }
};

inline bool is_ridge(const PriorPass& prior) {
  return prior.half_gap == 0.0f && prior.inverse_spike == prior.inverse_slab;
}

template <class Prior>
void adam_with(const AdamPass& pass, const PriorPass& prior, const float* gradient,
               const float* mask, long n, float* __restrict w, float* __restrict first,
               float* __restrict second) {
  for (long i = 0; i < n; ++i) {
    const float g = gradient[i] * pass.gradient_scale + Prior::pull(prior, w[i]);
    const float m = pass.first_decay * first[i] + (1.0f - pass.first_decay) * g;
    const float v = pass.second_decay * second[i] + (1.0f - pass.second_decay) * g * g;
    first[i] = m;
    second[i] = v;
    const float move =
        m * pass.first_correction / (sqrt_fast(v * pass.second_correction) + pass.epsilon);
    w[i] = mask[i] * (w[i] + pass.rate * move);
  }
}

}  // namespace

double sum_squares(const float* x, const float* mask, long n) {
  // Lanes fixed by kLanes, not by the register width: the same sum at every level.
  double sum[kLanes] = {};
  for (long i = 0; i + kLanes <= n; i += kLanes)
    for (long j = 0; j < kLanes; ++j) {
      const double y = static_cast<double>(x[i + j]) * mask[i + j];
      sum[j] += y * y;
    }
  double total = 0.0;
  for (long j = 0; j < kLanes; ++j) total += sum[j];
  return total;
}

void adam(const AdamPass& pass, const PriorPass& prior, const float* gradient, const float* mask,
          long n, float* w, float* first, float* second) {
  const auto run = prior.weight == 0.0f ? adam_with<NoPrior>
                   : is_ridge(prior)    ? adam_with<RidgePrior>
                                        : adam_with<MixturePull>;
  run(pass, prior, gradient, mask, n, w, first, second);
}

void momentum(const MomentumPass& pass, const PriorPass& prior, const float* gradient,
              const float* mask, long n, float* __restrict w, float* __restrict velocity) {
  for (long i = 0; i < n; ++i) {
    const float g = gradient[i] * pass.gradient_scale + prior.weight * log_prior_slope(prior, w[i]);
    velocity[i] = pass.momentum * velocity[i] + g;
    w[i] = mask[i] * (w[i] + pass.rate * velocity[i]);
  }
}

void prior_gradient(const PriorPass& prior, const float* w, long n, float* out) {
  for (long i = 0; i < n; ++i) out[i] = log_prior_slope(prior, w[i]);
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
