// The chain of regressions (paper eq. 3): layer specifications, parameters, forward pass.
#pragma once

#include <span>
#include <vector>

#include "core/blocks.hpp"
#include "core/types.hpp"

namespace cstonet {

// One layer's units. Order within a layer: the latent block, then visible blocks that feed
// forward, then visible blocks that do not; so the next layer's inputs are the first units.
struct LayerSpec {
  std::vector<Block> blocks;

  Index units() const;
  Index latent_units() const;
  Index feeding_units() const;
};

struct NetworkSpec {
  Index inputs;  // p, or the number of covariates still connected
  Activation activation;
  std::vector<LayerSpec> layers;  // h hidden layers and the outcome's

  Index depth() const { return std::ssize(layers); }
  Index hidden_layers() const { return depth() - 1; }
  Index layer_inputs(Index i) const;
  Index visible_columns() const;
  void validate() const;
};

// θ_i = (w_i, b_i), with the mask γ_i of kept weights. Weights stand as inputs x units: a
// covariate is a row, so dropping covariates drops rows.
struct LayerParameters {
  Panel weights;     // w_i', inputs x units
  Panel mask;        // 1 where a weight is kept, 0 where pruned and in the padding
  Floats bias;       // padded(units)
  Floats bias_mask;  // the same for biases
};

struct Parameters {
  std::vector<LayerParameters> layers;
  explicit Parameters(const NetworkSpec& spec);
  Parameters() = default;
  Index nonzero_weights() const;
  Index nonzero_biases() const;
};

// What a minibatch carries through the network.
struct LayerState {
  Panel predictor;  // Z_i: the linear predictor of the noise-free network
  Panel output;     // ψ(Y_i) of latent units, the value itself of visible units
};

struct Batch {
  Panel inputs;   // rows x p
  Panel visible;  // rows x visible columns
  Floats weight;  // row weights
  // Rows x visible columns, added to the predictors of visible units: what is known of them from
  // elsewhere. No columns: nothing is.
  Panel offset = {};
  Index rows() const { return inputs.rows(); }
};

// A network as those read it who only evaluate it.
struct Model {
  const NetworkSpec& spec;
  const Parameters& parameters;
  std::span<const double> variances;  // of the visible blocks
};

void allocate(const NetworkSpec& spec, Index rows, std::vector<LayerState>& states);

// Z_i and outputs of the noise-free network (paper eq. 2), visible units clamped at their values
// and their predictors moved by the batch's offsets.
void forward(const NetworkSpec& spec, const Parameters& parameters, const Batch& batch,
             std::vector<LayerState>& states);

// Writes the values of the visible units of layer `i` into `output`.
void clamp_visible(const LayerSpec& layer, const Batch& batch, Panel& output);

// The visible blocks in layer order.
std::vector<VisibleBlock> visible_blocks(const NetworkSpec& spec);

// log-likelihood of every visible block of the noise-free network, summed over the batch with row
// weights; one entry per visible block in layer order. `variances` is indexed the same way.
std::vector<double> visible_log_likelihood(const NetworkSpec& spec, const Batch& batch,
                                           const std::vector<LayerState>& states,
                                           std::span<const double> variances);

}  // namespace cstonet
