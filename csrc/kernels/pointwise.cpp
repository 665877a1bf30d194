// Elementwise passes over a layer: activations, the latent move, residuals.
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

// t / (1 + b t) for |t| below kClose and |b| <= 1: 1/(1+x) = (1 - x)(1 + x² + x⁴) + O(x⁶).
inline float share_close(float b, float t) {
  const float x = b * t, x2 = x * x;
  return t * ((1.0f - x) * (1.0f + x2 * (1.0f + x2)));
}

// Each activation: its value, its slope as a function of its value h, the exact difference of
// slopes given h and its change, and the move from `before` = ψ(z), by d of any size, by one that
// is `near` (|d| < kNear), where no exponential is needed, or `close` (|d| < kClose), where no
// division is needed either.
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
  static inline Moved close(float, float d, float before) {
    const float change = (1.0f - before * before) * share_close(before, tanh_close(d));
    return {before + change, change};
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
  static inline Moved close(float, float d, float before) {
    const float b = 2.0f * before - 1.0f;
    const float change = 2.0f * before * (1.0f - before) * share_close(b, tanh_close(0.5f * d));
    return {before + change, change};
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
  static inline Moved close(float z, float d, float before) { return moved(z, d, before); }
};

template <class A, Distance distance>
inline Moved moved(float z, float d, float before) {
  if constexpr (distance == Distance::close) return A::close(z, d, before);
  if constexpr (distance == Distance::near) return A::near(z, d, before);
  return A::moved(z, d, before);
}

template <class A>
void activate_with(const float* z, long n, float* __restrict out) {
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

// Calls body(k, j) for every entry k of a panel and its column j, `lanes` at a time. What is beyond
// the last column is done too, as far as lanes reach: rows are padded.
template <int lanes, class Body>
inline void for_entries(const PanelShape& shape, Body body) {
  for (long i = 0; i < shape.rows; ++i)
    for (long j = 0; j < shape.columns; j += lanes)
      for (int lane = 0; lane < lanes; ++lane) body(i * shape.stride + j + lane, j + lane, lane);
}

// Half as many lanes where they are enough.
constexpr int kFew = kLanes / 2;
inline bool is_narrow(const PanelShape& shape) { return shape.columns <= kFew; }

template <class A, int lanes>
void activate_rows(const float* z, const PanelShape& shape, float* __restrict out) {
  for_entries<lanes>(shape, [=](long k, long, int) { out[k] = A::value(z[k]); });
}

template <class A>
void activate_rows(const float* z, const PanelShape& shape, float* out) {
  (is_narrow(shape) ? activate_rows<A, kFew> : activate_rows<A, kLanes>)(z, shape, out);
}

// The outputs are parameters because only there does the compiler believe that nothing overlaps.
template <class A, Distance distance, bool first, int lanes>
void activate_coupled_with(const CoupledActivation& at, const PanelShape& shape,
                           float* __restrict h, float* __restrict change,
                           float* __restrict shadow_change) {
  const float *z = at.z, *d = at.d, *s = at.shadow, *mask = at.mask;
  for_entries<lanes>(shape, [=](long k, long j, int) {
    const float still = first ? h[k] : A::value(z[k]);
    const Moved shadow = moved<A, distance>(z[k], s[k], still);
    const Moved to = moved<A, distance>(z[k] + s[k], d[k], shadow.value);
    h[k] = mask[j] > 0.0f ? to.value : h[k];
    change[k] = to.change;
    shadow_change[k] = shadow.change;
  });
}

template <class A, Distance distance>
void activate_coupled_with(const CoupledActivation& at, const PanelShape& shape, bool first) {
  const auto run = is_narrow(shape) ? (first ? activate_coupled_with<A, distance, true, kFew>
                                             : activate_coupled_with<A, distance, false, kFew>)
                                    : (first ? activate_coupled_with<A, distance, true, kLanes>
                                             : activate_coupled_with<A, distance, false, kLanes>);
  run(at, shape, at.h, at.change, at.shadow_change);
}

template <class A>
void activate_coupled_with(const CoupledActivation& at, const PanelShape& shape, Distance distance,
                           bool first) {
  switch (distance) {
    case Distance::close:
      return activate_coupled_with<A, Distance::close>(at, shape, first);
    case Distance::near:
      return activate_coupled_with<A, Distance::near>(at, shape, first);
    case Distance::far:
      return activate_coupled_with<A, Distance::far>(at, shape, first);
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

inline float larger(float size, float x) {
  const float a = x < 0.0f ? -x : x;
  return a > size ? a : size;
}

// With `kept` velocities are for another sweep.
template <class A, bool first, bool kept, int lanes>
float sghmc_coupled_with(const SghmcPass& pass, const CoupledInputs& in, const PanelShape& shape,
                         float* __restrict velocity, float* __restrict d,
                         float* __restrict shadow_velocity, float* __restrict shadow_d,
                         float* __restrict residual, float* __restrict shadow_residual) {
  const float *h = in.h, *change = in.change, *s = in.s, *back = in.back, *mask = in.mask;
  const float *shadow_s = in.shadow_s, *shadow_back = in.shadow_back, *normal = in.normal;
  const SghmcPass p = pass;
  const float keep = 1.0f - p.friction;
  float size[lanes] = {};
  for_entries<lanes>(shape, [=, &size](long k, long j, int lane) {
    float shadow_gradient = A::slope(first ? h[k] : h[k] - change[k]) * shadow_back[k];
    float gradient = A::slope(h[k]) * back[k];
    if constexpr (!first) {
      shadow_gradient += (shadow_s[k] - shadow_d[k]) * p.inverse_variance;
      gradient +=
          (s[k] - d[k]) * p.inverse_variance + A::slope_change(h[k], change[k]) * shadow_back[k];
    }
    float shadow_v = p.step * shadow_gradient + p.noise * normal[k];
    float v = p.step * gradient;
    if constexpr (!first) {
      shadow_v += keep * shadow_velocity[k];
      v += keep * velocity[k];
    }
    shadow_v *= mask[j];
    v *= mask[j];
    if constexpr (kept) {
      shadow_velocity[k] = shadow_v;
      velocity[k] = v;
    }
    const float shadow_at = (first ? 0.0f : shadow_d[k]) + p.step * shadow_v;
    const float at = (first ? 0.0f : d[k]) + p.step * v;
    shadow_d[k] = shadow_at;
    d[k] = at;
    size[lane] = larger(larger(size[lane], at), shadow_at);
    const float scale = mask[j] * p.inverse_variance;
    shadow_residual[k] = scale * (first ? shadow_at : shadow_at - shadow_s[k]);
    residual[k] = scale * (first ? at : at - s[k]);
  });
  float largest = 0.0f;
  for (long lane = 0; lane < lanes; ++lane) largest = larger(largest, size[lane]);
  return largest;
}

template <class A, int lanes>
float sghmc_coupled_with(const SghmcPass& pass, const CoupledInputs& in, const PanelShape& shape,
                         const CoupledLatents& out, bool first) {
  const auto run = !first         ? sghmc_coupled_with<A, false, true, lanes>
                   : out.velocity ? sghmc_coupled_with<A, true, true, lanes>
                                  : sghmc_coupled_with<A, true, false, lanes>;
  return run(pass, in, shape, out.velocity, out.d, out.shadow_velocity, out.shadow_d, out.residual,
             out.shadow_residual);
}

template <class A>
float sghmc_coupled_with(const SghmcPass& pass, const CoupledInputs& in, const PanelShape& shape,
                         const CoupledLatents& out, bool first) {
  return (is_narrow(shape) ? sghmc_coupled_with<A, kFew>
                           : sghmc_coupled_with<A, kLanes>)(pass, in, shape, out, first);
}

template <int lanes>
void innovations_with(const PanelShape& shape, const float* d, const float* s, const float* mask,
                      float scale, float* __restrict out) {
  for_entries<lanes>(shape, [=](long k, long j, int) { out[k] = mask[j] * (d[k] - s[k]) * scale; });
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

void activate_coupled(Activation kind, const CoupledActivation& at, const PanelShape& shape,
                      Distance distance, bool first) {
  switch (kind) {
    case Activation::tanh:
      return activate_coupled_with<Tanh>(at, shape, distance, first);
    case Activation::sigmoid:
      return activate_coupled_with<Sigmoid>(at, shape, distance, first);
    case Activation::relu:
      return activate_coupled_with<Relu>(at, shape, distance, first);
  }
}

float sghmc_coupled(Activation kind, const SghmcPass& pass, const CoupledInputs& in,
                    const PanelShape& shape, const CoupledLatents& out, bool first) {
  switch (kind) {
    case Activation::tanh:
      return sghmc_coupled_with<Tanh>(pass, in, shape, out, first);
    case Activation::sigmoid:
      return sghmc_coupled_with<Sigmoid>(pass, in, shape, out, first);
    case Activation::relu:
      break;
  }
  return sghmc_coupled_with<Relu>(pass, in, shape, out, first);
}

void innovation(const float* d, const float* s, const float* mask, float scale,
                const PanelShape& shape, float* out) {
  (is_narrow(shape) ? innovations_with<kFew> : innovations_with<kLanes>)(shape, d, s, mask, scale,
                                                                         out);
}

double squared_norm(const float* a, const float* b, const float* mask, const PanelShape& shape) {
  // Few rows at a time in float32: its rounding errors stay below the root of their number.
  constexpr long few = 64;
  double total = 0.0;
  for (long first = 0; first < shape.rows; first += few) {
    const PanelShape part{shape.rows - first < few ? shape.rows - first : few, shape.columns,
                          shape.stride};
    const float *x = a + first * shape.stride, *y = b ? b + first * shape.stride : nullptr;
    float sum[kLanes] = {};
    if (y)
      for_entries<kLanes>(part, [=, &sum](long k, long j, int lane) {
        const float e = mask[j] * (x[k] + y[k]);
        sum[lane] += e * e;
      });
    else
      for_entries<kLanes>(part, [=, &sum](long k, long j, int lane) {
        const float e = mask[j] * x[k];
        sum[lane] += e * e;
      });
    for (long lane = 0; lane < kLanes; ++lane) total += static_cast<double>(sum[lane]);
  }
  return total;
}

void logistic(const float* eta, long n, float* __restrict out) {
  for (long i = 0; i < n; ++i)
    out[i] = static_cast<float>(1.0 / (1.0 + exp_double(-static_cast<double>(eta[i]))));
}

void softplus(const float* eta, long n, double* __restrict out) {
  for (long i = 0; i < n; ++i) out[i] = softplus_double(static_cast<double>(eta[i]));
}

void forward(Activation kind, const Left& a, const float* b, const float* bias, float* z, float* h,
             const ProductShape& shape) {
  const auto activate_block = kind == Activation::tanh      ? activate_rows<Tanh>
                              : kind == Activation::sigmoid ? activate_rows<Sigmoid>
                                                            : activate_rows<Relu>;
  // So few rows that the predictors are still in the nearest cache when they are activated.
  constexpr long few = 96;
  for (long first = 0; first < shape.rows; first += few) {
    const long rows = shape.rows - first < few ? shape.rows - first : few,
               at = first * shape.stride;
    multiply({a.data + first * a.stride, a.stride, false}, b, bias, z + at,
             {rows, shape.depth, shape.columns, shape.stride});
    activate_block(z + at, {rows, shape.columns, shape.stride}, h + at);
  }
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
