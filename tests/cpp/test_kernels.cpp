// The hot loops of every level this machine can run.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "core/product.hpp"
#include "fixtures.hpp"
#include "kernels/kernels.hpp"

using namespace cstonet;
using fixtures::number;

namespace {

constexpr double kRoundoff = 0x1p-24;

// Runs `body` once per level, then returns to the level that was in use.
template <class Body>
void at_every_level(Body body) {
  const std::string before = kernels().level;
  const char* names[4];
  const int count = available_levels(names);
  CHECK(count >= 1);
  for (int i = 0; i < count; ++i) {
    CHECK(select_level(names[i]));
    CHECK(std::string(kernels().level) == names[i]);
    body();
  }
  select_level(before.c_str());
}

void check_product(Index rows, Index depth, Index columns, bool transpose, bool with_bias) {
  Panel a(transpose ? depth : rows, transpose ? rows : depth), b(depth, columns), c(rows, columns);
  fixtures::fill(a, 1);
  fixtures::fill(b, 5000);
  Panel bias(1, columns);
  if (with_bias) fixtures::fill(bias, 9000);
  if (transpose)
    multiply_transposed(a, b, c);
  else if (with_bias)
    multiply(a, b, bias.flat(), c);
  else
    multiply(a, b, c);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      double sum = bias(0, j);
      for (Index l = 0; l < depth; ++l)
        sum += static_cast<double>(transpose ? a(l, i) : a(i, l)) * b(l, j);
      // At most depth + 1 roundings of sums of terms below one.
      const double terms = static_cast<double>(depth + 1);
      CHECK_NEAR(c(i, j), sum, terms * terms * kRoundoff);
    }
    for (Index j = columns; j < c.stride(); ++j) CHECK(c(i, j) == 0.0f);
  }
}

}  // namespace

TEST_CASE("kernels: an unknown level is refused and changes nothing") {
  const std::string before = kernels().level;
  CHECK(!select_level("no such level"));
  CHECK(kernels().level == before);
}

TEST_CASE("kernels: products of all shapes, orientations and with or without bias") {
  at_every_level([] {
    for (Index rows : {1, 2, 5, 6, 7, 11, 12, 13, 25})
      for (Index columns : {1, 15, 16, 17, 32, 33, 50})
        for (bool bias : {false, true}) check_product(rows, 9, columns, false, bias);
    for (Index rows : {1, 2, 5, 6, 7, 11, 12, 13, 25})
      for (Index columns : {1, 15, 16, 17, 32, 33, 50})
        check_product(rows, 9, columns, true, false);
    check_product(0, 3, 16, false, true);
    check_product(4, 0, 16, false, true);
  });
}

TEST_CASE("kernels: column sums") {
  at_every_level([] {
    Panel r(7, 20);
    fixtures::fill(r);
    Panel out(1, 20);
    column_sums(r, out.flat());
    for (Index j = 0; j < 20; ++j) {
      double sum = 0;
      for (Index i = 0; i < 7; ++i) sum += r(i, j);
      CHECK_NEAR(out(0, j), sum, 49 * kRoundoff);
    }
  });
}

TEST_CASE("kernels: a product may be added to what is there") {
  at_every_level([] {
    Panel a(7, 5), b(7, 40), c(5, 40), sum(5, 40);
    fixtures::fill(a, 1);
    fixtures::fill(b, 50);
    fixtures::fill(c, 400);
    const Panel before = c;
    multiply_transposed(a, b, sum);
    add_multiply_transposed(a, b, c);
    for (Index i = 0; i < 5; ++i)
      for (Index j = 0; j < 40; ++j) CHECK_NEAR(c(i, j), before(i, j) + sum(i, j), 16 * kRoundoff);
  });
}

TEST_CASE("kernels: an SGHMC move by hand, visible units left alone") {
  at_every_level([] {
    const SghmcPass pass{.step = 0.1f, .friction = 0.25f, .noise = 0.5f, .inverse_variance = 4.0f};
    Panel h(1, 2), s(1, 2), back(1, 2), normal(1, 2), mask(1, 2), v(1, 2), d(1, 2);
    for (Index j = 0; j < 2; ++j) {
      h(0, j) = 0.6f, s(0, j) = 0.2f, back(0, j) = 3.0f, normal(0, j) = -1.0f;
      v(0, j) = 2.0f, d(0, j) = 0.3f;
    }
    mask(0, 0) = 1.0f;
    v(0, 1) = d(0, 1) = 0.0f;
    const LatentInputs inputs{.h = h.data(),
                              .s = s.data(),
                              .back = back.data(),
                              .normal = normal.data(),
                              .mask = mask.data()};
    kernels().sghmc(Activation::tanh, pass, inputs, 1, h.stride(), v.data(), d.data());
    const double gradient = (0.2 - 0.3) * 4 + (1 - 0.36) * 3;
    const double velocity = 0.75 * 2 + 0.1 * gradient - 0.5;
    CHECK_NEAR(v(0, 0), velocity, 20 * kRoundoff);
    CHECK_NEAR(d(0, 0), 0.3 + 0.1 * velocity, 20 * kRoundoff);
    CHECK(v(0, 1) == 0.0f);
    CHECK(d(0, 1) == 0.0f);
  });
}

TEST_CASE("kernels: a coupled move is two moves with the same normals") {
  at_every_level([] {
    const SghmcPass pass{.step = 0.1f, .friction = 0.25f, .noise = 0.5f, .inverse_variance = 4.0f};
    // Widths on both sides of half a register of the widest level.
    for (const auto& [kind, n] : {std::pair{Activation::tanh, 5},
                                  {Activation::tanh, 12},
                                  {Activation::sigmoid, 5},
                                  {Activation::sigmoid, 12},
                                  {Activation::relu, 5},
                                  {Activation::relu, 12}}) {
      Panel r(1, n), r0(1, n);
      Panel z(1, n), mask(1, n), normal(1, n), h(1, n), change(1, n), unused(1, n), h0(1, n);
      Panel s(1, n), back(1, n), v(1, n), d(1, n), s0(1, n), back0(1, n), v0(1, n), d0(1, n);
      Index first = 0;
      for (Panel* p : {&z, &normal, &s, &back, &v, &d, &s0, &back0, &v0, &d0})
        fixtures::fill(*p, first += 31);
      for (Index j = 0; j + 1 < n; ++j) mask(0, j) = 1.0f;
      for (Panel* p : {&v, &d, &v0, &d0}) (*p)(0, n - 1) = 0.0f;  // a visible unit is at rest
      // Each chain on its own: the shadow, and the shadow plus the difference.
      Panel v1(1, n), d1(1, n), s1(1, n), back1(1, n), shadow_v = v0, shadow_d = d0;
      v1.view() = v.view() + v0.view(), d1.view() = d.view() + d0.view();
      s1.view() = s.view() + s0.view(), back1.view() = back.view() + back0.view();
      kernels().activate_coupled(kind,
                                 {.z = z.data(),
                                  .shadow = d0.data(),
                                  .d = d.data(),
                                  .mask = mask.data(),
                                  .h = h.data(),
                                  .change = change.data(),
                                  .shadow_change = unused.data()},
                                 h.shape(), Distance::far, false);
      h0.view() = h.view() - change.view();
      const auto single = [&](Panel& of, Panel& shift, Panel& pull, Panel& velocity, Panel& at) {
        kernels().sghmc(kind, pass,
                        {.h = of.data(),
                         .s = shift.data(),
                         .back = pull.data(),
                         .normal = normal.data(),
                         .mask = mask.data()},
                        1, of.stride(), velocity.data(), at.data());
      };
      single(h0, s0, back0, shadow_v, shadow_d);
      single(h, s1, back1, v1, d1);
      const float largest = kernels().sghmc_coupled(kind, pass,
                                                    {.h = h.data(),
                                                     .change = change.data(),
                                                     .s = s.data(),
                                                     .back = back.data(),
                                                     .shadow_s = s0.data(),
                                                     .shadow_back = back0.data(),
                                                     .normal = normal.data(),
                                                     .mask = mask.data()},
                                                    h.shape(),
                                                    {.velocity = v.data(),
                                                     .d = d.data(),
                                                     .shadow_velocity = v0.data(),
                                                     .shadow_d = d0.data(),
                                                     .residual = r.data(),
                                                     .shadow_residual = r0.data()},
                                                    false);
      float expected = 0.0f;
      for (Index j = 0; j < n; ++j) {
        // A dozen operations on numbers up to 8 (the difference over the variance).
        CHECK_NEAR(v0(0, j), shadow_v(0, j), 100 * kRoundoff);
        CHECK_NEAR(v(0, j) + v0(0, j), v1(0, j), 100 * kRoundoff);
        CHECK_NEAR(d(0, j) + d0(0, j), d1(0, j), 100 * kRoundoff);
        expected = std::max({expected, std::fabs(d(0, j)), std::fabs(d0(0, j))});
        // Differences of numbers up to 8 over the variance, of latent units alone.
        CHECK_NEAR(r(0, j), mask(0, j) * 4.0 * (d(0, j) - s(0, j)), 64 * kRoundoff);
        CHECK_NEAR(r0(0, j), mask(0, j) * 4.0 * (d0(0, j) - s0(0, j)), 64 * kRoundoff);
      }
      CHECK(largest == expected);
      CHECK(d(0, n - 1) == 0.0f);
    }
  });
}

TEST_CASE("kernels: coupled activations at every distance, from rest and not") {
  at_every_level([] {
    const Index n = 64;
    const std::pair<Distance, float> reach[] = {
        {Distance::close, 0.029f}, {Distance::near, 0.59f}, {Distance::far, 5.0f}};
    for (const auto& [distance, farthest] : reach) {
      Panel z(1, n), shadow(1, n), d(1, n), mask(1, n);
      fixtures::fill(z, 3);
      for (Index j = 0; j < n; ++j) {
        z(0, j) *= 3.0f;
        shadow(0, j) = farthest * number(77 + j);
        d(0, j) = 1e-9f * number(177 + j);
        mask(0, j) = static_cast<float>(j > 0);
      }
      for (Activation kind : {Activation::tanh, Activation::sigmoid, Activation::relu}) {
        for (const bool first : {true, false}) {
          Panel h(1, n), change(1, n), shadow_change(1, n), at(1, n), exact(1, n), z0(1, n);
          if (first) kernels().activate(kind, z.data(), n, h.data());
          const float observed = 0.75f;
          h(0, 0) = observed;
          kernels().activate_coupled(kind,
                                     {.z = z.data(),
                                      .shadow = shadow.data(),
                                      .d = d.data(),
                                      .mask = mask.data(),
                                      .h = h.data(),
                                      .change = change.data(),
                                      .shadow_change = shadow_change.data()},
                                     h.shape(), distance, first);
          CHECK(h(0, 0) == observed);
          kernels().activate_shifted(kind, z.data(), shadow.data(), n, at.data(), exact.data());
          for (Index j = 1; j < n; ++j) {
            CHECK_NEAR(shadow_change(0, j), exact(0, j), 40 * kRoundoff);
            CHECK_NEAR(h(0, j), at(0, j), 40 * kRoundoff + 1e-9);
          }
          z0.view() = z.view() + shadow.view();
          kernels().activate_shifted(kind, z0.data(), d.data(), n, at.data(), exact.data());
          // Relative accuracy, though 1e-9 is far below the resolution of ψ.
          for (Index j = 1; j < n; ++j)
            CHECK_NEAR(change(0, j), exact(0, j), 1e-9 * 40 * kRoundoff);
        }
      }
    }
  });
}

TEST_CASE("kernels: a first move of a pair starts at rest, whatever was there") {
  at_every_level([] {
    const SghmcPass pass{.step = 0.1f, .friction = 0.25f, .noise = 0.5f, .inverse_variance = 4.0f};
    for (const Index n : {5, 20}) {
      Panel h(3, n), zero(3, n), back(3, n), back0(3, n), normal(3, n), mask(1, n);
      Panel v(3, n), d(3, n), v0(3, n), d0(3, n), r(3, n), r0(3, n);
      Index first = 0;
      for (Panel* p : {&h, &back, &back0, &normal}) fixtures::fill(*p, first += 31);
      for (Index j = 0; j + 1 < n; ++j) mask(0, j) = 1.0f;
      const CoupledInputs in{.h = h.data(),
                             .change = zero.data(),
                             .s = zero.data(),
                             .back = back.data(),
                             .shadow_s = zero.data(),
                             .shadow_back = back0.data(),
                             .normal = normal.data(),
                             .mask = mask.data()};
      const CoupledLatents at_rest{v.data(), d.data(), v0.data(), d0.data(), r.data(), r0.data()};
      kernels().sghmc_coupled(Activation::tanh, pass, in, h.shape(), at_rest, false);
      Panel d1(3, n), d2(3, n), r1(3, n), r2(3, n);
      for (Panel* p : {&d1, &d2, &r1, &r2}) fixtures::fill(*p, 7);
      const CoupledLatents anywhere{nullptr, d1.data(), nullptr, d2.data(), r1.data(), r2.data()};
      kernels().sghmc_coupled(Activation::tanh, pass, in, h.shape(), anywhere, true);
      for (Index i = 0; i < 3; ++i)
        for (Index j = 0; j < n; ++j) {
          CHECK_NEAR(d1(i, j), d(i, j), 8 * kRoundoff);
          CHECK_NEAR(d2(i, j), d0(i, j), 8 * kRoundoff);
          CHECK_NEAR(r1(i, j), r(i, j), 32 * kRoundoff);
          CHECK_NEAR(r2(i, j), r0(i, j), 32 * kRoundoff);
        }
    }
  });
}

TEST_CASE("kernels: innovations are masked, scaled differences") {
  at_every_level([] {
    for (const Index columns : {3, 11}) {
      Panel d(2, columns), s(2, columns), mask(1, columns), out(2, columns);
      fixtures::fill(d, 10);
      fixtures::fill(s, 20);
      mask(0, 0) = mask(0, 1) = 1.0f;
      kernels().innovation(d.data(), s.data(), mask.data(), 1e9f, d.shape(), out.data());
      for (Index i = 0; i < 2; ++i) {
        for (Index j = 0; j < 2; ++j)
          CHECK_NEAR(out(i, j), (d(i, j) - s(i, j)) * 1e9, 2e9 * kRoundoff);
        CHECK(out(i, 2) == 0.0f);
      }
    }
  });
}

TEST_CASE("kernels: activations and their changes") {
  at_every_level([] {
    const Index n = 64;
    Panel z(1, n), d(1, n), h(1, n), change(1, n), plain(1, n);
    fixtures::fill(z, 3);
    for (Index j = 0; j < n; ++j) d(0, j) = 1e-9f * number(77 + j);
    for (Activation kind : {Activation::tanh, Activation::sigmoid, Activation::relu}) {
      kernels().activate(kind, z.data(), n, plain.data());
      kernels().activate_shifted(kind, z.data(), d.data(), n, h.data(), change.data());
      for (Index j = 0; j < n; ++j) {
        const double x = z(0, j);
        const double value = kind == Activation::tanh      ? std::tanh(x)
                             : kind == Activation::sigmoid ? 1 / (1 + std::exp(-x))
                                                           : std::max(x, 0.0);
        const double slope = kind == Activation::tanh      ? 1 - value * value
                             : kind == Activation::sigmoid ? value * (1 - value)
                                                           : (x > 0);
        CHECK_NEAR(plain(0, j), value, 6 * kRoundoff);
        CHECK_NEAR(h(0, j), value, 6 * kRoundoff + 1e-9);
        // A change of 1e-9, far below the resolution of ψ, is right to float32 accuracy.
        CHECK_NEAR(change(0, j), slope * d(0, j), 1e-9 * 16 * kRoundoff);
      }
    }
  });
}

TEST_CASE("kernels: sums of squares skip what is masked, and agree at all levels") {
  Panel x(1, 48), mask(1, 48);
  fixtures::fill(x);
  for (Index j = 0; j < 48; ++j) mask(0, j) = static_cast<float>(j % 3 != 0);
  double expected = 0;
  for (Index j = 0; j < 48; ++j) expected += mask(0, j) * double(x(0, j)) * x(0, j);
  std::vector<double> sums;
  at_every_level([&] { sums.push_back(kernels().sum_squares(x.data(), mask.data(), 48)); });
  for (double sum : sums) CHECK_NEAR(sum, expected, 1e-13);
}

TEST_CASE("kernels: a squared norm of a sum, masked, of many rows") {
  at_every_level([] {
    Panel a(150, 19), b(150, 19), mask(1, 19);
    fixtures::fill(a, 1);
    fixtures::fill(b, 5000);
    for (Index j = 0; j < 19; ++j) mask(0, j) = static_cast<float>(j % 4 != 0);
    double alone = 0, both = 0;
    for (Index i = 0; i < 150; ++i)
      for (Index j = 0; j < 19; ++j) {
        alone += mask(0, j) * double(a(i, j)) * a(i, j);
        both += mask(0, j) * (double(a(i, j)) + b(i, j)) * (double(a(i, j)) + b(i, j));
      }
    // 64 rows and two registers are summed in float32: that many roundings of partial sums at most.
    const double allowed = 130 * kRoundoff;
    CHECK_NEAR(kernels().squared_norm(a.data(), nullptr, mask.data(), a.shape()), alone,
               allowed * alone);
    CHECK_NEAR(kernels().squared_norm(a.data(), b.data(), mask.data(), a.shape()), both,
               allowed * both);
  });
}

TEST_CASE("kernels: logistic and softplus to double precision, at any predictor") {
  at_every_level([] {
    std::vector<float> eta{-1e4f, -700.0f, -100.0f, -1e-20f, 0.0f, 1e-20f, 100.0f, 1e4f};
    for (Index k = 0; k < 101; ++k) eta.push_back(40.0f * number(k));
    const Index n = std::ssize(eta);
    std::vector<float> mean(n);
    std::vector<double> normalizer(n);
    kernels().logistic(eta.data(), n, mean.data());
    kernels().softplus(eta.data(), n, normalizer.data());
    for (Index k = 0; k < n; ++k) {
      const double x = std::clamp(double{eta[k]}, -700.0, 700.0);
      const double expected = 1 / (1 + std::exp(-x));
      // Numbers below the range of float32 are zero.
      CHECK_NEAR(mean[k], expected, 1.001 * kRoundoff * expected + 1.2e-38);
      const double log_sum = std::max(double{eta[k]}, 0.0) + std::log1p(std::exp(-std::fabs(x)));
      CHECK_NEAR(normalizer[k], log_sum, 8 * 0x1p-53 * log_sum);
    }
  });
}

TEST_CASE("kernels: a product with its activation") {
  at_every_level([] {
    for (Activation kind : {Activation::tanh, Activation::sigmoid, Activation::relu})
      for (const Index columns : {3, 8, 9, 40})
        for (const Index rows : {1, 96, 130}) {
          Panel a(rows, 5), b(5, columns), bias(1, columns), z(rows, columns), h(rows, columns);
          Panel expected_z(rows, columns), expected_h(rows, columns);
          fixtures::fill(a, 1);
          fixtures::fill(b, 5000);
          fixtures::fill(bias, 9000);
          multiply_activate(kind, a, b, bias.flat(), z, h);
          multiply(a, b, bias.flat(), expected_z);
          kernels().activate(kind, expected_z.data(), expected_z.size(), expected_h.data());
          // The same sums, though in blocks of other sizes; the compiler may round ψ otherwise.
          CHECK((z.view() - expected_z.view()).cwiseAbs().maxCoeff() == 0.0f);
          CHECK((h.view() - expected_h.view()).cwiseAbs().maxCoeff() <= 4 * kRoundoff);
        }
  });
}

TEST_CASE("kernels: adam without a prior and with a ridge is adam with the mixture's limits") {
  at_every_level([] {
    const AdamPass pass{.rate = 0.01f,
                        .first_decay = 0.9f,
                        .second_decay = 0.999f,
                        .first_correction = 10.0f,
                        .second_correction = 1000.0f,
                        .epsilon = 1e-8f,
                        .gradient_scale = 0.02f};
    const PriorPass none{}, ridge{0.0f, 0.0f, 3.0f, 3.0f, 0.1f};
    // Components that differ too little to matter, so that the general formula is taken.
    const PriorPass nearly{0.0f, 1e-30f, 3.0f, 3.0f, 0.1f};
    const auto updated = [&](const PriorPass& prior) {
      Panel w(2, 20), gradient(2, 20), mask(2, 20), first(2, 20), second(2, 20);
      fixtures::fill(w, 5);
      fixtures::fill(gradient, 90);
      mask.view().setOnes();
      mask(1, 3) = 0.0f;
      kernels().adam(pass, prior, gradient.data(), mask.data(), w.size(), w.data(), first.data(),
                     second.data());
      CHECK(w(1, 3) == 0.0f);
      return first;
    };
    const Panel free = updated(none), pulled = updated(ridge), general = updated(nearly);
    for (Index i = 0; i < 2; ++i)
      for (Index j = 0; j < 20; ++j) {
        const double g = 0.02 * number(90 + 20 * i + j), w = number(5 + 20 * i + j);
        CHECK_NEAR(free(i, j), 0.1 * g, 4 * kRoundoff);
        CHECK_NEAR(pulled(i, j), 0.1 * (g - 0.3 * w), 8 * kRoundoff);
        CHECK_NEAR(general(i, j), pulled(i, j), 8 * kRoundoff);
      }
  });
}

TEST_CASE("kernels: normals of the first columns are those of whole rows") {
  at_every_level([] {
    const std::uint32_t key[2] = {1, 2}, counter[3] = {3, 4, 5};
    for (const Index columns : {1, 4, 5, 8, 13, 16, 20, 32})
      for (const Index rows : {1, 7, 40}) {
        Panel whole(rows, columns), part(rows, columns);
        part.view().setConstant(99.0f);
        kernels().random_normal(key, counter, whole.size(), whole.data());
        kernels().random_normal_rows(key, counter, part.shape(), part.data());
        CHECK(part.view() == whole.view());
      }
  });
}

TEST_CASE("kernels: random numbers have the same bits at every level") {
  const std::uint32_t key[2] = {1, 2}, counter[3] = {3, 4, 5};
  std::vector<std::vector<float>> draws;
  at_every_level([&] {
    draws.emplace_back(1003);
    kernels().random_normal(key, counter, 1003, draws.back().data());
  });
  for (const auto& other : draws)
    CHECK(std::memcmp(other.data(), draws[0].data(), 1003 * sizeof(float)) == 0);
}

TEST_CASE("kernels: short fills write nothing beyond their end") {
  at_every_level([] {
    const std::uint32_t key[2] = {1, 2}, counter[3] = {3, 4, 5};
    for (long n : {0L, 1L, 63L, 64L, 65L}) {
      std::vector<float> out(static_cast<std::size_t>(n) + 4, 99.0f);
      kernels().random_normal(key, counter, n, out.data());
      for (std::size_t k = static_cast<std::size_t>(n); k < out.size(); ++k) CHECK(out[k] == 99.0f);
    }
  });
}
