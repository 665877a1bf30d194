#include <string>

#include "check.hpp"
#include "core/sghmc.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

const std::vector<double> kVariances{1.0, 1.0, 0.4};

SamplerOptions sampler(int sweeps, double friction, double temperature,
                       std::vector<double> variance, bool coupled = false) {
  return {.sweeps = sweeps,
          .friction = friction,
          .temperature = temperature,
          .coupled = coupled,
          .variance = std::move(variance)};
}

// One imputation of a minibatch and what it yields.
struct Imputed {
  NetworkSpec spec = fixtures::small_network();
  Parameters parameters = fixtures::some_parameters(spec);
  Batch batch;
  std::vector<LayerState> states;
  std::vector<LayerGradient> gradients;
  BackwardSampler sampler;
  std::vector<double> log_likelihood;

  // The sampler may be made for more rows than this batch has: the last one of an epoch is short.
  Imputed(Index rows, SamplerOptions options, std::vector<double> step, Index capacity = 0,
          Panel offset = {})
      : batch(fixtures::some_batch(spec, rows)), sampler(spec, options, std::max(rows, capacity)) {
    batch.offset = std::move(offset);
    run(step, capacity);
  }
  void run(const std::vector<double>& step, Index capacity = 0) {
    const Index rows = batch.rows();
    allocate(spec, std::max(rows, capacity), states);
    allocate(spec, gradients);
    forward(spec, parameters, batch, states);
    sampler.impute(parameters, batch, kVariances, step, RandomStream(1, 2, 3, 0), 7, states);
    log_likelihood = sampler.log_likelihood(batch, kVariances);
    sampler.gradients(batch, states, gradients);
  }
};

// δ of every layer of one row by the chain rule.
std::vector<std::vector<double>> back_propagate(const NetworkSpec& spec, const Parameters& theta,
                                                const Batch& batch) {
  std::vector<LayerState> states;
  allocate(spec, 1, states);
  forward(spec, theta, batch, states);
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  std::vector<std::vector<double>> delta(3);
  delta[2] = {(batch.visible(0, 2) - states[2].predictor(0, 0)) / kVariances[2]};
  for (int i : {1, 0}) {
    for (Index j = 0; j < 2; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < delta[i + 1].size(); ++k)
        sum += theta.layers[i + 1].weights(j, static_cast<Index>(k)) * delta[i + 1][k];
      const double h = std::tanh(states[i].predictor(0, j));
      delta[i].push_back((1 - h * h) * sum);
    }
    if (i == 1)
      for (Index j : {2, 3})
        delta[i].push_back(batch.visible(0, j - 2) - logistic(states[1].predictor(0, j)));
  }
  return delta;
}

}  // namespace

TEST_CASE("sghmc: cold, steps σ_i, a steep ladder: the residuals are those of back-propagation") {
  const std::vector<double> variance{1e-10, 1e-5};
  const Imputed result(1, sampler(1, 1.0, 0.0, variance), {1e-5, std::sqrt(1e-5)});
  const auto delta = back_propagate(result.spec, result.parameters, result.batch);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < delta[i].size(); ++j)
      // The next layer's move changes a residual by ‖w‖² (below 10) times the ratio 1e-5.
      CHECK_NEAR(result.gradients[i].bias[j], delta[i][j], 1e-4 * (1 + std::fabs(delta[i][j])));
}

TEST_CASE("sghmc: warm and coupled, too; warm and alone, noise is all there is") {
  const std::vector<double> variance{1e-10, 1e-5}, step{1e-5, std::sqrt(1e-5)};
  const Imputed coupled(1, sampler(1, 1.0, 1.0, variance, true), step);
  const Imputed plain(1, sampler(1, 1.0, 1.0, variance), step);
  const auto delta = back_propagate(coupled.spec, coupled.parameters, coupled.batch);
  for (std::size_t j = 0; j < 2; ++j) {
    // The first layer's residual never meets the noise; the second's does through ψ'(Y_1), whose
    // noise is sqrt(2) 1e-5, besides the ratio of the ladder.
    CHECK_NEAR(coupled.gradients[0].bias[j], delta[0][j], 1e-5 * (1 + std::fabs(delta[0][j])));
    CHECK_NEAR(coupled.gradients[1].bias[j], delta[1][j], 1e-4 * (1 + std::fabs(delta[1][j])));
    CHECK(std::fabs(plain.gradients[0].bias[j]) > 100 * std::fabs(delta[0][j]));
  }
}

TEST_CASE("sghmc: rows of coupled chains are antithetic") {
  const Imputed result(2, sampler(1, 1.0, 1e6, {1e-3, 1e-3}, true), {1e-3, 1e-3});
  // Noise of 1.4 in a layer whose pull is below 1e-3.
  const Panel d = result.sampler.displacement(1);
  for (Index j = 0; j < 2; ++j) {
    CHECK(std::fabs(d(0, j)) > 0.01f);
    CHECK_NEAR(d(0, j), -d(1, j), 1e-2 * std::fabs(d(0, j)));
  }
}

TEST_CASE("sghmc: a chain that leaves all bounds names its layer") {
  for (bool coupled : {false, true}) {
    std::string said;
    try {
      Imputed(4, sampler(3, 1.0, 1e16, {1e-3, 1e-1}, coupled), {1e-8, 1.0});
    } catch (const Diverged& error) {
      said = error.what();
    }
    CHECK(said.find("layer 2 diverged (variance 0.1, step 1, temperature 1e+16, 3 sweeps)") !=
          std::string::npos);
  }
}

TEST_CASE("sghmc: with a flat ladder the residuals are not those of back-propagation") {
  const Imputed result(1, sampler(1, 1.0, 0.0, {1e-3, 1e-3}), {std::sqrt(1e-3), std::sqrt(1e-3)});
  const auto delta = back_propagate(result.spec, result.parameters, result.batch);
  double largest = 0;
  for (std::size_t j = 0; j < 2; ++j)
    largest = std::max(largest, std::fabs(result.gradients[1].bias[j] / delta[1][j] - 1));
  CHECK(largest > 0.05);
}

TEST_CASE("sghmc: visible units never move and outputs are ψ(Y)") {
  for (bool coupled : {false, true}) {
    const Imputed result(6, sampler(2, 0.3, 1.0, {0.1, 0.2}, coupled), {0.1, 0.2});
    const Panel moved = result.sampler.displacement(1);
    for (Index i = 0; i < 6; ++i) {
      for (Index j : {2, 3}) CHECK(moved(i, j) == 0.0f);
      CHECK(result.states[1].output(i, 2) == result.batch.visible(i, 0));
      for (Index j = 0; j < 2; ++j) {
        const double y = static_cast<double>(result.states[1].predictor(i, j)) + moved(i, j);
        CHECK(moved(i, j) != 0.0f);
        CHECK_NEAR(result.states[1].output(i, j), std::tanh(y), 16 * 0x1p-24);
      }
    }
  }
}

TEST_CASE("sghmc: a short last batch gives what a batch of its own size gives") {
  for (bool coupled : {false, true}) {
    const SamplerOptions options = sampler(2, 0.3, 1.0, {0.1, 0.2}, coupled);
    const Imputed exact(3, options, {0.1, 0.2}), roomy(3, options, {0.1, 0.2}, 10);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(exact.gradients[i].bias == roomy.gradients[i].bias);
      CHECK(exact.gradients[i].weights.view() == roomy.gradients[i].weights.view());
      CHECK(exact.log_likelihood[i] == roomy.log_likelihood[i]);
    }
  }
}

TEST_CASE("sghmc: offsets of zero are none, constant offsets are biases") {
  const std::vector<double> step{0.1, 0.2};
  const Index rows = 6;
  for (bool coupled : {false, true}) {
    const SamplerOptions options = sampler(2, 0.3, 1.0, {0.1, 0.2}, coupled);
    Imputed plain(rows, options, step);
    const Imputed zero(rows, options, step, 0, Panel(rows, 3));
    Panel constant(rows, 3);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < 3; ++j) constant(i, j) = fixtures::number(j);
    const Imputed moved(rows, options, step, 0, constant);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(plain.gradients[i].weights.view() == zero.gradients[i].weights.view());
    for (Index j : {0, 1}) plain.parameters.layers[1].bias[2 + j] += fixtures::number(j);
    plain.parameters.layers[2].bias[0] += fixtures::number(2);
    plain.run(step);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto a = plain.gradients[i].weights.view();
      const auto b = moved.gradients[i].weights.view();
      // A predictor is rounded once more; the sums are of six rows with residuals up to 1 / 0.1.
      CHECK((a - b).cwiseAbs().maxCoeff() <= 64 * 0x1p-24 * rows * 10);
      CHECK((zero.gradients[i].weights.view() - b).cwiseAbs().maxCoeff() > 0.01f);
      CHECK_NEAR(plain.log_likelihood[i], moved.log_likelihood[i], 64 * 0x1p-24 * rows * 10);
    }
  }
}

TEST_CASE("sghmc: a row of weight zero counts for nothing, of weight two twice") {
  const SamplerOptions cold = sampler(1, 1.0, 0.0, {0.1, 0.2});
  const auto weighted = [&](const Floats& weight) {
    Imputed result(2, cold, {0.1, 0.2});
    // Residuals are weighted in place: impute again before asking for other weights.
    forward(result.spec, result.parameters, result.batch, result.states);
    const std::vector<double> step{0.1, 0.2};
    result.sampler.impute(result.parameters, result.batch, kVariances, step,
                          RandomStream(1, 2, 3, 0), 7, result.states);
    result.batch.weight = weight;
    result.sampler.gradients(result.batch, result.states, result.gradients);
    return result.gradients;
  };
  const auto first = weighted({1, 0}), second = weighted({0, 1}), both = weighted({2, 1});
  for (std::size_t i = 0; i < 3; ++i) {
    const Eigen::MatrixXf sum = 2 * first[i].weights.view() + second[i].weights.view();
    // Four roundings of terms of a few units.
    CHECK((both[i].weights.view() - sum).cwiseAbs().maxCoeff() <= 16 * 0x1p-24 * 4);
    CHECK(first[i].weights.view().cwiseAbs().maxCoeff() > 0.01f);
  }
}

TEST_CASE("sghmc: noise depends on the iteration, silence does not") {
  const auto run = [](double temperature, std::uint32_t iteration) {
    const NetworkSpec spec = fixtures::small_network();
    const Parameters parameters = fixtures::some_parameters(spec);
    const Batch batch = fixtures::some_batch(spec, 2);
    const SamplerOptions options = sampler(1, 0.5, temperature, {0.1, 0.2});
    std::vector<LayerState> states;
    allocate(spec, 2, states);
    forward(spec, parameters, batch, states);
    BackwardSampler backward(spec, options, 2);
    const std::vector<double> step{0.1, 0.2};
    backward.impute(parameters, batch, kVariances, step, RandomStream(1, 2, 3, 0), iteration,
                    states);
    return backward.displacement(0)(0, 0);
  };
  CHECK(run(1.0, 1) == run(1.0, 1));
  CHECK(run(1.0, 1) != run(1.0, 2));
  CHECK(run(0.0, 1) == run(0.0, 2));
}
