// What a block of rows adds to the sums of score tests, for dense and for compressed covariates.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/score.hpp"

namespace cstonet {

// Products of a block of rows, their squares, and the sums of both.
struct Weights {
  Panel g, g_squared;
  std::vector<double> total, total_squared;

  explicit Weights(const Panel& products);
};

// Adds what a block of rows says about up to kColumns covariates to their sums. One per thread.
class FeatureBlock {
 public:
  static constexpr Index kColumns = 128;
  virtual ~FeatureBlock() = default;

  // Rows: those of the request from place `first_row` on, as many as there are weights. Covariates:
  // from number `first` of the request on; their sums stand from column `at` of `sums` on.
  virtual void add(Index first_row, const Weights& weights, Index first, ScoreSums& sums,
                   Index at) = 0;
};

// Makes blocks for a request, and says how many rows they take at once.
class FeatureBlocks {
 public:
  explicit FeatureBlocks(const ScoreRequest& request);
  Index rows_at_once() const;
  std::unique_ptr<FeatureBlock> make() const;

 private:
  const ScoreRequest& request_;
  const Compressed* compressed_;  // null: rows are gathered
  std::vector<Index> place_;      // of every row of a compressed matrix among those of the request
};

}  // namespace cstonet
