#include "core/hooks.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/denormals.hpp"

namespace cstonet {

void run_tasks(long count, int threads, Hooks& hooks, const std::function<void(long)>& task) {
  if (count <= 0) return;
  std::vector<std::exception_ptr> failures(count);
  std::atomic<long> next{0};
  std::mutex mutex;
  std::condition_variable finished;
  int running = static_cast<int>(std::min<long>(std::max(threads, 1), count));

  auto work = [&] {
    flush_denormals();
    for (long i = next++; i < count; i = next++) {
      try {
        hooks.check();
        task(i);
      } catch (...) {
        failures[i] = std::current_exception();
        hooks.stop = true;  // the answer is lost: let the other tasks end early
      }
    }
    const std::lock_guard<std::mutex> lock(mutex);
    --running;
    finished.notify_one();
  };

  std::vector<std::thread> workers;
  for (int i = 0, n = running; i < n; ++i) workers.emplace_back(work);

  bool user_stop = false;
  {
    std::unique_lock<std::mutex> lock(mutex);
    while (running > 0) {
      finished.wait_for(lock, std::chrono::milliseconds(40), [&] { return running == 0; });
      if (user_stop || !hooks.poll) continue;
      lock.unlock();
      if (hooks.poll(hooks.epochs_done.load())) user_stop = hooks.stop = true;
      lock.lock();
    }
  }
  for (auto& worker : workers) worker.join();

  if (user_stop) throw Interrupted();
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
