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

// Size of the parts if rows are cut into parts of nearly equal size, as close to `wanted` as can
// be: a fold with a row more than planned has as many epochs to a pass, and so the updates planned.
Index equal_part(Index rows, Index wanted) {
  const Index parts =
      std::max(1L, std::lround(static_cast<double>(rows) / static_cast<double>(wanted)));
  return (rows + parts - 1) / parts;
}

std::vector<Index> joined(std::span<const Index> a, std::span<const Index> b) {
  std::vector<Index> both(a.begin(), a.end());
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

std::vector<Index> counted(Index first, std::size_t count) {
  std::vector<Index> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

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
      variances_(blocks_.size(), 1.0),
      rows_(joined(task.fit_rows, task.validation_rows)),
      held_out_(counted(std::ssize(task.fit_rows), task.validation_rows.size())),
      order_(counted(0, task.fit_rows.size())),
      part_(equal_part(std::ssize(order_), options_.epoch_rows)),
      visited_(std::ssize(order_)),
      sampler_(spec_, options_.sampler, options_.batch_size),
      optimizer_(spec_, options_.optimizer) {
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    if (blocks_[b].layer == spec_.hidden_layers()) variances_[b] = options_.initial_variance;
  const Index rows = options_.batch_size;
  batch_ = {.inputs = Panel(rows, spec_.inputs),
            .visible = Panel(rows, spec_.visible_columns()),
            .weight = Floats(rows, 1.0f),
            .offset = Panel(rows, problem.offset.width)};
  allocate(spec_, rows, states_);
  allocate(spec_, gradients_);
  copy_inputs_if_few();
  if (problem.candidates)
    imputer_.emplace(*problem.candidates, rows, inputs_, problem.data.columns());
}

TaskResult Trainer::run() {
  TaskResult result;
  initialize();
  try {
    for (Index s = 0; s < std::ssize(options_.stages); ++s) {
      const StageOptions& stage = options_.stages[s];
      for (int epoch = 0; epoch < stage.epochs; ++epoch) {
        EpochRecord record{};
        record.stage = s;
        record.epoch = epoch;
        run_epoch(stage, epoch, record);
        measure_validation(record);
        check_finite(record);
        if (problem_.trace) result.trace.push_back(std::move(record));
        ++hooks_.epochs_done;
      }
      if (stage.prune) prune_network(stage, result);
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
    initialize(theta, static_cast<std::uint32_t>(i));
    if (problem_.structure.empty()) continue;
    theta.mask = problem_.structure[i];
    theta.weights.view().array() *= theta.mask.view().array();
  }
  if (problem_.previous) resume(*problem_.previous);
}

void Trainer::resume(const TaskResult& previous) {
  for (std::size_t i = 0; i < parameters_.layers.size(); ++i) {
    LayerParameters& theta = parameters_.layers[i];
    const LayerParameters& from = previous.parameters.layers[i];
    theta.weights = i == 0 ? take_rows(from.weights, problem_.carried) : from.weights;
    theta.weights.view().array() *= theta.mask.view().array();
    theta.bias = from.bias;
  }
  optimizer_.resume(previous.optimizer, previous.parameters, problem_.carried);
  if (options_.estimate_variance) variances_ = previous.variances;
}

std::span<const Index> Trainer::next_rows() {
  if (visited_ == std::ssize(order_)) {
    random_.shuffle(Purpose::shuffle, iteration_, order_);
    visited_ = 0;
  }
  const std::span<const Index> rest = std::span<const Index>(order_).subspan(visited_);
  const std::span<const Index> rows = rest.first(std::min(part_, std::ssize(rest)));
  visited_ += std::ssize(rows);
  return rows;
}

void Trainer::initialize(LayerParameters& theta, std::uint32_t layer) const {
  const Index rows = theta.weights.rows(), columns = theta.weights.columns();
  const float scale = 1.0f / std::sqrt(static_cast<float>(std::max<Index>(rows, 1)));
  std::vector<float> draws((rows + 1) * columns);  // the last row is the biases'
  switch (options_.initializer) {
    case Initializer::normal:
      random_.normals(Purpose::weights, layer, 0, draws);
      break;
    case Initializer::uniform:
      random_.uniforms(Purpose::weights, layer, 0, draws);
      for (float& x : draws) x = 2 * x - 1;
      break;
  }
  for (Index row = 0; row < rows; ++row)
    for (Index j = 0; j < columns; ++j) theta.weights(row, j) = scale * draws[row * columns + j];
  const bool hidden = layer + 1 < parameters_.layers.size();
  if (hidden)
    for (Index j = 0; j < columns; ++j)
      theta.bias[j] = static_cast<float>(options_.initial_bias) * draws[rows * columns + j];
}

void Trainer::load(std::span<const Index> places) {
  batch_rows_.resize(places.size());
  std::ranges::transform(places, batch_rows_.begin(), [this](Index k) { return rows_[k]; });
  const std::span<const Index> rows = batch_rows_;
  batch_.inputs.set_rows(std::ssize(rows));
  batch_.visible.set_rows(std::ssize(rows));
  batch_.offset.set_rows(std::ssize(rows));
  if (local_.rows() > 0) {
    for (Index i = 0; i < std::ssize(rows); ++i) copy_row(local_, places[i], batch_.inputs, i);
  } else {
    // Whole rows are copied faster than listed columns; the list may be in another order, though.
    const bool all = std::ssize(inputs_) == problem_.data.columns() &&
                     std::ranges::adjacent_find(inputs_, std::greater_equal<>()) == inputs_.end();
    if (all)
      problem_.data.gather_run(rows, 0, batch_.inputs);
    else
      problem_.data.gather(rows, inputs_, batch_.inputs);
  }
  for (Index i = 0; i < std::ssize(rows); ++i) {
    if (imputer_) imputer_->fill(rows[i], batch_.inputs.row(i));
    std::ranges::copy(problem_.visible.row(rows[i]), batch_.visible.row(i).begin());
    std::ranges::copy(problem_.offset.row(rows[i]), batch_.offset.row(i).begin());
    batch_.weight[i] = problem_.row_weight[rows[i]];
  }
}

std::vector<std::span<const Index>> Trainer::batches(std::span<const Index> places) const {
  std::vector<std::span<const Index>> parts;
  for (Index first = 0; first < std::ssize(places); first += options_.batch_size)
    parts.push_back(
        places.subspan(first, std::min<Index>(options_.batch_size, std::ssize(places) - first)));
  return parts;
}

double Trainer::batch_weight() const {
  return std::accumulate(batch_.weight.begin(), batch_.weight.begin() + batch_.rows(), 0.0);
}

Index Trainer::nonzero_parameters() const {
  // Biases that no prior acts on are never pruned, and the same in all starts.
  return parameters_.nonzero_weights() +
         (options_.prior.penalize_bias ? parameters_.nonzero_biases() : 0);
}

std::span<const double> Trainer::layer_variances() {
  layer_variances_ = options_.sampler.variance;
  // Where the outcome has no variance its temperature takes that place, the inverse of its weight.
  const Block& outcome = blocks_.back().block;
  layer_variances_.push_back(has_variance(outcome.family) ? variances_.back() : 1 / outcome.weight);
  return layer_variances_;
}

PriorPass Trainer::prior_pass(const StageOptions& stage, double spike) const {
  const double share = 1 / static_cast<double>(order_.size());
  const MixturePrior mixture{.inclusion = options_.prior.inclusion,
                             .spike_variance = spike,
                             .slab_variance = options_.prior.slab_variance};
  switch (stage.prior) {
    case PriorKind::mixture:
      return mixture.pass(share);
    case PriorKind::slab:
      return mixture.slab_pass(share);
    case PriorKind::none:
      break;
  }
  return MixturePrior::off();
}

void Trainer::run_epoch(const StageOptions& stage, int epoch, EpochRecord& record) {
  record.spike = stage.prior == PriorKind::mixture ? spike_at(options_.prior, stage, epoch) : 0.0;
  const PriorPass prior = prior_pass(stage, record.spike);
  const std::vector<double> rates = rates_at(stage, epoch);
  const std::vector<double> steps = steps_at(stage, epoch);

  record.layer_likelihood.assign(spec_.layers.size(), 0.0);
  measure_for_candidates();
  const std::span<const Index> visits = next_rows();
  for (std::span<const Index> places : batches(visits)) {
    hooks_.check();
    train_batch(places, rates, steps, prior, record.layer_likelihood);
  }
  for (double& value : record.layer_likelihood) value /= static_cast<double>(visits.size());
  record.nonzero = parameters_.nonzero_weights();
}

void Trainer::train_batch(std::span<const Index> places, std::span<const double> rates,
                          std::span<const double> steps, const PriorPass& prior,
                          std::span<double> likelihood) {
  load(places);
  forward(spec_, parameters_, batch_, states_);
  // What a row moves to counts from its next visit on.
  move_candidates(0);
  sampler_.impute(parameters_, batch_, variances_, steps, random_, iteration_, states_);
  if (problem_.trace) {
    const std::vector<double> terms = sampler_.log_likelihood(batch_, variances_);
    for (std::size_t i = 0; i < terms.size(); ++i) likelihood[i] += terms[i];
  }
  sampler_.gradients(batch_, states_, gradients_);
  optimizer_.update(gradients_, batch_weight(), rates, layer_variances(), prior,
                    options_.prior.penalize_bias, parameters_);
  ++iteration_;
}

void Trainer::move_candidates(std::uint32_t stream) {
  if (!imputer_) return;
  const Model model{.spec = spec_, .parameters = parameters_, .variances = candidate_variances_};
  imputer_->move(model, batch_rows_, batch_, states_, random_, iteration_, stream);
}

Trainer::Evaluation Trainer::evaluate(std::span<const Index> places, bool move) {
  Evaluation total;
  total.likelihood.assign(blocks_.size(), 0.0);
  total.squares.assign(blocks_.size(), 0.0);
  std::uint32_t stream = 1;  // that of the training batches is 0; here, 1 and the first row's place
  for (std::span<const Index> part : batches(places)) {
    hooks_.check();
    load(part);
    forward(spec_, parameters_, batch_, states_);
    if (move) move_candidates(stream);
    stream += static_cast<std::uint32_t>(part.size());
    const auto terms = visible_log_likelihood(spec_, batch_, states_, variances_);
    for (std::size_t b = 0; b < blocks_.size(); ++b) total.likelihood[b] += terms[b];
    add_squares(total);
    total.weight += batch_weight();
  }
  return total;
}

void Trainer::add_squares(Evaluation& total) const {
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const VisibleBlock& v = blocks_[b];
    if (!has_variance(v.block.family)) continue;
    for (Index i = 0; i < batch_.rows(); ++i) {
      const std::span<const float> y = v.observed(batch_.visible, i);
      const std::span<const float> z = v.units(states_[v.layer].predictor, i);
      for (Index j = 0; j < v.block.size; ++j) {
        const double square = squared_error(v.block.family, y[j], z[j]);
        total.squares[b] += batch_.weight[i] * square / static_cast<double>(v.block.size);
      }
    }
  }
}

void Trainer::measure(const Evaluation& seen, std::vector<double>& variances) const {
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    if (has_variance(blocks_[b].block.family))
      variances[b] = std::max(seen.squares[b] / seen.weight, kSmallestVariance);
}

void Trainer::measure_for_candidates() {
  if (!imputer_) return;
  candidate_variances_ = variances_;
  // A variance that is set, not measured, may be so small that no row would ever move.
  if (!options_.estimate_variance)
    measure(evaluate(counted(0, order_.size())), candidate_variances_);
}

void Trainer::measure_validation(EpochRecord& record) {
  if (!held_out_.empty()) {
    const Evaluation held_out = evaluate(held_out_, true);
    for (double value : held_out.likelihood) record.validation.push_back(value / held_out.weight);
    if (options_.estimate_variance) measure(held_out, variances_);
  }
  record.variances = variances_;
}

void Trainer::check_finite(const EpochRecord& record) const {
  const auto is_finite = [](auto value) { return std::isfinite(value); };
  bool finite = std::ranges::all_of(record.validation, is_finite);
  for (const LayerParameters& theta : parameters_.layers)
    finite =
        finite && theta.weights.view().allFinite() && std::ranges::all_of(theta.bias, is_finite);
  if (finite) return;
  throw Diverged("stage " + std::to_string(record.stage + 1) + ", epoch " +
                 std::to_string(record.epoch + 1) + ": a parameter is no longer a finite number");
}

void Trainer::prune_network(const StageOptions& stage, TaskResult& result) {
  const MixturePrior mixture{.inclusion = options_.prior.inclusion,
                             .spike_variance = spike_at(options_.prior, stage, stage.epochs),
                             .slab_variance = options_.prior.slab_variance};
  measure_paths(mixture, result);
  prune(spec_, mixture.threshold(), options_.prior.penalize_bias, parameters_);
  drop_unconnected_inputs();
}

void Trainer::measure_paths(const MixturePrior& prior, TaskResult& result) const {
  result.slab_paths.clear();
  for (const VisibleBlock& block : blocks_) {
    const std::vector<double> paths = slab_paths(spec_, parameters_, prior, block);
    std::vector<double>& all = result.slab_paths.emplace_back(problem_.data.columns(), 0.0);
    for (std::size_t k = 0; k < inputs_.size(); ++k) all[inputs_[k]] = paths[k];
  }
}

void Trainer::drop_unconnected_inputs() {
  const std::vector<Index> kept = connected_inputs(parameters_);
  if (kept.size() == inputs_.size()) return;
  LayerParameters& first = parameters_.layers.front();
  first.weights = take_rows(first.weights, kept);
  first.mask = take_rows(first.mask, kept);
  optimizer_.keep_inputs(kept);
  std::vector<Index> inputs;
  for (Index k : kept) inputs.push_back(inputs_[k]);
  inputs_ = std::move(inputs);
  spec_.inputs = std::ssize(inputs_);
  batch_.inputs.reshape(options_.batch_size, spec_.inputs);
  allocate(spec_, gradients_);
  copy_inputs_if_few();
  if (imputer_) imputer_->connect(inputs_, problem_.data.columns());
}

void Trainer::copy_inputs_if_few() {
  // A copy of the few columns that matter makes every later epoch independent of p.
  if (2 * spec_.inputs > problem_.data.columns()) return;
  local_.reshape(std::ssize(rows_), spec_.inputs);
  problem_.data.gather(rows_, inputs_, local_);
}

void Trainer::finish(TaskResult& result) {
  const std::vector<Index> places = counted(0, rows_.size());
  // Where the noise was not measured in training, its maximum-likelihood estimate stands in.
  if (!options_.estimate_variance || held_out_.empty()) measure(evaluate(places), variances_);
  if (problem_.trace) judge(evaluate(places), result);
  for (const VisibleBlock& block : blocks_)
    result.reaches.push_back(reaches(spec_, parameters_, block));
  result.variances = variances_;
  result.inputs = std::move(inputs_);
  result.parameters = std::move(parameters_);
  result.optimizer = std::move(optimizer_).take_state();
}

void Trainer::judge(const Evaluation& all, TaskResult& result) const {
  result.log_likelihood = all.likelihood;
  result.rows = all.weight;
  const double total = std::accumulate(all.likelihood.begin(), all.likelihood.end(), 0.0);
  result.bic = bic(total, nonzero_parameters(), all.weight);
}

}  // namespace cstonet
