// Counter-based random numbers: Philox4x32-10 (Salmon et al., 2011) and Box-Muller. A number
// depends on its key and counter alone, so any thread can draw any part of any stream; compiled
// without contraction of a*b+c, so every level gives the same bits.
#include "kernels/level.hpp"
#include "kernels/math.hpp"

namespace cstonet {
namespace CSTONET_LEVEL {
namespace {

constexpr long kBlocks = 16;  // Philox blocks computed side by side

struct Blocks {
  std::uint32_t word[4][kBlocks];
};

inline void multiply_wide(std::uint32_t a, std::uint32_t b, std::uint32_t* high,
                          std::uint32_t* low) {
  const std::uint64_t product = static_cast<std::uint64_t>(a) * b;
  *high = static_cast<std::uint32_t>(product >> 32);
  *low = static_cast<std::uint32_t>(product);
}

void philox(const std::uint32_t key[2], const std::uint32_t counter[3], std::uint32_t first,
            Blocks* out) {
  auto& x = out->word;
  for (long j = 0; j < kBlocks; ++j) {
    x[0][j] = first + static_cast<std::uint32_t>(j);
    x[1][j] = counter[0];
    x[2][j] = counter[1];
    x[3][j] = counter[2];
  }
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    for (long j = 0; j < kBlocks; ++j) {
      std::uint32_t high0, low0, high1, low1;
      multiply_wide(0xD2511F53u, x[0][j], &high0, &low0);
      multiply_wide(0xCD9E8D57u, x[2][j], &high1, &low1);
      x[0][j] = high1 ^ x[1][j] ^ k0;
      x[1][j] = low1;
      x[2][j] = high0 ^ x[3][j] ^ k1;
      x[3][j] = low0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
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

// Fills out[0 .. n-1]: `transform` makes four values of each Philox block, kBlocks side by side.
template <class T, class Transform>
void fill(const std::uint32_t key[2], const std::uint32_t counter[3], long n, T* out,
          Transform transform) {
  Blocks blocks;
  T values[4][kBlocks];
  for (long at = 0; at < n; at += 4 * kBlocks) {
    philox(key, counter, static_cast<std::uint32_t>(at / 4), &blocks);
    for (long j = 0; j < kBlocks; ++j)
      transform(blocks, j, &values[0][j], &values[1][j], &values[2][j], &values[3][j]);
    if (n - at >= 4 * kBlocks) {
      for (long j = 0; j < kBlocks; ++j)  // with bounds known, four vectors are interleaved
        for (long i = 0; i < 4; ++i) out[at + 4 * j + i] = values[i][j];
    } else {
      for (long i = 0; i < n - at; ++i) out[at + i] = values[i & 3][i >> 2];
    }
  }
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
  fill(key, counter, n, out, [](const Blocks& x, long j, float* a, float* b, float* c, float* d) {
    box_muller(x.word[0][j], x.word[1][j], a, b);
    box_muller(x.word[2][j], x.word[3][j], c, d);
  });
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
