#include "core/score.hpp"

#include <algorithm>
#include <cmath>

#include "core/product.hpp"

namespace cstonet {
namespace {

constexpr Index kColumnsPerTask = 128;

// Rows are contiguous, padding included (zeros stay zeros), so plain loops over them are fast where
// reductions and maps of strided views are not.
void square_into(const Panel& from, Panel& to) {
  std::ranges::transform(from.flat(), to.data(), [](float x) { return x * x; });
}

// to = from minus the means of its columns.
void centre_into(const Panel& from, Panel& to) {
  const Index rows = from.rows(), stride = from.stride();
  Floats mean(stride);
  column_sums(from, mean);
  for (float& m : mean) m /= static_cast<float>(rows);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < stride; ++j) to(i, j) = from(i, j) - mean[j];
}

// z(j, k) for the features in the columns of `f`, written to rows first.. of `out`.
void self_normalised(const Panel& f, const Panel& f_squared, const Panel& g, const Panel& g_squared,
                     Index first, Panel& out) {
  Panel sum(f.columns(), g.columns()), variance(f.columns(), g.columns());
  multiply_transposed(f, g, sum);
  multiply_transposed(f_squared, g_squared, variance);
  for (Index j = 0; j < f.columns(); ++j)
    for (Index d = 0; d < g.columns(); ++d) {
      const float v = variance(j, d);
      out(first + j, d) = v > 0.0f ? sum(j, d) / std::sqrt(v) : 0.0f;
    }
}

bool not_next(Index a, Index b) { return b != a + 1; }

}  // namespace

void score_tests(const Dataset& data, const std::vector<Index>& rows,
                 const std::vector<Index>& covariates, const Panel& directions, int threads,
                 Hooks& hooks, Panel& linear, Panel& square) {
  const Index p = std::ssize(covariates), n = std::ssize(rows);
  linear.reshape(p, directions.columns());
  square.reshape(p, directions.columns());
  Panel g_squared(n, directions.columns());
  square_into(directions, g_squared);

  run_tasks((p + kColumnsPerTask - 1) / kColumnsPerTask, threads, hooks, [&](long task) {
    const Index first = task * kColumnsPerTask;
    const Index width = std::min(kColumnsPerTask, p - first);
    Panel f(n, width), f_squared(n, width);
    const std::span wanted = std::span(covariates).subspan(first, width);
    // A run of columns is read faster than a list of them.
    if (std::ranges::adjacent_find(wanted, not_next) == wanted.end())
      data.gather_run(rows, wanted.front(), f);
    else
      data.gather(rows, wanted, f);
    square_into(f, f_squared);
    self_normalised(f, f_squared, directions, g_squared, first, linear);
    centre_into(f_squared, f);
    square_into(f, f_squared);
    self_normalised(f, f_squared, directions, g_squared, first, square);
  });
}

}  // namespace cstonet
