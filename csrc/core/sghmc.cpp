#include "core/sghmc.hpp"

#include <algorithm>
#include <cmath>

#include "core/constants.hpp"
#include "core/product.hpp"

namespace cstonet {

BackwardSampler::BackwardSampler(const NetworkSpec& spec, const SamplerOptions& options,
                                 Index batch_rows)
    : spec_(spec), options_(options), latent_(spec.layers.size()), visible_(visible_blocks(spec)) {
  for (Index i = 0; i < spec.depth(); ++i) {
    const Index units = spec.layers[i].units();
    Latent& state = latent_[i];
    for (Panel* panel : state.batch_panels()) panel->reshape(batch_rows, units);
    // As wide as the layer below, so that w' residual has that layer's row stride.
    if (i > 0) state.transposed.reshape(units, spec.layers[i - 1].units());
    state.mask.assign(padded(units), 0.0f);
    std::fill_n(state.mask.begin(), spec.layers[i].latent_units(), 1.0f);
  }
}

void BackwardSampler::prepare(const Parameters& parameters, Index rows) {
  for (Index i = 0; i < spec_.depth(); ++i) {
    Latent& state = latent_[i];
    for (Panel* panel : state.batch_panels()) panel->set_rows(rows);
    state.displacement.set_zero();
    state.velocity.set_zero();
    state.shift.set_zero();
    if (i > 0) {
      const Panel& w = parameters.layers[i].weights;
      state.transposed.view().leftCols(w.rows()) = w.view().transpose();
    }
  }
}

void BackwardSampler::update_residual(Index i, const Batch& batch, const Panel& predictor,
                                      std::span<const double> variances) {
  Latent& state = latent_[i];
  if (i < spec_.hidden_layers())
    kernels().innovation(state.displacement.data(), state.shift.data(), state.mask.data(),
                         static_cast<float>(1 / options_.variance[i]), batch.rows(),
                         state.residual.stride(), state.residual.data());
  for (std::size_t b = 0; b < visible_.size(); ++b) {
    const VisibleBlock& v = visible_[b];
    if (v.layer != i) continue;
    state.predictor.view().middleCols(v.unit, v.block.size) =
        predictor.view().middleCols(v.unit, v.block.size) +
        state.shift.view().middleCols(v.unit, v.block.size);
    visible_residual(v, variances[b], batch.visible, state.predictor, state.residual);
  }
}

void BackwardSampler::draw(Index i, const RandomStream& random, std::uint32_t iteration,
                           int sweep) {
  if (options_.temperature <= 0) return;  // nothing reads the normals then
  // The stream of a layer and sweep: layers and sweeps are far fewer than 2^16.
  const auto stream = static_cast<std::uint32_t>(Index{sweep} << 16 | i);
  random.normals(Purpose::latent, iteration, stream, latent_[i].normal.flat());
}

void BackwardSampler::move(Index i, double step, const Panel& weights_above, const Batch& batch,
                           LayerState& layer) {
  Latent& state = latent_[i];
  Latent& above = latent_[i + 1];
  multiply(above.residual, above.transposed, state.back);

  const SghmcPass pass{
      .step = static_cast<float>(step),
      .friction = static_cast<float>(options_.friction),
      .noise = static_cast<float>(std::sqrt(2 * options_.friction * options_.temperature)),
      .inverse_variance = static_cast<float>(1 / options_.variance[i])};
  const LatentInputs inputs{.h = layer.output.data(),
                            .s = state.shift.data(),
                            .back = state.back.data(),
                            .normal = state.normal.data(),
                            .mask = state.mask.data()};
  kernels().sghmc(spec_.activation, pass, inputs, batch.rows(), state.displacement.stride(),
                  state.velocity.data(), state.displacement.data());
  kernels().activate_shifted(spec_.activation, layer.predictor.data(), state.displacement.data(),
                             layer.predictor.size(), layer.output.data(), state.change.data());
  clamp_visible(spec_.layers[i], batch, layer.output);
  multiply(state.change, weights_above, above.shift);
}

void BackwardSampler::impute(const Parameters& parameters, const Batch& batch,
                             std::span<const double> variances, std::span<const double> step,
                             const RandomStream& random, std::uint32_t iteration,
                             std::vector<LayerState>& states) {
  prepare(parameters, batch.rows());
  for (int sweep = 0; sweep < options_.sweeps; ++sweep) {
    for (Index i = spec_.hidden_layers() - 1; i >= 0; --i) {
      update_residual(i + 1, batch, states[i + 1].predictor, variances);
      draw(i, random, iteration, sweep);
      move(i, step[i], parameters.layers[i + 1].weights, batch, states[i]);
    }
  }
  for (Index i = 0; i < spec_.depth(); ++i)
    update_residual(i, batch, states[i].predictor, variances);
}

void BackwardSampler::gradients(const Batch& batch, const std::vector<LayerState>& states,
                                std::vector<LayerGradient>& out) {
  const Index rows = batch.rows();
  const bool weighted =
      std::ranges::any_of(std::span(batch.weight).first(rows), [](float w) { return w != 1.0f; });
  const Panel* below = &batch.inputs;
  for (Index i = 0; i < spec_.depth(); ++i) {
    Panel& r = latent_[i].residual;
    if (weighted)
      r.view().array().colwise() *= Eigen::Map<const Eigen::ArrayXf>(batch.weight.data(), rows);
    multiply_transposed(*below, r, out[i].weights);
    column_sums(r, out[i].bias);
    below = &states[i].output;
  }
}

std::vector<double> BackwardSampler::log_likelihood(const Batch& batch,
                                                    std::span<const double> variances) const {
  std::vector<double> totals(latent_.size(), 0.0);
  for (Index i = 0; i < spec_.hidden_layers(); ++i) {
    const double variance = options_.variance[i];
    const Index units = spec_.layers[i].latent_units();
    const auto d = latent_[i].displacement.view().leftCols(units).cast<double>();
    const auto s = latent_[i].shift.view().leftCols(units).cast<double>();
    totals[i] =
        -0.5 * ((d - s).squaredNorm() / variance +
                static_cast<double>(batch.rows() * units) * (kLogTwoPi + std::log(variance)));
  }
  for (std::size_t b = 0; b < visible_.size(); ++b) {
    const VisibleBlock& v = visible_[b];
    const Panel& predictor = latent_[v.layer].predictor;
    for (Index row = 0; row < batch.rows(); ++row)
      totals[v.layer] +=
          v.block.weight * log_density(v, variances[b], batch.visible, predictor, row);
  }
  return totals;
}

void allocate(const NetworkSpec& spec, std::vector<LayerGradient>& gradients) {
  gradients.resize(spec.layers.size());
  for (Index i = 0; i < spec.depth(); ++i) {
    const Index units = spec.layers[i].units();
    gradients[i].weights.reshape(spec.layer_inputs(i), units);
    gradients[i].bias.assign(padded(units), 0.0f);
  }
}

}  // namespace cstonet
