// The covariates as the kernel reads them: standardised float32 rows, whatever the user's array.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace cstonet {

// A user's matrix: float32 or float64, any strides (C order, F order, slices, memory maps). A view:
// whoever makes it keeps the arrays alive.
struct Source {
  const void* data;
  bool is_double;
  Index rows, columns;
  Index row_stride, column_stride;  // in bytes
  std::span<const double> center;   // standardised value = (x - center) * inverse_scale
  std::span<const double> inverse_scale;
  double limit;  // standardised values are held within [-limit, limit]: one outlier must not rule

  float at(Index row, Index column) const;
};

// Entries of the covariates that were not observed, row by row: those of row i are the entries
// first[i] .. first[i + 1] - 1.
struct Gaps {
  std::vector<Index> first;   // rows + 1
  std::vector<Index> column;  // of each entry

  Index rows() const { return std::ssize(first) - 1; }
  Index entries() const { return std::ssize(column); }
  // Throws unless the entries are listed as above and lie in this many columns.
  void validate(Index columns) const;
};

class Dataset {
 public:
  // Packs the source into standardised rows at once if that takes at most `pack_bytes`;
  // otherwise every gather reads the source.
  Dataset(const Source& source, std::size_t pack_bytes);

  // The same covariates with the missing entries at these standardised values, one per entry. What
  // is packed is shared.
  Dataset completed(std::shared_ptr<const Gaps> gaps, Floats values) const;

  Index rows() const { return source_.rows; }
  Index columns() const { return source_.columns; }
  bool is_packed() const { return packed_ != nullptr; }

  // out.row(i) = the listed columns of the standardised row rows[i].
  void gather(std::span<const Index> rows, std::span<const Index> columns, Panel& out) const;
  // The same for a run of neighbouring columns, as many as `out` has.
  void gather_run(std::span<const Index> rows, Index first_column, Panel& out) const;

 private:
  // Calls put(column, value) for every missing entry of a row.
  template <class Put>
  void for_gaps(Index row, Put&& put) const;

  Source source_;
  std::shared_ptr<const Panel> packed_;
  std::shared_ptr<const Gaps> gaps_;
  Floats values_;
};

}  // namespace cstonet
