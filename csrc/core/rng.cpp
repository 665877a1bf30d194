#include "core/rng.hpp"

#include <algorithm>
#include <utility>
#include <vector>

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
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

void RandomStream::normals(Purpose purpose, std::uint32_t a, std::uint32_t b,
                           std::span<float> out) const {
  const std::uint32_t counter[3] = {a, b, static_cast<std::uint32_t>(purpose)};
  kernels().random_normal(key_.data(), counter, std::ssize(out), out.data());
}

void RandomStream::normals(Purpose purpose, std::uint32_t a, std::uint32_t b, Index rows,
                           Index columns, Panel& out) const {
  const std::uint32_t counter[3] = {a, b, static_cast<std::uint32_t>(purpose)};
  kernels().random_normal_rows(key_.data(), counter, {rows, columns, out.stride()}, out.data());
}

void RandomStream::uniforms(Purpose purpose, std::uint32_t a, std::uint32_t b,
                            std::span<float> out) const {
  const std::uint32_t counter[3] = {a, b, static_cast<std::uint32_t>(purpose)};
  std::vector<std::uint32_t> bits(out.size());
  kernels().random_bits(key_.data(), counter, std::ssize(bits), bits.data());
  std::ranges::transform(bits, out.begin(), [](std::uint32_t word) {
    return static_cast<float>(word >> 8) * 0x1p-24f;
  });
}

void RandomStream::shuffle(Purpose purpose, std::uint32_t a, std::span<Index> items) const {
  const std::uint32_t counter[3] = {a, 0, static_cast<std::uint32_t>(purpose)};
  std::vector<std::uint32_t> bits(items.size());
  kernels().random_bits(key_.data(), counter, std::ssize(bits), bits.data());
  for (std::size_t i = items.size(); i > 1; --i) {
    // Scaling 32 bits to [0, i) has a bias of i / 2^32: immaterial for a shuffle of rows.
    const std::size_t j = (std::uint64_t{bits[i - 1]} * i) >> 32;
    std::swap(items[i - 1], items[j]);
  }
}

}  // namespace cstonet
