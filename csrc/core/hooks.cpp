#include "core/hooks.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

#include "core/denormals.hpp"

namespace cstonet {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{40};

}  // namespace

void Hooks::look() {
  if (!poll || stopped_by_poll_ || Clock::now() - last_look_ < kBetweenLooks) return;
  // Whatever the poll calls is not ours, and may want the smallest numbers.
  const DenormalsAreZero off(false);
  if (poll(epochs_done.load())) stopped_by_poll_ = stop = true;
  last_look_ = Clock::now();
}

void run_tasks(long count, int threads, Hooks& hooks, const std::function<void(long)>& task) {
  if (count <= 0) return;
  std::vector<std::exception_ptr> failures(count);
  std::atomic<long> next{0};
  std::mutex mutex;
  std::condition_variable finished;
  long helping = 0;

  auto work = [&] {
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
  auto help = [&] {
    work();
    const std::lock_guard<std::mutex> lock(mutex);
    --helping;
    finished.notify_one();
  };

  const long helpers = std::min<long>(std::max(threads, 1), count) - 1;
  std::vector<std::thread> workers;
  workers.reserve(helpers);
  try {
    for (long i = 0; i < helpers; ++i) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        ++helping;
      }
      workers.emplace_back(help);
    }
  } catch (const std::exception&) {  // no more threads are to be had: these must do
    const std::lock_guard<std::mutex> lock(mutex);
    --helping;
  }
  work();
  {
    std::unique_lock<std::mutex> lock(mutex);
    while (helping > 0) {
      finished.wait_for(lock, kBetweenLooks / 2, [&] { return helping == 0; });
      lock.unlock();
      hooks.look();
      lock.lock();
    }
  }
  for (auto& worker : workers) worker.join();

  if (hooks.stopped_by_poll()) throw Interrupted();
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
