#include "check.hpp"
#include "core/schedule.hpp"

using namespace cstonet;

namespace {

StageOptions stage(Decay rate_decay, Decay step_decay) {
  return {.epochs = 10,
          .prior = PriorKind::none,
          .prune = false,
          .rate = {0.5, 1.0},
          .step = {0.2},
          .rate_decay = rate_decay,
          .rate_exponent = 2.0,
          .step_decay = step_decay,
          .step_exponent = 1.0};
}

}  // namespace

TEST_CASE("schedule: no decay") {
  CHECK(rates_at(stage(Decay::none, Decay::none), 9) == std::vector<double>({0.5, 1.0}));
  CHECK(steps_at(stage(Decay::none, Decay::none), 9) == std::vector<double>({0.2}));
}

TEST_CASE("schedule: polynomial decay is γ/(1 + γ k^d) with k from 1") {
  const auto rates = rates_at(stage(Decay::polynomial, Decay::none), 2);
  CHECK_NEAR(rates[0], 0.5 / (1 + 0.5 * 9), 1e-15);
  CHECK_NEAR(rates[1], 1.0 / (1 + 9), 1e-15);
  CHECK_NEAR(steps_at(stage(Decay::none, Decay::polynomial), 0)[0], 0.2 / 1.2, 1e-15);
}

TEST_CASE("schedule: cosine goes from the rate to zero") {
  CHECK(rates_at(stage(Decay::cosine, Decay::none), 0)[0] == 0.5);
  CHECK_NEAR(rates_at(stage(Decay::cosine, Decay::none), 5)[0], 0.25, 1e-15);
  CHECK_NEAR(rates_at(stage(Decay::cosine, Decay::none), 10)[0], 0.0, 1e-15);
}

TEST_CASE("schedule: the spike narrows over its share of the epochs") {
  PriorOptions prior{.inclusion = 1e-6,
                     .slab_variance = 1.0,
                     .spike_start = 1e-2,
                     .spike_end = 1e-4,
                     .anneal_share = 0.5,
                     .penalize_bias = false};
  const StageOptions s = stage(Decay::none, Decay::none);
  CHECK(spike_at(prior, s, 0) == 1e-2);
  CHECK_NEAR(spike_at(prior, s, 5), 1e-4, 1e-16);
  CHECK_NEAR(spike_at(prior, s, 9), 1e-4, 1e-16);
  prior.anneal_share = 0.0;
  CHECK_NEAR(spike_at(prior, s, 0), 1e-4, 1e-16);
}
