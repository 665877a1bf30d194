// The covariates as the kernel reads them: standardised float32 rows, whatever the user's array.
#pragma once

#include <vector>

#include "core/types.hpp"

namespace cstonet {

// A user's matrix: float32 or float64, any strides (C order, F order, slices, memory maps).
struct Source {
  const void* data;
  bool is_double;
  Index rows, columns;
  Index row_stride, column_stride;  // in bytes
  const double* center;             // standardised value = (x - center) * inverse_scale
  const double* inverse_scale;
  double limit;  // standardised values are held within [-limit, limit]: one outlier must not rule

  float at(Index row, Index column) const;
};

class Dataset {
 public:
  // Packs the source into standardised rows at once if that takes at most `pack_bytes`;
  // otherwise every gather reads the source.
  Dataset(const Source& source, std::size_t pack_bytes);

  Index rows() const { return source_.rows; }
  Index columns() const { return source_.columns; }
  bool is_packed() const { return packed_.rows() > 0; }

  // out.row(i) = standardised row rows[i]; all columns, or the listed ones.
  void gather(const Index* rows, Index count, const std::vector<Index>* columns, Panel& out) const;
  // The same for a run of neighbouring columns, as many as `out` has.
  void gather_run(const Index* rows, Index count, Index first_column, Panel& out) const;

 private:
  Source source_;
  Panel packed_;
};

}  // namespace cstonet
