// The kernels that take whole matrices, asked with panels: strides and shapes are worked out here
// and nowhere else. The result has its shape already.
#pragma once

#include <span>

#include "core/types.hpp"

namespace cstonet {

// c = a b. `a` may have more columns than `b` has rows: the last units of a layer feed nothing.
void multiply(const Panel& a, const Panel& b, Panel& c);
// c = a b + bias, one entry of bias per column of c, padding included.
void multiply(const Panel& a, const Panel& b, std::span<const float> bias, Panel& c);
// z = a b + bias and h = ψ(z).
void multiply_activate(Activation kind, const Panel& a, const Panel& b, std::span<const float> bias,
                       Panel& z, Panel& h);
// c = a' b. `a` may have more columns than `c` has rows, as above.
void multiply_transposed(const Panel& a, const Panel& b, Panel& c);
// c += a' b.
void add_multiply_transposed(const Panel& a, const Panel& b, Panel& c);
// out[j] = sum of column j, padding included.
void column_sums(const Panel& a, std::span<float> out);

}  // namespace cstonet
