// Elementary functions, written so that compilers turn loops over them into SIMD code: no branches,
// no calls, no tables. Relative error about 2 units in the last place.
#pragma once

#include <cstdint>

namespace cstonet {
namespace CSTONET_LEVEL {

static inline float from_bits(std::int32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

static inline std::int32_t to_bits(float x) {
  std::int32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Nearest integer of |x| < 2^22: adding 1.5 * 2^23 leaves no room for a fraction.
static inline float round_small(float x) {
  constexpr float magic = 12582912.0f;
  return (x + magic) - magic;
}

// exp(x), saturating outside [-87, 88]; exp = 2^n e^r with |r| <= log(2)/2.
static inline float exp_fast(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  // As in round_small, but the sum's last bits are wanted too: they are n as an integer, and no
  // conversion is left undefined if x is not a number.
  constexpr float magic = 12582912.0f;
  const float shifted = x * 1.44269504088896341f + magic;
  const float n = shifted - magic;
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float e = p * (r * r) + r + 1.0f;
  const auto exponent = static_cast<std::uint32_t>(to_bits(shifted) - to_bits(magic)) + 127u;
  return e * from_bits(static_cast<std::int32_t>(exponent << 23));
}

static inline float logistic_fast(float x) { return 1.0f / (1.0f + exp_fast(-x)); }

// tanh for |x| < 0.625. It keeps its relative accuracy near zero, where displacements of the order
// σ² live.
static inline float tanh_small(float x) {
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  return x + x * z * p;
}

// tanh for |x| < 0.03: the next term, 17/315 x⁶, is below 2^-34.
static inline float tanh_close(float x) {
  const float z = x * x;
  return x + x * z * (-3.33333333e-1f + 1.33333333e-1f * z);
}

static inline float tanh_fast(float x) {
  const float a = x < 0.0f ? -x : x;
  const float small = tanh_small(x);
  const float large = 1.0f - 2.0f / (exp_fast(2.0f * a) + 1.0f);
  return a < 0.625f ? small : (x < 0.0f ? -large : large);
}

// log(x) for finite x > 0 that is not subnormal.
static inline float log_fast(float x) {
  const std::int32_t bits = to_bits(x);
  // Split at sqrt(1/2), so that the mantissa lies in [sqrt(1/2), sqrt(2)).
  const std::int32_t exponent = (bits - 0x3f3504f3) >> 23;
  const float m = from_bits(bits - exponent * (1 << 23)) - 1.0f;
  const float e = static_cast<float>(exponent);
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float y = p * m * z;
  y = y - e * 2.12194440e-4f;
  y = y - 0.5f * z;
  return (m + y) + e * 0.693359375f;
}

// exp(x) in double precision, saturating outside [-700, 700]; as exp_fast, with Taylor's
// polynomial: the first term left out is (log(2)/2)^13 / 13! < 2^-52.
static inline double exp_double(double x) {
  x = x < -700.0 ? -700.0 : x;
  x = x > 700.0 ? 700.0 : x;
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = x * 1.4426950408889634 + magic;
  const double n = shifted - magic;
  const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  double p = 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  const double e = p * (r * r) + r + 1.0;
  std::uint64_t bits, origin;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  __builtin_memcpy(&origin, &magic, sizeof origin);
  const std::uint64_t power = (bits - origin + 1023u) << 52;
  double scale;
  __builtin_memcpy(&scale, &power, sizeof scale);
  return e * scale;
}

// log(1 + e^x) = max(x, 0) + log(1 + t), t = e^-|x| <= 1, and log(1 + t) = 2 artanh(t / (2 + t)),
// whose argument is at most 1/3: the first term left out is below 3^-34 / 35 < 2^-58.
static inline double softplus_double(double x) {
  const double t = exp_double(x < 0.0 ? x : -x);
  const double s = t / (2.0 + t), z = s * s;
  double p = 1.0 / 33;
  p = p * z + 1.0 / 31;
  p = p * z + 1.0 / 29;
  p = p * z + 1.0 / 27;
  p = p * z + 1.0 / 25;
  p = p * z + 1.0 / 23;
  p = p * z + 1.0 / 21;
  p = p * z + 1.0 / 19;
  p = p * z + 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  return (x > 0.0 ? x : 0.0) + 2.0 * (s + s * z * p);
}

// sin and cos of the angle 2π turn, turn in [0, 1).
static inline void sincos_turn(float turn, float* sine, float* cosine) {
  const float quarters = 4.0f * turn;
  const float q = round_small(quarters);
  const float x = (quarters - q) * 1.57079632679489662f;
  const float z = x * x;
  float s = -1.9515295891e-4f;
  s = s * z + 8.3321608736e-3f;
  s = s * z - 1.6666654611e-1f;
  s = s * z * x + x;
  float c = 2.443315711809948e-5f;
  c = c * z - 1.388731625493765e-3f;
  c = c * z + 4.166664568298827e-2f;
  c = c * z * z - 0.5f * z + 1.0f;
  const std::int32_t quadrant = static_cast<std::int32_t>(q) & 3;
  const bool swap = quadrant & 1;
  const float a = swap ? c : s;
  const float b = swap ? s : c;
  *sine = quadrant & 2 ? -a : a;
  *cosine = (quadrant == 1 || quadrant == 2) ? -b : b;
}

static inline float sqrt_fast(float x) { return __builtin_sqrtf(x); }

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
