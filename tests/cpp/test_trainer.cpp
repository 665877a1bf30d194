#include <limits>
#include <numeric>

#include "check.hpp"
#include "core/errors.hpp"
#include "core/schedule.hpp"
#include "core/trainer.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

constexpr Index kRows = 40, kColumns = 6;
const std::vector<double> kRate{0.02, 0.02, 0.02}, kStep{0.1, 0.1};

StageOptions stage(int epochs, const std::string& prior, bool prune) {
  return {epochs, prior, prune, kRate, kStep, "none", 1.0, "none", 1.0};
}

// A treatment that depends on x0 and an outcome that depends on x1 and the treatment.
struct Setting {
  NetworkSpec spec{kColumns,
                   Activation::tanh,
                   {{{fixtures::latent(3)}},
                    {{fixtures::latent(2), fixtures::observed(Family::bernoulli, 1, true, 0)}},
                    {{fixtures::observed(Family::gaussian, 1, false, 1)}}}};
  TrainingOptions options{
      16,
      "normal",
      0.3,
      true,
      1.0,
      {1, 1.0, 0.0, {0.01, 0.01}},
      {0.1, 1.0, 1e-2, 1e-3, 0.6, false},
      {"adam", 0.9, 0.999, 1e-8, 0.0},
      {stage(2, "none", false), stage(3, "mixture", true), stage(2, "slab", false)}};
  std::vector<float> x = std::vector<float>(kRows * kColumns);
  std::vector<double> center = std::vector<double>(kColumns, 0.0);
  std::vector<double> scale = std::vector<double>(kColumns, 1.0);
  std::vector<Index> inputs{0, 1, 2, 3, 4, 5};
  Panel visible = Panel(kRows, 2);
  Floats row_weight = Floats(kRows, 1.0f);
  std::vector<Panel> structure;
  std::uint64_t network = 0;
  Task task{0, 0, {}, {}};
  Hooks hooks;

  Setting() {
    for (Index k = 0; k < kRows * kColumns; ++k)
      x[static_cast<std::size_t>(k)] = fixtures::number(k);
    for (Index i = 0; i < kRows; ++i) {
      const float* row = x.data() + i * kColumns;
      visible(i, 0) = static_cast<float>(row[0] > 0);
      visible(i, 1) = row[1] + visible(i, 0);
      (i % 4 == 0 ? task.validation_rows : task.fit_rows).push_back(i);
    }
  }
  TaskResult run() {
    const Source source{x.data(),
                        false,
                        kRows,
                        kColumns,
                        kColumns * sizeof(float),
                        sizeof(float),
                        center.data(),
                        scale.data(),
                        std::numeric_limits<double>::infinity()};
    const Dataset data(source, 0);
    const Problem problem{spec, options, data, inputs, visible, row_weight, structure, 42, network};
    return Trainer(problem, task, hooks).run();
  }
};

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
  s.options.stages = {stage(60, "none", false)};
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

TEST_CASE("trainer: a dose has a variance of its own, measured on held-out rows") {
  Setting s;
  s.spec.layers[1].blocks[1].family = Family::gaussian;
  for (Index i = 0; i < kRows; ++i) s.visible(i, 0) = s.x[static_cast<std::size_t>(i * kColumns)];
  s.options.stages = {stage(60, "none", false)};
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

TEST_CASE("trainer: all covariates may be dropped") {
  Setting s;
  s.options.prior = {1e-6, 1e4, 1e3, 1e3, 0.0, false};
  const TaskResult result = s.run();
  CHECK(result.inputs.empty());
  CHECK(result.parameters.nonzero_weights() == 0);
  CHECK(std::isfinite(result.bic));
}

TEST_CASE(
    "trainer: the order in which covariates are listed is the order of the network's inputs") {
  Setting plain, listed;
  plain.options.stages = listed.options.stages = {stage(2, "none", false)};
  listed.inputs = {3, 1, 0, 5, 4, 2};
  const std::vector<float> x = plain.x;
  for (Index i = 0; i < kRows; ++i)
    for (Index j = 0; j < kColumns; ++j)
      plain.x[static_cast<std::size_t>(i * kColumns + j)] =
          x[static_cast<std::size_t>(i * kColumns + listed.inputs[static_cast<std::size_t>(j)])];
  TaskResult a = plain.run(), b = listed.run();
  CHECK(b.inputs == listed.inputs);
  a.inputs = b.inputs;
  CHECK(same(a, b));
}

TEST_CASE("trainer: a given structure is respected") {
  Setting s;
  s.options.stages = {stage(3, "none", false)};
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
  s.options.stages = {stage(0, "none", false)};
  const double all = s.run().log_likelihood[0];
  s.row_weight[3] = 0.0f;
  const TaskResult without = s.run();
  CHECK(without.rows == kRows - 1);
  CHECK(without.log_likelihood[0] > all);
}

TEST_CASE("trainer: divergence is a result, not an accident") {
  Setting s;
  s.options.optimizer.rule = "momentum";
  s.options.stages = {stage(5, "none", false)};
  s.options.stages[0].rate = {1e30, 1e30, 1e30};
  const TaskResult result = s.run();
  CHECK(result.failure.find("stage 1, epoch ") == 0);
}

TEST_CASE("trainer: biases alone can diverge too") {
  Setting s;
  s.task.validation_rows.clear();
  s.options.optimizer.rule = "momentum";
  s.options.prior = {1e-6, 1e4, 1e3, 1e3, 0.0, false};  // prunes every weight
  s.options.stages = {stage(0, "mixture", true), stage(5, "none", false)};
  s.options.stages[1].rate = {1e30, 1e30, 1e30};
  CHECK(s.run().failure.find("stage 2, epoch ") == 0);
}

TEST_CASE("trainer: a stop sign ends it between two minibatches") {
  Setting s;
  s.hooks.stop = true;
  CHECK_THROWS(s.run(), Interrupted);
  CHECK(s.hooks.epochs_done == 0);
}

TEST_CASE("trainer: unknown words are refused") {
  Setting s;
  s.options.initializer = "zeros";
  CHECK_THROWS(s.run(), InvalidArgument);
  Setting t;
  t.options.stages = {stage(1, "lasso", false)};
  CHECK_THROWS(t.run(), InvalidArgument);
}
