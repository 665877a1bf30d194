#include "core/predict.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace cstonet {
namespace {

constexpr Index kRowsPerTask = 256;

}  // namespace

std::vector<Panel> predict(const NetworkSpec& spec, const Parameters& parameters,
                           const std::vector<Index>& inputs, const Dataset& data,
                           const std::vector<Index>& rows, const Panel& clamp, int threads,
                           Hooks& hooks) {
  require(std::ssize(inputs) == spec.inputs, "one covariate per network input");
  require(clamp.columns() == spec.visible_columns(), "one clamp value per visible unit");
  const Index n = std::ssize(rows);
  const std::vector<VisibleBlock> blocks = visible_blocks(spec);
  std::vector<Panel> out(clamp.rows());
  for (Panel& panel : out) panel.reshape(n, spec.visible_columns());

  run_tasks((n + kRowsPerTask - 1) / kRowsPerTask, threads, hooks, [&](long task) {
    const Index first = task * kRowsPerTask;
    const Index count = std::min(kRowsPerTask, n - first);
    Batch batch;
    batch.inputs.reshape(count, spec.inputs);
    batch.visible.reshape(count, spec.visible_columns());
    std::vector<LayerState> states;
    allocate(spec, count, states);
    data.gather(std::span(rows).subspan(first, count), inputs, batch.inputs);
    for (Index setting = 0; setting < clamp.rows(); ++setting) {
      for (Index i = 0; i < count; ++i)
        std::ranges::copy(clamp.row(setting), batch.visible.row(i).begin());
      forward(spec, parameters, batch, states);
      for (const VisibleBlock& v : blocks) {
        const Panel& z = states[v.layer].predictor;
        for (Index i = 0; i < count; ++i)
          mean_from_predictor(v.block.family, v.units(z, i),
                              out[setting].row(first + i).subspan(v.block.column, v.block.size));
      }
    }
  });
  return out;
}

}  // namespace cstonet
