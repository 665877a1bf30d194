#include "core/sghmc.hpp"

#include <algorithm>
#include <cmath>

namespace cstonet {

BackwardSampler::BackwardSampler(const NetworkSpec& spec, const SamplerOptions& options,
                                 Index batch_rows)
    : spec_(spec), options_(options), latent_(spec.layers.size()), visible_(visible_blocks(spec)) {
  for (Index i = 0; i < spec.depth(); ++i) {
    const LayerSpec& layer = spec.layers[static_cast<std::size_t>(i)];
    const Index units = layer.units();
    Latent& state = at(i);
    for (Panel* panel : {&state.displacement, &state.velocity, &state.change, &state.shift,
                         &state.predictor, &state.residual, &state.back, &state.normal})
      panel->reshape(batch_rows, units);
    // As wide as the layer below, so that w' residual has that layer's row stride.
    if (i > 0)
      state.transposed.reshape(units, spec.layers[static_cast<std::size_t>(i - 1)].units());
    state.mask.assign(static_cast<std::size_t>(padded(units)), 0.0f);
    std::fill_n(state.mask.begin(), layer.latent_units(), 1.0f);
  }
}

void BackwardSampler::prepare(const Parameters& parameters, Index rows) {
  parameters_ = &parameters;
  for (Index i = 0; i < spec_.depth(); ++i) {
    Latent& state = at(i);
    for (Panel* panel : {&state.displacement, &state.velocity, &state.change, &state.shift,
                         &state.predictor, &state.residual, &state.back, &state.normal})
      panel->set_rows(rows);
    state.displacement.set_zero();
    state.velocity.set_zero();
    state.shift.set_zero();
    if (i > 0) {
      const Panel& w = parameters.layers[static_cast<std::size_t>(i)].weights;
      state.transposed.view().leftCols(w.rows()) = w.view().transpose();
    }
  }
}

void BackwardSampler::update_residual(Index i, const Batch& batch,
                                      const std::vector<LayerState>& states,
                                      const std::vector<double>& variances) {
  Latent& state = at(i);
  const Index rows = batch.rows();
  if (i < spec_.hidden_layers()) {
    const double variance = options_.variance[static_cast<std::size_t>(i)];
    kernels().innovation(state.displacement.data(), state.shift.data(), state.mask.data(),
                         static_cast<float>(1 / variance), rows, state.residual.stride(),
                         state.residual.data());
  }
  for (std::size_t b = 0; b < visible_.size(); ++b) {
    const VisibleBlock& v = visible_[b];
    if (v.layer != i) continue;
    const Panel& z = states[static_cast<std::size_t>(i)].predictor;
    state.predictor.view().middleCols(v.unit, v.block.size) =
        z.view().middleCols(v.unit, v.block.size) +
        state.shift.view().middleCols(v.unit, v.block.size);
    visible_residual(v.block, variances[b], rows, batch.visible.data() + v.block.column,
                     batch.visible.stride(), state.predictor.data() + v.unit,
                     state.predictor.stride(), state.residual.data() + v.unit,
                     state.residual.stride());
  }
}

void BackwardSampler::move(Index i, const std::vector<double>& step, const RandomStream& random,
                           std::uint32_t iteration, int sweep, const Batch& batch,
                           std::vector<LayerState>& states) {
  const KernelTable& k = kernels();
  Latent& state = at(i);
  Latent& above = at(i + 1);
  LayerState& layer = states[static_cast<std::size_t>(i)];
  const Index rows = batch.rows();

  k.multiply(above.residual.data(), above.residual.stride(), 1, above.transposed.data(),
             above.transposed.stride(), nullptr, state.back.data(), state.back.stride(), rows,
             above.transposed.rows(), state.back.stride());

  SghmcPass pass;
  pass.step = static_cast<float>(step[static_cast<std::size_t>(i)]);
  pass.friction = static_cast<float>(options_.friction);
  pass.noise = static_cast<float>(std::sqrt(2 * options_.friction * options_.temperature));
  pass.inverse_variance = static_cast<float>(1 / options_.variance[static_cast<std::size_t>(i)]);
  if (pass.noise > 0) {
    // The stream of a layer and sweep: layers and sweeps are far fewer than 2^16.
    const auto stream = static_cast<std::uint32_t>(sweep << 16 | static_cast<int>(i));
    random.normals(Purpose::latent, iteration, stream, state.normal.size(), state.normal.data());
  }
  k.sghmc(spec_.activation, pass, layer.output.data(), state.shift.data(), state.back.data(),
          state.normal.data(), state.mask.data(), rows, state.displacement.stride(),
          state.velocity.data(), state.displacement.data());
  k.activate_shifted(spec_.activation, layer.predictor.data(), state.displacement.data(),
                     layer.predictor.size(), layer.output.data(), state.change.data());
  clamp_visible(spec_.layers[static_cast<std::size_t>(i)], batch, layer.output);

  const Panel& w = parameters_->layers[static_cast<std::size_t>(i + 1)].weights;
  k.multiply(state.change.data(), state.change.stride(), 1, w.data(), w.stride(), nullptr,
             above.shift.data(), above.shift.stride(), rows, w.rows(), above.shift.stride());
}

void BackwardSampler::impute(const Parameters& parameters, const Batch& batch,
                             const std::vector<double>& variances, const std::vector<double>& step,
                             const RandomStream& random, std::uint32_t iteration,
                             std::vector<LayerState>& states) {
  prepare(parameters, batch.rows());
  for (int sweep = 0; sweep < options_.sweeps; ++sweep) {
    for (Index i = spec_.hidden_layers() - 1; i >= 0; --i) {
      update_residual(i + 1, batch, states, variances);
      move(i, step, random, iteration, sweep, batch, states);
    }
  }
  for (Index i = 0; i < spec_.depth(); ++i) update_residual(i, batch, states, variances);
}

void BackwardSampler::gradients(const Batch& batch, const std::vector<LayerState>& states,
                                std::vector<LayerGradient>& out) {
  const KernelTable& k = kernels();
  const Index rows = batch.rows();
  const bool weighted = std::any_of(batch.weight.begin(), batch.weight.begin() + rows,
                                    [](float w) { return w != 1.0f; });
  const Panel* below = &batch.inputs;
  for (Index i = 0; i < spec_.depth(); ++i) {
    Panel& r = at(i).residual;
    LayerGradient& g = out[static_cast<std::size_t>(i)];
    if (weighted)
      r.view().array().colwise() *= Eigen::Map<const Eigen::ArrayXf>(batch.weight.data(), rows);
    k.multiply(below->data(), 1, below->stride(), r.data(), r.stride(), nullptr, g.weights.data(),
               g.weights.stride(), g.weights.rows(), rows, r.stride());
    k.column_sums(r.data(), rows, r.stride(), g.bias.data());
    below = &states[static_cast<std::size_t>(i)].output;
  }
}

std::vector<double> BackwardSampler::log_likelihood(const Batch& batch,
                                                    const std::vector<double>& variances) const {
  constexpr double log_two_pi = 1.8378770664093454836;
  std::vector<double> totals(latent_.size(), 0.0);
  for (Index i = 0; i < spec_.hidden_layers(); ++i) {
    const Latent& state = at(i);
    const double variance = options_.variance[static_cast<std::size_t>(i)];
    const Index units = spec_.layers[static_cast<std::size_t>(i)].latent_units();
    const auto d = state.displacement.view().leftCols(units).cast<double>();
    const auto s = state.shift.view().leftCols(units).cast<double>();
    totals[static_cast<std::size_t>(i)] =
        -0.5 * ((d - s).squaredNorm() / variance +
                static_cast<double>(batch.rows() * units) * (log_two_pi + std::log(variance)));
  }
  for (std::size_t b = 0; b < visible_.size(); ++b) {
    const VisibleBlock& v = visible_[b];
    double& total = totals[static_cast<std::size_t>(v.layer)];
    for (Index row = 0; row < batch.rows(); ++row)
      total += v.block.weight * log_density(v.block.family, v.block.size, variances[b],
                                            batch.visible.row(row) + v.block.column,
                                            at(v.layer).predictor.row(row) + v.unit);
  }
  return totals;
}

void allocate(const NetworkSpec& spec, std::vector<LayerGradient>& gradients) {
  gradients.resize(spec.layers.size());
  for (Index i = 0; i < spec.depth(); ++i) {
    const Index units = spec.layers[static_cast<std::size_t>(i)].units();
    gradients[static_cast<std::size_t>(i)].weights.reshape(spec.layer_inputs(i), units);
    gradients[static_cast<std::size_t>(i)].bias.assign(static_cast<std::size_t>(padded(units)),
                                                       0.0f);
  }
}

}  // namespace cstonet
