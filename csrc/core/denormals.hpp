// Numbers below float32's normal range cost the CPU ten times as much as others. They arise all the
// time, as squares of tiny gradients and displacements, and mean nothing: they are taken for zero.
#pragma once

#include <cstdint>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace cstonet {

// Whether the calling thread takes such numbers for zero, for as long as this object lives.
class DenormalsAreZero {
 public:
  explicit DenormalsAreZero(bool on) : before_(control()) {
    set(on ? before_ | kFlush : before_ & ~kFlush);
  }
  ~DenormalsAreZero() { set(before_); }
  DenormalsAreZero(const DenormalsAreZero&) = delete;
  DenormalsAreZero& operator=(const DenormalsAreZero&) = delete;

 private:
#if defined(__SSE2__)
  using Control = unsigned;
  static constexpr Control kFlush = 0x8040;  // results and operands
  static Control control() { return _mm_getcsr(); }
  static void set(Control value) { _mm_setcsr(value); }
#elif defined(__aarch64__) && defined(__GNUC__)
  using Control = std::uint64_t;
  static constexpr Control kFlush = Control{1} << 24;
  static Control control() {
    Control value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set(Control value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
  using Control = unsigned;
  static constexpr Control kFlush = 0;
  static Control control() { return 0; }
  static void set(Control) {}
#endif
  Control before_;
};

}  // namespace cstonet
