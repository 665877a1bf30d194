#include "core/predict.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace cstonet {
namespace {

// Rows that pass through the network together, and how many such blocks a task takes one after the
// other in the same memory.
constexpr Index kRowsPerBlock = 256, kBlocksPerTask = 8;
constexpr Index kRowsPerTask = kRowsPerBlock * kBlocksPerTask;

// A network at some rows, whose visible units are clamped by the caller.
class Prediction {
 public:
  Prediction(const NetworkSpec& spec, const Parameters& parameters, const Columns& offset,
             Index rows)
      : spec_(spec), parameters_(parameters), offset_(offset), blocks_(visible_blocks(spec)) {
    batch.inputs.reshape(rows, spec.inputs);
    batch.visible.reshape(rows, spec.visible_columns());
    batch.offset.reshape(rows, offset.width);
    allocate(spec, rows, states_);
  }

  // The offsets of the batch begin at this row.
  void run(Index first_offset) {
    for (Index i = 0; i < batch.rows(); ++i)
      std::ranges::copy(offset_.row(first_offset + i), batch.offset.row(i).begin());
    forward(spec_, parameters_, batch, states_);
  }
  void means(Index i, std::span<float> out) const {
    for (const VisibleBlock& v : blocks_)
      mean_from_predictor(v.block.family, v.units(states_[v.layer].predictor, i),
                          out.subspan(v.block.column, v.block.size));
  }

  Batch batch;

 private:
  const NetworkSpec& spec_;
  const Parameters& parameters_;
  const Columns& offset_;
  std::vector<VisibleBlock> blocks_;
  std::vector<LayerState> states_;
};

// Calls use(prediction, first, count) for every block of so many rows, on all threads.
template <class Use>
void in_blocks(const NetworkSpec& spec, const Parameters& parameters, const Columns& offset,
               Index rows, int threads, Hooks& hooks, const Use& use) {
  require(offset.width == 0 || offset.width == spec.visible_columns(),
          "one offset per visible unit");
  run_tasks((rows + kRowsPerTask - 1) / kRowsPerTask, threads, hooks, [&](long task) {
    const Index begin = task * kRowsPerTask, end = std::min(begin + kRowsPerTask, rows);
    Prediction at(spec, parameters, offset, std::min(kRowsPerBlock, end - begin));
    for (Index first = begin; first < end; first += kRowsPerBlock) {
      hooks.check();
      const Index count = std::min(kRowsPerBlock, end - first);
      at.batch.visible.set_rows(count);
      use(at, first, count);
    }
  });
}

}  // namespace

std::vector<Panel> predict(const NetworkSpec& spec, const Parameters& parameters,
                           const std::vector<Index>& inputs, const Dataset& data,
                           const std::vector<Index>& rows, const Panel& clamp,
                           const Columns& offset, int threads, Hooks& hooks) {
  require(std::ssize(inputs) == spec.inputs, "one covariate per network input");
  require(clamp.columns() == spec.visible_columns(), "one clamp value per visible unit");
  const Index n = std::ssize(rows);
  std::vector<Panel> out(clamp.rows());
  for (Panel& panel : out) panel.reshape(n, spec.visible_columns());

  const auto use = [&](Prediction& at, Index first, Index count) {
    data.gather(std::span(rows).subspan(first, count), inputs, at.batch.inputs);
    for (Index setting = 0; setting < clamp.rows(); ++setting) {
      for (Index i = 0; i < count; ++i) copy_row(clamp, setting, at.batch.visible, i);
      at.run(setting * n + first);
      for (Index i = 0; i < count; ++i) at.means(i, out[setting].row(first + i));
    }
  };
  in_blocks(spec, parameters, offset, n, threads, hooks, use);
  return out;
}

void predict_received(const NetworkSpec& spec, const Parameters& parameters,
                      const std::vector<Index>& inputs, const Dataset& data,
                      const std::vector<Index>& rows, const Columns& received,
                      const Columns& offset, int threads, Hooks& hooks, std::span<float> out) {
  const Index n = std::ssize(rows), units = spec.visible_columns();
  require(std::ssize(inputs) == spec.inputs, "one covariate per network input");
  require(received.width <= units, "no more treatments than visible units");
  require(std::ssize(out) == n * units, "one result per row and visible unit");

  const auto use = [&](Prediction& at, Index first, Index count) {
    data.gather(std::span(rows).subspan(first, count), inputs, at.batch.inputs);
    for (Index i = 0; i < count; ++i)
      std::ranges::copy(received.row(first + i), at.batch.visible.row(i).begin());
    at.run(first);
    for (Index i = 0; i < count; ++i) at.means(i, out.subspan((first + i) * units, units));
  };
  in_blocks(spec, parameters, offset, n, threads, hooks, use);
}

}  // namespace cstonet
