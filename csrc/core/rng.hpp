// Random streams of one task. Everything random in (seed, fold, start, network) is a function of a
// purpose and counters, never of what was drawn before: the answer cannot depend on threads or
// order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/types.hpp"

namespace cstonet {

enum class Purpose : std::uint32_t { weights = 1, shuffle = 2, latent = 3, candidates = 4 };

class RandomStream {
 public:
  // The key is a hash of the four: mix(mix(mix(seed) ^ fold) ^ start), which is the key of network
  // 0, and of any other network mix(that ^ network). Networks of one fit (the outcome's, the
  // mediators') share seed, fold and start; their number keeps their streams apart.
  RandomStream(std::uint64_t seed, std::uint64_t fold, std::uint64_t start, std::uint64_t network);

  // The first standard normals of the stream (purpose, a, b).
  void normals(Purpose purpose, std::uint32_t a, std::uint32_t b, std::span<float> out) const;
  // The same for the first rows of a panel, row after row with their padding; beyond the first
  // columns a panel may keep what it had.
  void normals(Purpose purpose, std::uint32_t a, std::uint32_t b, Index rows, Index columns,
               Panel& out) const;
  // Its first uniforms in [0, 1).
  void uniforms(Purpose purpose, std::uint32_t a, std::uint32_t b, std::span<float> out) const;
  // Shuffles the items in place.
  void shuffle(Purpose purpose, std::uint32_t a, std::span<Index> items) const;

  const std::array<std::uint32_t, 2>& key() const { return key_; }

 private:
  std::array<std::uint32_t, 2> key_;
};

}  // namespace cstonet
