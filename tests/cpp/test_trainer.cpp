#include <algorithm>
#include <cmath>
#include <numeric>

#include "check.hpp"
#include "core/bic.hpp"
#include "core/errors.hpp"
#include "core/schedule.hpp"
#include "core/trainer.hpp"
#include "faults.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

constexpr Index kRows = 40, kColumns = 6;
const std::vector<double> kRate{0.02, 0.02, 0.02}, kStep{0.1, 0.1};

StageOptions stage(int epochs, PriorKind prior, bool prune) {
  return {.epochs = epochs,
          .prior = prior,
          .prune = prune,
          .rate = kRate,
          .step = kStep,
          .rate_decay = Decay::none,
          .rate_exponent = 1.0,
          .step_decay = Decay::none,
          .step_exponent = 1.0};
}

// A spike so wide that every weight is pruned.
constexpr PriorOptions kPrunesAll{.inclusion = 1e-6,
                                  .slab_variance = 1e4,
                                  .spike_start = 1e3,
                                  .spike_end = 1e3,
                                  .anneal_share = 0.0,
                                  .penalize_bias = false};

TrainingOptions three_stages() {
  return {.batch_size = 16,
          .epoch_rows = kRows,
          .initializer = Initializer::normal,
          .initial_bias = 0.3,
          .estimate_variance = true,
          .initial_variance = 1.0,
          .sampler = {.sweeps = 1,
                      .friction = 1.0,
                      .temperature = 0.0,
                      .coupled = false,
                      .variance = {0.01, 0.01}},
          .prior = {.inclusion = 0.1,
                    .slab_variance = 1.0,
                    .spike_start = 1e-2,
                    .spike_end = 1e-3,
                    .anneal_share = 0.6,
                    .penalize_bias = false},
          .optimizer = {.rule = UpdateRule::adam,
                        .momentum = 0.9,
                        .second_decay = 0.999,
                        .epsilon = 1e-8,
                        .clip_norm = 0.0},
          .stages = {stage(2, PriorKind::none, false), stage(3, PriorKind::mixture, true),
                     stage(2, PriorKind::slab, false)}};
}

// A treatment that depends on x0 and an outcome that depends on x1 and the treatment.
struct Setting {
  NetworkSpec spec{
      .inputs = kColumns,
      .activation = Activation::tanh,
      .layers = {{{fixtures::latent(3)}},
                 {{fixtures::latent(2), fixtures::observed(Family::bernoulli, 1, true, 0)}},
                 {{fixtures::observed(Family::gaussian, 1, false, 1)}}}};
  TrainingOptions options = three_stages();
  fixtures::Covariates<float> x{kRows, kColumns};
  std::vector<Index> inputs{0, 1, 2, 3, 4, 5};
  std::vector<float> visible = std::vector<float>(2 * kRows);
  std::vector<float> offset;  // as many, or nothing
  Floats row_weight = Floats(kRows, 1.0f);
  std::vector<Panel> structure;
  std::uint64_t network = 0;
  const Candidates* candidates = nullptr;
  const TaskResult* previous = nullptr;
  std::vector<Index> carried;
  Task task{.fold = 0, .start = 0, .fit_rows = {}, .validation_rows = {}};
  Hooks hooks;

  Setting() {
    for (Index k = 0; k < kRows * kColumns; ++k) x.values[k] = fixtures::number(k);
    for (Index i = 0; i < kRows; ++i) {
      treatment(i) = static_cast<float>(x(i, 0) > 0);
      outcome(i) = x(i, 1) + treatment(i);
      (i % 4 == 0 ? task.validation_rows : task.fit_rows).push_back(i);
    }
  }
  float& treatment(Index i) { return visible[2 * i]; }
  float& outcome(Index i) { return visible[2 * i + 1]; }
  TaskResult run() {
    const Dataset data = x.dataset();
    const Problem problem{.spec = spec,
                          .options = options,
                          .data = data,
                          .inputs = inputs,
                          .visible = {.data = visible.data(), .width = 2},
                          .offset = {.data = offset.data(), .width = offset.empty() ? 0 : 2},
                          .row_weight = row_weight,
                          .structure = structure,
                          .seed = 42,
                          .network = network,
                          .candidates = candidates,
                          .previous = previous,
                          .carried = carried,
                          .trace = true};
    return Trainer(problem, task, hooks).run();
  }
};

double bic_of(const TaskResult& result, Index parameters) {
  return bic(result.log_likelihood[0] + result.log_likelihood[1], parameters, result.rows);
}

bool same(const TaskResult& a, const TaskResult& b) {
  bool equal = a.bic == b.bic && a.inputs == b.inputs;
  for (std::size_t i = 0; i < a.parameters.layers.size(); ++i)
    equal = equal &&
            a.parameters.layers[i].weights.view() == b.parameters.layers[i].weights.view() &&
            a.parameters.layers[i].bias == b.parameters.layers[i].bias;
  return equal;
}

}  // namespace

TEST_CASE("trainer: runs every stage, reports every epoch, ends with a finite BIC") {
  Setting s;
  const TaskResult result = s.run();
  CHECK(result.failure.empty());
  int epochs = 0;
  for (const StageOptions& stage : s.options.stages) epochs += stage.epochs;
  CHECK(static_cast<int>(result.trace.size()) == epochs);
  CHECK(s.hooks.epochs_done == epochs);
  CHECK(result.trace[0].spike == 0.0);
  CHECK_NEAR(result.trace[2].spike, 1e-2, 1e-15);  // the first epoch with the mixture
  CHECK(result.trace[4].spike < result.trace[2].spike);
  CHECK(result.trace[5].spike == 0.0);
  CHECK(std::isfinite(result.bic));
  CHECK(result.rows == kRows);
}

TEST_CASE("trainer: the likelihood of held-out rows grows") {
  Setting s;
  s.options.stages = {stage(60, PriorKind::none, false)};
  const TaskResult result = s.run();
  const auto held_out = [&](std::size_t epoch) {
    const auto& v = result.trace[epoch].validation;
    return v[0] + v[1];
  };
  CHECK(held_out(59) > held_out(0) + 0.2);
  // The outcome's noise was measured on them, so its variance has fallen from one.
  CHECK(result.variances[1] < 0.5);
  CHECK(result.variances[0] == 1.0);  // a binary treatment has none
}

TEST_CASE("trainer: offsets of zero change no bit") {
  Setting s;
  const TaskResult plain = s.run();
  s.offset.assign(2 * kRows, 0.0f);
  CHECK(same(plain, s.run()));
}

TEST_CASE("trainer: an offset of a gaussian outcome is taken from it") {
  Setting s;
  s.options.stages = {stage(5, PriorKind::slab, false)};
  const TaskResult plain = s.run();
  s.offset.assign(2 * kRows, 0.0f);
  for (Index i = 0; i < kRows; ++i) s.offset[2 * i + 1] = 0.7f * s.x(i, 2);
  const TaskResult known = s.run();
  for (Index i = 0; i < kRows; ++i) s.outcome(i) -= s.offset[2 * i + 1];
  s.offset.clear();
  const TaskResult left = s.run();
  // Ten updates, each of which moves a weight of size one by what float32 gradients say: see
  // tests/numerical/test_training.py.
  const double tolerance = 16 * 10 * 0x1p-24;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto of = [i](const TaskResult& r) { return r.parameters.layers[i].weights.view(); };
    CHECK((of(known) - of(left)).cwiseAbs().maxCoeff() <= tolerance);
    CHECK((of(known) - of(plain)).cwiseAbs().maxCoeff() > 100 * tolerance);
  }
  for (std::size_t b = 0; b < 2; ++b) CHECK_NEAR(known.variances[b], left.variances[b], tolerance);
  CHECK_NEAR(known.bic / kRows, left.bic / kRows, 2 * tolerance);
}

TEST_CASE("trainer: a dose has a variance of its own, measured on held-out rows") {
  Setting s;
  s.spec.layers[1].blocks[1].family = Family::gaussian;
  for (Index i = 0; i < kRows; ++i) s.treatment(i) = s.x(i, 0);
  s.options.stages = {stage(60, PriorKind::none, false)};
  const TaskResult result = s.run();
  CHECK(result.failure.empty());
  CHECK(result.variances[0] < 0.5 * result.trace[0].variances[0]);
  CHECK(result.variances[0] != result.variances[1]);
  for (std::size_t b = 0; b < 2; ++b)
    CHECK(result.trace.back().variances[b] == result.variances[b]);
}

TEST_CASE("trainer: a function of seed, fold, start and network") {
  Setting a, b, fold, start, network;
  fold.task.fold = 1;
  start.task.start = 1;
  network.network = 1;
  const TaskResult first = a.run();
  CHECK(same(first, b.run()));
  CHECK(!same(first, fold.run()));
  CHECK(!same(first, start.run()));
  CHECK(!same(first, network.run()));
}

TEST_CASE("trainer: pruning drops weights, then covariates, and both stay away") {
  Setting s;
  s.options.prior.spike_end = 3e-3;
  const TaskResult result = s.run();
  const Parameters& p = result.parameters;
  CHECK(result.trace[4].nonzero == 6 * 3 + 3 * 3 + 3 * 1);
  CHECK(p.nonzero_weights() < result.trace[4].nonzero);
  CHECK(result.trace[5].nonzero == p.nonzero_weights());
  CHECK(p.layers[0].weights.rows() == static_cast<Index>(result.inputs.size()));
  CHECK(result.inputs.size() < 6);
  for (const LayerParameters& theta : p.layers)
    for (Index i = 0; i < theta.weights.rows(); ++i)
      for (Index j = 0; j < theta.weights.columns(); ++j)
        CHECK((theta.weights(i, j) == 0.0f) == (theta.mask(i, j) == 0.0f));
  CHECK(result.reaches.size() == 2);
  for (const auto& reached : result.reaches) CHECK(reached.size() == result.inputs.size());
}

TEST_CASE("trainer: biases are pruned, and counted, where the prior acts on them") {
  Setting s;
  s.options.prior = kPrunesAll;
  s.options.stages = {stage(2, PriorKind::mixture, true), stage(3, PriorKind::none, false)};
  const TaskResult free = s.run();
  for (const LayerParameters& theta : free.parameters.layers)
    CHECK(std::ranges::count(theta.bias, 0.0f) < std::ssize(theta.bias));
  CHECK_NEAR(free.bic, bic_of(free, 0), 1e-12 * std::abs(free.bic));

  s.options.prior.penalize_bias = true;
  const TaskResult pruned = s.run();
  for (const LayerParameters& theta : pruned.parameters.layers)
    CHECK(std::ranges::count(theta.bias, 0.0f) == std::ssize(theta.bias));
  CHECK_NEAR(pruned.bic, bic_of(pruned, 0), 1e-12 * std::abs(pruned.bic));

  s.options.stages[0].prune = false;
  const TaskResult kept = s.run();
  CHECK_NEAR(kept.bic, bic_of(kept, (6 * 3 + 3 * 3 + 3) + (3 + 3 + 1)), 1e-12 * std::abs(kept.bic));
}

TEST_CASE("trainer: the temperature of a binary outcome sets the norm its gradient is clipped at") {
  Setting s;
  s.spec.layers[2].blocks[0].family = Family::bernoulli;
  for (Index i = 0; i < kRows; ++i) s.outcome(i) = static_cast<float>(s.x(i, 1) > 0);
  s.options.stages = {stage(1, PriorKind::none, false)};
  s.options.batch_size = kRows;  // one update
  s.options.optimizer = {.rule = UpdateRule::momentum,
                         .momentum = 0.0,
                         .second_decay = 0.0,
                         .epsilon = 0.0,
                         .clip_norm = 1e-3};
  const auto moved = [&](double temperature, double rate) {
    s.spec.layers[2].blocks[0].weight = 1 / temperature;
    s.options.stages[0].epochs = 1;
    s.options.stages[0].rate[2] = rate;
    const LayerParameters after = s.run().parameters.layers[2];
    s.options.stages[0].epochs = 0;
    const LayerParameters before = s.run().parameters.layers[2];
    return std::hypot((after.weights.view() - before.weights.view()).norm(),
                      after.bias[0] - before.bias[0]);
  };
  // So small a norm clips every gradient, in units of 1/temperature.
  CHECK_NEAR(moved(1.0, 1.0), 1e-3, 1e-6);
  CHECK_NEAR(moved(0.01, 1e-2), 1e-3, 1e-6);
}

TEST_CASE("trainer: missing values move with a measured variance where training has a fixed one") {
  Setting s;
  Candidates candidates;
  for (Index i = 0; i <= kRows; ++i) candidates.gaps.first.push_back(i);  // x1 of every row
  candidates.gaps.column.assign(kRows, 1);
  candidates.draws = 8;
  candidates.values.reshape(kRows, 8);
  candidates.log_weight.reshape(kRows, 8);
  fixtures::fill(candidates.values, 500);
  candidates.prepare(kColumns);
  s.candidates = &candidates;
  s.options.estimate_variance = false;
  s.options.stages = {stage(0, PriorKind::none, false)};
  s.options.stages[0].rate = {0.0, 0.0, 0.0};  // the network stays as it is
  s.options.initial_variance = 1e-4;
  const TaskResult start = s.run();
  s.options.stages[0].epochs = 20;
  const TaskResult narrow = s.run();
  s.options.initial_variance = 100.0;
  const TaskResult wide = s.run();
  CHECK(narrow.log_likelihood[1] != start.log_likelihood[1]);
  CHECK(narrow.log_likelihood == wide.log_likelihood);
  CHECK(narrow.variances[1] == wide.variances[1]);
  // Measured in training, it is the variance that training has.
  s.options.estimate_variance = true;
  s.task.validation_rows.clear();
  CHECK(s.run().log_likelihood != wide.log_likelihood);
}

TEST_CASE("trainer: all covariates may be dropped") {
  Setting s;
  s.options.prior = kPrunesAll;
  const TaskResult result = s.run();
  CHECK(result.inputs.empty());
  CHECK(result.parameters.nonzero_weights() == 0);
  CHECK(std::isfinite(result.bic));
}

TEST_CASE(
    "trainer: the order in which covariates are listed is the order of the network's inputs") {
  Setting plain, listed;
  plain.options.stages = listed.options.stages = {stage(2, PriorKind::none, false)};
  listed.inputs = {3, 1, 0, 5, 4, 2};
  const auto x = plain.x;
  for (Index i = 0; i < kRows; ++i)
    for (Index j = 0; j < kColumns; ++j) plain.x(i, j) = x(i, listed.inputs[j]);
  TaskResult a = plain.run(), b = listed.run();
  CHECK(b.inputs == listed.inputs);
  a.inputs = b.inputs;
  CHECK(same(a, b));
}

TEST_CASE("trainer: a given structure is respected") {
  Setting s;
  s.options.stages = {stage(3, PriorKind::none, false)};
  for (const LayerParameters& theta : Parameters(s.spec).layers) s.structure.push_back(theta.mask);
  s.structure[0](2, 1) = s.structure[2](0, 0) = 0.0f;
  const TaskResult result = s.run();
  CHECK(result.parameters.layers[0].weights(2, 1) == 0.0f);
  CHECK(result.parameters.layers[2].weights(0, 0) == 0.0f);
  CHECK(result.parameters.nonzero_weights() == 30 - 2);
}

TEST_CASE("trainer: rows without held-out companions still get a variance") {
  Setting s;
  s.task.validation_rows.clear();
  const TaskResult result = s.run();
  CHECK(result.trace.back().validation.empty());
  CHECK(result.trace.back().variances[1] == 1.0);
  CHECK(result.variances[1] > 0 && result.variances[1] < 1.0);
}

TEST_CASE("trainer: a row of weight zero is as good as absent from the likelihood") {
  Setting s;
  s.options.stages = {stage(0, PriorKind::none, false)};
  const double all = s.run().log_likelihood[0];
  s.row_weight[3] = 0.0f;
  const TaskResult without = s.run();
  CHECK(without.rows == kRows - 1);
  CHECK(without.log_likelihood[0] > all);
}

TEST_CASE("trainer: divergence is a result, not an accident") {
  Setting s;
  s.options.optimizer.rule = UpdateRule::momentum;
  s.options.stages = {stage(5, PriorKind::none, false)};
  s.options.stages[0].rate = {1e30, 1e30, 1e30};
  const TaskResult result = s.run();
  CHECK(result.failure.find("stage 1, epoch ") == 0);
}

TEST_CASE("trainer: biases alone can diverge too") {
  Setting s;
  s.task.validation_rows.clear();
  s.options.optimizer.rule = UpdateRule::momentum;
  s.options.prior = kPrunesAll;
  s.options.stages = {stage(0, PriorKind::mixture, true), stage(5, PriorKind::none, false)};
  s.options.stages[1].rate = {1e30, 1e30, 1e30};
  CHECK(s.run().failure.find("stage 2, epoch ") == 0);
}

TEST_CASE("trainer: a stop sign ends it between two minibatches") {
  Setting s;
  s.hooks.stop = true;
  CHECK_THROWS(s.run(), Interrupted);
  CHECK(s.hooks.epochs_done == 0);
}

TEST_CASE("trainer: the paths of every covariate are measured before the last pruning") {
  Setting s;
  const auto measured = [](const TaskResult& r, std::size_t block, Index covariate) {
    return r.slab_paths[block][covariate];
  };
  s.options.stages = {stage(2, PriorKind::none, false)};
  CHECK(s.run().slab_paths.empty());
  s.options.stages = {stage(2, PriorKind::none, false), stage(1, PriorKind::mixture, true)};
  s.inputs = {1, 4};  // what the network does not read has no path
  s.spec.inputs = 2;
  TaskResult result = s.run();
  CHECK(result.slab_paths.size() == 2);
  for (std::size_t block : {0, 1}) {
    CHECK(std::ssize(result.slab_paths[block]) == kColumns);
    CHECK(measured(result, block, 1) > 0 && measured(result, block, 4) > 0);
    CHECK(measured(result, block, 0) == 0 && measured(result, block, 5) == 0);
  }
  // A second pruning finds nothing left of what the first took out.
  s.options.prior = kPrunesAll;
  s.options.stages = {stage(1, PriorKind::mixture, true), stage(1, PriorKind::none, true)};
  result = s.run();
  CHECK(measured(result, 1, 1) == 0);
}

TEST_CASE("trainer: goes on from another network, with new inputs at zero") {
  Setting s;
  s.options.stages = {stage(3, PriorKind::slab, false)};
  const TaskResult all = s.run();

  s.options.stages = {stage(0, PriorKind::slab, false)};  // what training begins with
  s.previous = &all;
  s.inputs = s.carried = {1, 4, 5};
  s.spec.inputs = 3;
  const TaskResult fewer = s.run();
  for (Index j = 0; j < 3; ++j)
    CHECK(fewer.parameters.layers[0].weights(1, j) == all.parameters.layers[0].weights(4, j));
  CHECK(fewer.parameters.layers[1].weights.view() == all.parameters.layers[1].weights.view());
  CHECK(fewer.parameters.layers[0].bias == all.parameters.layers[0].bias);
  CHECK(fewer.variances == all.variances);
  CHECK(fewer.optimizer.steps == all.optimizer.steps);

  s.previous = &fewer;
  s.inputs = {0, 4};
  s.carried = {-1, 1};
  s.spec.inputs = 2;
  const TaskResult other = s.run();
  for (Index j = 0; j < 3; ++j) {
    CHECK(other.parameters.layers[0].weights(0, j) == 0.0f);
    CHECK(other.optimizer.layers[0].second(0, j) == 0.0f);
    CHECK(other.parameters.layers[0].weights(1, j) == all.parameters.layers[0].weights(4, j));
    CHECK(other.optimizer.layers[0].second(1, j) == all.optimizer.layers[0].second(4, j));
  }
}

TEST_CASE("trainer: a variance that is set is no former network's") {
  Setting s;
  s.options.stages = {stage(2, PriorKind::none, false)};
  const TaskResult before = s.run();
  s.options.estimate_variance = false;
  s.options.initial_variance = 0.123;
  s.previous = &before;
  s.carried = s.inputs;
  CHECK(s.run().trace.front().variances.back() == 0.123);
}

TEST_CASE("trainer: an epoch may be a part of the rows, and all rows take their turn") {
  Setting s;
  s.options.stages = {stage(6, PriorKind::none, false)};
  s.options.epoch_rows = std::ssize(s.task.fit_rows) / 2 + 1;  // two parts
  const TaskResult parts = s.run();
  s.options.epoch_rows = kRows;
  const TaskResult whole = s.run();
  CHECK(parts.trace.size() == whole.trace.size());
  CHECK(parts.optimizer.steps < whole.optimizer.steps);

  s.options.stages = {stage(3, PriorKind::none, false)};
  const TaskResult half = s.run();
  CHECK(half.optimizer.steps <= parts.optimizer.steps);
  CHECK(parts.optimizer.steps <= half.optimizer.steps + 3);  // an incomplete batch more per pass

  s.options.epoch_rows = std::ssize(s.task.fit_rows) - 1;  // a row less than there are
  CHECK(s.run().optimizer.steps == half.optimizer.steps);
}

TEST_CASE("trainer: whichever allocation fails, the caller of two tasks is told or gets both") {
  Setting first, second;
  second.task.start = 1;
  const std::vector<TaskResult> expected = [&] {
    std::vector<TaskResult> alone;
    for (Setting* s : {&first, &second}) alone.push_back(s->run());
    return alone;
  }();
  const auto run = [&] {
    std::vector<TaskResult> results(2);
    Hooks hooks;
    run_tasks(2, 2, hooks, [&](long i) { results[i] = (i == 0 ? first : second).run(); });
    return results;
  };
  CHECK(faults::without_memory(run, [&](const std::vector<TaskResult>& results) {
          return same(results[0], expected[0]) && same(results[1], expected[1]);
        }) > 100);
}
