#include "check.hpp"
#include "core/prior.hpp"

using namespace cstonet;

namespace {

MixturePrior mixture(double inclusion, double spike, double slab) {
  return {.inclusion = inclusion, .spike_variance = spike, .slab_variance = slab};
}

float slope(const PriorPass& pass, float w) {
  float out;
  kernels().prior_gradient(pass, &w, 1, &out);
  return out;
}

}  // namespace

TEST_CASE("prior: at the threshold spike and slab explain a weight equally well") {
  const MixturePrior prior = mixture(1e-6, 1e-5, 1e-2);
  const double t = prior.threshold();
  CHECK_NEAR(t, 0.0186, 5e-5);
  const auto component = [t](double share, double variance) {
    return std::log(share) - 0.5 * std::log(variance) - t * t / (2 * variance);
  };
  CHECK_NEAR(component(1e-6, 1e-2), component(1 - 1e-6, 1e-5), 1e-10);
}

TEST_CASE("prior: a wide slab that always wins prunes nothing") {
  CHECK(mixture(0.99, 0.5, 1.0).threshold() == 0.0);
}

TEST_CASE("prior: the gradient is the slope of the log-density") {
  const MixturePrior prior = mixture(1e-3, 1e-3, 1.0);
  for (float w : {-2.0f, -0.1f, 0.0f, 0.02f, 0.12f, 0.14f, 0.3f}) {
    const double h = 1e-6;
    const double expected = (prior.log_density(w + h) - prior.log_density(w - h)) / (2 * h);
    // Where the components meet the log-odds, of size 15, are rounded: 1e-6 of 1/σ0² |w|.
    CHECK_NEAR(slope(prior.pass(1.0), w), expected, 1e-6 * (1 + std::fabs(w) * 1e3) + 1e-5);
  }
}

TEST_CASE("prior: far from zero the pull is the slab's, to float32 accuracy") {
  // 1/σ0² is 10^10 times 1/σ1² here: a difference of the two would lose the slab.
  const PriorPass pass = mixture(1e-6, 1e-10, 1.0).pass(1.0);
  CHECK_NEAR(slope(pass, 2.0f), -2.0, 1e-6);
  CHECK_NEAR(slope(pass, -0.5f), 0.5, 1e-6);
  CHECK(std::isfinite(slope(mixture(1e-30, 1e-12, 1.0).pass(1.0), 1e-8f)));
}

TEST_CASE("prior: the slab alone is a ridge penalty, and off is off") {
  const MixturePrior prior = mixture(1e-6, 1e-4, 0.5);
  for (float w : {-3.0f, 0.001f, 2.0f}) {
    CHECK_NEAR(slope(prior.slab_pass(1.0), w), -2.0 * w, 1e-6);
    CHECK(slope(MixturePrior::off(), w) == 0.0f);
  }
}

TEST_CASE("prior: annealing is geometric and stops at its ends") {
  CHECK_NEAR(annealed_spike(1e-2, 1e-4, 0.5), 1e-3, 1e-15);
  CHECK(annealed_spike(1e-2, 1e-4, -1.0) == 1e-2);
  CHECK_NEAR(annealed_spike(1e-2, 1e-4, 7.0), 1e-4, 1e-18);
}

TEST_CASE("prior: the slab's probability is one half at the threshold, and nearly one far out") {
  const MixturePrior prior = mixture(1e-6, 1e-5, 1e-2);
  CHECK_NEAR(prior.slab_probability(prior.threshold()), 0.5, 1e-10);
  CHECK(prior.slab_probability(0.0) < 1e-6);
  CHECK(prior.slab_probability(0.1) > 1 - 1e-12);
  CHECK(prior.slab_probability(-0.02) == prior.slab_probability(0.02));
  CHECK(prior.slab_probability(1e6) == 1.0);
}
