// Covariates from the user's numbers to the network's, row by row.
#include "kernels/level.hpp"

namespace cstonet {
namespace CSTONET_LEVEL {
namespace {

// The source may stand at any address: each number is copied out, which costs nothing.
template <class T>
void standardise(const void* from, const double* center, const double* inverse_scale, double limit,
                 long n, float* to) {
  const char* bytes = static_cast<const char*>(from);
  for (long j = 0; j < n; ++j) {
    T x;
    __builtin_memcpy(&x, bytes + j * static_cast<long>(sizeof(T)), sizeof x);
    double z = (static_cast<double>(x) - center[j]) * inverse_scale[j];
    z = z < -limit ? -limit : z;
    z = z > limit ? limit : z;
    to[j] = static_cast<float>(z);
  }
}

template <class T>
void standardise_one(const void* from, double center, double inverse_scale, double limit, long n,
                     float* to) {
  const char* bytes = static_cast<const char*>(from);
  for (long i = 0; i < n; ++i) {
    T x;
    __builtin_memcpy(&x, bytes + i * static_cast<long>(sizeof(T)), sizeof x);
    double z = (static_cast<double>(x) - center) * inverse_scale;
    z = z < -limit ? -limit : z;
    z = z > limit ? limit : z;
    to[i] = static_cast<float>(z);
  }
}

}  // namespace

void standardise_float_column(const void* from, double center, double inverse_scale, double limit,
                              long n, float* to) {
  standardise_one<float>(from, center, inverse_scale, limit, n, to);
}

void standardise_double_column(const void* from, double center, double inverse_scale, double limit,
                               long n, float* to) {
  standardise_one<double>(from, center, inverse_scale, limit, n, to);
}

void standardise_floats(const void* from, const double* center, const double* inverse_scale,
                        double limit, long n, float* to) {
  standardise<float>(from, center, inverse_scale, limit, n, to);
}

void standardise_doubles(const void* from, const double* center, const double* inverse_scale,
                         double limit, long n, float* to) {
  standardise<double>(from, center, inverse_scale, limit, n, to);
}

void square_centred(const float* x, const float* mean, long rows, long columns, float* linear_sq,
                    float* square, float* square_sq) {
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j) {
      const long at = i * columns + j;
      const float s = x[at] * x[at];
      const float f = s - mean[j];
      linear_sq[at] = s;
      square[at] = f;
      square_sq[at] = f * f;
    }
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
