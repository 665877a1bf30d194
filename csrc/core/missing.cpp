#include "core/missing.hpp"

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"

namespace cstonet {
namespace {

constexpr Index kRowsPerTask = 16;

}  // namespace

void Candidates::prepare(Index columns) {
  gaps.validate(columns);
  rows.clear();
  slot.assign(gaps.rows(), -1);
  for (Index i = 0; i < gaps.rows(); ++i) {
    if (gaps.first[i] == gaps.first[i + 1]) continue;
    slot[i] = std::ssize(rows);
    rows.push_back(i);
  }
  require(draws > 0, "values needs candidates, at least one for each gap");
  require(values.rows() == gaps.entries() && values.columns() == draws,
          "values needs one per missing entry and candidate");
  require(log_weight.rows() == std::ssize(rows) && log_weight.columns() == draws,
          "log_weight needs one per row with gaps and candidate");
}

CandidateInputs::CandidateInputs(std::span<const Index> inputs, Index columns)
    : position_(columns, -1) {
  for (Index j = 0; j < std::ssize(inputs); ++j) position_[inputs[j]] = j;
}

void CandidateInputs::put(const Candidates& candidates, Index row, Index draw,
                          std::span<float> inputs) const {
  const Gaps& gaps = candidates.gaps;
  for (Index e = gaps.first[row]; e < gaps.first[row + 1]; ++e) {
    const Index j = position_[gaps.column[e]];
    if (j >= 0) inputs[j] = candidates.values(e, draw);
  }
}

Imputer::Imputer(const Candidates& candidates, Index batch_rows, std::span<const Index> inputs,
                 Index columns)
    : candidates_(candidates),
      batch_rows_(batch_rows),
      inputs_(inputs, columns),
      current_(candidates.rows.size(), 0) {
  connect(inputs, columns);
}

void Imputer::connect(std::span<const Index> inputs, Index columns) {
  inputs_ = CandidateInputs(inputs, columns);
  proposal_.inputs.reshape(batch_rows_, std::ssize(inputs));
}

void Imputer::fill(Index row, std::span<float> inputs) const {
  const Index slot = candidates_.slot[row];
  if (slot >= 0) inputs_.put(candidates_, row, current_[slot], inputs);
}

std::vector<Index> Imputer::moving(std::span<const Index> rows) const {
  std::vector<Index> found;
  for (Index i = 0; i < std::ssize(rows); ++i)
    if (candidates_.slot[rows[i]] >= 0) found.push_back(i);
  return found;
}

void Imputer::propose(const Model& model, std::span<const Index> rows, const Batch& batch,
                      std::span<const Index> moving, std::span<const Index> proposed) {
  if (proposal_states_.empty()) {
    allocate(model.spec, batch_rows_, proposal_states_);
    proposal_.visible.reshape(batch_rows_, batch.visible.columns());
    proposal_.offset.reshape(batch_rows_, batch.offset.columns());
  }
  proposal_.inputs.set_rows(std::ssize(moving));
  proposal_.visible.set_rows(std::ssize(moving));
  proposal_.offset.set_rows(std::ssize(moving));
  for (Index i = 0; i < std::ssize(moving); ++i) {
    const Index from = moving[i];
    std::ranges::copy(batch.inputs.row(from), proposal_.inputs.row(i).begin());
    std::ranges::copy(batch.visible.row(from), proposal_.visible.row(i).begin());
    std::ranges::copy(batch.offset.row(from), proposal_.offset.row(i).begin());
    inputs_.put(candidates_, rows[from], proposed[i], proposal_.inputs.row(i));
  }
}

void Imputer::move(const Model& model, std::span<const Index> rows, const Batch& batch,
                   const std::vector<LayerState>& states, const RandomStream& random,
                   std::uint32_t iteration, std::uint32_t stream) {
  const std::vector<Index> at = moving(rows);
  if (at.empty()) return;
  const Index count = std::ssize(at);
  // Two uniforms per row: which candidate is proposed, and whether it is taken.
  std::vector<float> uniform(2 * count);
  random.uniforms(Purpose::candidates, iteration, stream, uniform);
  std::vector<Index> proposed(count);
  for (Index i = 0; i < count; ++i)
    proposed[i] =
        std::min(static_cast<Index>(uniform[2 * i] * static_cast<float>(candidates_.draws)),
                 candidates_.draws - 1);
  propose(model, rows, batch, at, proposed);
  forward(model.spec, model.parameters, proposal_, proposal_states_);
  const std::vector<VisibleBlock> blocks = visible_blocks(model.spec);
  for (Index i = 0; i < count; ++i) {
    const Index slot = candidates_.slot[rows[at[i]]];
    Index& current = current_[slot];
    const double gain =
        row_log_likelihood(blocks, proposal_, proposal_states_, model.variances, i) +
        candidates_.log_weight(slot, proposed[i]) -
        row_log_likelihood(blocks, batch, states, model.variances, at[i]) -
        candidates_.log_weight(slot, current);
    if (std::log(double{uniform[2 * i + 1]}) < gain) current = proposed[i];
  }
}

double row_log_likelihood(std::span<const VisibleBlock> blocks, const Batch& batch,
                          const std::vector<LayerState>& states, std::span<const double> variances,
                          Index row) {
  double total = 0.0;
  for (std::size_t b = 0; b < blocks.size(); ++b)
    total +=
        log_density(blocks[b], variances[b], batch.visible, states[blocks[b].layer].predictor, row);
  return total;
}

Panel candidate_log_likelihood(const Model& model, std::span<const Index> inputs,
                               const Dataset& data, const Candidates& candidates,
                               const Panel& visible, const Columns& offset, int threads,
                               Hooks& hooks) {
  const Index n = std::ssize(candidates.rows), draws = candidates.draws;
  const std::vector<VisibleBlock> blocks = visible_blocks(model.spec);
  const CandidateInputs places(inputs, data.columns());
  Panel out(n, draws);
  run_tasks((n + kRowsPerTask - 1) / kRowsPerTask, threads, hooks, [&](long task) {
    Batch batch{.inputs = Panel(draws, model.spec.inputs),
                .visible = Panel(draws, visible.columns()),
                .weight = {},
                .offset = Panel(draws, offset.width)};
    std::vector<LayerState> states;
    allocate(model.spec, draws, states);
    const Index first = task * kRowsPerTask;
    for (Index slot = first; slot < std::min(first + kRowsPerTask, n); ++slot) {
      const Index row = candidates.rows[slot];
      data.gather(std::vector<Index>(draws, row), inputs, batch.inputs);
      for (Index k = 0; k < draws; ++k) {
        std::ranges::copy(visible.row(row), batch.visible.row(k).begin());
        std::ranges::copy(offset.row(row), batch.offset.row(k).begin());
        places.put(candidates, row, k, batch.inputs.row(k));
      }
      forward(model.spec, model.parameters, batch, states);
      for (Index k = 0; k < draws; ++k)
        out(slot, k) =
            static_cast<float>(row_log_likelihood(blocks, batch, states, model.variances, k));
    }
  });
  return out;
}

}  // namespace cstonet
