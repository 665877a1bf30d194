// The harness must notice failures, or nothing it reports is worth anything.
#include <limits>
#include <stdexcept>

#include "check.hpp"

namespace {

// Number of failed checks in `body`, kept out of the count of the case that asks.
template <class Body>
int failures_in(Body body) {
  std::ostringstream swallowed;
  std::streambuf* cerr_buffer = std::cerr.rdbuf(swallowed.rdbuf());
  const int before = check::failures();
  body();
  const int found = check::failures() - before;
  check::failures() = before;
  std::cerr.rdbuf(cerr_buffer);
  return found;
}

}  // namespace

TEST_CASE("check: a true statement passes, a false one is counted") {
  CHECK(failures_in([] { CHECK(1 + 1 == 2); }) == 0);
  CHECK(failures_in([] { CHECK(1 + 1 == 3); }) == 1);
}

TEST_CASE("check: near means within the tolerance, and NaN is near nothing") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(failures_in([] { CHECK_NEAR(1.0, 1.5, 0.5); }) == 0);
  CHECK(failures_in([] { CHECK_NEAR(1.0, 1.5, 0.49); }) == 1);
  CHECK(failures_in([&] { CHECK_NEAR(nan, 1.0, 1.0); }) == 1);
  CHECK(failures_in([&] { CHECK_NEAR(1.0, 1.0, nan); }) == 0);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(failures_in([&] { CHECK_NEAR(infinity, infinity, 0.0); }) == 0);
}

TEST_CASE("check: the right exception passes; none or another fails") {
  const auto out_of_range = [] { throw std::out_of_range("index"); };
  CHECK(failures_in([&] { CHECK_THROWS(out_of_range(), std::out_of_range); }) == 0);
  CHECK(failures_in([&] { CHECK_THROWS(out_of_range(), std::logic_error); }) == 0);
  CHECK(failures_in([&] { CHECK_THROWS(out_of_range(), std::runtime_error); }) == 1);
  CHECK(failures_in([&] { CHECK_THROWS(1 + 1, std::exception); }) == 1);
}

TEST_CASE("check: an exception that leaves a case fails it") {
  const check::Case escaping{"escaping", [] { throw std::runtime_error("out"); }};
  const check::Case harmless{"harmless", [] {}};
  bool escaped = true;
  bool survived = false;
  failures_in([&] { escaped = check::passes(escaping); });
  failures_in([&] { survived = check::passes(harmless); });
  CHECK(!escaped);
  CHECK(survived);
}
