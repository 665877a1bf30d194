// How a long run talks to its caller: workers count progress and look for a stop sign; the calling
// thread polls. No Python here: the bindings supply `poll`.
#pragma once

#include <atomic>
#include <functional>

#include "core/errors.hpp"

namespace cstonet {

struct Hooks {
  std::atomic<long> epochs_done{0};
  std::atomic<bool> stop{false};
  // Called by the waiting thread every few milliseconds with the epochs done; true means stop.
  std::function<bool(long)> poll;

  void check() const {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted();
  }
};

// Runs task(0) .. task(count-1) on up to `threads` threads and waits, polling. The threads live
// for this call only, so a process may fork before and after. The exception of the lowest-numbered
// failed task is rethrown.
void run_tasks(long count, int threads, Hooks& hooks, const std::function<void(long)>& task);

}  // namespace cstonet
