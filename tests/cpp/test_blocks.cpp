#include "check.hpp"
#include "core/blocks.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

constexpr double kRoundoff = 0x1p-24;  // of float32

VisibleBlock lone(Family family, Index size, double weight = 1.0) {
  Block block = fixtures::observed(family, size, false, 0);
  block.weight = weight;
  return {.layer = 0, .unit = 0, .block = block};
}

float residual(Family family, double weight, double variance, float y, float eta) {
  Panel visible(1, 1), predictor(1, 1), out(1, 1);
  visible(0, 0) = y;
  predictor(0, 0) = eta;
  visible_residual(lone(family, 1, weight), variance, visible, predictor, out);
  return out(0, 0);
}

double density(Family family, double variance, float y, float eta) {
  return log_density(family, variance, {&y, 1}, {&eta, 1});
}

}  // namespace

TEST_CASE("blocks: residuals of the families by hand") {
  CHECK_NEAR(residual(Family::gaussian, 1.0, 0.5, 2.0f, 1.0f), 2.0, 4 * kRoundoff);
  CHECK_NEAR(residual(Family::bernoulli, 1.0, 9.0, 1.0f, 0.0f), 0.5, 2 * kRoundoff);
  CHECK_NEAR(residual(Family::poisson, 1.0, 0.5, 3.0f, 0.0f), 4.0, 8 * kRoundoff);
  Panel y(1, 2), eta(1, 2), r(1, 2);
  y(0, 1) = 1;
  visible_residual(lone(Family::categorical, 2), 9.0, y, eta, r);
  CHECK_NEAR(r(0, 0), -1.0 / 3, 2 * kRoundoff);
  CHECK_NEAR(r(0, 1), 2.0 / 3, 2 * kRoundoff);
}

TEST_CASE("blocks: the weight multiplies the residual") {
  CHECK_NEAR(residual(Family::bernoulli, 200.0, 1.0, 1.0f, 0.0f), 100.0, 400 * kRoundoff);
}

TEST_CASE("blocks: residuals keep to their units where layers and data have more") {
  Panel visible(2, 3), predictor(2, 4), residual(2, 4);
  fixtures::fill(predictor, 60);
  residual.view().setConstant(5.0f);
  VisibleBlock v = lone(Family::bernoulli, 1);
  v.unit = 2;
  v.block.column = 1;
  visible(0, 1) = 1.0f;
  predictor(0, 2) = predictor(1, 2) = 0.0f;
  visible_residual(v, 1.0, visible, predictor, residual);
  CHECK(residual(0, 2) == 0.5f);
  CHECK(residual(1, 2) == -0.5f);
  for (Index i : {0, 1})
    for (Index j : {0, 1, 3}) CHECK(residual(i, j) == 5.0f);
}

TEST_CASE("blocks: log-densities by hand") {
  const double log_two_pi = std::log(2 * 3.14159265358979323846);
  CHECK_NEAR(density(Family::gaussian, 4.0, 1.0f, 0.0f), -0.5 * (log_two_pi + std::log(4.0) + 0.25),
             1e-14);
  CHECK_NEAR(density(Family::bernoulli, 1.0, 1.0f, 0.0f), std::log(0.5), 1e-15);
  const float y[3] = {0, 0, 1}, eta[3] = {0, 0, 0};
  CHECK_NEAR(log_density(Family::categorical, 1.0, y, eta), std::log(0.25), 1e-15);
}

TEST_CASE("blocks: counts by hand") {
  const double constant = -0.5 * std::log(2 * 3.14159265358979323846 * 0.5);
  // Deviances over twice the dispersion: μ = 1 beside 0, and 3 log 3 - 2 beside 3.
  CHECK_NEAR(density(Family::poisson, 0.5, 0.0f, 0.0f), constant - 2.0, 1e-14);
  CHECK_NEAR(density(Family::poisson, 0.5, 3.0f, 0.0f), constant - 2 * (3 * std::log(3.0) - 2),
             1e-13);
  CHECK_NEAR(squared_error(Family::poisson, 3.0f, 0.0f), 4.0, 1e-14);
  CHECK_NEAR(squared_error(Family::gaussian, 3.0f, 1.0f), 4.0, 1e-14);
  // Where next to nothing is expected, a hundredth of the mean is.
  CHECK_NEAR(squared_error(Family::poisson, 1.0f, -20.0f), 100.0, 1e-5);
  const float eta[3] = {0.0f, 1000.0f, -1000.0f};
  float mean[3];
  mean_from_predictor(Family::poisson, eta, mean);
  CHECK_NEAR(mean[0], 1.0, kRoundoff);
  CHECK_NEAR(mean[1] / std::exp(30.0), 1.0, 2 * kRoundoff);
  CHECK_NEAR(mean[2] / std::exp(-30.0), 1.0, 2 * kRoundoff);
}

TEST_CASE("blocks: two categories are a bernoulli") {
  for (float eta : {-30.0f, -2.0f, 0.0f, 0.7f, 30.0f}) {
    for (float y : {0.0f, 1.0f}) {
      CHECK_NEAR(density(Family::categorical, 1.0, y, eta), density(Family::bernoulli, 1.0, y, eta),
                 1e-13);
      CHECK_NEAR(residual(Family::categorical, 1.0, 1.0, y, eta),
                 residual(Family::bernoulli, 1.0, 1.0, y, eta), 2 * kRoundoff);
    }
  }
}

TEST_CASE("blocks: means of a categorical block leave the rest to the first level") {
  const float eta[3] = {100.0f, 100.0f, -100.0f};  // exp would overflow float32
  float mean[3];
  mean_from_predictor(Family::categorical, eta, mean);
  CHECK_NEAR(mean[0], 0.5, 2 * kRoundoff);
  CHECK_NEAR(mean[1], 0.5, 2 * kRoundoff);
  CHECK_NEAR(mean[2], 0.0, 1e-30);
}
