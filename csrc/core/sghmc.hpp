// Backward sampling of the latent layers and the gradients it yields (paper Algorithm A1).
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/network.hpp"
#include "core/options.hpp"
#include "core/rng.hpp"

namespace cstonet {

struct LayerGradient {
  Panel weights;  // d log-likelihood / d w_i', inputs x units, summed over the batch
  Floats bias;
};

// Latent variables are stored as displacements D_i = Y_i - Z_i from the noise-free network, and
// changes of activations are computed from D_i directly. The innovation
//   e_i = Y_i - (b_i + w_i ψ(Y_{i-1})) = D_i - w_i [ψ(Z_{i-1} + D_{i-1}) - ψ(Z_{i-1})]
// therefore keeps its relative accuracy in float32 however small σ_i² is.
class BackwardSampler {
 public:
  // Of the network only what stands above the covariates matters here: they may be dropped later.
  BackwardSampler(const NetworkSpec& spec, const SamplerOptions& options, Index batch_rows);

  // Starts at the noise-free values, does t_MC sweeps from layer h to layer 1, leaves the
  // residuals of every layer ready. `states` come from forward(), and their outputs end as ψ(Y_i).
  // `variances` are those of the visible blocks, `step` is ε_i.
  void impute(const Parameters& parameters, const Batch& batch, std::span<const double> variances,
              std::span<const double> step, const RandomStream& random, std::uint32_t iteration,
              std::vector<LayerState>& states);

  // Σ_s ∇_θ_i log π(Y_i | Y_{i-1}, θ_i), weighted by the batch's row weights.
  void gradients(const Batch& batch, const std::vector<LayerState>& states,
                 std::vector<LayerGradient>& out);

  // log π(Y_i | Y_{i-1}) of each layer, summed over the batch.
  std::vector<double> log_likelihood(const Batch& batch, std::span<const double> variances) const;

  const Panel& displacement(Index layer) const { return latent_[layer].displacement; }

 private:
  struct Latent {
    Panel displacement;  // D_i
    Panel velocity;      // v_i
    Panel change;        // ψ(Z_i + D_i) - ψ(Z_i)
    Panel shift;         // change of this layer's predictor due to the layer below
    Panel predictor;     // Z_i + shift (layers with visible units)
    Panel residual;      // d log π(Y_i | Y_{i-1}) / d predictor
    Panel back;          // w_{i+1}' residual_{i+1}
    Panel normal;
    Panel transposed;  // w_i, units x inputs
    Floats mask;       // 1 for latent units, 0 for visible units and padding

    // Those with one row per row of the batch.
    std::array<Panel*, 8> batch_panels() {
      return {&displacement, &velocity, &change, &shift, &predictor, &residual, &back, &normal};
    }
  };

  void prepare(const Parameters& parameters, Index rows);
  void draw(Index i, const RandomStream& random, std::uint32_t iteration, int sweep);
  // Once its normals have been drawn and the residual above is known.
  void move(Index i, double step, const Panel& weights_above, const Batch& batch,
            LayerState& layer);
  void update_residual(Index i, const Batch& batch, const Panel& predictor,
                       std::span<const double> variances);

  NetworkSpec spec_;
  SamplerOptions options_;
  std::vector<Latent> latent_;
  std::vector<VisibleBlock> visible_;
};

void allocate(const NetworkSpec& spec, std::vector<LayerGradient>& gradients);

}  // namespace cstonet
