#include "check.hpp"
#include "core/errors.hpp"
#include "core/predict.hpp"
#include "faults.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

constexpr Index kRows = 5000;  // more than two tasks of 2048 rows, the last with a short block

struct Setting {
  NetworkSpec spec = fixtures::small_network();
  Parameters parameters = fixtures::some_parameters(spec);
  fixtures::Covariates<float> x{kRows, 5};
  std::vector<Index> inputs{4, 0, 2}, rows;
  Panel clamp = Panel(2, 3);
  std::vector<float> offset;  // settings x rows x visible columns, or nothing
  Hooks hooks;

  Setting() {
    for (Index k = 0; k < kRows * 5; ++k) x.values[k] = fixtures::number(k);
    for (Index i = 0; i < kRows; ++i) rows.push_back((i * 7) % kRows);
    clamp(1, 0) = 1.0f;
  }
  std::vector<Panel> run(int threads) {
    return predict(spec, parameters, inputs, x.dataset(), rows, clamp, view(0), threads, hooks);
  }
  std::vector<float> run_received(Index setting) {
    std::vector<float> out(3 * kRows);
    const std::vector<float> treatment(kRows, clamp(setting, 0));
    predict_received(spec, parameters, inputs, x.dataset(), rows,
                     {.data = treatment.data(), .width = 1}, view(setting), 2, hooks, out);
    return out;
  }
  // The offsets from this setting on.
  Columns view(Index setting) const {
    if (offset.empty()) return {};
    return {.data = offset.data() + setting * kRows * 3, .width = 3};
  }
};

}  // namespace

TEST_CASE("predict: means of a forward pass with the treatment clamped") {
  Setting s;
  const auto out = s.run(1);
  CHECK(out.size() == 2);
  Batch batch{.inputs = Panel(1, 3), .visible = Panel(1, 3), .weight = {1.0f}};
  std::vector<LayerState> states;
  allocate(s.spec, 1, states);
  for (Index i : {Index{0}, Index{255}, Index{256}, kRows - 1}) {
    const Index row = s.rows[i];
    for (Index j = 0; j < 3; ++j) batch.inputs(0, j) = s.x(row, s.inputs[j]);
    for (Index a : {0, 1}) {
      batch.visible(0, 0) = static_cast<float>(a);
      forward(s.spec, s.parameters, batch, states);
      const double p = 1 / (1 + std::exp(-double(states[1].predictor(0, 2))));
      // The same float32 products in tiles of another height: a few roundings.
      CHECK_NEAR(out[a](i, 0), p, 8 * 0x1p-24);
      CHECK_NEAR(out[a](i, 2), states[2].predictor(0, 0), 32 * 0x1p-24);
    }
  }
  CHECK(out[0](3, 0) == out[1](3, 0));
  CHECK(out[0](3, 2) != out[1](3, 2));
}

TEST_CASE("predict: offsets of each row and setting are added on the scale of the predictor") {
  Setting s;
  const auto plain = s.run(1);
  s.offset.assign(2 * kRows * 3, 0.0f);
  const auto zero = s.run(1);
  for (std::size_t k = 0; k < s.offset.size(); ++k)
    s.offset[k] = fixtures::number(static_cast<Index>(k));
  const auto moved = s.run(2);
  const auto log_odds = [](double p) { return std::log(p / (1 - p)); };
  for (Index a : {0, 1}) {
    CHECK(zero[a].view() == plain[a].view());
    const auto received = s.run_received(a);
    for (Index i : {Index{0}, Index{255}, Index{256}, Index{2048}, kRows - 1}) {
      const std::span<const float> own = s.view(a).row(i);
      // Predictors are below 4, of probabilities above 0.02: 1/p roundings of a log-odds.
      for (Index j : {0, 1})
        CHECK_NEAR(log_odds(moved[a](i, j)), log_odds(plain[a](i, j)) + own[j], 200 * 0x1p-24);
      CHECK_NEAR(moved[a](i, 2), plain[a](i, 2) + own[2], 8 * 0x1p-24);
      for (Index j : {0, 1, 2}) CHECK(received[3 * i + j] == moved[a](i, j));
    }
  }
}

TEST_CASE("predict: threads do not change a bit") {
  Setting s;
  const auto one = s.run(1), four = s.run(4);
  for (std::size_t a = 0; a < 2; ++a) CHECK(one[a].view() == four[a].view());
}

TEST_CASE("predict: whichever allocation fails, the caller is told or gets the means") {
  const std::vector<Panel> expected = Setting().run(1);
  const auto run = [] {
    Setting s;
    return s.run(3);
  };
  CHECK(faults::without_memory(run, [&](const std::vector<Panel>& out) {
          return out[0].view() == expected[0].view() && out[1].view() == expected[1].view();
        }) > 10);
}

TEST_CASE("predict: inputs and clamps must fit the network") {
  Setting s;
  s.inputs = {0, 1};
  CHECK_THROWS(s.run(1), InvalidArgument);
  s.inputs = {0, 1, 2};
  s.clamp = Panel(1, 2);
  CHECK_THROWS(s.run(1), InvalidArgument);
  const std::vector<float> offset(2 * kRows * 2);
  CHECK_THROWS(predict(s.spec, s.parameters, s.inputs, s.x.dataset(), s.rows, Panel(2, 3),
                       {.data = offset.data(), .width = 2}, 1, s.hooks),
               InvalidArgument);
}
