#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "core/hooks.hpp"
#include "faults.hpp"

using namespace cstonet;

namespace {

// Works until told to stop, as a training run does.
void work_forever(Hooks& hooks) {
  for (;;) {
    hooks.check();
    ++hooks.epochs_done;
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("hooks: every task runs once, for any number of threads") {
  for (int threads : {-1, 1, 2, 5, 20}) {
    Hooks hooks;
    std::mutex mutex;
    std::multiset<long> seen;
    run_tasks(9, threads, hooks, [&](long i) {
      const std::lock_guard<std::mutex> lock(mutex);
      seen.insert(i);
    });
    CHECK(seen == std::multiset<long>({0, 1, 2, 3, 4, 5, 6, 7, 8}));
  }
}

TEST_CASE("hooks: no tasks, no waiting") {
  Hooks hooks;
  hooks.poll = [](long) { return true; };
  run_tasks(0, 4, hooks, [](long) { throw std::runtime_error("never"); });
  CHECK(!hooks.stop);
}

TEST_CASE("hooks: the calling thread polls with the progress while the tasks work") {
  Hooks hooks;
  std::atomic<int> polls{0};
  const std::thread::id caller = std::this_thread::get_id();
  bool on_caller = true, ordered = true;
  long last = 0;
  hooks.poll = [&](long epochs) {
    on_caller = on_caller && std::this_thread::get_id() == caller;
    ordered = ordered && epochs >= last;
    last = epochs;
    ++polls;
    return false;
  };
  run_tasks(2, 2, hooks, [&](long) {
    while (polls < 3) {
      hooks.check();
      ++hooks.epochs_done;
      std::this_thread::yield();
    }
  });
  CHECK(polls >= 3);
  CHECK(on_caller);
  CHECK(ordered);
  CHECK(last > 0);
}

TEST_CASE("hooks: a single thread is the caller's own, which polls between its steps") {
  Hooks hooks;
  int polls = 0;
  hooks.poll = [&](long) { return ++polls < 0; };
  const std::thread::id caller = std::this_thread::get_id();
  bool on_caller = true;
  run_tasks(3, 1, hooks, [&](long) {
    on_caller = on_caller && std::this_thread::get_id() == caller;
    for (const int before = polls; polls == before;) hooks.check();
  });
  CHECK(on_caller);
  CHECK(polls >= 3);
}

TEST_CASE("hooks: tasks take the smallest numbers for zero, their caller and its poll do not") {
  volatile float tiny = 1e-40f;
  const auto is_zero = [&] { return tiny * 1.0f == 0.0f; };
  for (int threads : {1, 2}) {
    Hooks hooks;
    std::atomic<int> polls{0};
    bool in_poll = true;
    hooks.poll = [&](long) {
      in_poll = in_poll && !is_zero();
      ++polls;
      return false;
    };
    std::atomic<bool> in_tasks{true};
    run_tasks(threads, threads, hooks, [&](long) {
      while (polls < 2) {
        hooks.check();
        if (!is_zero()) in_tasks = false;
      }
    });
    CHECK(in_tasks);
    CHECK(in_poll);
    CHECK(!is_zero());
  }
}

TEST_CASE("hooks: a poll that says stop ends every task and is the last poll") {
  for (int threads : {1, 3}) {
    Hooks hooks;
    int polls = 0;
    hooks.poll = [&](long) { return ++polls == 2; };
    std::atomic<int> started{0};
    CHECK_THROWS(run_tasks(6, threads, hooks,
                           [&](long) {
                             ++started;
                             work_forever(hooks);
                           }),
                 Interrupted);
    CHECK(polls == 2);
    CHECK(started <= threads);  // the others never began
  }
}

TEST_CASE("hooks: a failed task stops the others, and its own error is what is thrown") {
  for (int threads : {1, 2, 4}) {
    Hooks hooks;
    std::string message;
    try {
      run_tasks(4, threads, hooks, [&](long i) {
        if (i == (threads == 1 ? 0 : 1)) throw InvalidArgument("task failed");
        work_forever(hooks);
      });
    } catch (const InvalidArgument& error) {
      message = error.what();
    }
    CHECK(message == "task failed");
  }
}

TEST_CASE("hooks: of several failures the lowest-numbered is thrown") {
  Hooks hooks;
  std::atomic<int> waiting{0};
  std::string message;
  try {
    run_tasks(3, 3, hooks, [&](long i) {
      ++waiting;
      while (waiting < 3) std::this_thread::yield();  // all have begun before any fails
      throw std::runtime_error("task " + std::to_string(i));
    });
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  CHECK(message == "task 0");
}

TEST_CASE("hooks: a poll that throws ends every task, is the last one, and its error is thrown") {
  for (int threads : {1, 3}) {
    for (bool while_working : {true, false}) {
      Hooks hooks;
      int polls = 0;
      hooks.poll = [&](long) -> bool {
        ++polls;
        throw InvalidArgument("poll failed");
      };
      const std::thread::id caller = std::this_thread::get_id();
      std::atomic<bool> has_help{threads == 1};
      std::string message;
      try {
        run_tasks(threads, threads, hooks, [&](long) {
          // The poll is asked by a task of the calling thread, or while that waits for the others.
          const bool helps = std::this_thread::get_id() != caller;
          if (helps) has_help = true;
          if (while_working || helps) work_forever(hooks);
          while (!has_help) std::this_thread::yield();
        });
      } catch (const InvalidArgument& error) {
        message = error.what();
      }
      const bool was_asked = while_working || threads > 1;
      CHECK(message == (was_asked ? "poll failed" : ""));
      CHECK(polls == static_cast<int>(was_asked));
      CHECK(hooks.stopped_by_poll() == was_asked);
    }
  }
}

#if defined(__linux__)
TEST_CASE("hooks: where threads cannot be started, those that could do the work") {
  constexpr long tasks = 24;
  for (int threads : {2, 8, 64}) {
    for (long started = 0; started < threads; ++started) {
      Hooks hooks;
      std::mutex mutex;
      std::multiset<long> seen;
      std::set<std::thread::id> workers;
      bool has_struck;
      {
        const faults::NoThreads fault(started);
        run_tasks(tasks, threads, hooks, [&](long i) {
          const std::lock_guard<std::mutex> lock(mutex);
          seen.insert(i);
          workers.insert(std::this_thread::get_id());
        });
        has_struck = fault.has_struck();
      }
      CHECK(has_struck == (started < std::min<long>(threads, tasks) - 1));
      CHECK(std::ssize(workers) <= started + 1);
      CHECK(std::ssize(seen) == tasks);
      CHECK(std::set(seen.begin(), seen.end()).size() == seen.size());
    }
  }
}

TEST_CASE("hooks: an error is thrown as ever where threads cannot be started") {
  for (long started : {0, 1, 2}) {
    Hooks hooks;
    const faults::NoThreads fault(started);
    CHECK_THROWS(run_tasks(6, 6, hooks, [](long) { throw InvalidArgument("task failed"); }),
                 InvalidArgument);
  }
}

TEST_CASE("hooks: no more threads are started than can help") {
  Hooks hooks;
  const faults::NoThreads fault(kMostThreads - 1);
  std::atomic<long> done{0};
  run_tasks(kMostThreads + 200, std::numeric_limits<int>::max(), hooks, [&](long) { ++done; });
  CHECK(done == kMostThreads + 200);
  CHECK(!fault.has_struck());
}
#endif

TEST_CASE("hooks: memory that a task cannot have is the caller's std::bad_alloc, from any thread") {
  for (int threads : {1, 2, 8}) {
    Hooks hooks;
    std::atomic<int> waiting{0};
    CHECK_THROWS(run_tasks(threads, threads, hooks,
                           [&](long) {
                             ++waiting;
                             while (waiting < threads) std::this_thread::yield();
                             throw std::bad_alloc();  // in all of them at once
                           }),
                 std::bad_alloc);
  }
}

TEST_CASE("hooks: whichever allocation fails, the tasks are done or the caller is told") {
  constexpr long tasks = 6;
  for (int threads : {1, 4}) {
    const auto run = [&] {
      Hooks hooks;
      std::atomic<long> sum{0};
      run_tasks(tasks, threads, hooks, [&](long i) {
        const std::vector<long> room(100, i);
        sum += std::accumulate(room.begin(), room.end(), 0L);
      });
      return sum.load();
    };
    CHECK(faults::without_memory(run, [](long sum) { return sum == 1500; }) > tasks);
  }
}
