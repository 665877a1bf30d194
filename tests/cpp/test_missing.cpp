#include <cmath>
#include <memory>
#include <vector>

#include "check.hpp"
#include "core/missing.hpp"
#include "faults.hpp"
#include "fixtures.hpp"

using namespace cstonet;
using namespace fixtures;

namespace {

constexpr Index kDraws = 6;

// Four rows; row 0 misses covariate 1, row 2 covariates 0 and 2.
Candidates some_candidates() {
  Candidates candidates;
  candidates.gaps = {.first = {0, 1, 1, 3, 3}, .column = {1, 0, 2}};
  candidates.draws = kDraws;
  candidates.values.reshape(3, kDraws);
  candidates.log_weight.reshape(2, kDraws);
  fill(candidates.values, 3000);
  candidates.prepare(3);
  return candidates;
}

struct Setting {
  NetworkSpec spec = small_network();
  Parameters parameters = some_parameters(spec);
  Batch batch = some_batch(spec, 4);
  std::vector<double> variances{1.0, 1.0, 0.3};
  std::vector<LayerState> states;
  std::vector<Index> rows{0, 1, 2, 3}, inputs{0, 1, 2};

  explicit Setting(bool with_offset = false) {
    allocate(spec, 4, states);
    if (with_offset) batch.offset = some_offset(spec, 4);
  }
  // The batch's offsets without their padding.
  std::vector<float> offset() const {
    std::vector<float> values;
    for (Index i = 0; i < 4; ++i)
      for (float value : batch.offset.row(i)) values.push_back(value);
    return values;
  }
  Model model() const { return {.spec = spec, .parameters = parameters, .variances = variances}; }
};

}  // namespace

TEST_CASE("missing: rows with gaps are found") {
  const Candidates candidates = some_candidates();
  CHECK(candidates.rows == std::vector<Index>({0, 2}));
  CHECK(candidates.slot == std::vector<Index>({0, -1, 1, -1}));
}

TEST_CASE("missing: shapes that disagree are refused") {
  Candidates candidates = some_candidates();
  candidates.log_weight.reshape(3, kDraws);
  CHECK_THROWS(candidates.prepare(3), std::invalid_argument);
  candidates = some_candidates();
  CHECK_THROWS(candidates.prepare(2), std::invalid_argument);
  candidates.gaps.first = {0, 2, 1, 3, 3};
  CHECK_THROWS(candidates.prepare(3), std::invalid_argument);
}

TEST_CASE("missing: a candidate is put where the network reads its covariate") {
  const Candidates candidates = some_candidates();
  const CandidateInputs places(std::vector<Index>{2, 1}, 3);
  float row[2] = {7.0f, 8.0f};
  places.put(candidates, 2, 4, row);
  CHECK(row[0] == candidates.values(2, 4));
  CHECK(row[1] == 8.0f);
  places.put(candidates, 1, 4, row);
  CHECK(row[1] == 8.0f);
}

namespace {

void check_visits(bool with_offset) {
  Setting s(with_offset);
  Candidates candidates = some_candidates();
  for (Index k = 0; k < kDraws; ++k) candidates.log_weight(1, k) = 0.3f * static_cast<float>(k);
  Imputer imputer(candidates, 4, s.inputs, 3);

  // What the chain should do: exact weights of every candidate.
  std::vector<std::vector<double>> expected(2, std::vector<double>(kDraws));
  const auto blocks = visible_blocks(s.spec);
  const CandidateInputs places(s.inputs, 3);
  for (std::size_t slot = 0; slot < 2; ++slot) {
    const Index row = candidates.rows[slot];
    double total = 0.0;
    for (Index k = 0; k < kDraws; ++k) {
      Batch batch = s.batch;
      places.put(candidates, row, k, batch.inputs.row(row));
      forward(s.spec, s.parameters, batch, s.states);
      double log_weight = candidates.log_weight(static_cast<Index>(slot), k);
      log_weight += row_log_likelihood(blocks, batch, s.states, s.variances, row);
      total += expected[slot][k] = std::exp(log_weight);
    }
    for (double& weight : expected[slot]) weight /= total;
  }

  const int steps = 20000;
  std::vector<std::vector<double>> visits(2, std::vector<double>(kDraws, 0.0));
  const RandomStream random(1, 2, 3, 0);
  for (int step = 0; step < steps; ++step) {
    for (Index i = 0; i < 4; ++i) imputer.fill(i, s.batch.inputs.row(i));
    forward(s.spec, s.parameters, s.batch, s.states);
    imputer.move(s.model(), s.rows, s.batch, s.states, random, static_cast<std::uint32_t>(step), 0);
    for (std::size_t slot = 0; slot < 2; ++slot)
      visits[slot][imputer.current()[slot]] += 1.0 / steps;
  }
  for (std::size_t slot = 0; slot < 2; ++slot)
    for (std::size_t k = 0; k < kDraws; ++k) {
      // Four standard errors of a share; the chain's correlation at most trebles the variance.
      const double p = expected[slot][k];
      CHECK(std::abs(visits[slot][k] - p) < 4 * std::sqrt(3 * p * (1 - p) / steps) + 1e-9);
    }
}

void check_likelihoods(bool with_offset) {
  Setting s(with_offset);
  const Candidates candidates = some_candidates();
  Covariates<double> x(4, 3);
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 3; ++j) x(i, j) = s.batch.inputs(i, j);
  const Dataset data = x.dataset(1 << 20);
  Hooks hooks;
  const auto blocks = visible_blocks(s.spec);
  const CandidateInputs places(s.inputs, 3);
  const std::vector<float> offset = s.offset();
  const Columns known{.data = offset.data(), .width = s.batch.offset.columns()};
  for (int threads : {1, 2}) {
    const Panel out = candidate_log_likelihood(s.model(), s.inputs, data, candidates,
                                               s.batch.visible, known, threads, hooks);
    for (Index slot = 0; slot < 2; ++slot)
      for (Index k = 0; k < kDraws; ++k) {
        const Index row = candidates.rows[slot];
        Batch batch = s.batch;
        places.put(candidates, row, k, batch.inputs.row(row));
        forward(s.spec, s.parameters, batch, s.states);
        const double expected = row_log_likelihood(blocks, batch, s.states, s.variances, row);
        CHECK(out(slot, k) == static_cast<float>(expected));
      }
  }
}

}  // namespace

TEST_CASE("missing: moves visit candidates as often as their weights ask for") {
  check_visits(false);
  check_visits(true);
}

TEST_CASE("missing: likelihoods of all candidates at once, for any number of threads") {
  check_likelihoods(false);
  check_likelihoods(true);
}

TEST_CASE("missing: whichever allocation fails, the caller is told or gets the likelihoods") {
  const Setting s;
  const Candidates candidates = some_candidates();
  const Covariates<double> x(4, 3);
  const auto run = [&] {
    Hooks hooks;
    return candidate_log_likelihood(s.model(), s.inputs, x.dataset(1 << 20), candidates,
                                    s.batch.visible, {}, 2, hooks);
  };
  const Panel expected = run();
  CHECK(faults::without_memory(
            run, [&](const Panel& out) { return out.view() == expected.view(); }) > 10);
}
