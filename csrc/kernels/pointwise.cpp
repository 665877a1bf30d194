// Elementwise passes: activations, the latent move, the parameter update fused with its prior.
#include "kernels/level.hpp"
#include "kernels/math.hpp"

namespace cstonet {
namespace CSTONET_LEVEL {
namespace {

// A value h = ψ(z + d) and its exact difference from ψ(z), which keeps its relative accuracy
// however small d is.
struct Moved {
  float value, change;
};

// Each activation: its value, its slope as a function of its value h, the exact difference of
// slopes given h and its change, and the move from `before` = ψ(z), by d of any size or by one that
// is `near` (|d| < 0.6), where no exponential is needed.
struct Tanh {
  static inline float value(float z) { return tanh_fast(z); }
  static inline float slope(float h) { return 1.0f - h * h; }
  static inline float slope_change(float h, float change) { return -change * (2.0f * h - change); }
  // tanh(z+d) - tanh(z) = tanh(d) (1 - tanh(z) tanh(z+d)).
  static inline Moved moved(float z, float d, float before) {
    const float h = tanh_fast(z + d);
    return {h, tanh_fast(d) * (1.0f - before * h)};
  }
  static inline Moved near(float, float d, float before) {
    const float t = tanh_small(d);
    const float h = (before + t) / (1.0f + before * t);
    return {h, t * (1.0f - before * h)};
  }
};

// With s(z) = (1 + tanh(z/2))/2 the identities above apply.
struct Sigmoid {
  static inline float value(float z) { return logistic_fast(z); }
  static inline float slope(float h) { return h * (1.0f - h); }
  static inline float slope_change(float h, float change) {
    return change * (1.0f - 2.0f * h + change);
  }
  static inline Moved moved(float z, float d, float) {
    const float h = logistic_fast(z + d);
    const float before = tanh_fast(0.5f * z);
    return {h, 0.5f * tanh_fast(0.5f * d) * (1.0f - before * (2.0f * h - 1.0f))};
  }
  static inline Moved near(float, float d, float before) {
    const float t = tanh_small(0.5f * d), b = 2.0f * before - 1.0f;
    const float h = (b + t) / (1.0f + b * t);
    return {0.5f + 0.5f * h, 0.5f * t * (1.0f - b * h)};
  }
};

struct Relu {
  static inline float value(float z) { return z > 0.0f ? z : 0.0f; }
  static inline float slope(float h) { return h > 0.0f ? 1.0f : 0.0f; }
  static inline float slope_change(float h, float change) { return slope(h) - slope(h - change); }
  static inline Moved moved(float z, float d, float) {
    const float before = value(z), h = value(z + d);
    return {h, before > 0.0f && h > 0.0f ? d : h - before};
  }
  static inline Moved near(float z, float d, float before) { return moved(z, d, before); }
};

template <class A>
void activate_with(const float* z, long n, float* out) {
  for (long i = 0; i < n; ++i) out[i] = A::value(z[i]);
}

template <class A>
void activate_shifted_with(const float* z, const float* d, long n, float* __restrict h,
                           float* __restrict change) {
  for (long i = 0; i < n; ++i) {
    const Moved to = A::moved(z[i], d[i], A::value(z[i]));
    h[i] = to.value;
    change[i] = to.change;
  }
}

// The outputs are parameters because only there does the compiler believe that nothing overlaps.
template <class A, bool near, bool first>
void activate_coupled_with(const CoupledActivation& at, long n, float* __restrict h,
                           float* __restrict change, float* __restrict shadow_change) {
  const float *z = at.z, *d = at.d, *s = at.shadow;
  for (long i = 0; i < n; ++i) {
    const float still = first ? h[i] : A::value(z[i]);
    const Moved shadow = near ? A::near(z[i], s[i], still) : A::moved(z[i], s[i], still);
    const Moved to =
        near ? A::near(z[i] + s[i], d[i], shadow.value) : A::moved(z[i] + s[i], d[i], shadow.value);
    h[i] = to.value;
    change[i] = to.change;
    shadow_change[i] = shadow.change;
  }
}

template <class A>
void activate_coupled_with(const CoupledActivation& at, long n, bool near, bool first) {
  const auto run =
      near ? (first ? activate_coupled_with<A, true, true> : activate_coupled_with<A, true, false>)
           : (first ? activate_coupled_with<A, false, true>
                    : activate_coupled_with<A, false, false>);
  run(at, n, at.h, at.change, at.shadow_change);
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

inline float larger(float size, float x) {
  const float a = x < 0.0f ? -x : x;
  return a > size ? a : size;
}

template <class A, bool first>
float sghmc_coupled_with(const SghmcPass& pass, const CoupledInputs& in, long rows, long columns,
                         float* __restrict velocity, float* __restrict d,
                         float* __restrict shadow_velocity, float* __restrict shadow_d) {
  const float *h = in.h, *change = in.change, *s = in.s, *back = in.back, *mask = in.mask;
  const float *shadow_s = in.shadow_s, *shadow_back = in.shadow_back, *normal = in.normal;
  const float keep = 1.0f - pass.friction;
  float size[kLanes] = {};
  for (long i = 0; i < rows; ++i) {
    for (long j = 0; j < columns; j += kLanes) {
      for (long lane = 0; lane < kLanes; ++lane) {
        const long k = i * columns + j + lane;
        float shadow_gradient = A::slope(first ? h[k] : h[k] - change[k]) * shadow_back[k];
        float gradient = A::slope(h[k]) * back[k];
        if constexpr (!first) {
          shadow_gradient += (shadow_s[k] - shadow_d[k]) * pass.inverse_variance;
          gradient += (s[k] - d[k]) * pass.inverse_variance +
                      A::slope_change(h[k], change[k]) * shadow_back[k];
        }
        float shadow_v = pass.step * shadow_gradient + pass.noise * normal[k];
        float v = pass.step * gradient;
        if constexpr (!first) {
          shadow_v += keep * shadow_velocity[k];
          v += keep * velocity[k];
        }
        shadow_velocity[k] = mask[j + lane] * shadow_v;
        velocity[k] = mask[j + lane] * v;
        shadow_d[k] = (first ? 0.0f : shadow_d[k]) + pass.step * shadow_velocity[k];
        d[k] = (first ? 0.0f : d[k]) + pass.step * velocity[k];
        size[lane] = larger(larger(size[lane], d[k]), shadow_d[k]);
      }
    }
  }
  float largest = 0.0f;
  for (long lane = 0; lane < kLanes; ++lane) largest = larger(largest, size[lane]);
  return largest;
}

template <class A>
float sghmc_coupled_with(const SghmcPass& pass, const CoupledInputs& in, long rows, long columns,
                         const CoupledLatents& out, bool first) {
  const auto run = first ? sghmc_coupled_with<A, true> : sghmc_coupled_with<A, false>;
  return run(pass, in, rows, columns, out.velocity, out.d, out.shadow_velocity, out.shadow_d);
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

void activate_coupled(Activation kind, const CoupledActivation& at, long n, bool near, bool first) {
  switch (kind) {
    case Activation::tanh:
      return activate_coupled_with<Tanh>(at, n, near, first);
    case Activation::sigmoid:
      return activate_coupled_with<Sigmoid>(at, n, near, first);
    case Activation::relu:
      return activate_coupled_with<Relu>(at, n, near, first);
  }
}

float sghmc_coupled(Activation kind, const SghmcPass& pass, const CoupledInputs& in, long rows,
                    long columns, const CoupledLatents& out, bool first) {
  switch (kind) {
    case Activation::tanh:
      return sghmc_coupled_with<Tanh>(pass, in, rows, columns, out, first);
    case Activation::sigmoid:
      return sghmc_coupled_with<Sigmoid>(pass, in, rows, columns, out, first);
    case Activation::relu:
      break;
  }
  return sghmc_coupled_with<Relu>(pass, in, rows, columns, out, first);
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
