#include "core/score.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/errors.hpp"
#include "core/feature_blocks.hpp"

namespace cstonet {
namespace {

// Products of up to so many numbers are computed once, and blocks of covariates are the tasks.
// Where there are more, parts of the rows are the tasks, each of which reads all its covariates
// once. What is done depends on the shapes alone, not on the number of threads.
constexpr Index kStoredProducts = Index{1} << 22;
// Blocks of covariates that a task works through with the same room for its features: new room for
// each would cost more than a few directions do.
constexpr Index kBlocksPerTask = 8;
// Sums of one kind, of all parts of the rows: 8 MB of each of the four. More covariates take turns.
constexpr Index kSumsAtOnce = Index{1} << 20;
constexpr Index kFewestRowsPerPart = Index{1} << 15, kMostParts = 16;

Index parts_of(Index whole, Index part) { return (whole + part - 1) / part; }

void add_to(std::span<double> to, std::span<const double> from) {
  std::ranges::transform(to, from, to.begin(), std::plus<>());
}

class Sums {
 public:
  Sums(const ScoreRequest& request, Hooks& hooks)
      : request_(request),
        hooks_(hooks),
        blocks_(request),
        rows_(std::ssize(request.rows)),
        covariates_(std::ssize(request.covariates)),
        step_(blocks_.rows_at_once()) {}

  void run(const TakeSums& take) {
    if (rows_ * padded(request_.products.size()) <= kStoredProducts)
      by_covariates(take);
    else
      by_rows(take);
  }

 private:
  ScoreSums empty(Index covariates) const {
    return ScoreSums(request_.products.size(), covariates, request_.with_squares());
  }

  Weights weights(ProductBlock& products, Index first) const {
    const Index count = std::min(step_, rows_ - first);
    return Weights(products.at(request_.rows.subspan(first, count), first));
  }

  void by_covariates(const TakeSums& take) {
    std::vector<std::optional<Weights>> weights_of(parts_of(rows_, step_));
    run_tasks(std::ssize(weights_of), request_.threads, hooks_, [&](long block) {
      ProductBlock products(request_.products, request_.data, std::min(step_, rows_));
      weights_of[block] = weights(products, block * step_);
    });
    constexpr Index width = FeatureBlock::kColumns, group = kBlocksPerTask * width;
    run_tasks(parts_of(covariates_, group), request_.threads, hooks_, [&](long task) {
      const std::unique_ptr<FeatureBlock> features = blocks_.make();
      const Index end = std::min((task + 1) * group, covariates_);
      for (Index first = task * group; first < end; first += width) {
        hooks_.check();
        ScoreSums sums = empty(std::min(width, end - first));
        for (Index block = 0; block < std::ssize(weights_of); ++block)
          features->add(block * step_, *weights_of[block], first, sums, 0);
        take(first, sums);
      }
    });
  }

  void by_rows(const TakeSums& take) {
    const Index parts = std::clamp<Index>(rows_ / kFewestRowsPerPart, 1, kMostParts);
    const Index width = FeatureBlock::kColumns;
    const Index blocks =
        kSumsAtOnce / (parts * std::max<Index>(request_.products.size(), 1) * width);
    const Index group = std::max<Index>(blocks, 1) * width;
    for (Index first = 0; first < covariates_; first += group)
      by_rows(take, parts, first, std::min(first + group, covariates_));
  }

  // The sums of the covariates from `begin` to `end`, by parts of the rows.
  void by_rows(const TakeSums& take, Index parts, Index begin, Index end) {
    const Index rows = parts_of(parts_of(rows_, parts), step_) * step_;  // of each
    std::vector<std::optional<ScoreSums>> sums(parts_of(rows_, rows));
    run_tasks(std::ssize(sums), request_.threads, hooks_, [&](long part) {
      ScoreSums& own = sums[part].emplace(empty(end - begin));
      ProductBlock products(request_.products, request_.data, step_);
      const std::unique_ptr<FeatureBlock> features = blocks_.make();
      for (Index row = part * rows; row < std::min((part + 1) * rows, rows_); row += step_) {
        hooks_.check();
        const Weights own_weights = weights(products, row);
        for (Index first = begin; first < end; first += FeatureBlock::kColumns)
          features->add(row, own_weights, first, own, first - begin);
      }
    });
    for (Index part = 1; part < std::ssize(sums); ++part) sums[0]->add(*sums[part]);
    take(begin, *sums[0]);
  }

  const ScoreRequest& request_;
  Hooks& hooks_;
  FeatureBlocks blocks_;
  Index rows_, covariates_, step_;
};

void add_squares(const Panel& x, std::span<double> sums) {
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < x.columns(); ++j) sums[j] += double{x(i, j)} * x(i, j);
}

}  // namespace

ScoreSums::ScoreSums(Index k, Index q, bool with_squares) : directions(k), covariates(q) {
  for (std::vector<double>* part : {&linear.sum, &linear.squares}) part->assign(k * q, 0.0);
  if (!with_squares) return;
  for (std::vector<double>* part : {&square.sum, &square.squares}) part->assign(k * q, 0.0);
}

void ScoreSums::add(const ScoreSums& other) {
  add_to(linear.sum, other.linear.sum);
  add_to(linear.squares, other.linear.squares);
  add_to(square.sum, other.square.sum);
  add_to(square.squares, other.square.squares);
}

void score_sums(const ScoreRequest& request, Hooks& hooks, const TakeSums& take) {
  require(std::ssize(request.rows) == request.products.rows, "one row of products per row");
  require(!request.with_squares() || request.mean_squares.size() == request.covariates.size(),
          "one mean square per covariate");
  require(!request.slopes || (request.slopes->rows() == std::ssize(request.others) + 1 &&
                              request.slopes->columns() == std::ssize(request.covariates)),
          "a constant and a slope of every other covariate per covariate");
  request.products.validate(request.data);
  if (request.covariates.empty()) return;
  Sums(request, hooks).run(take);
}

namespace {

std::vector<double> square_sums(const Compressed& source, std::span<const Index> rows,
                                Hooks& hooks) {
  std::vector<double> times(source.rows, 0.0), sums(source.columns);
  for (Index row : rows) times[row] += 1.0;
  for (Index j = 0; j < source.columns; ++j) {
    hooks.check();
    const double x0 = source.zero(j);
    sums[j] = x0 * x0 * static_cast<double>(rows.size());
    for (Index e = source.first(j); e < source.first(j + 1); ++e) {
      const double x = source.value(e, j);
      sums[j] += times[source.row(e)] * (x * x - x0 * x0);
    }
  }
  return sums;
}

}  // namespace

std::vector<double> square_sums(const Dataset& data, std::span<const Index> rows, int threads,
                                Hooks& hooks) {
  if (const Compressed* source = data.compressed()) return square_sums(*source, rows, hooks);
  constexpr Index width = FeatureBlock::kColumns, step = 256;
  const Index m = std::ssize(rows),
              parts = std::clamp<Index>(m / kFewestRowsPerPart, 1, kMostParts);
  const Index own_rows = parts_of(m, parts);
  std::vector<std::vector<double>> sums(parts, std::vector<double>(data.columns(), 0.0));
  run_tasks(parts, threads, hooks, [&](long part) {
    const Index end = std::min((part + 1) * own_rows, m);
    for (Index row = part * own_rows; row < end; row += step) {
      hooks.check();
      const std::span block = rows.subspan(row, std::min(step, end - row));
      for (Index first = 0; first < data.columns(); first += width) {
        Panel x(std::ssize(block), std::min(width, data.columns() - first));
        data.gather_run(block, first, x);
        add_squares(x, std::span(sums[part]).subspan(first, x.columns()));
      }
    }
  });
  for (Index part = 1; part < parts; ++part) add_to(sums[0], sums[part]);
  return sums[0];
}

}  // namespace cstonet
