// A small network with every kind of block, parameters and a minibatch, for the tests of the core.
#pragma once

#include <cmath>
#include <vector>

#include "core/network.hpp"

namespace fixtures {

using cstonet::Activation;
using cstonet::Batch;
using cstonet::Block;
using cstonet::Family;
using cstonet::Index;
using cstonet::LayerParameters;
using cstonet::NetworkSpec;
using cstonet::Panel;
using cstonet::Parameters;

inline Block latent(Index size) { return {Family::gaussian, size, false, true, 1.0, -1}; }

inline Block observed(Family family, Index size, bool feeds, Index column) {
  return {family, size, true, feeds, 1.0, column};
}

// 3 covariates; 2 latent units; 2 latent units, a treatment that feeds and an indicator that does
// not; a gaussian outcome.
inline NetworkSpec small_network() {
  return {3,
          Activation::tanh,
          {{{latent(2)}},
           {{latent(2), observed(Family::bernoulli, 1, true, 0),
             observed(Family::bernoulli, 1, false, 1)}},
           {{observed(Family::gaussian, 1, false, 2)}}}};
}

// Some fixed numbers of order one, different for every k.
inline float number(Index k) { return static_cast<float>(std::sin(1.0 + 2.7 * k)); }

inline void fill(Panel& panel, Index first = 0) {
  for (Index i = 0; i < panel.rows(); ++i)
    for (Index j = 0; j < panel.columns(); ++j)
      panel(i, j) = number(first + i * panel.columns() + j);
}

inline Parameters some_parameters(const NetworkSpec& spec) {
  Parameters parameters(spec);
  Index k = 0;
  for (LayerParameters& theta : parameters.layers) {
    fill(theta.weights, k += 100);
    for (Index j = 0; j < theta.weights.columns(); ++j) theta.bias[j] = 0.5f * number(k + 50 + j);
  }
  return parameters;
}

inline Batch some_batch(const NetworkSpec& spec, Index rows) {
  Batch batch{Panel(rows, spec.inputs), Panel(rows, spec.visible_columns()), {}};
  fill(batch.inputs, 1000);
  for (Index i = 0; i < rows; ++i) {
    batch.visible(i, 0) = static_cast<float>(i % 2);
    batch.visible(i, 1) = static_cast<float>(i % 3 == 0);
    batch.visible(i, 2) = number(2000 + i);
  }
  batch.weight.assign(static_cast<std::size_t>(rows), 1.0f);
  return batch;
}

}  // namespace fixtures
