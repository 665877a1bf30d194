// The user's covariates as they stand in memory, dense or compressed, and how single numbers of
// them are standardised. Views: whoever makes them keeps the arrays alive.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/types.hpp"

namespace cstonet {

// Standardised value = (x - center) * inverse_scale, held within [-limit, limit]: one outlier must
// not rule. In double, since centers may be large.
inline float standardised(double x, double center, double inverse_scale, double limit) {
  const double z = (x - center) * inverse_scale;
  return static_cast<float>(std::min(std::max(z, -limit), limit));
}

// A matrix of float32 or float64 with any strides: C order, F order, slices, memory maps.
struct Source {
  const void* data;
  bool is_double;
  Index rows, columns;
  Index row_stride, column_stride;  // in bytes
  std::span<const double> center;
  std::span<const double> inverse_scale;
  double limit;

  // out(i, j) = the standardised value at wanted[i] and column first + j, or listed[j].
  void read_run(std::span<const Index> wanted, Index first, Panel& out) const;
  void read(std::span<const Index> wanted, std::span<const Index> listed, Panel& out) const;

 private:
  // Rows that ascend, of columns each of which stands in one piece.
  void read_by_columns(std::span<const Index> wanted, Index first, Panel& out) const;
  template <class T>
  void read_columns(std::span<const Index> wanted, Index first, std::span<const Index> listed,
                    Panel& out) const;
};

// A matrix of which only some entries are stored, column by column with ascending rows (CSC): those
// of column j are the entries first(j) .. first(j + 1) - 1. All others are zero.
struct Compressed {
  const void* values;
  bool is_double;
  const void* row_index;
  const void* first_entry;
  bool is_wide;  // both of these are int64, else int32
  Index rows, columns;
  std::span<const double> center;
  std::span<const double> inverse_scale;
  double limit;

  Index first(Index column) const { return index(first_entry, column); }
  Index row(Index entry) const { return index(row_index, entry); }
  // The standardised value of an entry that is stored, and of those that are not.
  float value(Index entry, Index column) const;
  float zero(Index column) const {
    return standardised(0.0, center[column], inverse_scale[column], limit);
  }
  // Throws unless columns and rows are listed as said above.
  void validate() const;
  void read(std::span<const Index> wanted, std::span<const Index> listed, Panel& out) const;
  // The first entry of a column at or below this row.
  Index lower_bound(Index column, Index wanted) const;

 private:
  Index index(const void* at, Index k) const {
    return is_wide ? static_cast<Index>(static_cast<const std::int64_t*>(at)[k])
                   : static_cast<Index>(static_cast<const std::int32_t*>(at)[k]);
  }
};

}  // namespace cstonet
