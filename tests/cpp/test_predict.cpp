#include "check.hpp"
#include "core/errors.hpp"
#include "core/predict.hpp"
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
  Hooks hooks;

  Setting() {
    for (Index k = 0; k < kRows * 5; ++k) x.values[k] = fixtures::number(k);
    for (Index i = 0; i < kRows; ++i) rows.push_back((i * 7) % kRows);
    clamp(1, 0) = 1.0f;
  }
  std::vector<Panel> run(int threads) {
    return predict(spec, parameters, inputs, x.dataset(), rows, clamp, threads, hooks);
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

TEST_CASE("predict: threads do not change a bit") {
  Setting s;
  const auto one = s.run(1), four = s.run(4);
  for (std::size_t a = 0; a < 2; ++a) CHECK(one[a].view() == four[a].view());
}

TEST_CASE("predict: inputs and clamps must fit the network") {
  Setting s;
  s.inputs = {0, 1};
  CHECK_THROWS(s.run(1), InvalidArgument);
  s.inputs = {0, 1, 2};
  s.clamp = Panel(1, 2);
  CHECK_THROWS(s.run(1), InvalidArgument);
}
