#include "core/optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace cstonet {

Optimizer::Optimizer(const NetworkSpec& spec, const OptimizerOptions& options) : options_(options) {
  for (Index i = 0; i < spec.depth(); ++i) {
    const Index inputs = spec.layer_inputs(i), units = spec.layers[i].units();
    moments_.push_back({.first = Panel(inputs, units),
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
      const auto k = static_cast<double>(steps_);
      const AdamPass pass{.rate = narrow(rate),
                          .first_decay = narrow(options_.momentum),
                          .second_decay = narrow(options_.second_decay),
                          .first_correction = narrow(1 / (1 - std::pow(options_.momentum, k))),
                          .second_correction = narrow(1 / (1 - std::pow(options_.second_decay, k))),
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
  ++steps_;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    const LayerGradient& g = gradients[i];
    LayerParameters& theta = parameters.layers[i];
    Moments& m = moments_[i];
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

void Optimizer::keep_inputs(std::span<const Index> rows) {
  moments_[0].first = take_rows(moments_[0].first, rows);
  moments_[0].second = take_rows(moments_[0].second, rows);
}

Panel take_rows(const Panel& panel, std::span<const Index> rows) {
  Panel out(std::ssize(rows), panel.columns());
  for (Index i = 0; i < out.rows(); ++i) std::ranges::copy(panel.row(rows[i]), out.row(i).begin());
  return out;
}

}  // namespace cstonet
