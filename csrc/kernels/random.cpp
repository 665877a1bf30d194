// Counter-based random numbers: Philox4x32-10 (Salmon et al., 2011) and Box-Muller. A number
// depends on its key and counter alone, so any thread can draw any part of any stream; compiled
// without contraction of a*b+c, so every level gives the same bits.
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernels/level.hpp"
#include "kernels/math.hpp"

namespace cstonet {
namespace CSTONET_LEVEL {
namespace {

constexpr long kBlocks = 16;  // Philox blocks computed side by side

struct Blocks {
  alignas(64) std::uint32_t word[4][kBlocks];
};

// Pairs of neighbouring words as one: the words of even blocks, or of odd ones shifted down, stand
// in the lower halves. The upper halves hold anything and are never looked at.
#if defined(__AVX512F__)
constexpr int kPairs = 8;
#elif defined(__AVX2__)
constexpr int kPairs = 4;
#else
constexpr int kPairs = 2;
#endif
typedef std::uint64_t Pairs __attribute__((vector_size(kPairs * sizeof(std::uint64_t))));

inline Pairs product_of_lower(Pairs a, std::uint32_t b) {
#if defined(__AVX512F__)
  // With a mask, as GCC 12 warns of its own header otherwise.
  return (Pairs)_mm512_maskz_mul_epu32(0xff, (__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
  return (Pairs)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#elif defined(__SSE2__)
  return (Pairs)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(b));
#else
  return (a & 0xffffffffu) * b;
#endif
}

inline void philox_rounds(const std::uint32_t key[2], Pairs x[4]) {
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const Pairs product0 = product_of_lower(x[0], 0xD2511F53u);
    const Pairs product1 = product_of_lower(x[2], 0xCD9E8D57u);
    x[0] = (product1 >> 32) ^ x[1] ^ k0;
    x[1] = product1;
    x[2] = (product0 >> 32) ^ x[3] ^ k1;
    x[3] = product0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

void philox(const std::uint32_t key[2], const std::uint32_t counter[3],
            const std::uint32_t number[kBlocks], Blocks* out) {
  for (long j = 0; j < kBlocks; j += 2 * kPairs) {
    Pairs numbers;
    __builtin_memcpy(&numbers, number + j, sizeof numbers);
    const Pairs zero{};
    Pairs even[4] = {numbers, zero + counter[0], zero + counter[1], zero + counter[2]};
    Pairs odd[4] = {numbers >> 32, even[1], even[2], even[3]};
    philox_rounds(key, even);
    philox_rounds(key, odd);
    for (int i = 0; i < 4; ++i) {
      const Pairs both = (even[i] & 0xffffffffu) | (odd[i] << 32);
      __builtin_memcpy(out->word[i] + j, &both, sizeof both);
    }
  }
}

// Two uniform words to two normals. The first uniform lies in (0, 1], the second in [0, 1).
inline void box_muller(std::uint32_t a, std::uint32_t b, float* first, float* second) {
  const float u = static_cast<float>(static_cast<std::int32_t>(a >> 8) + 1) * 0x1p-24f;
  const float turn = static_cast<float>(static_cast<std::int32_t>(b >> 8)) * 0x1p-24f;
  const float radius = sqrt_fast(-2.0f * log_fast(u));
  float sine, cosine;
  sincos_turn(turn, &sine, &cosine);
  *first = radius * cosine;
  *second = radius * sine;
}

// Makes four values of each of the numbered Philox blocks, one block after the other.
template <class T, class Transform>
inline void values_of(const std::uint32_t key[2], const std::uint32_t counter[3],
                      const std::uint32_t number[kBlocks], T out[4 * kBlocks],
                      Transform transform) {
  Blocks blocks;
  T values[4][kBlocks];
  philox(key, counter, number, &blocks);
  for (long j = 0; j < kBlocks; ++j)
    transform(blocks, j, &values[0][j], &values[1][j], &values[2][j], &values[3][j]);
  for (long j = 0; j < kBlocks; ++j)  // with bounds known, four vectors are interleaved
    for (long i = 0; i < 4; ++i) out[4 * j + i] = values[i][j];
}

// Fills out[0 .. n-1].
template <class T, class Transform>
void fill(const std::uint32_t key[2], const std::uint32_t counter[3], long n, T* out,
          Transform transform) {
  std::uint32_t number[kBlocks];
  for (long at = 0; at < n; at += 4 * kBlocks) {
    for (long j = 0; j < kBlocks; ++j) number[j] = static_cast<std::uint32_t>(at / 4 + j);
    if (n - at >= 4 * kBlocks) {
      values_of(key, counter, number, out + at, transform);
    } else {
      T last[4 * kBlocks];
      values_of(key, counter, number, last, transform);
      for (long i = 0; i < n - at; ++i) out[at + i] = last[i];
    }
  }
}

inline void two_normal_pairs(const Blocks& x, long j, float* a, float* b, float* c, float* d) {
  box_muller(x.word[0][j], x.word[1][j], a, b);
  box_muller(x.word[2][j], x.word[3][j], c, d);
}

}  // namespace

void random_bits(const std::uint32_t key[2], const std::uint32_t counter[3], long n,
                 std::uint32_t* out) {
  fill(key, counter, n, out,
       [](const Blocks& x, long j, std::uint32_t* a, std::uint32_t* b, std::uint32_t* c,
          std::uint32_t* d) {
         *a = x.word[0][j];
         *b = x.word[1][j];
         *c = x.word[2][j];
         *d = x.word[3][j];
       });
}

void random_normal(const std::uint32_t key[2], const std::uint32_t counter[3], long n, float* out) {
  fill(key, counter, n, out, two_normal_pairs);
}

void random_normal_rows(const std::uint32_t key[2], const std::uint32_t counter[3],
                        const PanelShape& shape, float* out) {
  const long wanted = (shape.columns + 3) / 4, per_row = shape.stride / 4;
  if (wanted == per_row) return random_normal(key, counter, shape.rows * shape.stride, out);
  const long total = shape.rows * wanted;
  long row = 0, block = 0;  // the next one
  for (long at = 0; at < total; at += kBlocks) {
    std::uint32_t number[kBlocks];
    for (long j = 0; j < kBlocks; ++j) {
      number[j] = static_cast<std::uint32_t>(row * per_row + block);
      const bool row_ends = ++block == wanted;
      row += row_ends;
      block = row_ends ? 0 : block;
    }
    float values[4 * kBlocks];
    values_of(key, counter, number, values, two_normal_pairs);
    const long count = total - at < kBlocks ? total - at : kBlocks;
    for (long j = 0; j < count; ++j)
      __builtin_memcpy(out + 4 * static_cast<long>(number[j]), values + 4 * j, 4 * sizeof(float));
  }
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
