#include <limits>

#include "check.hpp"
#include "core/denormals.hpp"
#include "core/hooks.hpp"

using namespace cstonet;

namespace {

// Half the smallest normal float: subnormal, or zero where those are flushed.
float half_of_smallest() {
  volatile float smallest = std::numeric_limits<float>::min();
  return smallest * 0.5f;
}

}  // namespace

TEST_CASE("denormals: workers flush them, the caller's arithmetic is left as it was") {
  const float before = half_of_smallest();
  float inside = -1.0f;
  Hooks hooks;
  run_tasks(1, 1, hooks, [&](long) { inside = half_of_smallest(); });
  CHECK(before > 0.0f);
  CHECK(half_of_smallest() == before);
#if defined(__SSE__)
  CHECK(inside == 0.0f);
#else
  CHECK(inside == 0.0f || inside == before);
#endif
}
