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

// Where the sums of row i begin: at a bias that all rows share (distance 0), at the result itself
// (its stride), or at zero (null).
struct Start {
  const float* data;
  long row;
  Start from(long i) const { return {data ? data + i * row : nullptr, row}; }
  Start column(long j) const { return {data ? data + j : nullptr, row}; }
};

// rows x (vectors * kWidth) block of the result, accumulated in registers; `stride` is the distance
// of rows of b and of c.
template <int rows, int vectors>
void tile(const Strided& a, const float* b, const Start& start, float* c, long stride, long depth) {
  Vector sum[rows][vectors];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j)
      sum[i][j] = start.data ? load(start.data + i * start.row + j * kWidth) : Vector{};
  for (long l = 0; l < depth; ++l) {
    Vector panel[vectors];
    for (int j = 0; j < vectors; ++j) panel[j] = load(b + l * stride + j * kWidth);
    for (int i = 0; i < rows; ++i) {
      const float x = a.data[i * a.row + l * a.column];
      for (int j = 0; j < vectors; ++j) sum[i][j] += x * panel[j];
    }
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) store(c + i * stride + j * kWidth, sum[i][j]);
}

// The last rows: the largest tile that still fits, found by recursion at compile time.
template <int rows, int vectors>
void remainder(long left, const Strided& a, const float* b, const Start& start, float* c,
               long stride, long depth) {
  if constexpr (rows > 0) {
    if (left == rows)
      tile<rows, vectors>(a, b, start, c, stride, depth);
    else
      remainder<rows - 1, vectors>(left, a, b, start, c, stride, depth);
  }
}

template <int vectors>
void panel(const Strided& a, const float* b, const Start& start, float* c, long stride, long rows,
           long depth) {
  const auto from = [&a](long i) { return Strided{a.data + i * a.row, a.row, a.column}; };
  long i = 0;
  for (; i + kTileRows <= rows; i += kTileRows)
    tile<kTileRows, vectors>(from(i), b, start.from(i), c + i * stride, stride, depth);
  remainder<kTileRows - 1, vectors>(rows - i, from(i), b, start.from(i), c + i * stride, stride,
                                    depth);
}

void product(const Strided& a, const float* b, const Start& start, float* c, long rows, long depth,
             long columns) {
  long j = 0;
  for (; j + 2 * kWidth <= columns; j += 2 * kWidth)
    panel<2>(a, b + j, start.column(j), c + j, columns, rows, depth);
  if (j < columns) panel<1>(a, b + j, start.column(j), c + j, columns, rows, depth);
}

}  // namespace

void multiply(const Strided& a, const float* b, const float* bias, float* c, long rows, long depth,
              long columns) {
  product(a, b, {bias, 0}, c, rows, depth, columns);
}

void multiply_add(const Strided& a, const float* b, float* c, long rows, long depth, long columns) {
  product(a, b, {c, columns}, c, rows, depth, columns);
}

void column_sums(const float* r, long rows, long columns, float* out) {
  for (long j = 0; j < columns; ++j) out[j] = 0.0f;
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j) out[j] += r[i * columns + j];
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
