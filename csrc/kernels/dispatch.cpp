// Which level runs: asked of the CPU once, at first use.
#include <atomic>
#include <cstring>
#if defined(CSTONET_X86_LEVELS)
#include <cpuid.h>
#endif

#include "kernels/kernels.hpp"

namespace cstonet {

#if defined(CSTONET_X86_LEVELS)
namespace v1 {
const KernelTable& table();
}
namespace v3 {
const KernelTable& table();
}
namespace v4 {
const KernelTable& table();
}
#else
namespace portable {
const KernelTable& table();
}
#endif

namespace {

struct Candidates {
  const KernelTable* tables[4] = {};
  int count = 0;
};

#if defined(CSTONET_X86_LEVELS)
// The features of level v3 whose names __builtin_cpu_supports of Clang 14 does not know.
bool has_f16c_movbe_lzcnt() {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
  const bool f16c = ecx & bit_F16C, movbe = ecx & bit_MOVBE;
  if (!__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx)) return false;
  return f16c && movbe && (ecx & bit_LZCNT);
}
#endif

Candidates candidates() {
  Candidates found;
#if defined(CSTONET_X86_LEVELS)
  __builtin_cpu_init();
  found.tables[found.count++] = &v1::table();
  // All that a compiler may use at the level, also where a virtual machine masks a part of it.
  const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                      has_f16c_movbe_lzcnt();
  if (has_v3) found.tables[found.count++] = &v3::table();
  const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
  if (has_v4) found.tables[found.count++] = &v4::table();
#else
  found.tables[found.count++] = &portable::table();
#endif
  return found;
}

std::atomic<const KernelTable*>& active() {
  static std::atomic<const KernelTable*> table = [] {
    const Candidates found = candidates();
    return found.tables[found.count - 1];
  }();
  return table;
}

}  // namespace

const KernelTable& kernels() { return *active().load(std::memory_order_relaxed); }

int available_levels(const char* names[4]) {
  const Candidates found = candidates();
  for (int i = 0; i < found.count; ++i) names[i] = found.tables[i]->level;
  return found.count;
}

bool select_level(const char* name) {
  const Candidates found = candidates();
  for (int i = 0; i < found.count; ++i) {
    if (std::strcmp(found.tables[i]->level, name) == 0) {
      active().store(found.tables[i]);
      return true;
    }
  }
  return false;
}

}  // namespace cstonet
