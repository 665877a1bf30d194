#include <limits>
#include <memory>

#include "check.hpp"
#include "core/data.hpp"

using namespace cstonet;

namespace {

constexpr Index kRows = 70, kColumns = 67;  // more than one tile of 64 each way
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

float value(Index i, Index j) { return static_cast<float>(i) + 0.25f * static_cast<float>(j); }

// The same matrix as T, row- or column-major.
template <class T>
struct Matrix {
  std::vector<T> values = std::vector<T>(kRows * kColumns);
  std::vector<double> center = std::vector<double>(kColumns, 1.5);
  std::vector<double> inverse_scale = std::vector<double>(kColumns, 0.1);
  Index row_stride, column_stride;

  explicit Matrix(bool row_major)
      : row_stride(row_major ? kColumns : 1), column_stride(row_major ? 1 : kRows) {
    for (Index i = 0; i < kRows; ++i)
      for (Index j = 0; j < kColumns; ++j) values[i * row_stride + j * column_stride] = value(i, j);
  }

  Source source(double limit = kNoLimit) const {
    const auto bytes = static_cast<Index>(sizeof(T));
    return {.data = values.data(),
            .is_double = sizeof(T) == sizeof(double),
            .rows = kRows,
            .columns = kColumns,
            .row_stride = row_stride * bytes,
            .column_stride = column_stride * bytes,
            .center = center,
            .inverse_scale = inverse_scale,
            .limit = limit};
  }
};

template <class T>
void check_gather(bool row_major, std::size_t pack_bytes) {
  const Matrix<T> matrix(row_major);
  const Dataset data(matrix.source(), pack_bytes);
  CHECK(data.is_packed() == (pack_bytes > 0));
  const std::vector<Index> rows{69, 0, 64, 0}, columns{66, 3};
  Panel all(4, kColumns), some(4, 2);
  data.gather_run(rows, 0, all);
  data.gather(rows, columns, some);
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < kColumns; ++j)
      CHECK(all(i, j) == static_cast<float>((value(rows[i], j) - 1.5) * 0.1));
    for (Index j = 0; j < 2; ++j) CHECK(some(i, j) == all(i, columns[j]));
  }
}

}  // namespace

TEST_CASE("data: float and double, both orders, packed or not, give the same rows") {
  for (bool row_major : {true, false}) {
    for (std::size_t pack_bytes : {std::size_t{0}, std::size_t{1} << 30}) {
      check_gather<float>(row_major, pack_bytes);
      check_gather<double>(row_major, pack_bytes);
    }
  }
}

TEST_CASE("data: a gather of fewer rows shortens the batch and leaves the padding zero") {
  const Matrix<float> matrix(true);
  const Dataset data(matrix.source(), 0);
  Panel out(5, kColumns);
  data.gather_run(std::vector<Index>{7}, 0, out);
  CHECK(out.rows() == 1);
  for (Index j = kColumns; j < out.stride(); ++j) CHECK(out.flat()[j] == 0.0f);
}

TEST_CASE("data: values beyond the limit are held at it") {
  const Matrix<double> matrix(true);
  const Dataset data(matrix.source(2.0), 0);
  Panel out(2, kColumns);
  const std::vector<Index> rows{0, 69};
  data.gather_run(rows, 0, out);
  CHECK(out(0, 0) == -0.15f);
  CHECK(out(1, 0) == 2.0f);
}

TEST_CASE("data: packing up to the given size") {
  const Matrix<float> matrix(true);
  const std::size_t needed = kRows * padded(kColumns) * sizeof(float);
  CHECK(Dataset(matrix.source(), needed).is_packed());
  CHECK(!Dataset(matrix.source(), needed - 1).is_packed());
}

TEST_CASE("data: completed covariates show the values given for their gaps") {
  const Matrix<float> matrix(true);
  for (std::size_t pack_bytes : {std::size_t{0}, std::size_t{1} << 30}) {
    const Dataset base(matrix.source(), pack_bytes);
    auto gaps = std::make_shared<Gaps>();
    gaps->first.assign(kRows + 1, 0);
    for (Index i = 3; i <= kRows; ++i) gaps->first[i] = 2;
    gaps->column = {66, 3};  // of row 2
    const Dataset data = base.completed(gaps, Floats{5.0f, -5.0f});
    const std::vector<Index> rows{2, 1}, columns{3, 10, 66};
    Panel all(2, kColumns), some(2, 3), run(2, 3);
    data.gather_run(rows, 0, all);
    data.gather(rows, columns, some);
    data.gather_run(rows, 2, run);
    CHECK(all(0, 66) == 5.0f);
    CHECK(all(0, 3) == -5.0f);
    CHECK(some(0, 0) == -5.0f);
    CHECK(some(0, 2) == 5.0f);
    CHECK(run(0, 1) == -5.0f);
    Panel before(2, kColumns);
    base.gather_run(rows, 0, before);
    for (Index j = 0; j < kColumns; ++j) {
      CHECK(all(1, j) == before(1, j));
      if (j != 3 && j != 66) CHECK(all(0, j) == before(0, j));
    }
    CHECK_THROWS(base.completed(gaps, Floats{1.0f}), std::invalid_argument);
  }
}

TEST_CASE("data: stored entries and the zeros between them, in any order of rows") {
  // Column 0 holds rows 1 and 3, column 1 nothing, column 2 row 0.
  const std::vector<float> values{2.0f, 4.0f, 8.0f};
  const std::vector<std::int32_t> row_index{1, 3, 0}, first_entry{0, 2, 2, 3};
  const std::vector<double> center{1.0, 3.0, 0.0}, inverse_scale{0.5, 1.0, 1.0};
  const Compressed source{.values = values.data(),
                          .is_double = false,
                          .row_index = row_index.data(),
                          .first_entry = first_entry.data(),
                          .is_wide = false,
                          .rows = 4,
                          .columns = 3,
                          .center = center,
                          .inverse_scale = inverse_scale,
                          .limit = 2.0};
  const Dataset data(source);
  const std::vector<Index> rows{3, 0, 1, 1, 2}, columns{0, 2, 1};
  Panel some(5, 3), run(5, 2);
  data.gather(rows, columns, some);
  const float first[] = {1.5f, -0.5f, 0.5f, 0.5f, -0.5f}, third[] = {0, 2, 0, 0, 0};
  data.gather_run(rows, 1, run);
  for (Index i = 0; i < 5; ++i) {
    CHECK(some(i, 0) == first[i]);
    CHECK(some(i, 1) == third[i]);  // 8 is beyond the limit
    CHECK(some(i, 2) == -2.0f);     // so is a zero whose column has its center at 3
    CHECK(run(i, 0) == -2.0f);
    CHECK(run(i, 1) == third[i]);
  }
  const std::vector<std::int32_t> descending{3, 1, 0};
  Compressed wrong = source;
  wrong.row_index = descending.data();
  CHECK_THROWS(Dataset(wrong), std::invalid_argument);
}
