#include <numeric>

#include "check.hpp"
#include "core/score.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

constexpr Index kRows = 40, kColumns = 150;  // more than one task of 128 columns

struct Tests {
  fixtures::Covariates<double> x{kRows, kColumns};
  std::vector<Index> rows = std::vector<Index>(kRows), columns;
  Panel directions = Panel(kRows, 2), linear, square;

  explicit Tests(int threads, std::vector<Index> some = {}) : columns(std::move(some)) {
    if (columns.empty()) {
      columns.resize(kColumns);
      std::iota(columns.begin(), columns.end(), Index{0});
    }
    for (Index k = 0; k < kRows * kColumns; ++k) x.values[k] = fixtures::number(k);
    for (Index i = 0; i < kRows; ++i) x(i, 5) = 0.0;
    std::iota(rows.begin(), rows.end(), Index{0});
    fixtures::fill(directions, 77);
    Hooks hooks;
    score_tests(x.dataset(), rows, columns, directions, threads, hooks, linear, square);
  }
  double expected(Index column, Index direction, bool squared) const {
    std::vector<double> f;
    for (Index i = 0; i < kRows; ++i) {
      const double v = x(i, column);
      f.push_back(squared ? v * v : v);
    }
    const double mean = squared ? std::accumulate(f.begin(), f.end(), 0.0) / kRows : 0.0;
    double sum = 0, squares = 0;
    for (Index i = 0; i < kRows; ++i) {
      const double term = directions(i, direction) * (f[i] - mean);
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
      // Sums of 40 terms whose sizes add up to at most sqrt(40) times the denominator.
      CHECK_NEAR(tests.linear(column, d), tests.expected(column, d, false), 300 * 0x1p-24);
      CHECK_NEAR(tests.square(column, d), tests.expected(column, d, true), 600 * 0x1p-24);
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
