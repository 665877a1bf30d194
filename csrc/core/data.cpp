#include "core/data.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/errors.hpp"

namespace cstonet {
namespace {

// Rows packed at a time.
constexpr Index kTile = 64;

}  // namespace

void Gaps::validate(Index columns) const {
  require(!first.empty() && first.front() == 0 && first.back() == entries() &&
              std::ranges::is_sorted(first),
          "first, which lists gaps row by row, must ascend from 0 to their number");
  for (Index c : column)
    require(c >= 0 && c < columns, "column, of gaps, names one that does not exist");
}

Dataset::Dataset(const Source& source, std::size_t pack_bytes)
    : rows_(source.rows), columns_(source.columns), source_(source) {
  const std::size_t bytes = source.rows * padded(source.columns) * sizeof(float);
  if (bytes > pack_bytes) return;
  auto packed = std::make_shared<Panel>(source.rows, source.columns);
  std::vector<Index> rows(kTile);
  Panel tile(kTile, source.columns);
  for (Index first = 0; first < source.rows; first += kTile) {
    rows.resize(std::min(kTile, source.rows - first));
    std::iota(rows.begin(), rows.end(), first);
    tile.set_rows(std::ssize(rows));
    source.read_run(rows, 0, tile);
    std::ranges::copy(tile.flat(), packed->data() + first * packed->stride());
  }
  packed_ = std::move(packed);
}

Dataset::Dataset(const Compressed& source)
    : rows_(source.rows), columns_(source.columns), source_(source) {
  source.validate();
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
  for (Index e = gaps_->first[row]; e < gaps_->first[row + 1]; ++e)
    put(gaps_->column[e], values_[e]);
}

void Dataset::gather(std::span<const Index> rows, std::span<const Index> columns,
                     Panel& out) const {
  out.set_rows(std::ssize(rows));
  const Index width = std::ssize(columns);
  if (is_packed()) {
    for (Index i = 0; i < std::ssize(rows); ++i) {
      const std::span<const float> from = packed_->row(rows[i]);
      const std::span<float> to = out.row(i);
      for (Index j = 0; j < width; ++j) to[j] = from[columns[j]];
    }
  } else {
    std::visit([&](const auto& source) { source.read(rows, columns, out); }, source_);
  }
  if (!gaps_) return;
  for (Index i = 0; i < std::ssize(rows); ++i)
    for_gaps(rows[i], [&](Index column, float value) {
      for (Index j = 0; j < width; ++j)
        if (columns[j] == column) out(i, j) = value;
    });
}

void Dataset::gather_run(std::span<const Index> rows, Index first_column, Panel& out) const {
  out.set_rows(std::ssize(rows));
  const Index width = out.columns();
  if (is_packed()) {
    // The C library copies with the widest registers there are, whatever this file is compiled for.
    for (Index i = 0; i < std::ssize(rows); ++i)
      std::memcpy(out.row(i).data(), packed_->row(rows[i]).data() + first_column,
                  width * sizeof(float));
  } else if (const auto* source = std::get_if<Source>(&source_)) {
    source->read_run(rows, first_column, out);
  } else {
    std::vector<Index> columns(width);
    std::iota(columns.begin(), columns.end(), first_column);
    std::get<Compressed>(source_).read(rows, columns, out);
  }
  if (!gaps_) return;
  for (Index i = 0; i < std::ssize(rows); ++i)
    for_gaps(rows[i], [&](Index column, float value) {
      if (column >= first_column && column < first_column + width)
        out(i, column - first_column) = value;
    });
}

}  // namespace cstonet
