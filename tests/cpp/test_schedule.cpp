#include "check.hpp"
#include "core/errors.hpp"
#include "core/schedule.hpp"

using namespace cstonet;

namespace {

StageOptions stage(const std::string& rate_decay, const std::string& step_decay) {
  return {10, "none", false, {0.5, 1.0}, {0.2}, rate_decay, 2.0, step_decay, 1.0};
}

}  // namespace

TEST_CASE("schedule: no decay") {
  CHECK(rates_at(stage("none", "none"), 9) == std::vector<double>({0.5, 1.0}));
  CHECK(steps_at(stage("none", "none"), 9) == std::vector<double>({0.2}));
}

TEST_CASE("schedule: polynomial decay is γ/(1 + γ k^d) with k from 1") {
  const auto rates = rates_at(stage("polynomial", "none"), 2);
  CHECK_NEAR(rates[0], 0.5 / (1 + 0.5 * 9), 1e-15);
  CHECK_NEAR(rates[1], 1.0 / (1 + 9), 1e-15);
  CHECK_NEAR(steps_at(stage("none", "polynomial"), 0)[0], 0.2 / 1.2, 1e-15);
}

TEST_CASE("schedule: cosine goes from the rate to zero") {
  CHECK(rates_at(stage("cosine", "none"), 0)[0] == 0.5);
  CHECK_NEAR(rates_at(stage("cosine", "none"), 5)[0], 0.25, 1e-15);
  CHECK_NEAR(rates_at(stage("cosine", "none"), 10)[0], 0.0, 1e-15);
}

TEST_CASE("schedule: an unknown decay is refused") {
  CHECK_THROWS(rates_at(stage("linear", "none"), 0), InvalidArgument);
}

TEST_CASE("schedule: the spike narrows over its share of the epochs") {
  PriorOptions prior{1e-6, 1.0, 1e-2, 1e-4, 0.5, false};
  const StageOptions s = stage("none", "none");
  CHECK(spike_at(prior, s, 0) == 1e-2);
  CHECK_NEAR(spike_at(prior, s, 5), 1e-4, 1e-16);
  CHECK_NEAR(spike_at(prior, s, 9), 1e-4, 1e-16);
  prior.anneal_share = 0.0;
  CHECK_NEAR(spike_at(prior, s, 0), 1e-4, 1e-16);
}
