// The covariates as the kernel reads them: standardised float32 rows, whatever the user's array.
#pragma once

#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "core/source.hpp"
#include "core/types.hpp"

namespace cstonet {

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
  // otherwise every gather reads the source and standardises on the way.
  Dataset(const Source& source, std::size_t pack_bytes);
  // Never packed: what is not stored stays so.
  explicit Dataset(const Compressed& source);

  // The same covariates with the missing entries at these standardised values, one per entry. What
  // is packed is shared.
  Dataset completed(std::shared_ptr<const Gaps> gaps, Floats values) const;

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  bool is_packed() const { return packed_ != nullptr; }
  // The stored entries, if all that there is to know stands in them; else null.
  const Compressed* compressed() const {
    return gaps_ ? nullptr : std::get_if<Compressed>(&source_);
  }

  // out.row(i) = the listed columns of the standardised row rows[i].
  void gather(std::span<const Index> rows, std::span<const Index> columns, Panel& out) const;
  // The same for a run of neighbouring columns, as many as `out` has.
  void gather_run(std::span<const Index> rows, Index first_column, Panel& out) const;

 private:
  // Calls put(column, value) for every missing entry of a row.
  template <class Put>
  void for_gaps(Index row, Put&& put) const;

  Index rows_, columns_;
  std::variant<Source, Compressed> source_;
  std::shared_ptr<const Panel> packed_;
  std::shared_ptr<const Gaps> gaps_;
  Floats values_;
};

}  // namespace cstonet
