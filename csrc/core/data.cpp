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
              std::ranges::is_sorted(first),
          "gaps list their entries row by row");
  for (Index c : column) require(c >= 0 && c < columns, "a gap is in a column that does not exist");
}

Dataset::Dataset(const Source& source, std::size_t pack_bytes) : source_(source) {
  const std::size_t bytes = source.rows * padded(source.columns) * sizeof(float);
  if (bytes > pack_bytes) return;
  auto packed = std::make_shared<Panel>(source.rows, source.columns);
  for (Index i0 = 0; i0 < source.rows; i0 += kTile)
    for (Index j0 = 0; j0 < source.columns; j0 += kTile)
      for (Index i = i0; i < std::min(i0 + kTile, source.rows); ++i) {
        const std::span<float> to = packed->row(i);
        for (Index j = j0; j < std::min(j0 + kTile, source.columns); ++j) to[j] = source.at(i, j);
      }
  packed_ = std::move(packed);
}

Dataset Dataset::completed(std::shared_ptr<const Gaps> gaps, Floats values) const {
  require(gaps->rows() == rows(), "gaps list the entries of every row");
  require(std::ssize(values) == gaps->entries(), "one value per missing entry");
  Dataset copy(*this);
  copy.gaps_ = std::move(gaps);
  copy.values_ = std::move(values);
  return copy;
}

template <class Put>
void Dataset::for_gaps(Index row, Put&& put) const {
  if (!gaps_) return;
  for (Index e = gaps_->first[row]; e < gaps_->first[row + 1]; ++e)
    put(gaps_->column[e], values_[e]);
}

void Dataset::gather(std::span<const Index> rows, std::span<const Index> columns,
                     Panel& out) const {
  out.set_rows(std::ssize(rows));
  const Index width = std::ssize(columns);
  for (Index i = 0; i < std::ssize(rows); ++i) {
    const std::span<float> to = out.row(i);
    if (is_packed()) {
      const std::span<const float> from = packed_->row(rows[i]);
      for (Index j = 0; j < width; ++j) to[j] = from[columns[j]];
    } else {
      for (Index j = 0; j < width; ++j) to[j] = source_.at(rows[i], columns[j]);
    }
    for_gaps(rows[i], [&](Index column, float value) {
      for (Index j = 0; j < width; ++j)
        if (columns[j] == column) to[j] = value;
    });
  }
}

void Dataset::gather_run(std::span<const Index> rows, Index first_column, Panel& out) const {
  out.set_rows(std::ssize(rows));
  for (Index i = 0; i < std::ssize(rows); ++i) {
    const std::span<float> to = out.row(i);
    if (is_packed())
      std::ranges::copy(packed_->row(rows[i]).subspan(first_column, to.size()), to.begin());
    else
      for (Index j = 0; j < std::ssize(to); ++j) to[j] = source_.at(rows[i], first_column + j);
    for_gaps(rows[i], [&](Index column, float value) {
      if (column >= first_column && column < first_column + std::ssize(to))
        to[column - first_column] = value;
    });
  }
}

}  // namespace cstonet
