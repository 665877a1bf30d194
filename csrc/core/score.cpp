#include "core/score.hpp"

#include <algorithm>
#include <cmath>

namespace cstonet {
namespace {

constexpr Index kColumnsPerTask = 128;

// Rows are contiguous, padding included (zeros stay zeros), so plain loops over them are fast where
// reductions and maps of strided views are not.
void square_into(const Panel& from, Panel& to) {
  const float* x = from.data();
  float* out = to.data();
  for (Index i = 0; i < from.size(); ++i) out[i] = x[i] * x[i];
}

// to = from minus the means of its columns.
void centre_into(const Panel& from, Panel& to) {
  const Index rows = from.rows(), stride = from.stride();
  Floats mean(static_cast<std::size_t>(stride));
  kernels().column_sums(from.data(), rows, stride, mean.data());
  for (float& m : mean) m /= static_cast<float>(rows);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < stride; ++j) to(i, j) = from(i, j) - mean[static_cast<std::size_t>(j)];
}

// z(j, k) for the features in the columns of `f`, written to rows first.. of `out`.
void self_normalised(const Panel& f, const Panel& f_squared, const Panel& g, const Panel& g_squared,
                     Index first, Panel& out) {
  const Index columns = f.columns(), stride = g.stride();
  Panel sum(columns, g.columns()), variance(columns, g.columns());
  const KernelTable& k = kernels();
  k.multiply(f.data(), 1, f.stride(), g.data(), stride, nullptr, sum.data(), stride, columns,
             f.rows(), stride);
  k.multiply(f_squared.data(), 1, f_squared.stride(), g_squared.data(), stride, nullptr,
             variance.data(), stride, columns, f.rows(), stride);
  for (Index j = 0; j < columns; ++j)
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
  const auto p = static_cast<Index>(covariates.size());
  const auto n = static_cast<Index>(rows.size());
  linear.reshape(p, directions.columns());
  square.reshape(p, directions.columns());
  Panel g_squared(n, directions.columns());
  square_into(directions, g_squared);

  run_tasks((p + kColumnsPerTask - 1) / kColumnsPerTask, threads, hooks, [&](long task) {
    const Index first = task * kColumnsPerTask;
    const Index width = std::min(kColumnsPerTask, p - first);
    Panel f(n, width), f_squared(n, width);
    const std::vector<Index> wanted(covariates.begin() + first, covariates.begin() + first + width);
    // A run of columns is read faster than a list of them.
    if (std::adjacent_find(wanted.begin(), wanted.end(), not_next) == wanted.end())
      data.gather_run(rows.data(), n, wanted.front(), f);
    else
      data.gather(rows.data(), n, &wanted, f);
    square_into(f, f_squared);
    self_normalised(f, f_squared, directions, g_squared, first, linear);
    centre_into(f_squared, f);
    square_into(f, f_squared);
    self_normalised(f, f_squared, directions, g_squared, first, square);
  });
}

}  // namespace cstonet
