// What panels add to the kernels, whose own tests are in test_kernels.cpp: shapes.
#include "check.hpp"
#include "core/product.hpp"
#include "fixtures.hpp"

using namespace cstonet;

namespace {

Panel filled(Index rows, Index columns, Index first) {
  Panel panel(rows, columns);
  fixtures::fill(panel, first);
  return panel;
}

Panel first_columns(const Panel& panel, Index columns) {
  Panel out(panel.rows(), columns);
  out.view() = panel.view().leftCols(columns);
  return out;
}

}  // namespace

TEST_CASE("product: the last columns of the left factor may go unused") {
  const Panel wide = filled(5, 20, 1), narrow = first_columns(wide, 3);
  const Panel right = filled(3, 18, 500), below = filled(5, 18, 900);
  Panel from_wide(5, 18), from_narrow(5, 18);
  multiply(wide, right, from_wide);
  multiply(narrow, right, from_narrow);
  CHECK(from_wide.view() == from_narrow.view());
  Panel transposed_wide(3, 18), transposed_narrow(3, 18);
  multiply_transposed(wide, below, transposed_wide);
  multiply_transposed(narrow, below, transposed_narrow);
  CHECK(transposed_wide.view() == transposed_narrow.view());
}

TEST_CASE("product: a bias is added to every row, none is zero") {
  const Panel left = filled(4, 3, 1), right = filled(3, 5, 500);
  Floats bias(padded(5));
  Panel plain(4, 5), zero(4, 5), shifted(4, 5);
  multiply(left, right, plain);
  multiply(left, right, bias, zero);
  CHECK(plain.view() == zero.view());
  bias[2] = 100.0f;
  multiply(left, right, bias, shifted);
  for (Index i = 0; i < 4; ++i) {
    CHECK(shifted(i, 1) == plain(i, 1));
    // Sums near 100 in float32: three roundings of 2^-17.
    CHECK_NEAR(shifted(i, 2), plain(i, 2) + 100.0, 3 * 0x1p-17);
  }
}

TEST_CASE("product: a batch shorter than its panel leaves the other rows out") {
  Panel left = filled(6, 3, 1), right = filled(3, 5, 500), out(6, 5);
  left.set_rows(2);
  out.set_rows(2);
  multiply(left, right, out);
  out.set_rows(6);
  CHECK(out(1, 0) != 0.0f);
  for (Index i = 2; i < 6; ++i) CHECK(out(i, 0) == 0.0f);
}
