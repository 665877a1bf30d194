#include "check.hpp"
#include "core/optimizer.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

constexpr double kRoundoff = 0x1p-24;
const std::vector<double> kRate{0.1, 0.2, 0.3}, kVariance{1.0, 1.0, 0.01};

OptimizerOptions rule(UpdateRule kind, double momentum, double clip_norm = 0.0) {
  return {.rule = kind,
          .momentum = momentum,
          .second_decay = 0.99,
          .epsilon = 1e-8,
          .clip_norm = clip_norm};
}

std::vector<LayerGradient> some_gradients(const NetworkSpec& spec) {
  std::vector<LayerGradient> gradients;
  allocate(spec, gradients);
  Index k = 300;
  for (LayerGradient& g : gradients) {
    fixtures::fill(g.weights, k += 100);
    for (Index j = 0; j < g.weights.columns(); ++j) g.bias[j] = fixtures::number(k + 70 + j);
  }
  return gradients;
}

struct Run {
  NetworkSpec spec = fixtures::small_network();
  Parameters before = fixtures::some_parameters(spec), after = before;
  std::vector<LayerGradient> gradients = some_gradients(spec);
  Optimizer optimizer;

  explicit Run(const OptimizerOptions& options) : optimizer(spec, options) {}
  void step(const PriorPass& prior = MixturePrior::off(), bool penalize_bias = false) {
    optimizer.update(gradients, 4.0, kRate, kVariance, prior, penalize_bias, after);
  }
  double moved(std::size_t layer, Index i, Index j) const {
    return static_cast<double>(after.layers[layer].weights(i, j)) -
           before.layers[layer].weights(i, j);
  }
};

}  // namespace

TEST_CASE("optimizer: without momentum, θ += rate times the mean gradient") {
  Run run(rule(UpdateRule::momentum, 0.0));
  run.step();
  for (std::size_t i = 0; i < 3; ++i)
    CHECK_NEAR(run.moved(i, 1, 0), kRate[i] * run.gradients[i].weights(1, 0) / 4, 4 * kRoundoff);
  CHECK_NEAR(run.after.layers[0].bias[1] - run.before.layers[0].bias[1],
             0.1 * run.gradients[0].bias[1] / 4, 4 * kRoundoff);
}

TEST_CASE("optimizer: momentum adds up a constant gradient") {
  Run run(rule(UpdateRule::momentum, 0.5));
  for (int k = 0; k < 3; ++k) run.step();
  CHECK_NEAR(run.moved(0, 0, 0), (1 + 1.5 + 1.75) * 0.1 * run.gradients[0].weights(0, 0) / 4,
             12 * kRoundoff);
}

TEST_CASE("optimizer: adam's first step is the rate, in the gradient's direction") {
  Run run(rule(UpdateRule::adam, 0.9));
  run.step();
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 2; ++j)
      CHECK_NEAR(run.moved(0, i, j), std::copysign(0.1, run.gradients[0].weights(i, j)),
                 20 * kRoundoff);
}

TEST_CASE("optimizer: clipping holds a layer's mean gradient at clip/σ²") {
  Run run(rule(UpdateRule::momentum, 0.0, 0.02));
  run.step();
  const auto norm = [&](std::size_t i) {
    double squares = 0;
    const LayerParameters &a = run.after.layers[i], &b = run.before.layers[i];
    squares += (a.weights.view() - b.weights.view()).cast<double>().squaredNorm();
    for (std::size_t j = 0; j < a.bias.size(); ++j) squares += std::pow(a.bias[j] - b.bias[j], 2);
    return std::sqrt(squares);
  };
  CHECK_NEAR(norm(0), 0.1 * 0.02, 20 * kRoundoff);
  CHECK_NEAR(norm(1), 0.2 * 0.02, 20 * kRoundoff);
  // Here the bound is 2 and the gradient smaller: nothing is clipped.
  CHECK_NEAR(run.moved(2, 0, 0), 0.3 * run.gradients[2].weights(0, 0) / 4, 4 * kRoundoff);
}

TEST_CASE("optimizer: the prior acts on weights, on biases only when asked") {
  for (bool penalize_bias : {false, true}) {
    Run run(rule(UpdateRule::momentum, 0.0));
    for (LayerGradient& g : run.gradients) {
      g.weights.set_zero();
      std::fill(g.bias.begin(), g.bias.end(), 0.0f);
    }
    const MixturePrior prior{.inclusion = 1e-6, .spike_variance = 1e-4, .slab_variance = 2.0};
    run.step(prior.slab_pass(0.5), penalize_bias);
    const float w = run.before.layers[0].weights(2, 1), b = run.before.layers[0].bias[1];
    CHECK_NEAR(run.moved(0, 2, 1), -0.1 * 0.5 * w / 2, 4 * kRoundoff);
    CHECK_NEAR(run.after.layers[0].bias[1] - b, penalize_bias ? -0.1 * 0.5 * b / 2 : 0.0,
               4 * kRoundoff);
  }
}

TEST_CASE("optimizer: pruned weights stay zero") {
  for (UpdateRule kind : {UpdateRule::adam, UpdateRule::momentum}) {
    Run run(rule(kind, 0.9));
    run.after.layers[1].weights(1, 2) = run.after.layers[1].mask(1, 2) = 0.0f;
    for (int k = 0; k < 3; ++k) run.step();
    CHECK(run.after.layers[1].weights(1, 2) == 0.0f);
    CHECK(run.after.layers[1].weights(1, 1) != run.before.layers[1].weights(1, 1));
  }
}

TEST_CASE("optimizer: moments follow their covariates when others are dropped") {
  Run whole(rule(UpdateRule::momentum, 0.9)), part(rule(UpdateRule::momentum, 0.9));
  whole.step();
  part.step();
  const std::vector<Index> kept{0, 2};
  part.optimizer.keep_inputs(kept);
  LayerParameters& first = part.after.layers[0];
  first.weights = take_rows(first.weights, kept);
  first.mask = take_rows(first.mask, kept);
  part.gradients[0].weights = take_rows(part.gradients[0].weights, kept);
  whole.step();
  part.step();
  for (Index j = 0; j < 2; ++j) {
    CHECK(first.weights(0, j) == whole.after.layers[0].weights(0, j));
    CHECK(first.weights(1, j) == whole.after.layers[0].weights(2, j));
  }
}
