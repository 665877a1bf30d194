#include "core/sghmc.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include "core/constants.hpp"
#include "core/product.hpp"

namespace cstonet {
namespace {

// |Y_i - Z_i| beyond which a chain counts as diverged. Predictors are of order one, the data being
// standardised: at this distance nothing is left of them.
constexpr float kFarthest = 1e5f;

std::string short_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

void transpose_into(const Panel& from, Panel& to) {
  for (Index i = 0; i < from.rows(); ++i)
    for (Index j = 0; j < from.columns(); ++j) to(j, i) = from(i, j);
}

void weight_rows(const Floats& weight, Panel& panel) {
  panel.view().array().colwise() *= Eigen::Map<const Eigen::ArrayXf>(weight.data(), panel.rows());
}

}  // namespace

void BackwardSampler::Chain::reshape(Index rows, Index units) {
  for (Panel* panel : {&displacement, &velocity, &change, &shift, &residual, &back})
    panel->reshape(rows, units);
}

void BackwardSampler::Chain::set_rows(Index rows) {
  for (Panel* panel : {&displacement, &velocity, &change, &shift, &residual, &back})
    panel->set_rows(rows);
}

void BackwardSampler::Chain::rest() {
  for (Panel* panel : {&displacement, &velocity, &change, &shift}) panel->set_zero();
}

BackwardSampler::BackwardSampler(const NetworkSpec& spec, const SamplerOptions& options,
                                 Index batch_rows)
    : spec_(spec),
      options_(options),
      coupled_(options.coupled && options.temperature > 0),
      latent_(spec.layers.size()),
      visible_(visible_blocks(spec)) {
  for (Index i = 0; i < spec.depth(); ++i) {
    const Index units = spec.layers[i].units();
    Latent& state = latent_[i];
    state.chain.reshape(batch_rows, units);
    if (coupled_) state.shadow.reshape(batch_rows, units);
    state.predictor.reshape(batch_rows, units);
    state.normal.reshape(batch_rows, units);
    // As wide as the layer below, so that w' residual has that layer's row stride.
    if (i > 0) state.transposed.reshape(units, spec.layers[i - 1].units());
    state.mask.assign(padded(units), 0.0f);
    std::fill_n(state.mask.begin(), spec.layers[i].latent_units(), 1.0f);
  }
}

void BackwardSampler::prepare(const Parameters& parameters, Index rows) {
  for (Index i = 0; i < spec_.depth(); ++i) {
    Latent& state = latent_[i];
    state.chain.set_rows(rows);
    state.predictor.set_rows(rows);
    state.normal.set_rows(rows);
    // The first move of a pair reads nothing of its former state.
    if (coupled_)
      state.shadow.set_rows(rows);
    else
      state.chain.rest();
    if (i > 0) transpose_into(parameters.layers[i].weights, state.transposed);
  }
}

void BackwardSampler::update_innovations(Index i) {
  Latent& state = latent_[i];
  const auto innovation = [&](Chain& c) {
    kernels().innovation(c.displacement.data(), c.shift.data(), state.mask.data(),
                         static_cast<float>(1 / options_.variance[i]), c.residual.shape(),
                         c.residual.data());
  };
  innovation(state.chain);
  if (coupled_) innovation(state.shadow);  // zero at visible units: they do not pull
}

void BackwardSampler::shift_predictor(const VisibleBlock& v, const Panel& predictor,
                                      Latent& state) const {
  // All panels of a layer have its stride.
  const float *z = predictor.data(), *s = state.chain.shift.data();
  const float* shadow = coupled_ ? state.shadow.shift.data() : nullptr;
  float* eta = state.predictor.data();
  for (Index first = v.unit; first < predictor.size(); first += predictor.stride())
    for (Index k = first; k < first + v.block.size; ++k)
      eta[k] = shadow ? z[k] + s[k] + shadow[k] : z[k] + s[k];
}

void BackwardSampler::update_visible(Index i, bool shifted, const Batch& batch,
                                     const Panel& predictor, std::span<const double> variances) {
  Latent& state = latent_[i];
  for (std::size_t b = 0; b < visible_.size(); ++b) {
    const VisibleBlock& v = visible_[b];
    if (v.layer != i) continue;
    if (shifted) shift_predictor(v, predictor, state);
    visible_residual(v, variances[b], batch.visible, shifted ? state.predictor : predictor,
                     state.chain.residual);
  }
}

void BackwardSampler::draw(Index i, const RandomStream& random, std::uint32_t iteration,
                           int sweep) {
  if (options_.temperature <= 0) return;  // nothing reads the normals then
  // The stream of a layer and sweep: layers and sweeps are far fewer than 2^16.
  const auto stream = static_cast<std::uint32_t>(Index{sweep} << 16 | i);
  Panel& normal = latent_[i].normal;
  if (!coupled_) return random.normals(Purpose::latent, iteration, stream, normal.flat());
  // Antithetic rows: the second half has the first half's normals with the other sign. Each row's
  // law is the same, what is odd in the noise and common to a pair cancels in the sum, and half the
  // draws are saved.
  const Index half = (normal.rows() + 1) / 2;
  random.normals(Purpose::latent, iteration, stream, half, spec_.layers[i].latent_units(), normal);
  const std::span<const float> drawn = normal.flat().first(half * normal.stride());
  const std::span<float> mirrored = normal.flat().subspan(drawn.size());
  std::ranges::transform(drawn.first(mirrored.size()), mirrored.begin(), std::negate<>());
}

float BackwardSampler::move_latents(Index i, double step, bool first, const Panel& output) {
  Latent& state = latent_[i];
  Chain &chain = state.chain, &shadow = state.shadow;
  const bool again = options_.sweeps > 1;
  const SghmcPass pass{
      .step = static_cast<float>(step),
      .friction = static_cast<float>(options_.friction),
      .noise = static_cast<float>(std::sqrt(2 * options_.friction * options_.temperature)),
      .inverse_variance = static_cast<float>(1 / options_.variance[i])};
  if (coupled_)
    return kernels().sghmc_coupled(spec_.activation, pass,
                                   {.h = output.data(),
                                    .change = chain.change.data(),
                                    .s = chain.shift.data(),
                                    .back = chain.back.data(),
                                    .shadow_s = shadow.shift.data(),
                                    .shadow_back = shadow.back.data(),
                                    .normal = state.normal.data(),
                                    .mask = state.mask.data()},
                                   output.shape(),
                                   {.velocity = again ? chain.velocity.data() : nullptr,
                                    .d = chain.displacement.data(),
                                    .shadow_velocity = again ? shadow.velocity.data() : nullptr,
                                    .shadow_d = shadow.displacement.data(),
                                    .residual = chain.residual.data(),
                                    .shadow_residual = shadow.residual.data()},
                                   first);
  kernels().sghmc(spec_.activation, pass,
                  {.h = output.data(),
                   .s = chain.shift.data(),
                   .back = chain.back.data(),
                   .normal = state.normal.data(),
                   .mask = state.mask.data()},
                  output.rows(), output.stride(), chain.velocity.data(), chain.displacement.data());
  update_innovations(i);
  return chain.displacement.view().cwiseAbs().maxCoeff();
}

void BackwardSampler::activate(Index i, bool first, float farthest, const Batch& batch,
                               LayerState& layer) {
  Chain &chain = latent_[i].chain, &shadow = latent_[i].shadow;
  if (coupled_) {
    const Distance distance = farthest < kClose  ? Distance::close
                              : farthest < kNear ? Distance::near
                                                 : Distance::far;
    kernels().activate_coupled(spec_.activation,
                               {.z = layer.predictor.data(),
                                .shadow = shadow.displacement.data(),
                                .d = chain.displacement.data(),
                                .mask = latent_[i].mask.data(),
                                .h = layer.output.data(),
                                .change = chain.change.data(),
                                .shadow_change = shadow.change.data()},
                               layer.predictor.shape(), distance, first);
  } else {
    kernels().activate_shifted(spec_.activation, layer.predictor.data(), chain.displacement.data(),
                               layer.predictor.size(), layer.output.data(), chain.change.data());
    clamp_visible(spec_.layers[i], batch, layer.output);
  }
}

void BackwardSampler::move(Index i, double step, bool first, const Panel& weights_above,
                           const Batch& batch, LayerState& layer) {
  Latent &state = latent_[i], &above = latent_[i + 1];
  multiply(above.chain.residual, above.transposed, state.chain.back);
  // The outcome does not pull the shadow: what stands above layer h stays zero.
  if (coupled_ && i + 1 < spec_.hidden_layers())
    multiply(above.shadow.residual, above.transposed, state.shadow.back);
  const float farthest = move_latents(i, step, first, layer.output);
  if (farthest > kFarthest && layer.predictor.view().allFinite()) throw diverged(i, step);
  activate(i, first, farthest, batch, layer);
  multiply(state.chain.change, weights_above, above.chain.shift);
  if (coupled_) multiply(state.shadow.change, weights_above, above.shadow.shift);
}

Diverged BackwardSampler::diverged(Index i, double step) const {
  return Diverged("the latent variables of layer " + std::to_string(i + 1) +
                  " diverged (variance " + short_text(options_.variance[i]) + ", step " +
                  short_text(step) + ", temperature " + short_text(options_.temperature) + ", " +
                  std::to_string(options_.sweeps) + (options_.sweeps > 1 ? " sweeps)" : " sweep)"));
}

void BackwardSampler::impute(const Parameters& parameters, const Batch& batch,
                             std::span<const double> variances, std::span<const double> step,
                             const RandomStream& random, std::uint32_t iteration,
                             std::vector<LayerState>& states) {
  prepare(parameters, batch.rows());
  for (int sweep = 0; sweep < options_.sweeps; ++sweep) {
    for (Index i = spec_.hidden_layers() - 1; i >= 0; --i) {
      update_visible(i + 1, sweep > 0, batch, states[i + 1].predictor, variances);
      draw(i, random, iteration, sweep);
      move(i, step[i], sweep == 0, parameters.layers[i + 1].weights, batch, states[i]);
    }
  }
  // The last move of the layer below has shifted every layer but the first.
  for (Index i = 0; i < spec_.depth(); ++i) {
    if (i > 0 && i < spec_.hidden_layers()) update_innovations(i);
    update_visible(i, true, batch, states[i].predictor, variances);
  }
}

void BackwardSampler::gradients(const Batch& batch, const std::vector<LayerState>& states,
                                std::vector<LayerGradient>& out) {
  const Index rows = batch.rows();
  const bool weighted =
      std::ranges::any_of(std::span(batch.weight).first(rows), [](float w) { return w != 1.0f; });
  for (Index i = 0; i < spec_.depth(); ++i) {
    Panel& r = latent_[i].chain.residual;
    if (weighted) weight_rows(batch.weight, r);
    multiply_transposed(i == 0 ? batch.inputs : states[i - 1].output, r, out[i].weights);
    column_sums(r, out[i].bias);
    // ψ(Y)' r - ψ(Y°)' r° = ψ(Y)' (r - r°) + (ψ(Y) - ψ(Y°))' r°, whose second part is zero where
    // the chains agree: below the first layer and at the outcome, which does not pull the shadow.
    if (!coupled_ || i == 0 || i == spec_.hidden_layers()) continue;
    Panel& shadow = latent_[i].shadow.residual;
    if (weighted) weight_rows(batch.weight, shadow);
    add_multiply_transposed(latent_[i - 1].chain.change, shadow, out[i].weights);
  }
}

std::vector<double> BackwardSampler::log_likelihood(const Batch& batch,
                                                    std::span<const double> variances) const {
  std::vector<double> totals(latent_.size(), 0.0);
  for (Index i = 0; i < spec_.hidden_layers(); ++i) {
    const double variance = options_.variance[i];
    const Latent& state = latent_[i];
    const Panel& r = state.chain.residual;
    // Residuals are innovations over σ².
    const double squares = kernels().squared_norm(
        r.data(), coupled_ ? state.shadow.residual.data() : nullptr, state.mask.data(), r.shape());
    const auto entries = static_cast<double>(batch.rows() * spec_.layers[i].latent_units());
    totals[i] = -0.5 * (squares * variance + entries * (kLogTwoPi + std::log(variance)));
  }
  for (std::size_t b = 0; b < visible_.size(); ++b) {
    const VisibleBlock& v = visible_[b];
    totals[v.layer] += v.block.weight * cstonet::log_likelihood(v, variances[b], batch.visible,
                                                                latent_[v.layer].predictor, {});
  }
  return totals;
}

Panel BackwardSampler::displacement(Index layer) const {
  Panel total = latent_[layer].chain.displacement;
  if (coupled_) total.view() += latent_[layer].shadow.displacement.view();
  return total;
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
