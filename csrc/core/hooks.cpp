#include "core/hooks.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "core/denormals.hpp"

namespace cstonet {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{40};

// The first exception of a thread needs memory for the variables that the C++ library keeps for
// every thread; where that is not to be had, the C library ends the process. So they are asked for
// before there is anything to throw, after making sure that there is room: malloc has what it was
// given back. False: there is none, and this thread had better do nothing.
bool can_throw() noexcept {
  constexpr std::size_t kAmpleRoom = std::size_t{1} << 14;
  void* volatile room = std::malloc(kAmpleRoom);
  if (!room) return false;
  std::free(room);
  return std::uncaught_exceptions() >= 0;  // looks into those variables
}

// Threads that help the calling one. However that leaves, they have ended before.
class Helpers {
 public:
  Helpers() = default;
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  ~Helpers() {
    for (std::thread& thread : threads_) thread.join();
  }

  // Starts up to so many, fewer if no more are to be had. `work` must outlive them.
  template <class Work>
  void start(long count, const Work& work) noexcept {
    try {
      threads_.reserve(static_cast<std::size_t>(count));
      for (long i = 0; i < count; ++i) {
        arrive();
        try {
          threads_.emplace_back([this, &work]() noexcept {
            if (can_throw()) work();
            leave();
          });
        } catch (...) {
          leave();
          throw;
        }
      }
    } catch (...) {  // no thread or no memory for one: those that are there must do
    }
  }

  // Calls look() now and then until all have left; `look` throws nothing.
  template <class Look>
  void wait(const Look& look) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (working_ > 0) {
      left_.wait_for(lock, kBetweenLooks / 2, [this] { return working_ == 0; });
      lock.unlock();
      look();
      lock.lock();
    }
  }

 private:
  void arrive() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++working_;
  }
  void leave() {
    const std::lock_guard<std::mutex> lock(mutex_);
    --working_;
    left_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable left_;
  long working_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

void Hooks::look() noexcept {
  if (!poll || stopped_by_poll_ || Clock::now() - last_look_ < kBetweenLooks) return;
  // Whatever the poll calls is not ours, and may want the smallest numbers.
  const DenormalsAreZero off(false);
  try {
    stopped_by_poll_ = poll(epochs_done.load());
  } catch (...) {
    thrown_by_poll_ = std::current_exception();
    stopped_by_poll_ = true;
  }
  if (stopped_by_poll_) stop = true;
  last_look_ = Clock::now();
}

void Hooks::interrupt() const {
  if (thrown_by_poll_) std::rethrow_exception(thrown_by_poll_);
  throw Interrupted();
}

void run_tasks(long count, int threads, Hooks& hooks, const std::function<void(long)>& task) {
  if (count <= 0) return;
  static_cast<void>(can_throw());  // the calling thread has no choice
  std::vector<std::exception_ptr> failures(count);
  std::atomic<long> next{0};
  const auto work = [&]() noexcept {
    const DenormalsAreZero on(true);
    for (long i = next++; i < count; i = next++) {
      try {
        hooks.check();
        task(i);
      } catch (...) {
        failures[i] = std::current_exception();
        hooks.stop = true;  // the answer is lost: let the other tasks end early
      }
    }
  };
  {
    Helpers helpers;
    helpers.start(std::min<long>(std::clamp(threads, 1, kMostThreads), count) - 1, work);
    work();
    helpers.wait([&] { hooks.look(); });
  }
  if (hooks.stopped_by_poll()) hooks.interrupt();
  // Tasks stopped because another failed report Interrupted; the cause is what the caller needs.
  for (const auto& failure : failures) {
    if (!failure) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const Interrupted&) {
    }
  }
}

}  // namespace cstonet
