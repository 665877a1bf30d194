// These definitions take the place of the C++ library's and the C library's.
#include "faults.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <limits>
#if defined(__linux__)
#include <dlfcn.h>
#include <pthread.h>
#endif

namespace faults {
namespace {

constexpr long kNever = std::numeric_limits<long>::max();

// Counts what is asked for, and says which of it is refused.
struct Gate {
  std::atomic<long> seen{0}, refused{kNever};
  std::atomic<bool> lasting{false}, struck{false};

  void close(long number, bool for_good) {
    seen = 0;
    struck = false;
    lasting = for_good;
    refused = number;
  }
  void open() { refused = kNever; }
  bool refuses() {
    const long first = refused.load();
    if (first == kNever) return false;
    const long number = seen++;
    const bool refuse = lasting ? number >= first : number == first;
    if (refuse) struck = true;
    return refuse;
  }
};

Gate memory, threads;

// Exactly as many bytes as asked for, so that sanitizers see what is beyond.
void* allocate(std::size_t bytes, std::size_t alignment) {
  void* found = nullptr;
  if (memory.refuses() || posix_memalign(&found, alignment, bytes) != 0) throw std::bad_alloc();
  return found;
}

}  // namespace

NoMemory::NoMemory(long number, bool lasting) { memory.close(number, lasting); }
NoMemory::~NoMemory() { memory.open(); }
bool NoMemory::has_struck() const { return memory.struck; }

NoThreads::NoThreads(long number) { threads.close(number, true); }
NoThreads::~NoThreads() { threads.open(); }
bool NoThreads::has_struck() const { return threads.struck; }

}  // namespace faults

void* operator new(std::size_t bytes) {
  return faults::allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return faults::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

#if defined(__linux__)
extern "C"
    __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                              const pthread_attr_t* attributes,
                                                              void* (*run)(void*), void* argument) {
  if (faults::threads.refuses()) return EAGAIN;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, run, argument);
}
#endif
