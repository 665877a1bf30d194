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
      .column_sums = column_sums,
      .activate = activate,
      .activate_shifted = activate_shifted,
      .sghmc = sghmc,
      .sghmc_coupled = sghmc_coupled,
      .activate_coupled = activate_coupled,
      .innovation = innovation,
      .sum_squares = sum_squares,
      .adam = adam,
      .momentum = momentum,
      .prior_gradient = prior_gradient,
      .random_bits = random_bits,
      .random_normal = random_normal,
  };
  return functions;
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
