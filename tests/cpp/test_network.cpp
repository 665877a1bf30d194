#include "check.hpp"
#include "core/errors.hpp"
#include "core/network.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

// Predictor of one unit in double precision.
double predictor(const LayerParameters& theta, const std::vector<double>& below, Index unit) {
  double sum = theta.bias[unit];
  for (std::size_t k = 0; k < below.size(); ++k)
    sum += below[k] * theta.weights(static_cast<Index>(k), unit);
  return sum;
}

}  // namespace

TEST_CASE("network: units, inputs and visible columns") {
  const NetworkSpec spec = fixtures::small_network();
  spec.validate();
  CHECK(spec.layers[1].units() == 4);
  CHECK(spec.layers[1].latent_units() == 2);
  CHECK(spec.layers[1].feeding_units() == 3);
  CHECK(spec.layer_inputs(0) == 3);
  CHECK(spec.layer_inputs(2) == 3);
  CHECK(spec.visible_columns() == 3);
  const auto blocks = visible_blocks(spec);
  CHECK(blocks.size() == 3);
  CHECK(blocks[1].layer == 1);
  CHECK(blocks[1].unit == 3);
  CHECK(blocks[2].layer == 2);
}

TEST_CASE("network: parameters have a mask of ones and count their weights") {
  const Parameters parameters(fixtures::small_network());
  CHECK(parameters.nonzero_weights() == 3 * 2 + 2 * 4 + 3 * 1);
}

TEST_CASE("network: forward passes ψ of latent units and visible units as they are") {
  const NetworkSpec spec = fixtures::small_network();
  const Parameters theta = fixtures::some_parameters(spec);
  const Batch batch = fixtures::some_batch(spec, 5);
  std::vector<LayerState> states;
  allocate(spec, 5, states);
  forward(spec, theta, batch, states);
  for (Index i = 0; i < 5; ++i) {
    std::vector<double> below;
    for (Index j = 0; j < 3; ++j) below.push_back(batch.inputs(i, j));
    std::vector<double> first, second;
    for (Index j = 0; j < 2; ++j) first.push_back(std::tanh(predictor(theta.layers[0], below, j)));
    for (Index j = 0; j < 2; ++j) second.push_back(std::tanh(predictor(theta.layers[1], first, j)));
    second.push_back(batch.visible(i, 0));  // the treatment feeds, the indicator does not
    // A few sums of three terms and two activations of float32: 1e-6.
    CHECK_NEAR(states[1].predictor(i, 3), predictor(theta.layers[1], first, 3), 1e-6);
    CHECK_NEAR(states[2].predictor(i, 0), predictor(theta.layers[2], second, 0), 1e-6);
    CHECK(states[1].output(i, 2) == batch.visible(i, 0));
  }
}

TEST_CASE("network: offsets move the predictors of visible units, once, and nothing else") {
  const NetworkSpec spec = fixtures::small_network();
  const Parameters theta = fixtures::some_parameters(spec);
  Batch batch = fixtures::some_batch(spec, 5);
  std::vector<LayerState> plain, moved;
  allocate(spec, 5, plain);
  allocate(spec, 5, moved);
  forward(spec, theta, batch, plain);
  batch.offset = fixtures::some_offset(spec, 5);
  forward(spec, theta, batch, moved);
  for (std::size_t i = 0; i < 3; ++i) CHECK(plain[i].output.view() == moved[i].output.view());
  CHECK(plain[0].predictor.view() == moved[0].predictor.view());
  for (Index i = 0; i < 5; ++i) {
    for (Index j : {0, 1}) {
      CHECK(moved[1].predictor(i, j) == plain[1].predictor(i, j));
      CHECK(moved[1].predictor(i, 2 + j) == plain[1].predictor(i, 2 + j) + batch.offset(i, j));
    }
    CHECK(moved[2].predictor(i, 0) == plain[2].predictor(i, 0) + batch.offset(i, 2));
  }
}

TEST_CASE("network: the log-likelihood of visible blocks is weighted by rows") {
  const NetworkSpec spec = fixtures::small_network();
  const Parameters theta = fixtures::some_parameters(spec);
  Batch batch = fixtures::some_batch(spec, 2);
  std::vector<LayerState> states;
  allocate(spec, 2, states);
  forward(spec, theta, batch, states);
  const std::vector<double> variances{1.0, 1.0, 0.3};
  const auto both = visible_log_likelihood(spec, batch, states, variances);
  batch.weight = {1.0f, 0.0f};
  const auto first = visible_log_likelihood(spec, batch, states, variances);
  batch.weight = {1.0f, 3.0f};
  const auto tripled = visible_log_likelihood(spec, batch, states, variances);
  CHECK(both.size() == 3);
  for (std::size_t b = 0; b < 3; ++b)
    CHECK_NEAR(tripled[b], first[b] + 3 * (both[b] - first[b]), 1e-12);
  const VisibleBlock outcome = visible_blocks(spec)[2];
  CHECK_NEAR(first[2], log_density(outcome, 0.3, batch.visible, states[2].predictor, 0), 1e-13);
}

TEST_CASE("network: impossible networks are refused") {
  using fixtures::latent;
  using fixtures::observed;
  const LayerSpec outcome{{observed(Family::gaussian, 1, false, 0)}};
  const auto validate = [](std::vector<LayerSpec> layers) {
    NetworkSpec{.inputs = 2, .activation = Activation::tanh, .layers = std::move(layers)}
        .validate();
  };
  validate({{{latent(2)}}, outcome});
  CHECK_THROWS(validate({outcome}), InvalidArgument);
  CHECK_THROWS(validate({{{latent(2)}}, {{latent(1)}}}), InvalidArgument);
  CHECK_THROWS(validate({{{latent(0)}}, outcome}), InvalidArgument);
  CHECK_THROWS(validate({{{observed(Family::bernoulli, 1, true, 0)}}, outcome}), InvalidArgument);
  CHECK_THROWS(validate({{{observed(Family::bernoulli, 1, true, 0), latent(2)}}, outcome}),
               InvalidArgument);
  Block binary_latent = latent(2);
  binary_latent.family = Family::bernoulli;
  CHECK_THROWS(validate({{{binary_latent}}, outcome}), InvalidArgument);
}
