// Parameter update by stochastic approximation (paper Algorithm A1, step 2), fused with the prior.
#pragma once

#include <vector>

#include "core/network.hpp"
#include "core/options.hpp"
#include "core/prior.hpp"
#include "core/sghmc.hpp"

namespace cstonet {

// θ_i <- θ_i + γ_i (mean over the batch of ∇ log π + (1/n) ∇ log prior), each term smoothed by
// momentum and, under "adam", scaled by the root of its second moment. The paper's sum over the
// batch with |S|/n on the prior is |S| times this.
class Optimizer {
 public:
  Optimizer(const NetworkSpec& spec, const OptimizerOptions& options);

  // `layer_variance` are the σ_i² in whose inverse the clipping norm is measured.
  void update(const std::vector<LayerGradient>& gradients, double batch_weight,
              const std::vector<double>& rate, const std::vector<double>& layer_variance,
              const PriorPass& prior, bool penalize_bias, Parameters& parameters);

  // Keeps the state of the listed rows of the first layer only.
  void keep_inputs(const std::vector<Index>& rows);

 private:
  struct Moments {
    Panel first, second;
    Floats bias_first, bias_second;
  };
  void apply(float rate, float gradient_scale, const PriorPass& prior, const float* gradient,
             const float* mask, Index n, float* w, float* first, float* second) const;

  const OptimizerOptions& options_;
  bool adam_;
  long steps_ = 0;
  std::vector<Moments> moments_;
};

// Rows `rows` of `panel`, in that order.
Panel take_rows(const Panel& panel, const std::vector<Index>& rows);

}  // namespace cstonet
