// The most that this level's arithmetic can do, to hold the kernels against.
#include "kernels/level.hpp"
#include "kernels/tile.hpp"

namespace cstonet {
namespace CSTONET_LEVEL {
namespace {

constexpr int kSums = 12;  // side by side, so that none waits for another

}  // namespace

float multiply_adds(long steps) {
  Register<kWidth>::type sum[kSums] = {}, one = {}, half = {};
  one += 1.0f;
  half += 0.5f;
  // Each from a start of its own, none at the limit 2: equal or constant sums would not be worked
  // out.
  for (int i = 0; i < kSums; ++i) sum[i] += static_cast<float>(3 + i);
  for (long step = 0; step < steps; ++step) {
    CSTONET_UNROLL
    for (int i = 0; i < kSums; ++i) sum[i] = sum[i] * half + one;
  }
  float total = 0.0f;
  for (int i = 0; i < kSums; ++i)
    for (int lane = 0; lane < kWidth; ++lane) total += sum[i][lane];
  return total;
}

long flops_per_step() { return 2L * kSums * kWidth; }

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
