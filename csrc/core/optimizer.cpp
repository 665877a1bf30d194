#include "core/optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace cstonet {

Optimizer::Optimizer(const NetworkSpec& spec, const OptimizerOptions& options) : options_(options) {
  for (Index i = 0; i < spec.depth(); ++i) {
    const Index inputs = spec.layer_inputs(i), units = spec.layers[i].units();
    state_.layers.push_back({.first = Panel(inputs, units),
                             .second = Panel(inputs, units),
                             .bias_first = Floats(padded(units)),
                             .bias_second = Floats(padded(units))});
  }
}

void Optimizer::apply(double rate, double gradient_scale, const PriorPass& prior,
                      const Target& target) const {
  const auto narrow = [](double x) { return static_cast<float>(x); };
  const float* gradient = target.gradient.data();
  const float* mask = target.mask.data();
  const Index n = std::ssize(target.values);
  switch (options_.rule) {
    case UpdateRule::adam: {
      const AdamPass pass{.rate = narrow(rate),
                          .first_decay = narrow(options_.momentum),
                          .second_decay = narrow(options_.second_decay),
                          .first_correction = narrow(first_correction_),
                          .second_correction = narrow(second_correction_),
                          .epsilon = narrow(options_.epsilon),
                          .gradient_scale = narrow(gradient_scale)};
      kernels().adam(pass, prior, gradient, mask, n, target.values.data(), target.first.data(),
                     target.second.data());
      break;
    }
    case UpdateRule::momentum: {
      const MomentumPass pass{.rate = narrow(rate),
                              .momentum = narrow(options_.momentum),
                              .gradient_scale = narrow(gradient_scale)};
      kernels().momentum(pass, prior, gradient, mask, n, target.values.data(), target.first.data());
      break;
    }
  }
}

double Optimizer::gradient_scale(const LayerGradient& gradient, const LayerParameters& theta,
                                 double batch_weight, double layer_variance) const {
  const double scale = 1 / batch_weight;
  if (options_.clip_norm <= 0) return scale;
  const auto squares = [](std::span<const float> x, std::span<const float> mask) {
    return kernels().sum_squares(x.data(), mask.data(), std::ssize(x));
  };
  const double norm = std::sqrt(squares(gradient.weights.flat(), theta.mask.flat()) +
                                squares(gradient.bias, theta.bias_mask)) *
                      scale;
  const double largest = options_.clip_norm / layer_variance;
  return norm > largest ? scale * (largest / norm) : scale;
}

void Optimizer::update(const std::vector<LayerGradient>& gradients, double batch_weight,
                       std::span<const double> rate, std::span<const double> layer_variance,
                       const PriorPass& prior, bool penalize_bias, Parameters& parameters) {
  ++state_.steps;
  correct_moments();
  for (std::size_t i = 0; i < state_.layers.size(); ++i) {
    const LayerGradient& g = gradients[i];
    LayerParameters& theta = parameters.layers[i];
    Moments& m = state_.layers[i];
    const double scale = gradient_scale(g, theta, batch_weight, layer_variance[i]);
    apply(rate[i], scale, prior,
          {.gradient = g.weights.flat(),
           .mask = theta.mask.flat(),
           .values = theta.weights.flat(),
           .first = m.first.flat(),
           .second = m.second.flat()});
    apply(rate[i], scale, penalize_bias ? prior : MixturePrior::off(),
          {.gradient = g.bias,
           .mask = theta.bias_mask,
           .values = theta.bias,
           .first = m.bias_first,
           .second = m.bias_second});
  }
}

void Optimizer::correct_moments() {
  const auto k = static_cast<double>(state_.steps);
  first_correction_ = 1 / (1 - std::pow(options_.momentum, k));
  second_correction_ = 1 / (1 - std::pow(options_.second_decay, k));
}

void Optimizer::keep_inputs(std::span<const Index> rows) {
  Moments& first_layer = state_.layers.front();
  first_layer.first = take_rows(first_layer.first, rows);
  first_layer.second = take_rows(first_layer.second, rows);
}

void Optimizer::resume(const State& from, const Parameters& network, std::span<const Index> rows) {
  state_ = from;
  for (std::size_t i = 0; i < state_.layers.size(); ++i)
    for (Panel* moment : {&state_.layers[i].first, &state_.layers[i].second})
      moment->view().array() *= network.layers[i].mask.view().array();
  keep_inputs(rows);
}

Panel take_rows(const Panel& panel, std::span<const Index> rows) {
  Panel out(std::ssize(rows), panel.columns());
  for (Index i = 0; i < out.rows(); ++i)
    if (rows[i] >= 0) std::ranges::copy(panel.row(rows[i]), out.row(i).begin());
  return out;
}

}  // namespace cstonet
