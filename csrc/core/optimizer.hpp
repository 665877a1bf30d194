// Parameter update by stochastic approximation (paper Algorithm A1, step 2), fused with the prior.
#pragma once

#include <span>
#include <vector>

#include "core/network.hpp"
#include "core/options.hpp"
#include "core/prior.hpp"
#include "core/sghmc.hpp"

namespace cstonet {

// θ_i <- θ_i + γ_i (mean over the batch of ∇ log π + (1/n) ∇ log prior), each term smoothed by
// momentum and, under adam, scaled by the root of its second moment. The paper's sum over the
// batch with |S|/n on the prior is |S| times this.
class Optimizer {
 public:
  Optimizer(const NetworkSpec& spec, const OptimizerOptions& options);

  // `layer_variance` are the σ_i² in whose inverse the clipping norm is measured.
  void update(const std::vector<LayerGradient>& gradients, double batch_weight,
              std::span<const double> rate, std::span<const double> layer_variance,
              const PriorPass& prior, bool penalize_bias, Parameters& parameters);

  // Keeps the state of the listed rows of the first layer only.
  void keep_inputs(std::span<const Index> rows);

 private:
  struct Moments {
    Panel first, second;
    Floats bias_first, bias_second;
  };
  // Weights or biases of a layer, with all that belongs to each of them.
  struct Target {
    std::span<const float> gradient, mask;
    std::span<float> values, first, second;
  };
  double gradient_scale(const LayerGradient& gradient, const LayerParameters& theta,
                        double batch_weight, double layer_variance) const;
  void apply(double rate, double gradient_scale, const PriorPass& prior,
             const Target& target) const;

  OptimizerOptions options_;
  long steps_ = 0;
  std::vector<Moments> moments_;
};

// Rows `rows` of `panel`, in that order.
Panel take_rows(const Panel& panel, std::span<const Index> rows);

}  // namespace cstonet
