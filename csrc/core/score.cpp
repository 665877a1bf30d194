#include "core/score.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cstonet {
namespace {

constexpr Index kColumnsPerTask = 128;

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

}  // namespace

void score_tests(const Dataset& data, const std::vector<Index>& rows, const Panel& directions,
                 int threads, Hooks& hooks, Panel& linear, Panel& square) {
  const Index p = data.columns();
  const auto n = static_cast<Index>(rows.size());
  linear.reshape(p, directions.columns());
  square.reshape(p, directions.columns());
  Panel g_squared = directions;
  g_squared.view() = directions.view().array().square().matrix();

  run_tasks((p + kColumnsPerTask - 1) / kColumnsPerTask, threads, hooks, [&](long task) {
    const Index first = task * kColumnsPerTask;
    std::vector<Index> columns(static_cast<std::size_t>(std::min(kColumnsPerTask, p - first)));
    std::iota(columns.begin(), columns.end(), first);
    const auto width = static_cast<Index>(columns.size());
    Panel f(n, width), f_squared(n, width);
    data.gather(rows.data(), n, &columns, f);
    f_squared.view() = f.view().array().square().matrix();
    self_normalised(f, f_squared, directions, g_squared, first, linear);
    f.view() = f_squared.view().rowwise() - f_squared.view().colwise().mean();
    f_squared.view() = f.view().array().square().matrix();
    self_normalised(f, f_squared, directions, g_squared, first, square);
  });
}

}  // namespace cstonet
