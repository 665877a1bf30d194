#include "core/schedule.hpp"

#include <cmath>
#include <numbers>

#include "core/prior.hpp"

namespace cstonet {
namespace {

std::vector<double> decayed(std::vector<double> now, Decay decay, double exponent, int epoch,
                            int epochs) {
  for (double& x : now) {
    switch (decay) {
      case Decay::none:
        break;
      case Decay::polynomial:
        x /= 1 + x * std::pow(epoch + 1.0, exponent);  // the paper counts epochs from 1
        break;
      case Decay::cosine:
        x *= 0.5 * (1 + std::cos(std::numbers::pi * epoch / epochs));
        break;
    }
  }
  return now;
}

}  // namespace

std::vector<double> rates_at(const StageOptions& stage, int epoch) {
  return decayed(stage.rate, stage.rate_decay, stage.rate_exponent, epoch, stage.epochs);
}

std::vector<double> steps_at(const StageOptions& stage, int epoch) {
  return decayed(stage.step, stage.step_decay, stage.step_exponent, epoch, stage.epochs);
}

double spike_at(const PriorOptions& prior, const StageOptions& stage, int epoch) {
  const double annealing = prior.anneal_share * stage.epochs;
  return annealed_spike(prior.spike_start, prior.spike_end,
                        annealing > 0 ? epoch / annealing : 1.0);
}

}  // namespace cstonet
