#include "core/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/bic.hpp"
#include "core/prior.hpp"
#include "core/schedule.hpp"
#include "core/sparse.hpp"

namespace cstonet {
namespace {

// A standardised outcome explained to this relative accuracy is explained: a smaller variance
// would only let rounding errors speak.
constexpr double kSmallestVariance = 1e-8;

}  // namespace

Trainer::Trainer(const Problem& problem, const Task& task, Hooks& hooks)
    : problem_(problem),
      task_(task),
      options_(problem.options),
      hooks_(hooks),
      random_(problem.seed, static_cast<std::uint64_t>(task.fold),
              static_cast<std::uint64_t>(task.start), problem.network),
      spec_(problem.spec),
      inputs_(problem.inputs),
      parameters_(problem.spec),
      blocks_(visible_blocks(problem.spec)),
      variances_(blocks_.size(), options_.initial_variance),
      order_(task.fit_rows),
      sampler_(spec_, options_.sampler, options_.batch_size),
      optimizer_(problem.spec, options_.optimizer) {
  const Index rows = options_.batch_size;
  batch_.inputs.reshape(rows, spec_.inputs);
  batch_.visible.reshape(rows, spec_.visible_columns());
  batch_.weight.assign(static_cast<std::size_t>(rows), 1.0f);
  allocate(spec_, rows, states_);
  allocate(spec_, gradients_);
  copy_inputs_if_few();
  if (problem.candidates) {
    imputer_.emplace(*problem.candidates, rows);
    imputer_->connect(inputs_, problem.data.columns());
  }
}

TaskResult Trainer::run() {
  TaskResult result;
  initialize();
  try {
    for (std::size_t s = 0; s < options_.stages.size(); ++s) {
      const StageOptions& stage = options_.stages[s];
      for (int epoch = 0; epoch < stage.epochs; ++epoch) {
        EpochRecord record;
        record.stage = static_cast<Index>(s);
        record.epoch = epoch;
        run_epoch(stage, epoch, record);
        measure_validation(record);
        check_finite(record);
        if (problem_.trace) result.trace.push_back(std::move(record));
        ++hooks_.epochs_done;
      }
      if (stage.prune) prune_network(stage);
    }
  } catch (const Diverged& error) {
    result.failure = error.what();
    return result;
  }
  finish(result);
  return result;
}

void Trainer::initialize() {
  for (std::size_t i = 0; i < parameters_.layers.size(); ++i) {
    LayerParameters& theta = parameters_.layers[i];
    const bool uniform = options_.initializer == "uniform";
    require(uniform || options_.initializer == "normal",
            "unknown initializer '" + options_.initializer + "'");
    const auto layer = static_cast<std::uint32_t>(i);
    const Index rows = theta.weights.rows(), columns = theta.weights.columns();
    const float scale = 1.0f / std::sqrt(static_cast<float>(std::max<Index>(rows, 1)));
    std::vector<float> draws(static_cast<std::size_t>((rows + 1) * columns));
    const auto n = static_cast<Index>(draws.size());
    if (uniform)
      random_.uniforms(Purpose::weights, layer, 0, n, draws.data());
    else
      random_.normals(Purpose::weights, layer, 0, n, draws.data());
    auto draw = [&](Index row, Index column) {
      const float x = draws[static_cast<std::size_t>(row * columns + column)];
      return uniform ? 2 * x - 1 : x;
    };
    for (Index row = 0; row < rows; ++row)
      for (Index j = 0; j < columns; ++j) theta.weights(row, j) = scale * draw(row, j);
    if (i + 1 < parameters_.layers.size())
      for (Index j = 0; j < columns; ++j)
        theta.bias[static_cast<std::size_t>(j)] =
            static_cast<float>(options_.initial_bias) * draw(rows, j);
    if (problem_.structure.empty()) continue;
    theta.mask = problem_.structure[i];
    theta.weights.view().array() *= theta.mask.view().array();
  }
}

void Trainer::load(const Index* rows, Index count, Batch& batch) const {
  if (local_.rows() > 0) {
    batch.inputs.set_rows(count);
    for (Index i = 0; i < count; ++i)
      std::copy_n(local_.row(rows[i]), local_.columns(), batch.inputs.row(i));
  } else {
    // Whole rows are copied faster than listed columns; the list may be in another order, though.
    const bool all =
        inputs_.size() == static_cast<std::size_t>(problem_.data.columns()) &&
        std::adjacent_find(inputs_.begin(), inputs_.end(), std::greater_equal<>()) == inputs_.end();
    problem_.data.gather(rows, count, all ? nullptr : &inputs_, batch.inputs);
  }
  if (imputer_)
    for (Index i = 0; i < count; ++i) imputer_->fill(rows[i], batch.inputs.row(i));
  batch.visible.set_rows(count);
  for (Index i = 0; i < count; ++i) {
    std::copy_n(problem_.visible.row(rows[i]), problem_.visible.columns(), batch.visible.row(i));
    batch.weight[static_cast<std::size_t>(i)] =
        problem_.row_weight[static_cast<std::size_t>(rows[i])];
  }
}

std::vector<double> Trainer::layer_variances() const {
  std::vector<double> all(options_.sampler.variance);
  const Family outcome = blocks_.back().block.family;
  all.push_back(outcome == Family::gaussian ? variances_.back() : 1.0);
  return all;
}

PriorPass Trainer::prior_pass(const StageOptions& stage, double spike) const {
  const double share = 1 / static_cast<double>(order_.size());
  const MixturePrior mixture{options_.prior.inclusion, spike, options_.prior.slab_variance};
  if (stage.prior == "mixture") return mixture.pass(share);
  if (stage.prior == "slab") return mixture.slab_pass(share);
  require(stage.prior == "none", "unknown prior '" + stage.prior + "'");
  return MixturePrior::off();
}

void Trainer::run_epoch(const StageOptions& stage, int epoch, EpochRecord& record) {
  const double n = static_cast<double>(order_.size());
  record.spike = stage.prior == "mixture" ? spike_at(options_.prior, stage, epoch) : 0.0;
  const PriorPass prior = prior_pass(stage, record.spike);
  const std::vector<double> rates = rates_at(stage, epoch);
  const std::vector<double> steps = steps_at(stage, epoch);

  record.layer_likelihood.assign(spec_.layers.size(), 0.0);
  random_.shuffle(Purpose::shuffle, iteration_, order_);
  const auto rows = static_cast<Index>(order_.size());
  for (Index first = 0; first < rows; first += options_.batch_size) {
    hooks_.check();
    train_batch(first, std::min<Index>(options_.batch_size, rows - first), rates, steps, prior,
                record.layer_likelihood);
  }
  for (double& value : record.layer_likelihood) value /= n;
  record.nonzero = parameters_.nonzero_weights();
}

void Trainer::train_batch(Index first, Index count, const std::vector<double>& rates,
                          const std::vector<double>& steps, const PriorPass& prior,
                          std::vector<double>& likelihood) {
  load(order_.data() + first, count, batch_);
  const double weight = std::accumulate(batch_.weight.begin(), batch_.weight.begin() + count, 0.0);
  forward(spec_, parameters_, batch_, states_);
  // What a row moves to counts from its next visit on.
  move_candidates(order_.data() + first, 0);
  sampler_.impute(parameters_, batch_, variances_, steps, random_, iteration_, states_);
  if (problem_.trace) {
    const std::vector<double> terms = sampler_.log_likelihood(batch_, variances_);
    for (std::size_t i = 0; i < terms.size(); ++i) likelihood[i] += terms[i];
  }
  sampler_.gradients(batch_, states_, gradients_);
  optimizer_.update(gradients_, weight, rates, layer_variances(), prior,
                    options_.prior.penalize_bias, parameters_);
  ++iteration_;
}

void Trainer::move_candidates(const Index* rows, std::uint32_t stream) {
  if (imputer_)
    imputer_->move(spec_, parameters_, rows, batch_, states_, variances_, random_, iteration_,
                   stream);
}

Trainer::Evaluation Trainer::evaluate(const std::vector<Index>& rows, bool move) {
  Evaluation total;
  total.likelihood.assign(blocks_.size(), 0.0);
  total.squares.assign(blocks_.size(), 0.0);
  const auto n = static_cast<Index>(rows.size());
  for (Index first = 0; first < n; first += options_.batch_size) {
    const Index count = std::min<Index>(options_.batch_size, n - first);
    load(rows.data() + first, count, batch_);
    forward(spec_, parameters_, batch_, states_);
    // Stream 0 is that of the training batches.
    if (move) move_candidates(rows.data() + first, static_cast<std::uint32_t>(first) + 1);
    const auto terms = visible_log_likelihood(spec_, batch_, states_, variances_);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      total.likelihood[b] += terms[b];
      const VisibleBlock& v = blocks_[b];
      if (v.block.family != Family::gaussian) continue;
      const Panel& z = states_[static_cast<std::size_t>(v.layer)].predictor;
      for (Index i = 0; i < count; ++i) {
        const double w = batch_.weight[static_cast<std::size_t>(i)];
        for (Index j = 0; j < v.block.size; ++j) {
          const double e = batch_.visible(i, v.block.column + j) - z(i, v.unit + j);
          total.squares[b] += w * e * e / static_cast<double>(v.block.size);
        }
      }
    }
    total.weight += std::accumulate(batch_.weight.begin(), batch_.weight.begin() + count, 0.0);
  }
  return total;
}

void Trainer::measure_validation(EpochRecord& record) {
  if (!task_.validation_rows.empty()) {
    const Evaluation held_out = evaluate(task_.validation_rows, true);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      record.validation.push_back(held_out.likelihood[b] / held_out.weight);
      if (options_.estimate_variance && blocks_[b].block.family == Family::gaussian)
        variances_[b] = std::max(held_out.squares[b] / held_out.weight, kSmallestVariance);
    }
  }
  record.variances = variances_;
}

void Trainer::check_finite(const EpochRecord& record) const {
  bool finite = true;
  for (double value : record.validation) finite = finite && std::isfinite(value);
  for (const LayerParameters& theta : parameters_.layers)
    finite =
        finite && theta.weights.view().allFinite() &&
        std::all_of(theta.bias.begin(), theta.bias.end(), [](float b) { return std::isfinite(b); });
  if (finite) return;
  throw Diverged("stage " + std::to_string(record.stage + 1) + ", epoch " +
                 std::to_string(record.epoch + 1) + ": a parameter is no longer a finite number");
}

void Trainer::prune_network(const StageOptions& stage) {
  const MixturePrior mixture{options_.prior.inclusion,
                             spike_at(options_.prior, stage, stage.epochs),
                             options_.prior.slab_variance};
  prune(spec_, mixture.threshold(), parameters_);
  drop_unconnected_inputs();
}

void Trainer::drop_unconnected_inputs() {
  const std::vector<Index> kept = connected_inputs(parameters_);
  if (kept.size() == inputs_.size()) return;
  LayerParameters& first = parameters_.layers.front();
  first.weights = take_rows(first.weights, kept);
  first.mask = take_rows(first.mask, kept);
  optimizer_.keep_inputs(kept);
  std::vector<Index> inputs;
  for (Index k : kept) inputs.push_back(inputs_[static_cast<std::size_t>(k)]);
  inputs_ = std::move(inputs);
  spec_.inputs = static_cast<Index>(inputs_.size());
  batch_.inputs.reshape(options_.batch_size, spec_.inputs);
  allocate(spec_, gradients_);
  copy_inputs_if_few();
  if (imputer_) imputer_->connect(inputs_, problem_.data.columns());
}

void Trainer::copy_inputs_if_few() {
  // A copy of the few columns that matter makes every later epoch independent of p.
  if (2 * spec_.inputs > problem_.data.columns()) return;
  std::vector<Index> rows(static_cast<std::size_t>(problem_.data.rows()));
  std::iota(rows.begin(), rows.end(), Index{0});
  local_.reshape(problem_.data.rows(), spec_.inputs);
  problem_.data.gather(rows.data(), problem_.data.rows(), &inputs_, local_);
}

void Trainer::finish(TaskResult& result) {
  std::vector<Index> rows(task_.fit_rows);
  rows.insert(rows.end(), task_.validation_rows.begin(), task_.validation_rows.end());
  if (!options_.estimate_variance || task_.validation_rows.empty()) {
    // Where the noise was not measured in training, its maximum-likelihood estimate stands in.
    const Evaluation all = evaluate(rows);
    for (std::size_t b = 0; b < blocks_.size(); ++b)
      if (blocks_[b].block.family == Family::gaussian)
        variances_[b] = std::max(all.squares[b] / all.weight, kSmallestVariance);
  }
  const Evaluation all = evaluate(rows);
  result.log_likelihood = all.likelihood;
  result.rows = all.weight;
  const double total = std::accumulate(all.likelihood.begin(), all.likelihood.end(), 0.0);
  result.bic = bic(total, parameters_.nonzero_weights(), all.weight);
  for (const VisibleBlock& block : blocks_)
    result.reaches.push_back(reaches(spec_, parameters_, block));
  result.variances = variances_;
  result.inputs = std::move(inputs_);
  result.parameters = std::move(parameters_);
}

}  // namespace cstonet
