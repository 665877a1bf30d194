// Parameter update by stochastic approximation (paper Algorithm A1, step 2), fused with the prior.
#pragma once

#include <span>
#include <utility>
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

  struct Moments {
    Panel first, second;
    Floats bias_first, bias_second;
  };
  // What an optimiser remembers of former updates.
  struct State {
    long steps = 0;
    std::vector<Moments> layers;
  };
  State take_state() && { return std::move(state_); }
  // Goes on from the state of another network with the same layers, whose input rows[k] is input k
  // of this one; -1: a new input. Nothing is remembered of weights that it was not allowed.
  void resume(const State& from, const Parameters& network, std::span<const Index> rows);

 private:
  // Weights or biases of a layer, with all that belongs to each of them.
  struct Target {
    std::span<const float> gradient, mask;
    std::span<float> values, first, second;
  };
  double gradient_scale(const LayerGradient& gradient, const LayerParameters& theta,
                        double batch_weight, double layer_variance) const;
  void apply(double rate, double gradient_scale, const PriorPass& prior,
             const Target& target) const;
  void correct_moments();  // for their start at zero, once per update

  OptimizerOptions options_;
  State state_;
  double first_correction_ = 1.0, second_correction_ = 1.0;
};

// Rows `rows` of `panel`, in that order; zeros where the row is -1.
Panel take_rows(const Panel& panel, std::span<const Index> rows);

}  // namespace cstonet
