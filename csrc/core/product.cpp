#include "core/product.hpp"

#include <cassert>

namespace cstonet {

void multiply(const Panel& a, const Panel& b, std::span<const float> bias, Panel& c) {
  assert(a.rows() == c.rows() && a.columns() >= b.rows() && b.stride() == c.stride());
  assert(bias.empty() || std::ssize(bias) == c.stride());
  kernels().multiply({a.data(), a.stride(), 1}, b.data(), bias.empty() ? nullptr : bias.data(),
                     c.data(), c.rows(), b.rows(), c.stride());
}

void multiply(const Panel& a, const Panel& b, Panel& c) { multiply(a, b, {}, c); }

void multiply_transposed(const Panel& a, const Panel& b, Panel& c) {
  assert(a.rows() == b.rows() && a.columns() >= c.rows() && b.stride() == c.stride());
  kernels().multiply({a.data(), 1, a.stride()}, b.data(), nullptr, c.data(), c.rows(), b.rows(),
                     c.stride());
}

void add_multiply_transposed(const Panel& a, const Panel& b, Panel& c) {
  assert(a.rows() == b.rows() && a.columns() >= c.rows() && b.stride() == c.stride());
  kernels().multiply_add({a.data(), 1, a.stride()}, b.data(), c.data(), c.rows(), b.rows(),
                         c.stride());
}

void column_sums(const Panel& a, std::span<float> out) {
  assert(std::ssize(out) == a.stride());
  kernels().column_sums(a.data(), a.rows(), a.stride(), out.data());
}

}  // namespace cstonet
