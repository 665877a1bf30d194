// Matrix product for the shapes of a minibatch: one operand has few columns (hidden units), so a
// panel of it stays in registers and cache and nothing needs packing. With strides for the first
// operand, the same loop gives the forward product X W and the gradient product X' R.
#include "kernels/level.hpp"

namespace cstonet {
namespace CSTONET_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 16, kTileRows = 12;
#elif defined(__AVX__)
constexpr int kWidth = 8, kTileRows = 6;
#else
constexpr int kWidth = 4, kTileRows = 6;
#endif

typedef float Vector __attribute__((vector_size(kWidth * sizeof(float))));

inline Vector load(const float* p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

inline void store(float* p, Vector v) { __builtin_memcpy(p, &v, sizeof v); }

// rows x (vectors * kWidth) block of the result, accumulated in registers.
template <int rows, int vectors>
void tile(const float* a, long a_row, long a_col, const float* b, long b_row, const float* bias,
          float* c, long c_row, long depth) {
  Vector sum[rows][vectors];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) sum[i][j] = bias ? load(bias + j * kWidth) : Vector{};
  for (long l = 0; l < depth; ++l) {
    Vector panel[vectors];
    for (int j = 0; j < vectors; ++j) panel[j] = load(b + l * b_row + j * kWidth);
    for (int i = 0; i < rows; ++i) {
      const float x = a[i * a_row + l * a_col];
      for (int j = 0; j < vectors; ++j) sum[i][j] += x * panel[j];
    }
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) store(c + i * c_row + j * kWidth, sum[i][j]);
}

// The last rows: the largest tile that still fits, found by recursion at compile time.
template <int rows, int vectors>
void remainder(long left, const float* a, long a_row, long a_col, const float* b, long b_row,
               const float* bias, float* c, long c_row, long depth) {
  if constexpr (rows > 0) {
    if (left == rows)
      tile<rows, vectors>(a, a_row, a_col, b, b_row, bias, c, c_row, depth);
    else
      remainder<rows - 1, vectors>(left, a, a_row, a_col, b, b_row, bias, c, c_row, depth);
  }
}

template <int vectors>
void panel(const float* a, long a_row, long a_col, const float* b, long b_row, const float* bias,
           float* c, long c_row, long rows, long depth) {
  long i = 0;
  for (; i + kTileRows <= rows; i += kTileRows)
    tile<kTileRows, vectors>(a + i * a_row, a_row, a_col, b, b_row, bias, c + i * c_row, c_row,
                             depth);
  remainder<kTileRows - 1, vectors>(rows - i, a + i * a_row, a_row, a_col, b, b_row, bias,
                                    c + i * c_row, c_row, depth);
}

}  // namespace

void multiply(const float* a, long a_row, long a_col, const float* b, long b_row, const float* bias,
              float* c, long c_row, long rows, long depth, long columns) {
  long j = 0;
  for (; j + 2 * kWidth <= columns; j += 2 * kWidth)
    panel<2>(a, a_row, a_col, b + j, b_row, bias ? bias + j : nullptr, c + j, c_row, rows, depth);
  if (j < columns)
    panel<1>(a, a_row, a_col, b + j, b_row, bias ? bias + j : nullptr, c + j, c_row, rows, depth);
}

void column_sums(const float* r, long rows, long columns, float* out) {
  for (long j = 0; j < columns; ++j) out[j] = 0.0f;
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j) out[j] += r[i * columns + j];
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
