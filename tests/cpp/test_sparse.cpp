#include "check.hpp"
#include "core/sparse.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

// All weights 1, biases 0.
Parameters dense(const NetworkSpec& spec) {
  Parameters parameters(spec);
  for (LayerParameters& theta : parameters.layers) theta.weights.view().setOnes();
  return parameters;
}

}  // namespace

TEST_CASE("sparse: weights at or below the threshold become exact zeros") {
  const NetworkSpec spec = fixtures::small_network();
  Parameters p = dense(spec);
  p.layers[0].weights(0, 0) = 0.5f;
  p.layers[0].weights(1, 0) = -0.5f;
  p.layers[0].weights(2, 0) = -0.6f;
  prune(spec, 0.5, false, p);
  CHECK(p.layers[0].weights(0, 0) == 0.0f && p.layers[0].mask(0, 0) == 0.0f);
  CHECK(p.layers[0].weights(1, 0) == 0.0f && p.layers[0].mask(1, 0) == 0.0f);
  CHECK(p.layers[0].weights(2, 0) == -0.6f && p.layers[0].mask(2, 0) == 1.0f);
  CHECK(p.nonzero_weights() == dense(spec).nonzero_weights() - 2);
}

TEST_CASE("sparse: a unit without a way out loses its inputs, and so on downwards") {
  const NetworkSpec spec = fixtures::small_network();
  Parameters p = dense(spec);
  // Unit 0 of layer 2 leads nowhere; unit 1 of layer 1 leads only to it.
  p.layers[2].weights(0, 0) = 0.0f;
  for (Index j : {1, 2, 3}) p.layers[1].weights(1, j) = 0.0f;
  prune(spec, 0.1, false, p);
  CHECK(!p.layers[1].mask.view().col(0).any());
  CHECK(!p.layers[0].mask.view().col(1).any());
  CHECK(p.layers[0].mask.view().col(0).all());
}

TEST_CASE("sparse: visible units keep their inputs though they feed nothing") {
  const NetworkSpec spec = fixtures::small_network();
  Parameters p = dense(spec);
  p.layers[2].weights.set_zero();
  prune(spec, 0.1, false, p);
  CHECK(p.layers[1].mask.view().col(2).all());  // the treatment
  CHECK(p.layers[1].mask.view().col(3).all());  // the indicator
  CHECK(!p.layers[1].mask.view().leftCols(2).any());
}

TEST_CASE("sparse: biases are pruned with the weights where that is asked for") {
  const NetworkSpec spec = fixtures::small_network();
  Parameters p = dense(spec);
  for (LayerParameters& theta : p.layers) theta.bias[0] = 0.5f;
  p.layers[1].bias[1] = -0.6f;
  p.layers[1].bias[2] = -0.5f;
  Parameters kept = p;
  prune(spec, 0.5, false, kept);
  CHECK(kept.layers[1].bias == p.layers[1].bias);
  CHECK(kept.nonzero_biases() == 2 + 4 + 1);
  prune(spec, 0.5, true, p);
  CHECK(p.nonzero_biases() == 1);
  CHECK(p.layers[1].bias[1] == -0.6f && p.layers[1].bias_mask[1] == 1.0f);
  for (Index j : {0, 2, 3}) CHECK(p.layers[1].bias[j] == 0.0f && p.layers[1].bias_mask[j] == 0.0f);
  CHECK(p.layers[0].bias[0] == 0.0f && p.layers[2].bias[0] == 0.0f);
}

TEST_CASE("sparse: a unit without a way out loses its bias, too, where biases are pruned") {
  const NetworkSpec spec = fixtures::small_network();
  Parameters p = dense(spec);
  for (LayerParameters& theta : p.layers) theta.bias[0] = theta.bias[1] = 1.0f;
  p.layers[2].weights(0, 0) = 0.0f;
  Parameters kept = p;
  prune(spec, 0.1, false, kept);
  CHECK(kept.layers[1].bias[0] == 1.0f);
  prune(spec, 0.1, true, p);
  CHECK(p.layers[1].bias[0] == 0.0f);
  CHECK(p.layers[1].bias[1] == 1.0f);
}

TEST_CASE("sparse: connected inputs") {
  const NetworkSpec spec = fixtures::small_network();
  Parameters p = dense(spec);
  p.layers[0].weights.view().row(1).setZero();
  prune(spec, 0.1, false, p);
  CHECK(connected_inputs(p) == std::vector<Index>({0, 2}));
}

TEST_CASE("sparse: paths run through latent units, not through the treatment") {
  const NetworkSpec spec = fixtures::small_network();
  const auto blocks = visible_blocks(spec);
  Parameters p = dense(spec);
  for (LayerParameters& theta : p.layers) theta.weights.set_zero();
  p.layers[0].weights(0, 0) = 1;  // x0 -> unit 0 -> treatment -> outcome
  p.layers[1].weights(0, 2) = 1;
  p.layers[2].weights(2, 0) = 1;
  p.layers[0].weights(2, 1) = 1;  // x2 -> unit 1 -> latent unit 1 -> outcome
  p.layers[1].weights(1, 1) = 1;
  p.layers[2].weights(1, 0) = 1;
  prune(spec, 0.1, false, p);
  CHECK(p.nonzero_weights() == 6);
  CHECK(reaches(spec, p, blocks[0]) == std::vector<bool>({true, false, false}));
  CHECK(reaches(spec, p, blocks[1]) == std::vector<bool>({false, false, false}));
  CHECK(reaches(spec, p, blocks[2]) == std::vector<bool>({false, false, true}));
}

TEST_CASE("sparse: the most probable path is the largest product of the slab's probabilities") {
  const NetworkSpec spec = fixtures::small_network();
  const auto blocks = visible_blocks(spec);
  const MixturePrior prior{.inclusion = 0.1, .spike_variance = 1e-2, .slab_variance = 1.0};
  Parameters p = dense(spec);
  for (LayerParameters& theta : p.layers) theta.weights.set_zero();
  p.layers[0].weights(0, 0) = 0.30f;  // x0 -> unit 0 -> treatment
  p.layers[1].weights(0, 2) = 0.31f;
  p.layers[2].weights(2, 0) = 1;  // the treatment's own effect opens no path
  const auto s = [&](double w) { return prior.slab_probability(w); };
  const double nothing = s(0);
  const std::vector<double> treatment = slab_paths(spec, p, prior, blocks[0]);
  CHECK_NEAR(treatment[0], s(0.30f) * s(0.31f), 1e-12);
  CHECK_NEAR(treatment[1], nothing * s(0.31f), 1e-12);
  const std::vector<double> outcome = slab_paths(spec, p, prior, blocks[2]);
  CHECK_NEAR(outcome[0], s(0.30f) * nothing * nothing, 1e-12);
  p.layers[0].mask(0, 0) = p.layers[0].mask(0, 1) = 0.0f;
  CHECK(slab_paths(spec, p, prior, blocks[0])[0] == 0.0);
}
