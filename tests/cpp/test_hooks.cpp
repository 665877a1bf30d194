#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "check.hpp"
#include "core/hooks.hpp"

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
