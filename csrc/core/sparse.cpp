#include "core/sparse.hpp"

#include <algorithm>
#include <cmath>

namespace cstonet {

namespace {

void prune_bias(LayerParameters& theta, Index unit) {
  theta.bias[unit] = 0.0f;
  theta.bias_mask[unit] = 0.0f;
}

// A latent unit without outgoing weights explains nothing: its incoming weights go too, and so does
// its bias where biases are pruned.
void drop_dead_units(const NetworkSpec& spec, bool biases, Parameters& parameters) {
  for (std::size_t i = parameters.layers.size() - 1; i > 0; --i) {
    LayerParameters& below = parameters.layers[i - 1];
    for (Index unit = 0; unit < spec.layers[i - 1].latent_units(); ++unit) {
      if (parameters.layers[i].mask.view().row(unit).any()) continue;
      below.weights.view().col(unit).setZero();
      below.mask.view().col(unit).setZero();
      if (biases) prune_bias(below, unit);
    }
  }
}

}  // namespace

void prune(const NetworkSpec& spec, double threshold, bool biases, Parameters& parameters) {
  for (LayerParameters& theta : parameters.layers) {
    for (Index i = 0; i < theta.weights.rows(); ++i) {
      for (Index j = 0; j < theta.weights.columns(); ++j) {
        if (std::fabs(theta.weights(i, j)) > threshold) continue;
        theta.weights(i, j) = 0.0f;
        theta.mask(i, j) = 0.0f;
      }
    }
    for (Index j = 0; biases && j < theta.weights.columns(); ++j)
      if (std::fabs(theta.bias[j]) <= threshold) prune_bias(theta, j);
  }
  drop_dead_units(spec, biases, parameters);
}

std::vector<Index> connected_inputs(const Parameters& parameters) {
  std::vector<Index> found;
  const Panel& mask = parameters.layers.front().mask;
  for (Index i = 0; i < mask.rows(); ++i)
    if (mask.view().row(i).any()) found.push_back(i);
  return found;
}

std::vector<bool> reaches(const NetworkSpec& spec, const Parameters& parameters,
                          const VisibleBlock& target) {
  // Units of the current layer from which the target is reached; start at the target itself.
  std::vector<bool> unit(spec.layers[target.layer].units(), false);
  for (Index j = 0; j < target.block.size; ++j) unit[target.unit + j] = true;
  for (Index i = target.layer; i >= 0; --i) {
    const Panel& mask = parameters.layers[i].mask;
    // Below the first layer stand the covariates; elsewhere only latent units pass a path on.
    const LayerSpec* source = i == 0 ? nullptr : &spec.layers[i - 1];
    const Index passing = source ? source->latent_units() : spec.inputs;
    std::vector<bool> below(source ? source->units() : spec.inputs);
    for (Index k = 0; k < passing; ++k)
      for (Index j = 0; j < mask.columns(); ++j)
        if (unit[j] && mask(k, j) != 0.0f) below[k] = true;
    unit = std::move(below);
  }
  return unit;
}

std::vector<double> slab_paths(const NetworkSpec& spec, const Parameters& parameters,
                               const MixturePrior& prior, const VisibleBlock& target) {
  // Of every unit of the current layer: the best that its paths to the target can do.
  std::vector<double> unit(spec.layers[target.layer].units(), 0.0);
  for (Index j = 0; j < target.block.size; ++j) unit[target.unit + j] = 1.0;
  for (Index i = target.layer; i >= 0; --i) {
    const LayerParameters& theta = parameters.layers[i];
    const LayerSpec* source = i == 0 ? nullptr : &spec.layers[i - 1];
    const Index passing = source ? source->latent_units() : spec.inputs;
    std::vector<double> below(source ? source->units() : spec.inputs, 0.0);
    for (Index k = 0; k < passing; ++k)
      for (Index j = 0; j < theta.mask.columns(); ++j)
        if (unit[j] > 0 && theta.mask(k, j) != 0.0f)
          below[k] = std::max(below[k], unit[j] * prior.slab_probability(theta.weights(k, j)));
    unit = std::move(below);
  }
  return unit;
}

}  // namespace cstonet
