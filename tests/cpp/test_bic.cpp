#include "check.hpp"
#include "core/bic.hpp"

using namespace cstonet;

TEST_CASE("bic: twice the loss plus log n per weight") {
  CHECK_NEAR(bic(-10.0, 3, 100.0), 20.0 + 3 * std::log(100.0), 1e-13);
  CHECK(bic(-10.0, 0, 100.0) == 20.0);
}

TEST_CASE("bic: a weight must earn half a log n") {
  const double log_n = std::log(1000.0);
  CHECK(bic(-50.0 + 0.51 * log_n, 6, 1000.0) < bic(-50.0, 5, 1000.0));
  CHECK(bic(-50.0 + 0.49 * log_n, 6, 1000.0) > bic(-50.0, 5, 1000.0));
}
