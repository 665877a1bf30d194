#include "core/data.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/errors.hpp"

namespace cstonet {
namespace {

// Columns handled together when the source is column-major, so that each cache line of it is read
// once for the rows it holds.
constexpr Index kTile = 64;

}  // namespace

float Source::at(Index row, Index column) const {
  const char* p = static_cast<const char*>(data) + row * row_stride + column * column_stride;
  double x;
  if (is_double) {
    std::memcpy(&x, p, sizeof x);
  } else {
    float f;
    std::memcpy(&f, p, sizeof f);
    x = f;
  }
  const double z = (x - center[column]) * inverse_scale[column];
  return static_cast<float>(std::min(std::max(z, -limit), limit));
}

void Gaps::validate(Index columns) const {
  require(!first.empty() && first.front() == 0 && first.back() == entries() &&
              std::is_sorted(first.begin(), first.end()),
          "gaps list their entries row by row");
  for (Index c : column) require(c >= 0 && c < columns, "a gap is in a column that does not exist");
}

Dataset::Dataset(const Source& source, std::size_t pack_bytes) : source_(source) {
  const auto bytes = static_cast<std::size_t>(source.rows * padded(source.columns)) * sizeof(float);
  if (bytes > pack_bytes) return;
  auto packed = std::make_shared<Panel>(source.rows, source.columns);
  for (Index i0 = 0; i0 < source.rows; i0 += kTile)
    for (Index j0 = 0; j0 < source.columns; j0 += kTile)
      for (Index i = i0; i < std::min(i0 + kTile, source.rows); ++i)
        for (Index j = j0; j < std::min(j0 + kTile, source.columns); ++j)
          (*packed)(i, j) = source.at(i, j);
  packed_ = std::move(packed);
}

Dataset Dataset::completed(std::shared_ptr<const Gaps> gaps, Floats values) const {
  require(gaps->rows() == rows(), "gaps list the entries of every row");
  require(static_cast<Index>(values.size()) == gaps->entries(), "one value per missing entry");
  Dataset copy(*this);
  copy.gaps_ = std::move(gaps);
  copy.values_ = std::move(values);
  return copy;
}

void Dataset::fill(Index row, const std::vector<Index>* columns, Index first, Index width,
                   float* to) const {
  if (!gaps_) return;
  const auto at = static_cast<std::size_t>(row);
  for (Index e = gaps_->first[at]; e < gaps_->first[at + 1]; ++e) {
    const Index column = gaps_->column[static_cast<std::size_t>(e)];
    const float value = values_[static_cast<std::size_t>(e)];
    if (columns) {
      for (Index j = 0; j < width; ++j)
        if ((*columns)[static_cast<std::size_t>(j)] == column) to[j] = value;
    } else if (column >= first && column < first + width) {
      to[column - first] = value;
    }
  }
}

void Dataset::gather(const Index* rows, Index count, const std::vector<Index>* columns,
                     Panel& out) const {
  out.set_rows(count);
  const Index width = columns ? static_cast<Index>(columns->size()) : source_.columns;
  for (Index i = 0; i < count; ++i) {
    float* to = out.row(i);
    if (!is_packed()) {
      for (Index j = 0; j < width; ++j)
        to[j] = source_.at(rows[i], columns ? (*columns)[static_cast<std::size_t>(j)] : j);
    } else if (columns) {
      const float* from = packed_->row(rows[i]);
      for (Index j = 0; j < width; ++j) to[j] = from[(*columns)[static_cast<std::size_t>(j)]];
    } else {
      std::copy_n(packed_->row(rows[i]), width, to);
    }
    fill(rows[i], columns, 0, width, to);
  }
}

void Dataset::gather_run(const Index* rows, Index count, Index first_column, Panel& out) const {
  out.set_rows(count);
  for (Index i = 0; i < count; ++i) {
    float* to = out.row(i);
    if (is_packed())
      std::copy_n(packed_->row(rows[i]) + first_column, out.columns(), to);
    else
      for (Index j = 0; j < out.columns(); ++j) to[j] = source_.at(rows[i], first_column + j);
    fill(rows[i], nullptr, first_column, out.columns(), to);
  }
}

}  // namespace cstonet
