// Storage shared by the core: a float matrix whose rows are padded for the kernels.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <new>
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
  bool operator!=(const AlignedAllocator&) const { return false; }
};

using Floats = std::vector<float, AlignedAllocator<float>>;

inline Index padded(Index columns) { return (columns + kLanes - 1) / kLanes * kLanes; }

// Row-major rows x columns matrix; each row is padded with zeros to a multiple of kLanes.
class Panel {
 public:
  using View = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                          Eigen::Unaligned, Eigen::OuterStride<>>;
  using ConstView =
      Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                 Eigen::Unaligned, Eigen::OuterStride<>>;

  Panel() = default;
  Panel(Index rows, Index columns) { reshape(rows, columns); }

  // All zero afterwards.
  void reshape(Index rows, Index columns) {
    rows_ = rows;
    columns_ = columns;
    stride_ = padded(columns);
    values_.assign(static_cast<std::size_t>(rows * stride_), 0.0f);
  }
  // Fewer or as many rows as allocated, contents kept: the last minibatch is shorter.
  void set_rows(Index rows) { rows_ = rows; }
  void set_zero() { std::fill(values_.begin(), values_.begin() + size(), 0.0f); }

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  Index stride() const { return stride_; }
  Index size() const { return rows_ * stride_; }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  float* row(Index i) { return values_.data() + i * stride_; }
  const float* row(Index i) const { return values_.data() + i * stride_; }
  float& operator()(Index i, Index j) { return values_[static_cast<std::size_t>(i * stride_ + j)]; }
  float operator()(Index i, Index j) const {
    return values_[static_cast<std::size_t>(i * stride_ + j)];
  }
  View view() { return View(data(), rows_, columns_, Eigen::OuterStride<>(stride_)); }
  ConstView view() const {
    return ConstView(data(), rows_, columns_, Eigen::OuterStride<>(stride_));
  }

 private:
  Index rows_ = 0, columns_ = 0, stride_ = 0;
  Floats values_;
};

}  // namespace cstonet
