// The hot loops of every level this machine can run.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
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
    kernels().multiply({a.data(), 1, a.stride()}, b.data(), nullptr, sum.data(), 5, 7, c.stride());
    kernels().multiply_add({a.data(), 1, a.stride()}, b.data(), c.data(), 5, 7, c.stride());
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
    const Index n = 5;
    for (Activation kind : {Activation::tanh, Activation::sigmoid, Activation::relu}) {
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
                                  .h = h.data(),
                                  .change = change.data(),
                                  .shadow_change = unused.data()},
                                 h.size(), false, false);
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
                                                    1, h.stride(),
                                                    {.velocity = v.data(),
                                                     .d = d.data(),
                                                     .shadow_velocity = v0.data(),
                                                     .shadow_d = d0.data()},
                                                    false);
      float expected = 0.0f;
      for (Index j = 0; j < n; ++j) {
        // A dozen operations on numbers up to 8 (the difference over the variance).
        CHECK_NEAR(v0(0, j), shadow_v(0, j), 100 * kRoundoff);
        CHECK_NEAR(v(0, j) + v0(0, j), v1(0, j), 100 * kRoundoff);
        CHECK_NEAR(d(0, j) + d0(0, j), d1(0, j), 100 * kRoundoff);
        expected = std::max({expected, std::fabs(d(0, j)), std::fabs(d0(0, j))});
      }
      CHECK(largest == expected);
      CHECK(d(0, n - 1) == 0.0f);
    }
  });
}

TEST_CASE("kernels: coupled activations, near and far, from rest and not") {
  at_every_level([] {
    const Index n = 64;
    for (const bool near : {true, false}) {
      Panel z(1, n), shadow(1, n), d(1, n);
      fixtures::fill(z, 3);
      for (Index j = 0; j < n; ++j) {
        z(0, j) *= 3.0f;
        shadow(0, j) = (near ? 0.59f : 5.0f) * number(77 + j);
        d(0, j) = 1e-9f * number(177 + j);
      }
      for (Activation kind : {Activation::tanh, Activation::sigmoid, Activation::relu}) {
        for (const bool first : {true, false}) {
          Panel h(1, n), change(1, n), shadow_change(1, n), at(1, n), exact(1, n), z0(1, n);
          if (first) kernels().activate(kind, z.data(), n, h.data());
          kernels().activate_coupled(kind,
                                     {.z = z.data(),
                                      .shadow = shadow.data(),
                                      .d = d.data(),
                                      .h = h.data(),
                                      .change = change.data(),
                                      .shadow_change = shadow_change.data()},
                                     n, near, first);
          kernels().activate_shifted(kind, z.data(), shadow.data(), n, at.data(), exact.data());
          for (Index j = 0; j < n; ++j) {
            CHECK_NEAR(shadow_change(0, j), exact(0, j), 40 * kRoundoff);
            CHECK_NEAR(h(0, j), at(0, j), 40 * kRoundoff + 1e-9);
          }
          z0.view() = z.view() + shadow.view();
          kernels().activate_shifted(kind, z0.data(), d.data(), n, at.data(), exact.data());
          // Relative accuracy, though 1e-9 is far below the resolution of ψ.
          for (Index j = 0; j < n; ++j)
            CHECK_NEAR(change(0, j), exact(0, j), 1e-9 * 40 * kRoundoff);
        }
      }
    }
  });
}

TEST_CASE("kernels: innovations are masked, scaled differences") {
  at_every_level([] {
    Panel d(2, 3), s(2, 3), mask(1, 3), out(2, 3);
    fixtures::fill(d, 10);
    fixtures::fill(s, 20);
    mask(0, 0) = mask(0, 1) = 1.0f;
    kernels().innovation(d.data(), s.data(), mask.data(), 1e9f, 2, d.stride(), out.data());
    for (Index i = 0; i < 2; ++i) {
      for (Index j = 0; j < 2; ++j)
        CHECK_NEAR(out(i, j), (d(i, j) - s(i, j)) * 1e9, 2e9 * kRoundoff);
      CHECK(out(i, 2) == 0.0f);
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
