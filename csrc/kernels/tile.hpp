// Blocks of a matrix product whose sums stay in registers.
#pragma once

#include "kernels/kernels.hpp"

namespace cstonet {
namespace CSTONET_LEVEL {

// Floats of a register, and how many rows a block of one or of two registers' columns may have: the
// sums, the right factor's row and one entry of the left factor must find room.
#if defined(__AVX512F__)
constexpr int kWidth = 16;
constexpr int kTileRows[3] = {0, 16, 12};
#elif defined(__AVX__)
constexpr int kWidth = 8;
constexpr int kTileRows[3] = {0, 12, 6};
#else
constexpr int kWidth = 4;
constexpr int kTileRows[3] = {0, 12, 6};
#endif

// Loops over a block's registers must be gone before the compiler decides what stays in one.
#if defined(__clang__)
#define CSTONET_UNROLL _Pragma("unroll")
#else
#define CSTONET_UNROLL _Pragma("GCC unroll 16")
#endif

template <int lanes>
struct Register {
  typedef float type __attribute__((vector_size(lanes * sizeof(float))));
};

template <int lanes>
inline typename Register<lanes>::type load(const float* p) {
  typename Register<lanes>::type v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <int lanes>
inline void store(float* p, typename Register<lanes>::type v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// Where the sums of row i begin: at a bias that all rows share (distance 0), at the result itself
// (its stride), or at zero (null).
struct Start {
  const float* data;
  long row;
  Start from(long i) const { return {data ? data + i * row : nullptr, row}; }
  Start column(long j) const { return {data ? data + j : nullptr, row}; }
};

// Entries of a left factor, one row of the block after the other, at one step of the sum. Written
// so that few addresses are held: rows in groups of four share their distances.
template <bool transposed>
struct LeftEntries {
  const float* data;
  long stride;
  long at[4];  // of the four rows of a group

  LeftEntries(const float* from, long distance)
      : data(from), stride(distance), at{0, distance, 2 * distance, 3 * distance} {}
  float operator()(int row) const {
    return transposed ? data[row] : (data + row / 4 * 4 * stride)[at[row % 4]];
  }
  void next() {
    if constexpr (transposed) {
      data += stride;
    } else {
      for (long& index : at) ++index;
    }
  }
};

// rows x (vectors * lanes) block of the result; `stride` is the distance of rows of b and of c.
template <bool transposed, int lanes, int rows, int vectors>
void tile(const float* a, long a_stride, const float* b, const Start& start, float* c, long stride,
          long depth) {
  typename Register<lanes>::type sum[rows][vectors];
  CSTONET_UNROLL
  for (int i = 0; i < rows; ++i) CSTONET_UNROLL
  for (int j = 0; j < vectors; ++j) {
    if (start.data)
      sum[i][j] = load<lanes>(start.data + i * start.row + j * lanes);
    else
      sum[i][j] = typename Register<lanes>::type{};
  }
  LeftEntries<transposed> left(a, a_stride);
  for (long l = 0; l < depth; ++l, left.next(), b += stride) {
    typename Register<lanes>::type right[vectors];
    CSTONET_UNROLL
    for (int j = 0; j < vectors; ++j) right[j] = load<lanes>(b + j * lanes);
    CSTONET_UNROLL
    for (int i = 0; i < rows; ++i) CSTONET_UNROLL
    for (int j = 0; j < vectors; ++j) sum[i][j] += left(i) * right[j];
  }
  CSTONET_UNROLL
  for (int i = 0; i < rows; ++i) CSTONET_UNROLL
  for (int j = 0; j < vectors; ++j) store<lanes>(c + i * stride + j * lanes, sum[i][j]);
}

// The blocks of every number of rows, to be chosen by it.
template <bool transposed, int lanes, int vectors>
struct Tiles {
  using Function = void (*)(const float* a, long a_stride, const float* b, const Start& start,
                            float* c, long stride, long depth);
  static constexpr int most = kTileRows[vectors];
  template <int rows>
  static constexpr Function at() {
    if constexpr (rows == 0)
      return nullptr;
    else
      return tile<transposed, lanes, rows, vectors>;
  }
  template <int... rows>
  struct List {
    static constexpr Function functions[] = {at<rows>()...};
  };
  template <int n, int... rows>
  struct Count : Count<n - 1, n, rows...> {};
  template <int... rows>
  struct Count<0, rows...> : List<0, rows...> {};
  using All = Count<most>;
};

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
