// Matrix product for the shapes of a minibatch: one operand has few columns (hidden units), so a
// panel of it stays in registers and cache and nothing needs packing. The left factor as it stands
// gives the forward product X W, transposed the gradient product X' R.
#include "kernels/level.hpp"
#include "kernels/tile.hpp"

namespace cstonet {
namespace CSTONET_LEVEL {
namespace {

// All rows, in blocks whose numbers of rows differ by one at most: a short block at the end would
// wait for its sums.
template <bool transposed, int lanes, int vectors>
void panel(const float* a, long a_stride, const float* b, const Start& start, float* c,
           const ProductShape& shape) {
  using Available = Tiles<transposed, lanes, vectors>;
  long blocks = (shape.rows + Available::most - 1) / Available::most;
  for (long i = 0; i < shape.rows; --blocks) {
    const long rows = (shape.rows - i + blocks - 1) / blocks;
    Available::All::functions[rows](a + i * (transposed ? 1 : a_stride), a_stride, b, start.from(i),
                                    c + i * shape.stride, shape.stride, shape.depth);
    i += rows;
  }
}

template <bool transposed>
void product(const Left& a, const float* b, const Start& start, float* c,
             const ProductShape& shape) {
  long j = 0;
  for (; shape.columns - j > kWidth; j += 2 * kWidth)
    panel<transposed, kWidth, 2>(a.data, a.stride, b + j, start.column(j), c + j, shape);
  // Half a register where that is enough: its other half would work for nothing.
  constexpr int half = kWidth > 4 ? kWidth / 2 : kWidth;
  if (shape.columns - j > half)
    panel<transposed, kWidth, 1>(a.data, a.stride, b + j, start.column(j), c + j, shape);
  else if (shape.columns > j)
    panel<transposed, half, 1>(a.data, a.stride, b + j, start.column(j), c + j, shape);
}

}  // namespace

void multiply(const Left& a, const float* b, const float* bias, float* c,
              const ProductShape& shape) {
  const auto run = a.transposed ? product<true> : product<false>;
  run(a, b, {bias, 0}, c, shape);
}

void multiply_add(const Left& a, const float* b, float* c, const ProductShape& shape) {
  const auto run = a.transposed ? product<true> : product<false>;
  run(a, b, {c, shape.stride}, c, shape);
}

void column_sums(const float* r, long rows, long columns, float* out) {
  for (long j = 0; j < columns; j += kLanes) {
    float sum[kLanes] = {};
    for (long i = 0; i < rows; ++i)
      for (long lane = 0; lane < kLanes; ++lane) sum[lane] += r[i * columns + j + lane];
    for (long lane = 0; lane < kLanes; ++lane) out[j + lane] = sum[lane];
  }
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
