// Residuals times directions: what a new weight's contribution to a model's predictors is
// multiplied by, row by row. Computed for a block of rows at a time: where they are many, columns
// of all rows are never stored together.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/data.hpp"
#include "core/hooks.hpp"
#include "core/network.hpp"

namespace cstonet {

// What a residual is multiplied by.
enum class DirectionKind : int {
  one,     // a simple effect
  given,   // a column of `Products::given`, such as the centred treatment
  slope,   // derivative of the predictor in a unit of the first layer: a weight into that unit
  member,  // a covariate of the model: a product with it
};

struct Direction {
  Index predictor;  // whose residual
  DirectionKind kind;
  // Of `given`: the column; of a slope: visible unit * units of the first layer + unit; of a
  // member: the covariate.
  Index which;
  float scale;
};

// A network whose slopes are directions.
struct SlopeNetwork {
  NetworkSpec spec;
  Parameters parameters;
  std::vector<Index> inputs;  // covariates
};

// k columns of m rows each. The arrays have one row for each of m listed rows of a data set.
struct Products {
  Index rows = 0;
  Columns residuals;  // predictors
  Columns given;
  Columns treatment;  // values of the visible units that feed forward, if there is a network
  std::optional<SlopeNetwork> network;
  std::vector<Direction> directions;

  Index size() const { return std::ssize(directions); }
  // Throws unless every direction names something that there is.
  void validate(const Dataset& data) const;
};

// Evaluates products, up to so many rows at a time.
class ProductBlock {
 public:
  ProductBlock(const Products& products, const Dataset& data, Index most_rows);

  // Columns of the rows listed, the places of which among the products' rows begin at `first`.
  const Panel& at(std::span<const Index> rows, Index first);

 private:
  // The slopes of one visible unit's predictor in the first layer's units.
  struct Slopes {
    Index layer, unit;   // of the predictor
    Index visible_unit;  // its number
    Panel values;
  };
  void run_network(std::span<const Index> rows, Index first);
  void descend(Slopes& slopes);
  // Where the factor of a direction begins, and how far its rows are apart.
  std::pair<const float*, Index> factor(const Direction& direction, Index first) const;

  const Products& products_;
  const Dataset& data_;
  std::vector<Slopes> slopes_;
  std::vector<Panel> transposed_;  // weights of each layer
  std::vector<LayerState> states_;
  std::vector<Panel> signals_;  // derivatives in the outputs of each layer
  Batch batch_;
  std::vector<Index> members_;
  Panel member_values_, values_;
};

// Number, mean and sum of squared deviations of m values: those of parts can be merged.
struct Moments {
  double rows = 0.0, mean = 0.0, squares = 0.0;
  void merge(const Moments& other);
};

// Moments of every column.
std::vector<Moments> product_moments(const Products& products, const Dataset& data,
                                     std::span<const Index> rows, int threads, Hooks& hooks);
// The columns themselves, m x k one row after the other.
void product_values(const Products& products, const Dataset& data, std::span<const Index> rows,
                    int threads, Hooks& hooks, std::span<float> out);

}  // namespace cstonet
