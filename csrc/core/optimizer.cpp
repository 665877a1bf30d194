#include "core/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"

namespace cstonet {

Optimizer::Optimizer(const NetworkSpec& spec, const OptimizerOptions& options)
    : options_(options), adam_(options.rule == "adam") {
  require(adam_ || options.rule == "momentum", "unknown optimizer rule '" + options.rule + "'");
  for (Index i = 0; i < spec.depth(); ++i) {
    const Index inputs = spec.layer_inputs(i);
    const Index units = spec.layers[static_cast<std::size_t>(i)].units();
    Moments m{Panel(inputs, units), Panel(inputs, units), {}, {}};
    m.bias_first.assign(static_cast<std::size_t>(padded(units)), 0.0f);
    m.bias_second = m.bias_first;
    moments_.push_back(std::move(m));
  }
}

void Optimizer::apply(float rate, float gradient_scale, const PriorPass& prior,
                      const float* gradient, const float* mask, Index n, float* w, float* first,
                      float* second) const {
  if (adam_) {
    AdamPass pass;
    pass.rate = rate;
    pass.first_decay = static_cast<float>(options_.momentum);
    pass.second_decay = static_cast<float>(options_.second_decay);
    const double k = static_cast<double>(steps_);
    pass.first_correction = static_cast<float>(1 / (1 - std::pow(options_.momentum, k)));
    pass.second_correction = static_cast<float>(1 / (1 - std::pow(options_.second_decay, k)));
    pass.epsilon = static_cast<float>(options_.epsilon);
    pass.gradient_scale = gradient_scale;
    kernels().adam(pass, prior, gradient, mask, n, w, first, second);
  } else {
    const MomentumPass pass{rate, static_cast<float>(options_.momentum), gradient_scale};
    kernels().momentum(pass, prior, gradient, mask, n, w, first);
  }
}

void Optimizer::update(const std::vector<LayerGradient>& gradients, double batch_weight,
                       const std::vector<double>& rate, const std::vector<double>& layer_variance,
                       const PriorPass& prior, bool penalize_bias, Parameters& parameters) {
  ++steps_;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    const LayerGradient& g = gradients[i];
    LayerParameters& theta = parameters.layers[i];
    Moments& m = moments_[i];
    double scale = 1 / batch_weight;
    if (options_.clip_norm > 0) {
      const double squares =
          kernels().sum_squares(g.weights.data(), theta.mask.data(), g.weights.size()) +
          kernels().sum_squares(g.bias.data(), theta.bias_mask.data(),
                                static_cast<long>(g.bias.size()));
      const double norm = std::sqrt(squares) * scale;
      const double largest = options_.clip_norm / layer_variance[i];
      if (norm > largest) scale *= largest / norm;
    }
    const auto gamma = static_cast<float>(rate[i]);
    const auto factor = static_cast<float>(scale);
    apply(gamma, factor, prior, g.weights.data(), theta.mask.data(), g.weights.size(),
          theta.weights.data(), m.first.data(), m.second.data());
    apply(gamma, factor, penalize_bias ? prior : MixturePrior::off(), g.bias.data(),
          theta.bias_mask.data(), static_cast<Index>(g.bias.size()), theta.bias.data(),
          m.bias_first.data(), m.bias_second.data());
  }
}

void Optimizer::keep_inputs(const std::vector<Index>& rows) {
  moments_[0].first = take_rows(moments_[0].first, rows);
  moments_[0].second = take_rows(moments_[0].second, rows);
}

Panel take_rows(const Panel& panel, const std::vector<Index>& rows) {
  Panel out(static_cast<Index>(rows.size()), panel.columns());
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(panel.row(rows[i]), panel.stride(), out.row(static_cast<Index>(i)));
  return out;
}

}  // namespace cstonet
