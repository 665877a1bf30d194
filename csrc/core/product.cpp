#include "core/product.hpp"

#include <cassert>

namespace cstonet {
namespace {

Left as_is(const Panel& a) { return {.data = a.data(), .stride = a.stride(), .transposed = false}; }

Left transposed(const Panel& a) {
  return {.data = a.data(), .stride = a.stride(), .transposed = true};
}

ProductShape shape_of(const Panel& b, const Panel& c) {
  return {.rows = c.rows(), .depth = b.rows(), .columns = c.columns(), .stride = c.stride()};
}

}  // namespace

void multiply(const Panel& a, const Panel& b, std::span<const float> bias, Panel& c) {
  assert(a.rows() == c.rows() && a.columns() >= b.rows() && b.stride() == c.stride());
  assert(bias.empty() || std::ssize(bias) == c.stride());
  kernels().multiply(as_is(a), b.data(), bias.empty() ? nullptr : bias.data(), c.data(),
                     shape_of(b, c));
}

void multiply(const Panel& a, const Panel& b, Panel& c) { multiply(a, b, {}, c); }

void multiply_activate(Activation kind, const Panel& a, const Panel& b, std::span<const float> bias,
                       Panel& z, Panel& h) {
  assert(a.rows() == z.rows() && a.columns() >= b.rows() && b.stride() == z.stride());
  assert(std::ssize(bias) == z.stride() && h.size() == z.size());
  kernels().forward(kind, as_is(a), b.data(), bias.data(), z.data(), h.data(), shape_of(b, z));
}

void multiply_transposed(const Panel& a, const Panel& b, Panel& c) {
  assert(a.rows() == b.rows() && a.columns() >= c.rows() && b.stride() == c.stride());
  kernels().multiply(transposed(a), b.data(), nullptr, c.data(), shape_of(b, c));
}

void add_multiply_transposed(const Panel& a, const Panel& b, Panel& c) {
  assert(a.rows() == b.rows() && a.columns() >= c.rows() && b.stride() == c.stride());
  kernels().multiply_add(transposed(a), b.data(), c.data(), shape_of(b, c));
}

void column_sums(const Panel& a, std::span<float> out) {
  assert(std::ssize(out) == a.stride());
  kernels().column_sums(a.data(), a.rows(), a.stride(), out.data());
}

}  // namespace cstonet
