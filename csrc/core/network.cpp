#include "core/network.hpp"

#include <algorithm>
#include <string>

#include "core/errors.hpp"

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
  return i == 0 ? inputs : layers[static_cast<std::size_t>(i - 1)].feeding_units();
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
    for (const Block& b : spec.layers[static_cast<std::size_t>(i)].blocks) {
      if (b.visible) found.push_back({i, unit, b});
      unit += b.size;
    }
  }
  return found;
}

Parameters::Parameters(const NetworkSpec& spec) {
  for (Index i = 0; i < spec.depth(); ++i) {
    const Index inputs = spec.layer_inputs(i);
    const Index units = spec.layers[static_cast<std::size_t>(i)].units();
    LayerParameters layer{Panel(inputs, units), Panel(inputs, units), {}, {}};
    layer.mask.view().setOnes();
    layer.bias.assign(static_cast<std::size_t>(padded(units)), 0.0f);
    layer.bias_mask = layer.bias;
    std::fill_n(layer.bias_mask.begin(), units, 1.0f);
    layers.push_back(std::move(layer));
  }
}

Index Parameters::nonzero_weights() const {
  double n = 0;
  for (const auto& layer : layers) n += layer.mask.view().cast<double>().sum();
  return static_cast<Index>(n);
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
        std::copy_n(batch.visible.row(i) + b.column, b.size, output.row(i) + unit);
    }
    unit += b.size;
  }
}

void forward(const NetworkSpec& spec, const Parameters& parameters, const Batch& batch,
             std::vector<LayerState>& states) {
  const KernelTable& k = kernels();
  const Panel* below = &batch.inputs;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerParameters& theta = parameters.layers[i];
    Panel& z = states[i].predictor;
    Panel& out = states[i].output;
    z.set_rows(batch.rows());
    out.set_rows(batch.rows());
    k.multiply(below->data(), below->stride(), 1, theta.weights.data(), theta.weights.stride(),
               theta.bias.data(), z.data(), z.stride(), batch.rows(), theta.weights.rows(),
               z.stride());
    if (i + 1 < spec.layers.size()) {
      k.activate(spec.activation, z.data(), z.size(), out.data());
      clamp_visible(spec.layers[i], batch, out);
    }
    below = &out;
  }
}

std::vector<double> visible_log_likelihood(const NetworkSpec& spec, const Batch& batch,
                                           const std::vector<LayerState>& states,
                                           const std::vector<double>& variances) {
  std::vector<double> totals;
  for (const VisibleBlock& v : visible_blocks(spec)) {
    const Panel& z = states[static_cast<std::size_t>(v.layer)].predictor;
    double total = 0.0;
    for (Index i = 0; i < batch.rows(); ++i)
      total += static_cast<double>(batch.weight[static_cast<std::size_t>(i)]) *
               log_density(v.block.family, v.block.size, variances[totals.size()],
                           batch.visible.row(i) + v.block.column, z.row(i) + v.unit);
    totals.push_back(total);
  }
  return totals;
}

}  // namespace cstonet
