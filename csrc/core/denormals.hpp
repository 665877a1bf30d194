// Numbers below float32's normal range cost the CPU ten times as much as others. They arise all the
// time, as squares of tiny gradients and displacements, and mean nothing: they are taken for zero.
#pragma once

#include <cstdint>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace cstonet {

// Holds for the rest of the calling thread's life.
inline void flush_denormals() {
#if defined(__SSE2__)
  constexpr unsigned flush_results = 0x8000, flush_operands = 0x0040;
  _mm_setcsr(_mm_getcsr() | flush_results | flush_operands);
#elif defined(__aarch64__) && defined(__GNUC__)
  std::uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | (std::uint64_t{1} << 24)));
#endif
}

}  // namespace cstonet
