// Missing covariates while a network trains. Every row with gaps has candidate completions, drawn
// from π(X_mis | X_obs) before training; the row holds one of them at a time and moves among them
// by Metropolis-Hastings steps towards
//   π(X_mis | X_obs, A, Y) ∝ π(X_mis | X_obs) p(A | X) p(Y | A, X) · weight,
// p being the noise-free network's likelihoods and `weight` a factor such as p(R | A, X). Offsets
// are a row's own: they stay while it moves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data.hpp"
#include "core/hooks.hpp"
#include "core/network.hpp"
#include "core/rng.hpp"

namespace cstonet {

struct Candidates {
  Gaps gaps;                // the missing entries of the rows that have candidates
  Index draws = 0;          // candidates per row
  std::vector<Index> rows;  // the rows that have candidates, ascending
  std::vector<Index> slot;  // of every row: its position in `rows`, or -1
  Panel values;             // entries x draws, standardised
  Panel log_weight;         // rows with candidates x draws

  // Fills `rows` and `slot` from the gaps; throws if shapes disagree.
  void prepare(Index columns);
};

// Which columns feed which inputs of a network; puts candidates into rows of its inputs.
class CandidateInputs {
 public:
  CandidateInputs(std::span<const Index> inputs, Index columns);
  void put(const Candidates& candidates, Index row, Index draw, std::span<float> inputs) const;

 private:
  std::vector<Index> position_;  // of each column among the inputs, or -1
};

// Which candidate every row holds. The candidates are shared by all tasks and outlive the imputer.
class Imputer {
 public:
  Imputer(const Candidates& candidates, Index batch_rows, std::span<const Index> inputs,
          Index columns);

  // The network reads these covariates from now on.
  void connect(std::span<const Index> inputs, Index columns);
  // Puts the current candidate of a row into its inputs.
  void fill(Index row, std::span<float> inputs) const;
  // One step for every row of the batch that has candidates. `states` come from forward() at the
  // current candidates; (iteration, stream) name the random numbers. The batch stays as it is.
  void move(const Model& model, std::span<const Index> rows, const Batch& batch,
            const std::vector<LayerState>& states, const RandomStream& random,
            std::uint32_t iteration, std::uint32_t stream);

  // Current candidate of each row that has some.
  const std::vector<Index>& current() const { return current_; }

 private:
  // Positions in the batch of the rows that have candidates.
  std::vector<Index> moving(std::span<const Index> rows) const;
  // Copies these rows into the proposal, each with the candidate proposed for it.
  void propose(const Model& model, std::span<const Index> rows, const Batch& batch,
               std::span<const Index> moving, std::span<const Index> proposed);

  const Candidates& candidates_;
  Index batch_rows_;
  CandidateInputs inputs_;
  std::vector<Index> current_;
  Batch proposal_;
  std::vector<LayerState> proposal_states_;
};

// Log-likelihood of all visible units of one row of a batch under the noise-free network.
double row_log_likelihood(std::span<const VisibleBlock> blocks, const Batch& batch,
                          const std::vector<LayerState>& states, std::span<const double> variances,
                          Index row);

// The same for every row with candidates at each of them: rows with candidates x draws. `visible`
// and `offset` have a row for every row of the data, or `offset` no columns.
Panel candidate_log_likelihood(const Model& model, std::span<const Index> inputs,
                               const Dataset& data, const Candidates& candidates,
                               const Panel& visible, const Columns& offset, int threads,
                               Hooks& hooks);

}  // namespace cstonet
