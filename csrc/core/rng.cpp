#include "core/rng.hpp"

#include <utility>

namespace cstonet {
namespace {

// The finalizer of splitmix64: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t fold, std::uint64_t start,
                           std::uint64_t network) {
  std::uint64_t key = mix(mix(mix(seed) ^ fold) ^ start);
  if (network != 0) key = mix(key ^ network);
  key_[0] = static_cast<std::uint32_t>(key);
  key_[1] = static_cast<std::uint32_t>(key >> 32);
}

void RandomStream::normals(Purpose purpose, std::uint32_t a, std::uint32_t b, Index n,
                           float* out) const {
  const std::uint32_t counter[3] = {a, b, static_cast<std::uint32_t>(purpose)};
  kernels().random_normal(key_, counter, n, out);
}

void RandomStream::uniforms(Purpose purpose, std::uint32_t a, std::uint32_t b, Index n,
                            float* out) const {
  const std::uint32_t counter[3] = {a, b, static_cast<std::uint32_t>(purpose)};
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(n));
  kernels().random_bits(key_, counter, n, bits.data());
  for (Index i = 0; i < n; ++i)
    out[i] = static_cast<float>(bits[static_cast<std::size_t>(i)] >> 8) * 0x1p-24f;
}

void RandomStream::shuffle(Purpose purpose, std::uint32_t a, std::vector<Index>& items) const {
  const std::uint32_t counter[3] = {a, 0, static_cast<std::uint32_t>(purpose)};
  std::vector<std::uint32_t> bits(items.size());
  kernels().random_bits(key_, counter, static_cast<long>(bits.size()), bits.data());
  for (std::size_t i = items.size(); i > 1; --i) {
    // Scaling 32 bits to [0, i) has a bias of i / 2^32: immaterial for a shuffle of rows.
    const std::size_t j = static_cast<std::size_t>((std::uint64_t{bits[i - 1]} * i) >> 32);
    std::swap(items[i - 1], items[j]);
  }
}

}  // namespace cstonet
