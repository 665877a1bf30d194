// Pruning, paths of kept weights, and leaving unconnected covariates out of the computation.
#pragma once

#include <vector>

#include "core/network.hpp"
#include "core/prior.hpp"

namespace cstonet {

// Prunes every weight with |w| at or below the threshold, then the weights into latent units that
// have no outgoing weight left; with `biases`, the biases alike. What is pruned is exactly zero and
// stays so.
void prune(const NetworkSpec& spec, double threshold, bool biases, Parameters& parameters);

// First-layer inputs that have at least one kept weight.
std::vector<Index> connected_inputs(const Parameters& parameters);

// For each input: does a path of kept weights through latent units reach the visible block? Paths
// do not run through visible units: those are observed, and what determines them is their model.
std::vector<bool> reaches(const NetworkSpec& spec, const Parameters& parameters,
                          const VisibleBlock& target);

// For each input: the probability of its most probable path to the visible block, i.e. the largest
// product of slab probabilities over the paths that `reaches` follows. Masked weights carry none.
std::vector<double> slab_paths(const NetworkSpec& spec, const Parameters& parameters,
                               const MixturePrior& prior, const VisibleBlock& target);

}  // namespace cstonet
