#include <cmath>
#include <numeric>

#include "check.hpp"
#include "core/score.hpp"
#include "faults.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

constexpr Index kRows = 300, kColumns = 150;  // more than one block of 256 rows and 128 columns

std::vector<Index> first(Index count) {
  std::vector<Index> all(count);
  std::iota(all.begin(), all.end(), Index{0});
  return all;
}

struct Tests {
  fixtures::Covariates<double> x{kRows, kColumns};
  std::vector<Index> rows = first(kRows), columns;
  std::vector<float> residuals = std::vector<float>(2 * kRows);
  std::vector<double> mean;
  Panel linear, square;

  explicit Tests(int threads, std::vector<Index> some = first(kColumns))
      : columns(std::move(some)) {
    for (Index k = 0; k < kRows * kColumns; ++k) x.values[k] = fixtures::number(k);
    for (Index i = 0; i < kRows; ++i) x(i, 5) = 0.0;
    for (Index k = 0; k < std::ssize(residuals); ++k) residuals[k] = fixtures::number(77 + k);
    const Dataset data = x.dataset();
    Hooks hooks;
    const std::vector<double> squares = square_sums(data, rows, threads, hooks);
    for (Index column : columns) mean.push_back(squares[column] / kRows);
    Products products;
    products.rows = kRows;
    products.residuals = {.data = residuals.data(), .width = 2};
    for (Index k : {0, 1})
      products.directions.push_back(
          {.predictor = k, .kind = DirectionKind::one, .which = 0, .scale = 1.0f});
    linear.reshape(std::ssize(columns), 2);
    square.reshape(std::ssize(columns), 2);
    const ScoreRequest request{.data = data,
                               .rows = rows,
                               .covariates = columns,
                               .mean_squares = mean,
                               .products = products,
                               .threads = threads};
    score_sums(request, hooks, [&](Index from, const ScoreSums& sums) { take(from, sums); });
  }

  void take(Index from, const ScoreSums& sums) {
    for (Index j = 0; j < sums.covariates; ++j)
      for (Index k = 0; k < 2; ++k) {
        const Index at = k * sums.covariates + j;
        linear(from + j, k) = score(sums.linear.sum[at], sums.linear.squares[at]);
        square(from + j, k) = score(sums.square.sum[at], sums.square.squares[at]);
      }
  }

  double expected(Index column, Index direction, bool squared) const {
    std::vector<double> f;
    for (Index i = 0; i < kRows; ++i) {
      const double v = x(i, column);
      f.push_back(squared ? v * v : v);
    }
    const double centre = squared ? std::accumulate(f.begin(), f.end(), 0.0) / kRows : 0.0;
    double sum = 0, squares = 0;
    for (Index i = 0; i < kRows; ++i) {
      const double term = residuals[2 * i + direction] * (f[i] - centre);
      sum += term;
      squares += term * term;
    }
    return sum / std::sqrt(squares);
  }
};

}  // namespace

TEST_CASE("score: sums divided by the root of the sum of their squares") {
  const Tests tests(1);
  for (Index column : {0, 1, 127, 128, 149}) {
    for (Index d : {0, 1}) {
      // Sums of 300 terms, 256 of them in floats, whose sizes add up to at most sqrt(300) times the
      // denominator.
      CHECK_NEAR(tests.linear(column, d), tests.expected(column, d, false), 260 * 18 * 0x1p-24);
      CHECK_NEAR(tests.square(column, d), tests.expected(column, d, true), 520 * 18 * 0x1p-24);
    }
  }
}

TEST_CASE("score: a covariate that is always zero scores zero") {
  const Tests tests(1);
  CHECK(tests.linear(5, 0) == 0.0f);
  CHECK(tests.square(5, 1) == 0.0f);
}

TEST_CASE("score: a list of covariates has the scores they have among all") {
  const std::vector<Index> some{140, 3, 4};
  const Tests all(1), listed(1, some);
  for (Index k = 0; k < 3; ++k) {
    const Index column = some[k];
    CHECK(listed.linear.view().row(k) == all.linear.view().row(column));
    CHECK(listed.square.view().row(k) == all.square.view().row(column));
  }
}

TEST_CASE("score: threads do not change a bit") {
  const Tests one(1), three(3);
  CHECK(one.linear.view() == three.linear.view());
  CHECK(one.square.view() == three.square.view());
}

TEST_CASE("score: whichever allocation fails, the caller is told or gets the scores") {
  const Tests expected(1);
  const auto run = [] { return Tests(3); };
  CHECK(faults::without_memory(run, [&](const Tests& tests) {
          return tests.linear.view() == expected.linear.view() &&
                 tests.square.view() == expected.square.view();
        }) > 10);
}
