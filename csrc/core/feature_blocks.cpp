#include "core/feature_blocks.hpp"

#include <algorithm>
#include <functional>

#include "core/product.hpp"

namespace cstonet {
namespace {

// Features and products of a block stay in the second-level cache. Of a compressed matrix there are
// more rows to a block, since the entries of a column have to be found in each.
constexpr Index kDenseRows = 256, kCompressedRows = 8192;

bool not_next(Index a, Index b) { return b != a + 1; }

class DenseBlock : public FeatureBlock {
 public:
  explicit DenseBlock(const ScoreRequest& request)
      : request_(request), directions_(request.products.size()) {}

  void add(Index first_row, const Weights& weights, Index first, ScoreSums& sums,
           Index at) override {
    const Index width = std::min(kColumns, std::ssize(request_.covariates) - first);
    shape(width);
    read(request_.rows.subspan(first_row, weights.g.rows()), first, width);
    accumulate(weights.g, x_, sums.linear.sum, sums.covariates, at);
    accumulate(weights.g_squared, x_squared_, sums.linear.squares, sums.covariates, at);
    if (!request_.with_squares()) return;
    accumulate(weights.g, square_, sums.square.sum, sums.covariates, at);
    accumulate(weights.g_squared, square_squared_, sums.square.squares, sums.covariates, at);
  }

 private:
  void shape(Index width) {
    if (x_.columns() == width) return;
    for (Panel* panel : {&x_, &x_squared_, &square_, &square_squared_})
      panel->reshape(kDenseRows, width);
    mean_.assign(x_.stride(), 0.0f);
    product_.reshape(directions_, width);
  }

  void read(std::span<const Index> rows, Index first, Index width) {
    const std::span wanted = request_.covariates.subspan(first, width);
    // A run of columns is read faster than a list of them.
    if (std::ranges::adjacent_find(wanted, not_next) == wanted.end())
      request_.data.gather_run(rows, wanted.front(), x_);
    else
      request_.data.gather(rows, wanted, x_);
    if (request_.slopes) take_out_others(rows, first, width);
    for (Panel* panel : {&x_squared_, &square_, &square_squared_}) panel->set_rows(x_.rows());
    if (request_.with_squares())
      for (Index j = 0; j < width; ++j)
        mean_[j] = static_cast<float>(request_.mean_squares[first + j]);
    kernels().square_centred(x_.data(), mean_.data(), x_.rows(), x_.stride(), x_squared_.data(),
                             square_.data(), square_squared_.data());
  }

  void take_out_others(std::span<const Index> rows, Index first, Index width) {
    const Index others = std::ssize(request_.others);
    if (slopes_.columns() != width || first != slopes_of_) {
      basis_.reshape(kDenseRows, others);
      explained_.reshape(kDenseRows, width);
      slopes_.reshape(others, width);
      constant_.assign(slopes_.stride(), 0.0f);
      std::ranges::copy(request_.slopes->row(0).subspan(first, width), constant_.begin());
      for (Index s = 0; s < others; ++s)
        std::ranges::copy(request_.slopes->row(s + 1).subspan(first, width),
                          slopes_.row(s).begin());
      slopes_of_ = first;
    }
    request_.data.gather(rows, request_.others, basis_);
    explained_.set_rows(x_.rows());
    multiply(basis_, slopes_, constant_, explained_);
    std::ranges::transform(x_.flat(), explained_.flat(), x_.data(), std::minus<>());
  }

  // Covariates stand along the lanes, so that any number of directions costs no more than itself.
  void accumulate(const Panel& g, const Panel& f, std::vector<double>& sums, Index stride,
                  Index at) {
    multiply_transposed(g, f, product_);
    for (Index k = 0; k < directions_; ++k) {
      double* to = sums.data() + k * stride + at;
      const std::span<const float> from = product_.row(k);
      for (Index j = 0; j < std::ssize(from); ++j) to[j] += from[j];
    }
  }

  const ScoreRequest& request_;
  Index directions_;
  Panel x_, x_squared_, square_, square_squared_, product_;
  Floats mean_;
  Panel basis_, slopes_, explained_;  // of other covariates, for the covariates from slopes_of_ on
  Floats constant_;
  Index slopes_of_ = -1;
};

// With x0 the standardised zero, Σ g f(x) = f(x0) Σ g + Σ over stored entries of g (f(x) - f(x0)).
class CompressedBlock : public FeatureBlock {
 public:
  CompressedBlock(const ScoreRequest& request, const Compressed& source,
                  std::span<const Index> place)
      : request_(request), source_(source), place_(place), directions_(request.products.size()) {}

  void add(Index first_row, const Weights& weights, Index first, ScoreSums& sums,
           Index at) override {
    const Index width = std::min(kColumns, std::ssize(request_.covariates) - first);
    for (Index j = 0; j < width; ++j) {
      sum_column(first_row, weights, first + j);
      store(own_.linear, sums.linear, sums.covariates, at + j);
      if (request_.with_squares()) store(own_.square, sums.square, sums.covariates, at + j);
    }
  }

 private:
  void sum_column(Index first_row, const Weights& weights, Index covariate) {
    const Index column = request_.covariates[covariate];
    const double mean = request_.with_squares() ? request_.mean_squares[covariate] : 0.0;
    const double x0 = source_.zero(column), f0 = x0 * x0 - mean;
    begin(weights, x0, own_.linear);
    begin(weights, f0, own_.square);
    const Index end_row = first_row + weights.g.rows(), end = source_.first(column + 1);
    for (Index e = source_.lower_bound(column, request_.rows[first_row]); e < end; ++e) {
      const Index i = place_[source_.row(e)];
      if (i < 0) continue;
      if (i >= end_row) break;
      const double x = source_.value(e, column), f = x * x - mean;
      add_entry(weights, i - first_row, x, x0, own_.linear);
      if (request_.with_squares()) add_entry(weights, i - first_row, f, f0, own_.square);
    }
  }

  void begin(const Weights& weights, double absent, FeatureSums& sums) {
    sums.sum = weights.total;
    sums.squares = weights.total_squared;
    for (double& s : sums.sum) s *= absent;
    for (double& s : sums.squares) s *= absent * absent;
  }

  void add_entry(const Weights& weights, Index i, double f, double absent, FeatureSums& sums) {
    const double change = f - absent, change_squared = f * f - absent * absent;
    const float* g = weights.g.row(i).data();
    const float* g_squared = weights.g_squared.row(i).data();
    for (Index k = 0; k < directions_; ++k) {
      sums.sum[k] += change * g[k];
      sums.squares[k] += change_squared * g_squared[k];
    }
  }

  void store(const FeatureSums& own, FeatureSums& sums, Index stride, Index at) const {
    for (Index k = 0; k < directions_; ++k) {
      sums.sum[k * stride + at] += own.sum[k];
      sums.squares[k * stride + at] += own.squares[k];
    }
  }

  const ScoreRequest& request_;
  const Compressed& source_;
  std::span<const Index> place_;
  Index directions_;
  struct {
    FeatureSums linear, square;
  } own_;
};

}  // namespace

Weights::Weights(const Panel& products)
    : g(products.rows(), products.columns()),
      g_squared(products.rows(), products.columns()),
      total(products.columns(), 0.0),
      total_squared(products.columns(), 0.0) {
  for (Index i = 0; i < g.rows(); ++i)
    for (Index k = 0; k < g.columns(); ++k) {
      const float value = products(i, k);
      g(i, k) = value;
      g_squared(i, k) = value * value;
      total[k] += value;
      total_squared[k] += value * value;
    }
}

FeatureBlocks::FeatureBlocks(const ScoreRequest& request)
    : request_(request), compressed_(request.slopes ? nullptr : request.data.compressed()) {
  if (!compressed_) return;
  if (std::ranges::adjacent_find(request.rows, std::greater_equal<>()) != request.rows.end()) {
    compressed_ = nullptr;  // entries are found by rows that ascend
    return;
  }
  place_.assign(request.data.rows(), -1);
  for (Index i = 0; i < std::ssize(request.rows); ++i) place_[request.rows[i]] = i;
}

Index FeatureBlocks::rows_at_once() const { return compressed_ ? kCompressedRows : kDenseRows; }

std::unique_ptr<FeatureBlock> FeatureBlocks::make() const {
  if (compressed_) return std::make_unique<CompressedBlock>(request_, *compressed_, place_);
  return std::make_unique<DenseBlock>(request_);
}

}  // namespace cstonet
