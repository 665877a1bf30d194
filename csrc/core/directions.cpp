#include "core/directions.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "core/product.hpp"

namespace cstonet {
namespace {

constexpr Index kRowsPerTask = 1024;
constexpr float kOne = 1.0f;

template <class Slope>
void multiply_by_slopes(const Panel& output, Panel& signal, Slope&& slope) {
  const std::span<const float> h = output.flat();
  const std::span<float> s = signal.flat();
  for (Index k = 0; k < std::ssize(s); ++k) s[k] *= slope(h[k]);
}

void multiply_by_slopes(Activation kind, const Panel& output, Panel& signal) {
  switch (kind) {
    case Activation::tanh:
      return multiply_by_slopes(output, signal, [](float h) { return 1.0f - h * h; });
    case Activation::sigmoid:
      return multiply_by_slopes(output, signal, [](float h) { return h * (1.0f - h); });
    case Activation::relu:
      return multiply_by_slopes(output, signal, [](float h) { return h > 0.0f ? 1.0f : 0.0f; });
  }
}

// What is observed passes nothing on.
void silence_visible(const LayerSpec& layer, Panel& signal) {
  const Index latent = layer.latent_units();
  for (Index i = 0; i < signal.rows(); ++i) std::ranges::fill(signal.row(i).subspan(latent), 0.0f);
}

}  // namespace

void Products::validate(const Dataset& data) const {
  if (network) {
    require(std::ssize(network->inputs) == network->spec.inputs,
            "inputs needs one covariate per input of the network");
    for (Index input : network->inputs)
      require(input >= 0 && input < data.columns(),
              "inputs: the network reads a covariate that is not there");
  }
  const Index slopes =
      network ? network->spec.visible_columns() * network->spec.layers[0].units() : 0;
  for (const Direction& d : directions) {
    require(d.predictor >= 0 && d.predictor < residuals.width,
            "table: a direction has no residual");
    const Index most = d.kind == DirectionKind::one     ? 1
                       : d.kind == DirectionKind::given ? given.width
                       : d.kind == DirectionKind::slope ? slopes
                                                        : data.columns();
    require(d.which >= 0 && d.which < most,
            "table: a direction names something that does not exist");
  }
}

ProductBlock::ProductBlock(const Products& products, const Dataset& data, Index most_rows)
    : products_(products), data_(data), values_(most_rows, products.size()) {
  for (const Direction& d : products.directions) {
    if (d.kind == DirectionKind::member && std::ranges::find(members_, d.which) == members_.end())
      members_.push_back(d.which);
    if (d.kind != DirectionKind::slope) continue;
    const NetworkSpec& spec = products.network->spec;
    const Index visible_unit = d.which / spec.layers[0].units();
    if (std::ranges::find(slopes_, visible_unit, &Slopes::visible_unit) != slopes_.end()) continue;
    for (const VisibleBlock& v : visible_blocks(spec))
      if (visible_unit >= v.block.column && visible_unit < v.block.column + v.block.size)
        slopes_.push_back({.layer = v.layer,
                           .unit = v.unit + visible_unit - v.block.column,
                           .visible_unit = visible_unit,
                           .values = Panel(most_rows, spec.layers[0].units())});
  }
  member_values_.reshape(most_rows, std::ssize(members_));
  if (slopes_.empty()) return;
  const NetworkSpec& spec = products.network->spec;
  for (Index i = 0; i < spec.depth(); ++i) {
    const Panel& weights = products.network->parameters.layers[i].weights;
    Panel& turned = transposed_.emplace_back(weights.columns(), weights.rows());
    turned.view() = weights.view().transpose();
    signals_.emplace_back(most_rows, spec.layers[i].units());
  }
  batch_ = {.inputs = Panel(most_rows, spec.inputs),
            .visible = Panel(most_rows, spec.visible_columns()),
            .weight = {}};
  allocate(spec, most_rows, states_);
}

void ProductBlock::run_network(std::span<const Index> rows, Index first) {
  const SlopeNetwork& network = *products_.network;
  data_.gather(rows, network.inputs, batch_.inputs);
  batch_.visible.set_rows(std::ssize(rows));
  for (Index i = 0; i < std::ssize(rows); ++i)
    std::ranges::copy(products_.treatment.row(first + i), batch_.visible.row(i).begin());
  forward(network.spec, network.parameters, batch_, states_);
  for (Slopes& slopes : slopes_) descend(slopes);
}

void ProductBlock::descend(Slopes& slopes) {
  const NetworkSpec& spec = products_.network->spec;
  const Index rows = batch_.rows();
  slopes.values.set_rows(rows);
  slopes.values.set_zero();
  if (slopes.layer == 0) {
    for (Index i = 0; i < rows; ++i) slopes.values(i, slopes.unit) = 1.0f;
    return;
  }
  for (Index layer = slopes.layer; layer > 0; --layer) {
    Panel& signal = layer == 1 ? slopes.values : signals_[layer - 1];
    signal.set_rows(rows);
    if (layer == slopes.layer) {
      signal.set_zero();
      for (Index i = 0; i < rows; ++i)
        std::ranges::copy(transposed_[layer].row(slopes.unit), signal.row(i).begin());
    } else {
      multiply(signals_[layer], transposed_[layer], signal);
    }
    multiply_by_slopes(spec.activation, states_[layer - 1].output, signal);
    silence_visible(spec.layers[layer - 1], signal);
  }
}

std::pair<const float*, Index> ProductBlock::factor(const Direction& direction, Index first) const {
  switch (direction.kind) {
    case DirectionKind::given:
      return {products_.given.row(first).data() + direction.which, products_.given.width};
    case DirectionKind::slope: {
      const Index units = products_.network->spec.layers[0].units();
      const auto found = std::ranges::find(slopes_, direction.which / units, &Slopes::visible_unit);
      return {found->values.data() + direction.which % units, found->values.stride()};
    }
    case DirectionKind::member: {
      const Index place = std::ranges::find(members_, direction.which) - members_.begin();
      return {member_values_.data() + place, member_values_.stride()};
    }
    case DirectionKind::one:
      break;
  }
  return {&kOne, 0};
}

const Panel& ProductBlock::at(std::span<const Index> rows, Index first) {
  if (!slopes_.empty()) run_network(rows, first);
  if (!members_.empty()) data_.gather(rows, members_, member_values_);
  const Index count = std::ssize(rows), predictors = products_.residuals.width;
  values_.set_rows(count);
  for (Index k = 0; k < products_.size(); ++k) {
    const Direction& direction = products_.directions[k];
    const auto [from, step] = factor(direction, first);
    const float* residual = products_.residuals.row(first).data() + direction.predictor;
    for (Index i = 0; i < count; ++i)
      values_(i, k) = residual[i * predictors] * (direction.scale * from[i * step]);
  }
  return values_;
}

void Moments::merge(const Moments& other) {
  const double total = rows + other.rows;
  if (total == 0.0) return;
  const double shift = other.mean - mean;
  squares += other.squares + shift * shift * rows * other.rows / total;
  mean += shift * other.rows / total;
  rows = total;
}

namespace {

// Calls use(task, columns) for every block of rows.
template <class Use>
void for_blocks(const Products& products, const Dataset& data, std::span<const Index> rows,
                int threads, Hooks& hooks, Use&& use) {
  products.validate(data);
  const Index m = std::ssize(rows);
  run_tasks((m + kRowsPerTask - 1) / kRowsPerTask, threads, hooks, [&](long task) {
    const Index first = task * kRowsPerTask, count = std::min(kRowsPerTask, m - first);
    ProductBlock block(products, data, count);
    use(task, block.at(rows.subspan(first, count), first));
  });
}

Moments moments_of(const Panel& columns, Index k) {
  Moments own{.rows = static_cast<double>(columns.rows())};
  for (Index i = 0; i < columns.rows(); ++i) own.mean += columns(i, k);
  own.mean /= own.rows;
  for (Index i = 0; i < columns.rows(); ++i) {
    const double deviation = columns(i, k) - own.mean;
    own.squares += deviation * deviation;
  }
  return own;
}

}  // namespace

std::vector<Moments> product_moments(const Products& products, const Dataset& data,
                                     std::span<const Index> rows, int threads, Hooks& hooks) {
  const Index size = products.size(), m = std::ssize(rows);
  std::vector<Moments> parts((m + kRowsPerTask - 1) / kRowsPerTask * size);
  for_blocks(products, data, rows, threads, hooks, [&](Index task, const Panel& columns) {
    for (Index k = 0; k < size; ++k) parts[task * size + k] = moments_of(columns, k);
  });
  // In the order of the rows, whatever the order of the tasks.
  std::vector<Moments> total(size);
  for (Index part = 0; part < std::ssize(parts); ++part) total[part % size].merge(parts[part]);
  return total;
}

void product_values(const Products& products, const Dataset& data, std::span<const Index> rows,
                    int threads, Hooks& hooks, std::span<float> out) {
  const Index size = products.size();
  for_blocks(products, data, rows, threads, hooks, [&](Index task, const Panel& columns) {
    for (Index i = 0; i < columns.rows(); ++i)
      std::ranges::copy(columns.row(i), out.begin() + (task * kRowsPerTask + i) * size);
  });
}

}  // namespace cstonet
