// What a machine that has run out refuses: memory, and threads.
#pragma once

#include <new>
#include <optional>

#include "check.hpp"

namespace faults {

// As long as it lives, allocations of C++ fail, in whichever thread: that of this number, counted
// from 0, and with `lasting` all that follow.
class NoMemory {
 public:
  NoMemory(long number, bool lasting);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  bool has_struck() const;
};

// The same for threads to be started; those of this number and above cannot be.
class NoThreads {
 public:
  explicit NoThreads(long number);
  ~NoThreads();
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  bool has_struck() const;
};

// Runs `run` with its first allocation failing, with its second, and so on, until there are no more
// to fail. It must give an answer that is `right`, or throw std::bad_alloc. Returns how many there
// were, the fewest of the kinds of failure.
template <class Run, class Right>
long without_memory(const Run& run, const Right& right) {
  long fewest = -1;
  for (bool lasting : {false, true}) {
    for (long number = 0;; ++number) {
      std::optional<decltype(run())> answer;
      bool has_struck;
      {
        const NoMemory fault(number, lasting);
        try {
          answer.emplace(run());
        } catch (const std::bad_alloc&) {
        }
        has_struck = fault.has_struck();
      }
      CHECK(!answer || right(*answer));
      if (has_struck) continue;
      CHECK(answer.has_value());
      if (fewest < 0 || number < fewest) fewest = number;
      break;
    }
  }
  return fewest;
}

}  // namespace faults
