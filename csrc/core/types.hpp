// Storage shared by the core: a float matrix whose rows are padded for the kernels.
//
// Sizes and indices are signed everywhere (Index), also where they index a standard container.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"

namespace cstonet {

using Index = std::ptrdiff_t;

template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, kAlignment); }
  bool operator==(const AlignedAllocator&) const { return true; }
};

using Floats = std::vector<float, AlignedAllocator<float>>;

inline Index padded(Index columns) { return (columns + kLanes - 1) / kLanes * kLanes; }

// Row-major rows x columns matrix; each row is padded with zeros to a multiple of kLanes.
class Panel {
 public:
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using View = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
  using ConstView = Eigen::Map<const Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;

  Panel() = default;
  Panel(Index rows, Index columns) { reshape(rows, columns); }

  // All zero afterwards.
  void reshape(Index rows, Index columns) {
    const Index stride = padded(columns);
    if (rows > std::numeric_limits<Index>::max() / std::max<Index>(stride, 1))
      throw std::bad_alloc();
    values_.assign(rows * stride, 0.0f);
    rows_ = rows;
    columns_ = columns;
    stride_ = stride;
  }
  // Fewer or as many rows as allocated, contents kept: the last minibatch is shorter.
  void set_rows(Index rows) { rows_ = rows; }
  void set_zero() { std::ranges::fill(flat(), 0.0f); }

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  Index stride() const { return stride_; }
  Index size() const { return rows_ * stride_; }
  PanelShape shape() const { return {rows_, columns_, stride_}; }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  // All rows, one after the other, with their padding.
  std::span<float> flat() { return std::span(values_).first(size()); }
  std::span<const float> flat() const { return std::span(values_).first(size()); }
  // One row without its padding.
  std::span<float> row(Index i) { return std::span(values_).subspan(i * stride_, columns_); }
  std::span<const float> row(Index i) const {
    return std::span(values_).subspan(i * stride_, columns_);
  }
  float& operator()(Index i, Index j) { return values_[i * stride_ + j]; }
  float operator()(Index i, Index j) const { return values_[i * stride_ + j]; }
  View view() { return View(data(), rows_, columns_, Eigen::OuterStride<>(stride_)); }
  ConstView view() const {
    return ConstView(data(), rows_, columns_, Eigen::OuterStride<>(stride_));
  }

 private:
  Index rows_ = 0, columns_ = 0, stride_ = 0;
  Floats values_;
};

// Row `from` of one panel to row `to` of another of the same stride, padding included: whole
// registers are copied faster than a few floats.
inline void copy_row(const Panel& source, Index from, Panel& target, Index to) {
  const float* a = source.data() + from * source.stride();
  float* b = target.data() + to * target.stride();
  for (Index j = 0; j < target.stride(); j += kLanes)
    std::memcpy(b + j, a + j, kLanes * sizeof(float));
}

// Rows of so many floats, one after the other without gaps. A view: of a NumPy array, say.
struct Columns {
  const float* data = nullptr;
  Index width = 0;

  std::span<const float> row(Index i) const {
    return {data + i * width, static_cast<std::size_t>(width)};
  }
};

}  // namespace cstonet
