// The hot loops, one table of plain functions per instruction-set level.
//
// The sources beside this header are compiled once per level (see flags.mk) into the namespace
// cstonet::CSTONET_LEVEL. They use neither Eigen nor the standard library, so no inline function
// compiled for a newer CPU can be merged by the linker into code that must run on an older one.
#pragma once

#include <cstdint>

namespace cstonet {

// Every matrix row is padded with zeros to a multiple of this many floats, so that no loop over
// units has a remainder at any level (one AVX-512 register holds 16).
constexpr long kLanes = 16;

enum class Activation : int { tanh = 0, sigmoid = 1, relu = 2 };

// Mixture-Gaussian prior in the form the update needs (paper eq. 7). `weight` is 1/n, or 0 when
// the prior is off.
struct PriorPass {
  float log_odds;       // log λ/(1-λ) + log σ0/σ1: log prior odds of the slab at θ = 0
  float half_gap;       // (1/σ0² - 1/σ1²) / 2
  float inverse_spike;  // 1/σ0²
  float inverse_slab;   // 1/σ1²
  float weight;
};

struct AdamPass {
  float rate, first_decay, second_decay, first_correction, second_correction, epsilon;
  float gradient_scale;
};

struct MomentumPass {
  float rate, momentum, gradient_scale;
};

// One SGHMC move of a layer of latent variables (paper Algorithm A1, step 1).
struct SghmcPass {
  float step;              // ε
  float friction;          // α = ε η
  float noise;             // sqrt(2 α T)
  float inverse_variance;  // 1/σ_i²
};

// What that move reads: ψ(Y_i), the shift of the predictor, w_{i+1}' residual_{i+1} and standard
// normals, all rows x columns; and one mask for every row.
struct LatentInputs {
  const float *h, *s, *back, *normal, *mask;
};

// The same for a chain and its shadow, which has the same normals and feels no visible unit. The
// chain stands as its difference d from the shadow, so that nothing cancels: `s`, `back` and
// `change` are differences too, and the shadow's own activation is h - change.
struct CoupledInputs {
  const float *h, *change, *s, *back;
  const float *shadow_s, *shadow_back, *normal, *mask;
};
struct CoupledLatents {
  float *velocity, *d, *shadow_velocity, *shadow_d;
};

// Displacements up to this size need no exponential.
constexpr float kNear = 0.6f;

// h = ψ(z + shadow + d), change = h - ψ(z + shadow), shadow_change = ψ(z + shadow) - ψ(z).
struct CoupledActivation {
  const float *z, *shadow, *d;
  float *h, *change, *shadow_change;
};

// A matrix whose element (i, j) stands at data[i * row + j * column].
struct Strided {
  const float* data;
  long row, column;
};

struct KernelTable {
  const char* level;

  // c = bias + a b: a is rows x depth; b is depth x columns and c is rows x columns, both row-major
  // without gaps; columns is a multiple of kLanes; bias may be null.
  void (*multiply)(const Strided& a, const float* b, const float* bias, float* c, long rows,
                   long depth, long columns);
  // c += a b.
  void (*multiply_add)(const Strided& a, const float* b, float* c, long rows, long depth,
                       long columns);
  // out[j] = sum over rows of r(i, j).
  void (*column_sums)(const float* r, long rows, long columns, float* out);
  // out = ψ(z).
  void (*activate)(Activation kind, const float* z, long n, float* out);
  // h = ψ(z + d) and change = ψ(z + d) - ψ(z), the latter without cancellation for small d.
  void (*activate_shifted)(Activation kind, const float* z, const float* d, long n, float* h,
                           float* change);
  // v <- (1-α) v + ε (-(d - s)/σ² + ψ'(h) back) + noise;  d <- d + ε v, where mask[column] is 1.
  void (*sghmc)(Activation kind, const SghmcPass& pass, const LatentInputs& in, long rows,
                long columns, float* velocity, float* d);
  // Both moves of a coupled pair; returns the largest |d| of either. With `first` the pair starts
  // at rest at the noise-free network: neither its former state nor `s` and `change` are read.
  float (*sghmc_coupled)(Activation kind, const SghmcPass& pass, const CoupledInputs& in, long rows,
                         long columns, const CoupledLatents& out, bool first);
  // Its activations; `near` says that no |d| exceeds kNear, `first` that h holds ψ(z).
  void (*activate_coupled)(Activation kind, const CoupledActivation& at, long n, bool near,
                           bool first);
  // out = mask[column] (d - s) scale.
  void (*innovation)(const float* d, const float* s, const float* mask, float scale, long rows,
                     long columns, float* out);
  double (*sum_squares)(const float* x, const float* mask, long n);
  void (*adam)(const AdamPass& pass, const PriorPass& prior, const float* gradient,
               const float* mask, long n, float* w, float* first, float* second);
  void (*momentum)(const MomentumPass& pass, const PriorPass& prior, const float* gradient,
                   const float* mask, long n, float* w, float* velocity);
  // Gradient of the log prior density, and the random numbers, exposed for their own sake.
  void (*prior_gradient)(const PriorPass& prior, const float* w, long n, float* out);
  // Philox4x32-10: block b of the stream (key, c1, c2, c3) fills out[4b .. 4b+3].
  void (*random_bits)(const std::uint32_t key[2], const std::uint32_t counter[3], long n,
                      std::uint32_t* out);
  void (*random_normal)(const std::uint32_t key[2], const std::uint32_t counter[3], long n,
                        float* out);
};

// The table in use: the best level this CPU has, unless select_level said otherwise.
const KernelTable& kernels();
// Names of the levels this CPU can run, best last.
int available_levels(const char* names[4]);
// Use the named level; false if this CPU or this build lacks it.
bool select_level(const char* name);

}  // namespace cstonet
