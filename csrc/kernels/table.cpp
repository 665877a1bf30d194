#include "kernels/level.hpp"

#define CSTONET_QUOTE_(x) #x
#define CSTONET_QUOTE(x) CSTONET_QUOTE_(x)

namespace cstonet {
namespace CSTONET_LEVEL {

const KernelTable& table() {
  static constexpr KernelTable functions = {
      .level = CSTONET_QUOTE(CSTONET_LEVEL),
      .multiply = multiply,
      .multiply_add = multiply_add,
      .forward = forward,
      .column_sums = column_sums,
      .activate = activate,
      .activate_shifted = activate_shifted,
      .sghmc = sghmc,
      .sghmc_coupled = sghmc_coupled,
      .activate_coupled = activate_coupled,
      .innovation = innovation,
      .squared_norm = squared_norm,
      .logistic = logistic,
      .softplus = softplus,
      .sum_squares = sum_squares,
      .adam = adam,
      .momentum = momentum,
      .prior_gradient = prior_gradient,
      .random_bits = random_bits,
      .random_normal = random_normal,
      .random_normal_rows = random_normal_rows,
      .standardise_floats = standardise_floats,
      .standardise_doubles = standardise_doubles,
      .standardise_float_column = standardise_float_column,
      .standardise_double_column = standardise_double_column,
      .square_centred = square_centred,
      .multiply_adds = multiply_adds,
      .flops_per_step = flops_per_step,
  };
  return functions;
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
