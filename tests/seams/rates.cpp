// How long the kernels take, for benchmarks/roofline.py.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>

#include "core/errors.hpp"
#include "core/product.hpp"
#include "core/types.hpp"
#include "kernels/kernels.hpp"
#include "seams.hpp"

namespace cstonet::seams {
namespace {

double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

// Panels of one layer of a minibatch, and the kernels that work on them.
struct Bench {
  Panel x, weights, transposed, first, second, mask, gradient;
  Panel a, b, c, d, e, f, g, h, row_mask;
  Floats bias;

  Bench(Index rows, Index inputs, Index units) : bias(padded(units)) {
    for (Panel* p : {&weights, &first, &second, &mask, &gradient}) p->reshape(inputs, units);
    for (Panel* p : {&a, &b, &c, &d, &e, &f, &g, &h}) p->reshape(rows, units);
    x.reshape(rows, inputs);
    transposed.reshape(units, inputs);
    row_mask.reshape(1, units);
    for (Panel* p : {&mask, &row_mask}) p->view().setOnes();
    for (Panel* p : {&x, &weights, &transposed, &a, &b, &c}) p->view().setConstant(0.01f);
  }

  std::map<std::string, std::function<void()>> kernels_by_name() {
    return {
        {"forward product", [this] { multiply(x, weights, bias, a); }},
        {"gradient product", [this] { multiply_transposed(x, a, gradient); }},
        {"back product", [this] { multiply(a, transposed, x); }},
        {"activation",
         [this] { kernels().activate(Activation::tanh, a.data(), a.size(), b.data()); }},
        {"coupled move", [this] { move(); }},
        {"adam", [this] { update(); }},
        {"normals", [this] { draw(); }},
    };
  }

 private:
  void move() {
    const SghmcPass pass{.step = 1e-3f, .friction = 1.0f, .noise = 1.4f, .inverse_variance = 1e6f};
    kernels().sghmc_coupled(
        Activation::tanh, pass,
        {a.data(), d.data(), d.data(), b.data(), d.data(), c.data(), c.data(), row_mask.data()},
        a.shape(), {nullptr, e.data(), nullptr, f.data(), g.data(), h.data()}, true);
  }
  void update() {
    const AdamPass pass{.rate = 1e-6f,
                        .first_decay = 0.9f,
                        .second_decay = 0.999f,
                        .first_correction = 1.0f,
                        .second_correction = 1.0f,
                        .epsilon = 1e-8f,
                        .gradient_scale = 1e-2f};
    kernels().adam(pass, {0.0f, 0.0f, 1.0f, 1.0f, 1e-3f}, gradient.data(), mask.data(),
                   weights.size(), weights.data(), first.data(), second.data());
  }
  void draw() {
    const std::uint32_t key[2] = {1, 2}, counter[3] = {3, 4, 5};
    kernels().random_normal(key, counter, a.size(), a.data());
  }
};

// Processor seconds of one call, the least of several runs of many.
double seconds_of(const std::function<void()>& call, long calls) {
  double least = 1e30;
  for (int run = 0; run < 7; ++run) {
    const double began = processor_seconds();
    for (long k = 0; k < calls; ++k) call();
    least = std::min(least, (processor_seconds() - began) / static_cast<double>(calls));
  }
  return least;
}

double kernel_seconds(const std::string& name, Index rows, Index inputs, Index units, long calls) {
  for (Index size : {rows, inputs, units, Index{calls}})
    require(size > 0, "rows, inputs, units and calls must be positive");
  Bench bench(rows, inputs, units);
  const auto all = bench.kernels_by_name();
  const auto found = all.find(name);
  require(found != all.end(), "no kernel has the name '" + name + "'");
  return seconds_of(found->second, calls);
}

// Floating-point operations per second of a loop of nothing else.
double peak_flops() {
  constexpr long steps = 2'000'000;
  // Kept where the compiler must write it: the loop is for its time alone.
  [[maybe_unused]] volatile float kept;
  const double seconds = seconds_of([&] { kept = kernels().multiply_adds(steps); }, 1);
  return static_cast<double>(steps) * static_cast<double>(kernels().flops_per_step()) / seconds;
}

// Bytes per second, read and written, of a copy of `floats` numbers.
double copy_bandwidth(Index floats) {
  require(floats > 0, "floats must be positive");
  Floats from(floats, 1.0f), to(floats);
  const long calls = std::max<Index>(1, 50'000'000 / floats);
  const double seconds =
      seconds_of([&] { std::memcpy(to.data(), from.data(), from.size() * sizeof(float)); }, calls);
  return 2.0 * static_cast<double>(floats) * sizeof(float) / seconds;
}

}  // namespace

void register_rates(pybind11::module_& m) {
  m.def("kernel_seconds", kernel_seconds);
  m.def("peak_flops", peak_flops);
  m.def("copy_bandwidth", copy_bandwidth);
}

}  // namespace cstonet::seams
