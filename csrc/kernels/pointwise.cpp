// Elementwise passes: activations, the latent move, the parameter update fused with its prior.
#include "kernels/level.hpp"
#include "kernels/math.hpp"

namespace cstonet {
namespace CSTONET_LEVEL {
namespace {

// Each activation: its value, its slope as a function of its value, and an exact difference.
struct Tanh {
  static inline float value(float z) { return tanh_fast(z); }
  static inline float slope(float h) { return 1.0f - h * h; }
  // tanh(z+d) - tanh(z) = tanh(d) (1 - tanh(z) tanh(z+d)).
  static inline float change(float z, float d, float h) {
    return tanh_fast(d) * (1.0f - tanh_fast(z) * h);
  }
};

struct Sigmoid {
  static inline float value(float z) { return logistic_fast(z); }
  static inline float slope(float h) { return h * (1.0f - h); }
  // With s(z) = (1 + tanh(z/2))/2 the identity above applies.
  static inline float change(float z, float d, float h) {
    return 0.5f * tanh_fast(0.5f * d) * (1.0f - tanh_fast(0.5f * z) * (2.0f * h - 1.0f));
  }
};

struct Relu {
  static inline float value(float z) { return z > 0.0f ? z : 0.0f; }
  static inline float slope(float h) { return h > 0.0f ? 1.0f : 0.0f; }
  static inline float change(float z, float d, float h) {
    const float both = z > 0.0f && h > 0.0f ? d : h - (z > 0.0f ? z : 0.0f);
    return both;
  }
};

template <class A>
void activate_with(const float* z, long n, float* out) {
  for (long i = 0; i < n; ++i) out[i] = A::value(z[i]);
}

template <class A>
void activate_shifted_with(const float* z, const float* d, long n, float* __restrict h,
                           float* __restrict change) {
  for (long i = 0; i < n; ++i) {
    const float value = A::value(z[i] + d[i]);
    h[i] = value;
    change[i] = A::change(z[i], d[i], value);
  }
}

template <class A>
void sghmc_with(const SghmcPass& pass, const LatentInputs& in, long rows, long columns,
                float* __restrict velocity, float* __restrict d) {
  const float *h = in.h, *s = in.s, *back = in.back, *normal = in.normal, *mask = in.mask;
  for (long i = 0; i < rows; ++i) {
    const long at = i * columns;
    for (long j = 0; j < columns; ++j) {
      const long k = at + j;
      const float gradient = (s[k] - d[k]) * pass.inverse_variance + A::slope(h[k]) * back[k];
      const float v =
          (1.0f - pass.friction) * velocity[k] + pass.step * gradient + pass.noise * normal[k];
      velocity[k] = mask[j] * v;
      d[k] += pass.step * velocity[k];
    }
  }
}

inline float log_prior_slope(const PriorPass& prior, float w) {
  // Posterior odds of the spike, capped where the slab no longer counts. Written with odds, the
  // slab's pull does not cancel against the far larger 1/σ0² of the spike.
  const float log_odds = prior.log_odds + prior.half_gap * w * w;
  const float spike = exp_fast(log_odds > -40.0f ? -log_odds : 40.0f);
  return -w * (prior.inverse_slab + spike * prior.inverse_spike) / (1.0f + spike);
}

}  // namespace

void activate(Activation kind, const float* z, long n, float* out) {
  switch (kind) {
    case Activation::tanh:
      return activate_with<Tanh>(z, n, out);
    case Activation::sigmoid:
      return activate_with<Sigmoid>(z, n, out);
    case Activation::relu:
      return activate_with<Relu>(z, n, out);
  }
}

void activate_shifted(Activation kind, const float* z, const float* d, long n, float* h,
                      float* change) {
  switch (kind) {
    case Activation::tanh:
      return activate_shifted_with<Tanh>(z, d, n, h, change);
    case Activation::sigmoid:
      return activate_shifted_with<Sigmoid>(z, d, n, h, change);
    case Activation::relu:
      return activate_shifted_with<Relu>(z, d, n, h, change);
  }
}

void sghmc(Activation kind, const SghmcPass& pass, const LatentInputs& in, long rows, long columns,
           float* velocity, float* d) {
  switch (kind) {
    case Activation::tanh:
      return sghmc_with<Tanh>(pass, in, rows, columns, velocity, d);
    case Activation::sigmoid:
      return sghmc_with<Sigmoid>(pass, in, rows, columns, velocity, d);
    case Activation::relu:
      return sghmc_with<Relu>(pass, in, rows, columns, velocity, d);
  }
}

void innovation(const float* d, const float* s, const float* mask, float scale, long rows,
                long columns, float* __restrict out) {
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j) {
      const long k = i * columns + j;
      out[k] = mask[j] * (d[k] - s[k]) * scale;
    }
}

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
          long n, float* __restrict w, float* __restrict first, float* __restrict second) {
  for (long i = 0; i < n; ++i) {
    const float g = gradient[i] * pass.gradient_scale + prior.weight * log_prior_slope(prior, w[i]);
    const float m = pass.first_decay * first[i] + (1.0f - pass.first_decay) * g;
    const float v = pass.second_decay * second[i] + (1.0f - pass.second_decay) * g * g;
    first[i] = m;
    second[i] = v;
    const float move =
        m * pass.first_correction / (sqrt_fast(v * pass.second_correction) + pass.epsilon);
    w[i] = mask[i] * (w[i] + pass.rate * move);
  }
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
