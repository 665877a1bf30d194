// How a long run talks to its caller: all threads count progress and look for a stop sign, the
// calling thread among them polls. No Python here: the bindings supply `poll`.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <thread>

#include "core/errors.hpp"

namespace cstonet {

// Made by the thread that calls for the work.
class Hooks {
 public:
  std::atomic<long> epochs_done{0};
  std::atomic<bool> stop{false};
  // Called by the calling thread every few milliseconds with the epochs done; true means stop, and
  // so does an exception, which the caller of the work gets.
  std::function<bool(long)> poll;

  // Throws where the work is to end. Work in progress asks this every few milliseconds.
  void check() {
    if (std::this_thread::get_id() == caller_) {
      look();
      if (stopped_by_poll_) interrupt();
    }
    if (stop.load(std::memory_order_relaxed)) throw Interrupted();
  }
  // Polls if it is time to; for the calling thread.
  void look() noexcept;
  bool stopped_by_poll() const { return stopped_by_poll_; }
  // Throws what the poll threw when it ended the work, or Interrupted if it threw nothing.
  [[noreturn]] void interrupt() const;

 private:
  using Clock = std::chrono::steady_clock;
  const std::thread::id caller_ = std::this_thread::get_id();
  Clock::time_point last_look_ = Clock::now();
  bool stopped_by_poll_ = false;
  std::exception_ptr thrown_by_poll_;
};

// No more threads than this are started, however many are asked for: where memory maps run out,
// which every thread needs some of, the rest of the process has none either.
constexpr int kMostThreads = 1024;

// Runs task(0) .. task(count-1) on up to `threads` threads, the calling one among them, which polls
// meanwhile. The others live for this call only, so a process may fork before and after; where one
// cannot be started, there are fewer. The exception of the lowest-numbered failed task is rethrown,
// that of memory that could not be had as any other.
void run_tasks(long count, int threads, Hooks& hooks, const std::function<void(long)>& task);

}  // namespace cstonet
