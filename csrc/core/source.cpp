#include "core/source.hpp"

#include <cstring>

#include "core/errors.hpp"

namespace cstonet {
namespace {

// Rows and columns handled together when a source is read by columns: what is written is one cache
// line of each row, what is read a few of each column.
constexpr Index kTileRows = 32, kTileColumns = kLanes;
// Rows that follow each other as closely as this are looked for from one to the next.
constexpr Index kNeighbours = 64;

template <class T>
double number_at(const char* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return static_cast<double>(x);
}

}  // namespace

template <class T>
void Source::read_columns(std::span<const Index> wanted, Index first, std::span<const Index> listed,
                          Panel& out) const {
  const char* base = static_cast<const char*>(data);
  const auto read_tile = [&](Index i0, Index j) {
    const Index column = listed.empty() ? first + j : listed[j];
    const Index end = std::min(i0 + kTileRows, std::ssize(wanted));
    const char* from = base + column * column_stride;
    const double c = center[column], s = inverse_scale[column];
    for (Index i = i0; i < end; ++i)
      out(i, j) = standardised(number_at<T>(from + wanted[i] * row_stride), c, s, limit);
  };
  for (Index j0 = 0; j0 < out.columns(); j0 += kTileColumns)
    for (Index i0 = 0; i0 < std::ssize(wanted); i0 += kTileRows)
      for (Index j = j0; j < std::min(j0 + kTileColumns, out.columns()); ++j) read_tile(i0, j);
}

void Source::read(std::span<const Index> wanted, std::span<const Index> listed, Panel& out) const {
  if (listed.empty()) return;
  if (is_double)
    read_columns<double>(wanted, 0, listed, out);
  else
    read_columns<float>(wanted, 0, listed, out);
}

void Source::read_by_columns(std::span<const Index> wanted, Index first, Panel& out) const {
  const auto standardise =
      is_double ? kernels().standardise_double_column : kernels().standardise_float_column;
  float run[kTileColumns][kNeighbours];
  for (Index j0 = 0; j0 < out.columns(); j0 += kTileColumns) {
    const Index width = std::min(kTileColumns, out.columns() - j0);
    for (Index i0 = 0, end = 0; i0 < std::ssize(wanted); i0 = end) {
      while (end < std::ssize(wanted) && wanted[end] < wanted[i0] + kNeighbours) ++end;
      const Index length = wanted[end - 1] - wanted[i0] + 1;
      for (Index j = 0; j < width; ++j) {
        const Index column = first + j0 + j;
        const char* from = static_cast<const char*>(data) + column * column_stride;
        standardise(from + wanted[i0] * row_stride, center[column], inverse_scale[column], limit,
                    length, run[j]);
      }
      for (Index i = i0; i < end; ++i)
        for (Index j = 0; j < width; ++j) out(i, j0 + j) = run[j][wanted[i] - wanted[i0]];
    }
  }
}

void Source::read_run(std::span<const Index> wanted, Index first, Panel& out) const {
  const Index bytes = is_double ? sizeof(double) : sizeof(float);
  if (column_stride == bytes) {
    const auto standardise =
        is_double ? kernels().standardise_doubles : kernels().standardise_floats;
    const char* base = static_cast<const char*>(data) + first * bytes;
    for (Index i = 0; i < std::ssize(wanted); ++i)
      standardise(base + wanted[i] * row_stride, center.data() + first,
                  inverse_scale.data() + first, limit, out.columns(), out.row(i).data());
  } else if (row_stride == bytes && std::ranges::is_sorted(wanted)) {
    read_by_columns(wanted, first, out);
  } else if (is_double) {
    read_columns<double>(wanted, first, {}, out);
  } else {
    read_columns<float>(wanted, first, {}, out);
  }
}

float Compressed::value(Index entry, Index column) const {
  const double x = is_double ? static_cast<const double*>(values)[entry]
                             : static_cast<double>(static_cast<const float*>(values)[entry]);
  return standardised(x, center[column], inverse_scale[column], limit);
}

void Compressed::validate() const {
  require(first(0) == 0, "first_entry of a sparse matrix begins with 0");
  for (Index j = 0; j < columns; ++j)
    require(first(j) <= first(j + 1), "first_entry of a sparse matrix ascends");
  for (Index j = 0; j < columns; ++j) {
    for (Index e = first(j); e < first(j + 1); ++e)
      require(row(e) >= 0 && row(e) < rows && (e == first(j) || row(e - 1) < row(e)),
              "row_index of a sparse matrix ascends within a column, and names rows that exist");
  }
}

Index Compressed::lower_bound(Index column, Index wanted) const {
  Index low = first(column), high = first(column + 1);
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (row(middle) < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void Compressed::read(std::span<const Index> wanted, std::span<const Index> listed,
                      Panel& out) const {
  for (Index j = 0; j < std::ssize(listed); ++j) {
    const Index column = listed[j], end = first(column + 1);
    const float absent = zero(column);
    Index at = first(column), before = -1;
    for (Index i = 0; i < std::ssize(wanted); ++i) {
      // Neighbours in ascending order are near each other; any other order is searched for.
      const bool near = wanted[i] >= before && wanted[i] <= before + kNeighbours;
      if (!near) at = lower_bound(column, wanted[i]);
      while (at < end && row(at) < wanted[i]) ++at;
      out(i, j) = at < end && row(at) == wanted[i] ? value(at, column) : absent;
      before = wanted[i];
    }
  }
}

}  // namespace cstonet
