// Backward sampling of the latent layers and the gradients it yields (paper Algorithm A1).
#pragma once

#include <span>
#include <vector>

#include "core/errors.hpp"
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
//
// Coupled chains. Beside the chain runs its shadow D°_i: the same normals, no pull from visible
// units. Its gradient has expectation zero where the shadow samples its own law, so subtracting it
// leaves the expectation and takes the noise. The chain is then stored as its difference D_i - D°_i
// from the shadow, for the reason above: the noise is larger than what is left by orders of
// magnitude. docs/decisions/0043 derives what is exact and what is not.
class BackwardSampler {
 public:
  // Of the network only what stands above the covariates matters here: they may be dropped later.
  BackwardSampler(const NetworkSpec& spec, const SamplerOptions& options, Index batch_rows);

  // Starts at the noise-free values, does t_MC sweeps from layer h to layer 1, leaves the
  // residuals of every layer ready. `states` come from forward(), and their outputs end as ψ(Y_i).
  // `variances` are those of the visible blocks, `step` is ε_i. Throws Diverged, with the layer,
  // if the chain leaves every reasonable bound.
  void impute(const Parameters& parameters, const Batch& batch, std::span<const double> variances,
              std::span<const double> step, const RandomStream& random, std::uint32_t iteration,
              std::vector<LayerState>& states);

  // Σ_s ∇_θ_i log π(Y_i | Y_{i-1}, θ_i), weighted by the batch's row weights; if the chains are
  // coupled, less the same of the shadow. Once per impute: the weights are multiplied into place.
  void gradients(const Batch& batch, const std::vector<LayerState>& states,
                 std::vector<LayerGradient>& out);

  // log π(Y_i | Y_{i-1}) of each layer, summed over the batch; to be asked before `gradients`.
  std::vector<double> log_likelihood(const Batch& batch, std::span<const double> variances) const;

  // Y_i - Z_i.
  Panel displacement(Index layer) const;

 private:
  // One of the chains, or the difference of the two, in one layer.
  struct Chain {
    Panel displacement;  // D_i
    Panel velocity;      // v_i
    Panel change;        // of ψ(Y_i)
    Panel shift;         // of this layer's predictor, due to the layer below
    Panel residual;      // d log π(Y_i | Y_{i-1}) / d predictor
    Panel back;          // w_{i+1}' residual_{i+1}
    void reshape(Index rows, Index units);
    void set_rows(Index rows);
    void rest();  // at the noise-free network
  };
  struct Latent {
    Chain chain;      // from the shadow if there is one, else from the noise-free network
    Chain shadow;     // from the noise-free network; empty without coupling
    Panel predictor;  // Z_i + shifts (layers with visible units)
    Panel normal;
    Panel transposed;  // w_i, units x inputs
    Floats mask;       // 1 for latent units, 0 for visible units and padding
  };

  void prepare(const Parameters& parameters, Index rows);
  void draw(Index i, const RandomStream& random, std::uint32_t iteration, int sweep);
  // Moves layer i, once its normals have been drawn and the residuals above are known; `first` in
  // the first sweep.
  void move(Index i, double step, bool first, const Panel& weights_above, const Batch& batch,
            LayerState& layer);
  float move_latents(Index i, double step, bool first, const Panel& output);  // largest |D_i|
  void activate(Index i, bool first, float farthest, const Batch& batch, LayerState& layer);
  // Residuals of the latent units; a move leaves them right until the layer below moves.
  void update_innovations(Index i);
  // Residuals of the visible units, whose predictor has been `shifted` if the layer below moved.
  void update_visible(Index i, bool shifted, const Batch& batch, const Panel& predictor,
                      std::span<const double> variances);
  void shift_predictor(const VisibleBlock& v, const Panel& predictor, Latent& state) const;
  Diverged diverged(Index i, double step) const;

  NetworkSpec spec_;
  SamplerOptions options_;
  bool coupled_;  // without noise the shadow rests, and there is nothing to subtract
  std::vector<Latent> latent_;
  std::vector<VisibleBlock> visible_;
};

void allocate(const NetworkSpec& spec, std::vector<LayerGradient>& gradients);

}  // namespace cstonet
