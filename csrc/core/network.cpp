#include "core/network.hpp"

#include <algorithm>
#include <string>

#include "core/errors.hpp"
#include "core/product.hpp"

namespace cstonet {

Index LayerSpec::units() const {
  Index n = 0;
  for (const Block& b : blocks) n += b.size;
  return n;
}

Index LayerSpec::latent_units() const {
  Index n = 0;
  for (const Block& b : blocks) n += b.visible ? 0 : b.size;
  return n;
}

Index LayerSpec::feeding_units() const {
  Index n = 0;
  for (const Block& b : blocks) n += b.feeds ? b.size : 0;
  return n;
}

Index NetworkSpec::layer_inputs(Index i) const {
  return i == 0 ? inputs : layers[i - 1].feeding_units();
}

Index NetworkSpec::visible_columns() const {
  Index n = 0;
  for (const auto& v : visible_blocks(*this)) n += v.block.size;
  return n;
}

void NetworkSpec::validate() const {
  require(inputs >= 0, "a network cannot have a negative number of inputs");
  require(depth() >= 2, "a network needs at least one hidden layer and an outcome layer");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string where = "layer " + std::to_string(i + 1);
    const bool last = i + 1 == layers.size();
    require(!layers[i].blocks.empty(), where + " has no blocks");
    int stage = 0;  // 0 latent, 1 visible feeding, 2 visible not feeding
    for (const Block& b : layers[i].blocks) {
      require(b.size > 0, where + " has an empty block");
      require(b.visible || b.family == Family::gaussian, where + ": latent units are gaussian");
      require(b.visible || b.feeds, where + ": latent units must feed the next layer");
      require(b.weight > 0, where + ": a block's weight must be positive");
      const int now = !b.visible ? 0 : (b.feeds ? 1 : 2);
      require(now >= stage, where + ": order blocks as latent, feeding, not feeding");
      stage = now;
      if (last) require(b.visible && !b.feeds, "the last layer holds visible units only");
    }
    require(last || layers[i].latent_units() > 0, where + " has no latent unit");
  }
}

std::vector<VisibleBlock> visible_blocks(const NetworkSpec& spec) {
  std::vector<VisibleBlock> found;
  for (Index i = 0; i < spec.depth(); ++i) {
    Index unit = 0;
    for (const Block& b : spec.layers[i].blocks) {
      if (b.visible) found.push_back({.layer = i, .unit = unit, .block = b});
      unit += b.size;
    }
  }
  return found;
}

Parameters::Parameters(const NetworkSpec& spec) {
  for (Index i = 0; i < spec.depth(); ++i) {
    const Index inputs = spec.layer_inputs(i);
    const Index units = spec.layers[i].units();
    LayerParameters layer{.weights = Panel(inputs, units),
                          .mask = Panel(inputs, units),
                          .bias = Floats(padded(units)),
                          .bias_mask = Floats(padded(units))};
    layer.mask.view().setOnes();
    std::fill_n(layer.bias_mask.begin(), units, 1.0f);
    layers.push_back(std::move(layer));
  }
}

Index Parameters::nonzero_weights() const {
  double n = 0;
  for (const auto& layer : layers) n += layer.mask.view().cast<double>().sum();
  return static_cast<Index>(n);
}

Index Parameters::nonzero_biases() const {
  Index n = 0;
  for (const auto& layer : layers) n += std::ranges::count(layer.bias_mask, 1.0f);
  return n;
}

void allocate(const NetworkSpec& spec, Index rows, std::vector<LayerState>& states) {
  states.resize(spec.layers.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Index units = spec.layers[i].units();
    states[i].predictor.reshape(rows, units);
    states[i].output.reshape(rows, units);
  }
}

void clamp_visible(const LayerSpec& layer, const Batch& batch, Panel& output) {
  Index unit = 0;
  for (const Block& b : layer.blocks) {
    if (b.visible) {
      for (Index i = 0; i < batch.rows(); ++i)
        std::ranges::copy(batch.visible.row(i).subspan(b.column, b.size),
                          output.row(i).subspan(unit).begin());
    }
    unit += b.size;
  }
}

namespace {

void add_offset(const LayerSpec& layer, const Batch& batch, Panel& predictor) {
  Index unit = 0;
  for (const Block& b : layer.blocks) {
    if (b.visible) {
      for (Index i = 0; i < batch.rows(); ++i)
        for (Index j = 0; j < b.size; ++j) predictor(i, unit + j) += batch.offset(i, b.column + j);
    }
    unit += b.size;
  }
}

}  // namespace

void forward(const NetworkSpec& spec, const Parameters& parameters, const Batch& batch,
             std::vector<LayerState>& states) {
  const Panel* below = &batch.inputs;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerParameters& theta = parameters.layers[i];
    Panel& z = states[i].predictor;
    Panel& out = states[i].output;
    z.set_rows(batch.rows());
    out.set_rows(batch.rows());
    if (i + 1 < spec.layers.size()) {
      multiply_activate(spec.activation, *below, theta.weights, theta.bias, z, out);
      clamp_visible(spec.layers[i], batch, out);
    } else {
      multiply(*below, theta.weights, theta.bias, z);
    }
    if (batch.offset.columns() > 0) add_offset(spec.layers[i], batch, z);
    below = &out;
  }
}

std::vector<double> visible_log_likelihood(const NetworkSpec& spec, const Batch& batch,
                                           const std::vector<LayerState>& states,
                                           std::span<const double> variances) {
  std::vector<double> totals;
  for (const VisibleBlock& v : visible_blocks(spec)) {
    totals.push_back(log_likelihood(v, variances[totals.size()], batch.visible,
                                    states[v.layer].predictor, batch.weight));
  }
  return totals;
}

}  // namespace cstonet
