// A small network with every kind of block, parameters and a minibatch, for the tests of the core.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "core/data.hpp"
#include "core/network.hpp"

namespace fixtures {

using cstonet::Activation;
using cstonet::Batch;
using cstonet::Block;
using cstonet::Family;
using cstonet::Floats;
using cstonet::Index;
using cstonet::LayerParameters;
using cstonet::NetworkSpec;
using cstonet::Panel;
using cstonet::Parameters;

inline Block latent(Index size) {
  return {.family = Family::gaussian,
          .size = size,
          .visible = false,
          .feeds = true,
          .weight = 1.0,
          .column = -1};
}

inline Block observed(Family family, Index size, bool feeds, Index column) {
  return {.family = family,
          .size = size,
          .visible = true,
          .feeds = feeds,
          .weight = 1.0,
          .column = column};
}

// 3 covariates; 2 latent units; 2 latent units, a treatment that feeds and an indicator that does
// not; a gaussian outcome.
inline NetworkSpec small_network() {
  return {.inputs = 3,
          .activation = Activation::tanh,
          .layers = {{{latent(2)}},
                     {{latent(2), observed(Family::bernoulli, 1, true, 0),
                       observed(Family::bernoulli, 1, false, 1)}},
                     {{observed(Family::gaussian, 1, false, 2)}}}};
}

// Some fixed numbers of order one, different for every k.
inline float number(Index k) {
  return static_cast<float>(std::sin(1.0 + 2.7 * static_cast<double>(k)));
}

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
  Batch batch{.inputs = Panel(rows, spec.inputs),
              .visible = Panel(rows, spec.visible_columns()),
              .weight = Floats(rows, 1.0f)};
  fill(batch.inputs, 1000);
  for (Index i = 0; i < rows; ++i) {
    batch.visible(i, 0) = static_cast<float>(i % 2);
    batch.visible(i, 1) = static_cast<float>(i % 3 == 0);
    batch.visible(i, 2) = number(2000 + i);
  }
  return batch;
}

// An offset for every visible unit of every row.
inline Panel some_offset(const NetworkSpec& spec, Index rows) {
  Panel offset(rows, spec.visible_columns());
  fill(offset, 4000);
  return offset;
}

// A row-major matrix that is standardised already.
template <class T>
struct Covariates {
  Index rows, columns;
  std::vector<T> values;
  std::vector<double> center, inverse_scale;

  Covariates(Index n, Index p)
      : rows(n), columns(p), values(n * p), center(p, 0.0), inverse_scale(p, 1.0) {}
  T& operator()(Index i, Index j) { return values[i * columns + j]; }
  T operator()(Index i, Index j) const { return values[i * columns + j]; }

  cstonet::Dataset dataset(std::size_t pack_bytes = 0) const {
    const cstonet::Source source{.data = values.data(),
                                 .is_double = sizeof(T) == sizeof(double),
                                 .rows = rows,
                                 .columns = columns,
                                 .row_stride = columns * Index{sizeof(T)},
                                 .column_stride = sizeof(T),
                                 .center = center,
                                 .inverse_scale = inverse_scale,
                                 .limit = std::numeric_limits<double>::infinity()};
    return cstonet::Dataset(source, pack_bytes);
  }
};

}  // namespace fixtures
