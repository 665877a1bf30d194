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
  slot.assign(static_cast<std::size_t>(gaps.rows()), -1);
  for (Index i = 0; i < gaps.rows(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (gaps.first[at] == gaps.first[at + 1]) continue;
    slot[at] = static_cast<Index>(rows.size());
    rows.push_back(i);
  }
  require(draws > 0, "a row with gaps needs candidates");
  require(values.rows() == gaps.entries() && values.columns() == draws,
          "one value per missing entry and candidate");
  require(log_weight.rows() == static_cast<Index>(rows.size()) && log_weight.columns() == draws,
          "one weight per row with gaps and candidate");
}

CandidateInputs::CandidateInputs(const Candidates& candidates, const std::vector<Index>& inputs,
                                 Index columns)
    : candidates_(candidates), position_(static_cast<std::size_t>(columns), -1) {
  for (std::size_t j = 0; j < inputs.size(); ++j)
    position_[static_cast<std::size_t>(inputs[j])] = static_cast<Index>(j);
}

void CandidateInputs::put(Index row, Index draw, float* inputs) const {
  const auto at = static_cast<std::size_t>(row);
  const Gaps& gaps = candidates_.gaps;
  for (Index e = gaps.first[at]; e < gaps.first[at + 1]; ++e) {
    const Index column = gaps.column[static_cast<std::size_t>(e)];
    const Index j = position_[static_cast<std::size_t>(column)];
    if (j >= 0) inputs[j] = candidates_.values(e, draw);
  }
}

Imputer::Imputer(const Candidates& candidates, Index batch_rows)
    : candidates_(candidates), batch_rows_(batch_rows), current_(candidates.rows.size(), 0) {}

void Imputer::connect(const std::vector<Index>& inputs, Index columns) {
  inputs_.clear();
  inputs_.emplace_back(candidates_, inputs, columns);
  proposal_.inputs.reshape(batch_rows_, static_cast<Index>(inputs.size()));
}

void Imputer::fill(Index row, float* inputs) const {
  const Index slot = candidates_.slot[static_cast<std::size_t>(row)];
  if (slot >= 0) inputs_.front().put(row, current_[static_cast<std::size_t>(slot)], inputs);
}

void Imputer::move(const NetworkSpec& spec, const Parameters& parameters, const Index* rows,
                   const Batch& batch, const std::vector<LayerState>& states,
                   const std::vector<double>& variances, const RandomStream& random,
                   std::uint32_t iteration, std::uint32_t stream) {
  std::vector<Index> moving;
  for (Index i = 0; i < batch.rows(); ++i)
    if (candidates_.slot[static_cast<std::size_t>(rows[i])] >= 0) moving.push_back(i);
  if (moving.empty()) return;
  const auto count = static_cast<Index>(moving.size());
  // Two uniforms per row: which candidate is proposed, and whether it is taken.
  std::vector<float> uniform(static_cast<std::size_t>(2 * count));
  random.uniforms(Purpose::candidates, iteration, stream, 2 * count, uniform.data());

  if (proposal_states_.empty()) {
    allocate(spec, batch_rows_, proposal_states_);
    proposal_.visible.reshape(batch_rows_, batch.visible.columns());
  }
  proposal_.inputs.set_rows(count);
  proposal_.visible.set_rows(count);
  std::vector<Index> proposed(moving.size());
  for (Index i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Index from = moving[at];
    proposed[at] =
        std::min(static_cast<Index>(uniform[2 * at] * static_cast<float>(candidates_.draws)),
                 candidates_.draws - 1);
    std::copy_n(batch.inputs.row(from), batch.inputs.columns(), proposal_.inputs.row(i));
    std::copy_n(batch.visible.row(from), batch.visible.columns(), proposal_.visible.row(i));
    inputs_.front().put(rows[from], proposed[at], proposal_.inputs.row(i));
  }
  forward(spec, parameters, proposal_, proposal_states_);
  const std::vector<VisibleBlock> blocks = visible_blocks(spec);
  for (Index i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Index slot = candidates_.slot[static_cast<std::size_t>(rows[moving[at]])];
    Index& current = current_[static_cast<std::size_t>(slot)];
    const double gain = row_log_likelihood(blocks, proposal_, proposal_states_, variances, i) +
                        candidates_.log_weight(slot, proposed[at]) -
                        row_log_likelihood(blocks, batch, states, variances, moving[at]) -
                        candidates_.log_weight(slot, current);
    if (std::log(static_cast<double>(uniform[2 * at + 1])) < gain) current = proposed[at];
  }
}

double row_log_likelihood(const std::vector<VisibleBlock>& blocks, const Batch& batch,
                          const std::vector<LayerState>& states,
                          const std::vector<double>& variances, Index row) {
  double total = 0.0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const VisibleBlock& v = blocks[b];
    const Panel& z = states[static_cast<std::size_t>(v.layer)].predictor;
    total += log_density(v.block.family, v.block.size, variances[b],
                         batch.visible.row(row) + v.block.column, z.row(row) + v.unit);
  }
  return total;
}

void candidate_log_likelihood(const NetworkSpec& spec, const Parameters& parameters,
                              const std::vector<Index>& inputs, const Dataset& data,
                              const Candidates& candidates, const Panel& visible,
                              const std::vector<double>& variances, int threads, Hooks& hooks,
                              Panel& out) {
  const auto n = static_cast<Index>(candidates.rows.size());
  const Index draws = candidates.draws;
  const std::vector<VisibleBlock> blocks = visible_blocks(spec);
  const CandidateInputs places(candidates, inputs, data.columns());
  out.reshape(n, draws);
  run_tasks((n + kRowsPerTask - 1) / kRowsPerTask, threads, hooks, [&](long task) {
    Batch batch;
    batch.inputs.reshape(draws, spec.inputs);
    batch.visible.reshape(draws, visible.columns());
    std::vector<LayerState> states;
    allocate(spec, draws, states);
    const Index first = task * kRowsPerTask;
    for (Index slot = first; slot < std::min(first + kRowsPerTask, n); ++slot) {
      const Index row = candidates.rows[static_cast<std::size_t>(slot)];
      const std::vector<Index> copies(static_cast<std::size_t>(draws), row);
      data.gather(copies.data(), draws, &inputs, batch.inputs);
      for (Index k = 0; k < draws; ++k) {
        std::copy_n(visible.row(row), visible.columns(), batch.visible.row(k));
        places.put(row, k, batch.inputs.row(k));
      }
      forward(spec, parameters, batch, states);
      for (Index k = 0; k < draws; ++k)
        out(slot, k) = static_cast<float>(row_log_likelihood(blocks, batch, states, variances, k));
    }
  });
}

}  // namespace cstonet
