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
// The residuals are those after the move, (d - s)/σ² of latent units and 0 of visible ones. The
// velocities may be null where a first move is the only one.
struct CoupledLatents {
  float *velocity, *d, *shadow_velocity, *shadow_d;
  float *residual, *shadow_residual;
};

// How far displacements go: up to kClose they need neither division nor exponential, up to kNear no
// exponential.
enum class Distance : int { close = 0, near = 1, far = 2 };
constexpr float kClose = 0.03f, kNear = 0.6f;

// h = ψ(z + shadow + d) where mask[column] is 1, else as it was; change = h - ψ(z + shadow) and
// shadow_change = ψ(z + shadow) - ψ(z).
struct CoupledActivation {
  const float *z, *shadow, *d, *mask;
  float *h, *change, *shadow_change;
};

// Panels of so many rows, `stride` apart, a multiple of kLanes. What is beyond the columns may be
// read and written.
struct PanelShape {
  long rows, columns, stride;
};

// Left factor of a product: the row-major matrix whose rows are `stride` apart, or its transpose.
struct Left {
  const float* data;
  long stride;
  bool transposed;
};

// Of a product rows x depth times depth x columns; `stride` is the distance of rows of the right
// factor and of the result. It is a multiple of kLanes; what is beyond the columns may be written.
struct ProductShape {
  long rows, depth, columns, stride;
};

struct KernelTable {
  const char* level;

  // c = bias + a b; bias may be null.
  void (*multiply)(const Left& a, const float* b, const float* bias, float* c,
                   const ProductShape& shape);
  // c += a b.
  void (*multiply_add)(const Left& a, const float* b, float* c, const ProductShape& shape);
  // z = bias + a b, h = ψ(z); `a` is not transposed.
  void (*forward)(Activation kind, const Left& a, const float* b, const float* bias, float* z,
                  float* h, const ProductShape& shape);
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
  float (*sghmc_coupled)(Activation kind, const SghmcPass& pass, const CoupledInputs& in,
                         const PanelShape& shape, const CoupledLatents& out, bool first);
  // Its activations; no |d| is larger than `distance` says; `first` says that h holds ψ(z).
  void (*activate_coupled)(Activation kind, const CoupledActivation& at, const PanelShape& shape,
                           Distance distance, bool first);
  // out = mask[column] (d - s) scale.
  void (*innovation)(const float* d, const float* s, const float* mask, float scale,
                     const PanelShape& shape, float* out);
  // Sum of the squares of mask[column] (a + b); b may be null.
  double (*squared_norm)(const float* a, const float* b, const float* mask,
                         const PanelShape& shape);
  // 1/(1 + e^-η) and log(1 + e^η), both worked out in double precision.
  void (*logistic)(const float* eta, long n, float* out);
  void (*softplus)(const float* eta, long n, double* out);
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
  // The same numbers for rows one after the other, but only those of the first columns of every
  // row, rounded up to whole blocks: what is beyond keeps its value.
  void (*random_normal_rows)(const std::uint32_t key[2], const std::uint32_t counter[3],
                             const PanelShape& shape, float* out);
  // to[j] = (from[j] - center[j]) inverse_scale[j] in double, held within [-limit, limit]; `from`
  // is an array of floats or doubles at any address.
  void (*standardise_floats)(const void* from, const double* center, const double* inverse_scale,
                             double limit, long n, float* to);
  void (*standardise_doubles)(const void* from, const double* center, const double* inverse_scale,
                              double limit, long n, float* to);
  // The same for neighbours in a column, which share their center and scale.
  void (*standardise_float_column)(const void* from, double center, double inverse_scale,
                                   double limit, long n, float* to);
  void (*standardise_double_column)(const void* from, double center, double inverse_scale,
                                    double limit, long n, float* to);
  // x², x² - mean[column] and its square; all rows x columns.
  void (*square_centred)(const float* x, const float* mean, long rows, long columns,
                         float* linear_sq, float* square, float* square_sq);
  // A loop of nothing but a*b + c, the measure of the products; and the operations of one step.
  float (*multiply_adds)(long steps);
  long (*flops_per_step)();
};

// The table in use: the best level this CPU has, unless select_level said otherwise.
const KernelTable& kernels();
// Names of the levels this CPU can run, best last.
int available_levels(const char* names[4]);
// Use the named level; false if this CPU or this build lacks it.
bool select_level(const char* name);

}  // namespace cstonet
