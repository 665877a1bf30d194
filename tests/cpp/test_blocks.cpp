#include "check.hpp"
#include "core/blocks.hpp"

using namespace cstonet;

namespace {

constexpr double kRoundoff = 0x1p-24;  // of float32

float residual(Family family, double weight, double variance, float y, float eta) {
  const Block block{family, 1, true, false, weight, 0};
  float r;
  visible_residual(block, variance, 1, &y, 1, &eta, 1, &r, 1);
  return r;
}

}  // namespace

TEST_CASE("blocks: residuals of the three families by hand") {
  CHECK_NEAR(residual(Family::gaussian, 1.0, 0.5, 2.0f, 1.0f), 2.0, 4 * kRoundoff);
  CHECK_NEAR(residual(Family::bernoulli, 1.0, 9.0, 1.0f, 0.0f), 0.5, 2 * kRoundoff);
  const float y[2] = {0, 1}, eta[2] = {0, 0};
  float r[2];
  visible_residual({Family::categorical, 2, true, false, 1.0, 0}, 9.0, 1, y, 2, eta, 2, r, 2);
  CHECK_NEAR(r[0], -1.0 / 3, 2 * kRoundoff);
  CHECK_NEAR(r[1], 2.0 / 3, 2 * kRoundoff);
}

TEST_CASE("blocks: the weight multiplies the residual") {
  CHECK_NEAR(residual(Family::bernoulli, 200.0, 1.0, 1.0f, 0.0f), 100.0, 400 * kRoundoff);
}

TEST_CASE("blocks: residuals keep to their units where rows are wider") {
  const float y[4] = {1, -7, 0, -7}, eta[6] = {0, 9, 9, 0, 9, 9};
  float r[8] = {5, 5, 5, 5, 5, 5, 5, 5};
  visible_residual({Family::bernoulli, 1, true, false, 1.0, 0}, 1.0, 2, y, 2, eta, 3, r, 4);
  CHECK(r[0] == 0.5f);
  CHECK(r[4] == -0.5f);
  for (int k : {1, 2, 3, 5, 6, 7}) CHECK(r[k] == 5.0f);
}

TEST_CASE("blocks: log-densities by hand") {
  const float one = 1.0f, zero = 0.0f;
  const double log_two_pi = std::log(2 * 3.14159265358979323846);
  CHECK_NEAR(log_density(Family::gaussian, 1, 4.0, &one, &zero),
             -0.5 * (log_two_pi + std::log(4.0) + 0.25), 1e-14);
  CHECK_NEAR(log_density(Family::bernoulli, 1, 1.0, &one, &zero), std::log(0.5), 1e-15);
  const float y[3] = {0, 0, 1}, eta[3] = {0, 0, 0};
  CHECK_NEAR(log_density(Family::categorical, 3, 1.0, y, eta), std::log(0.25), 1e-15);
}

TEST_CASE("blocks: two categories are a bernoulli") {
  for (float eta : {-30.0f, -2.0f, 0.0f, 0.7f, 30.0f}) {
    for (float y : {0.0f, 1.0f}) {
      CHECK_NEAR(log_density(Family::categorical, 1, 1.0, &y, &eta),
                 log_density(Family::bernoulli, 1, 1.0, &y, &eta), 1e-13);
      CHECK_NEAR(residual(Family::categorical, 1.0, 1.0, y, eta),
                 residual(Family::bernoulli, 1.0, 1.0, y, eta), 2 * kRoundoff);
    }
  }
}

TEST_CASE("blocks: means of a categorical block leave the rest to the first level") {
  const float eta[3] = {100.0f, 100.0f, -100.0f};  // exp would overflow float32
  float mean[3];
  mean_from_predictor(Family::categorical, 3, eta, mean);
  CHECK_NEAR(mean[0], 0.5, 2 * kRoundoff);
  CHECK_NEAR(mean[1], 0.5, 2 * kRoundoff);
  CHECK_NEAR(mean[2], 0.0, 1e-30);
}
