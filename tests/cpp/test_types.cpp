#include <cstdint>

#include "check.hpp"
#include "core/types.hpp"

using namespace cstonet;

TEST_CASE("types: rows are padded with zeros to whole registers and aligned") {
  Panel panel(3, 17);
  CHECK(panel.stride() == 32);
  CHECK(panel.size() == 96);
  CHECK(reinterpret_cast<std::uintptr_t>(panel.data()) % 64 == 0);
  panel.view().setOnes();
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 32; ++j) CHECK(panel.flat()[32 * i + j] == (j < 17 ? 1.0f : 0.0f));
  CHECK(panel.row(2).size() == 17);
  CHECK(panel.row(2).data() == panel.data() + 64);
  CHECK(padded(0) == 0);
  CHECK(padded(16) == 16);
  CHECK(padded(33) == 48);
}

TEST_CASE("types: a shorter batch keeps the panel's memory and contents") {
  Panel panel(4, 2);
  panel(1, 1) = 5.0f;
  const float* before = panel.data();
  panel.set_rows(2);
  CHECK(panel.rows() == 2);
  CHECK(panel.data() == before);
  CHECK(panel(1, 1) == 5.0f);
  panel.set_zero();
  CHECK(panel(1, 1) == 0.0f);
}

TEST_CASE("types: a panel may have no columns") {
  Panel panel(3, 0);
  CHECK(panel.size() == 0);
  CHECK(panel.view().cols() == 0);
}
