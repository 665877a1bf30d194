// Random streams of one task. Everything random in (seed, fold, start) is a function of a purpose
// and counters, never of what was drawn before: the answer cannot depend on threads or order.
#pragma once

#include <cstdint>
#include <vector>

#include "core/types.hpp"

namespace cstonet {

enum class Purpose : std::uint32_t { weights = 1, shuffle = 2, latent = 3, candidates = 4 };

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t fold, std::uint64_t start);

  // n standard normals of the stream (purpose, a, b).
  void normals(Purpose purpose, std::uint32_t a, std::uint32_t b, Index n, float* out) const;
  // n uniforms in [0, 1).
  void uniforms(Purpose purpose, std::uint32_t a, std::uint32_t b, Index n, float* out) const;
  // Shuffles the items in place.
  void shuffle(Purpose purpose, std::uint32_t a, std::vector<Index>& items) const;

  std::uint32_t key(int i) const { return key_[i]; }

 private:
  std::uint32_t key_[2];
};

}  // namespace cstonet
