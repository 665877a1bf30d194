#include "core/schedule.hpp"

#include <cmath>

#include "core/errors.hpp"
#include "core/prior.hpp"

namespace cstonet {
namespace {

std::vector<double> decayed(const std::vector<double>& initial, const std::string& decay,
                            double exponent, int epoch, int epochs) {
  std::vector<double> now(initial);
  for (double& x : now) {
    if (decay == "polynomial") {
      x /= 1 + x * std::pow(epoch + 1.0, exponent);  // the paper counts epochs from 1
    } else if (decay == "cosine") {
      x *= 0.5 * (1 + std::cos(3.14159265358979323846 * epoch / epochs));
    } else {
      require(decay == "none", "unknown decay '" + decay + "'");
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
