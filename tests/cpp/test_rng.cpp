// The answers published with Philox have block numbers that no stream reaches: ask the function
// itself, compiled here once more under a name of its own.
#define CSTONET_LEVEL known_answers
#include <algorithm>
#include <numeric>
#include <set>

#include "check.hpp"
#include "core/rng.hpp"
#include "kernels/random.cpp"

using namespace cstonet;

namespace {

// Block number counter[0] of the stream given by the rest of the counter.
std::vector<std::uint32_t> philox_words(std::vector<std::uint32_t> counter,
                                        std::vector<std::uint32_t> key) {
  // Blocks with even and odd numbers of place are worked out apart.
  const std::vector<std::uint32_t> numbers(known_answers::kBlocks, counter[0]);
  known_answers::Blocks blocks;
  known_answers::philox(key.data(), counter.data() + 1, numbers.data(), &blocks);
  for (const auto& word : blocks.word)
    for (const std::uint32_t other : word) CHECK(other == word[0]);
  return {blocks.word[0][0], blocks.word[1][0], blocks.word[2][0], blocks.word[3][0]};
}

}  // namespace

TEST_CASE("rng: Philox4x32-10 gives the answers of the Random123 distribution") {
  using Words = std::vector<std::uint32_t>;
  const std::uint32_t ones = 0xffffffffu;
  CHECK(philox_words({0, 0, 0, 0}, {0, 0}) ==
        Words{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  CHECK(philox_words({ones, ones, ones, ones}, {ones, ones}) ==
        Words{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  CHECK(philox_words({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                     {0xa4093822u, 0x299f31d0u}) ==
        Words{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("rng: streams depend on seed, fold, start, network, purpose and both counters") {
  std::set<float> first;
  const auto draw = [&](std::uint64_t seed, std::uint64_t fold, std::uint64_t start,
                        std::uint64_t network, Purpose purpose, std::uint32_t a, std::uint32_t b) {
    float x;
    RandomStream(seed, fold, start, network).normals(purpose, a, b, {&x, 1});
    first.insert(x);
  };
  draw(1, 0, 0, 0, Purpose::latent, 0, 0);
  draw(2, 0, 0, 0, Purpose::latent, 0, 0);
  draw(1, 1, 0, 0, Purpose::latent, 0, 0);
  draw(1, 0, 1, 0, Purpose::latent, 0, 0);
  draw(1, 0, 0, 1, Purpose::latent, 0, 0);
  draw(1, 0, 0, 2, Purpose::latent, 0, 0);
  draw(1, 0, 0, 0, Purpose::weights, 0, 0);
  draw(1, 0, 0, 0, Purpose::latent, 1, 0);
  draw(1, 0, 0, 0, Purpose::latent, 0, 1);
  CHECK(first.size() == 9);
  draw(1, 0, 0, 0, Purpose::latent, 0, 0);
  CHECK(first.size() == 9);
}

TEST_CASE("rng: the key of network 0 is that of seed, fold and start alone") {
  // From the NumPy twin before networks were numbered.
  const RandomStream random(12345, 3, 7, 0);
  CHECK(random.key()[0] == 0xff3364a5u);
  CHECK(random.key()[1] == 0xde3096adu);
  const RandomStream other(12345, 3, 7, 1);
  CHECK(other.key()[0] != random.key()[0]);
  CHECK(other.key()[1] != random.key()[1]);
}

TEST_CASE("rng: the start of a stream does not depend on how much is drawn") {
  const RandomStream random(7, 1, 2, 0);
  std::vector<float> few(5), many(200);
  random.normals(Purpose::latent, 3, 4, few);
  random.normals(Purpose::latent, 3, 4, many);
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
}

TEST_CASE("rng: uniforms lie in [0, 1) and are spread evenly") {
  const int n = 20000;
  std::vector<float> u(n);
  RandomStream(3, 0, 0, 0).uniforms(Purpose::weights, 0, 0, u);
  CHECK(*std::min_element(u.begin(), u.end()) >= 0.0f);
  CHECK(*std::max_element(u.begin(), u.end()) < 1.0f);
  // Mean 1/2 with standard error 1/sqrt(12 n); four of them.
  CHECK_NEAR(std::accumulate(u.begin(), u.end(), 0.0) / n, 0.5, 4 / std::sqrt(12.0 * n));
}

TEST_CASE("rng: a shuffle is a permutation, repeatable, and another for another counter") {
  std::vector<Index> items(50), again, other;
  std::iota(items.begin(), items.end(), Index{0});
  again = other = items;
  const std::vector<Index> sorted = items;
  const RandomStream random(5, 0, 0, 0);
  random.shuffle(Purpose::shuffle, 1, items);
  random.shuffle(Purpose::shuffle, 1, again);
  random.shuffle(Purpose::shuffle, 2, other);
  CHECK(items == again);
  CHECK(items != other);
  CHECK(items != sorted);
  std::sort(items.begin(), items.end());
  CHECK(items == sorted);
}

TEST_CASE("rng: every item is equally likely to come first") {
  const int trials = 6000, size = 5;
  std::vector<int> counts(size, 0);
  for (int t = 0; t < trials; ++t) {
    std::vector<Index> items(size);
    std::iota(items.begin(), items.end(), Index{0});
    RandomStream(9, 0, 0, 0).shuffle(Purpose::shuffle, static_cast<std::uint32_t>(t), items);
    ++counts[items[0]];
  }
  const double expected = trials / double(size), sd = std::sqrt(expected * (1 - 1.0 / size));
  for (int count : counts) CHECK_NEAR(count, expected, 4.5 * sd);
}
