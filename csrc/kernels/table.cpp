#include "kernels/level.hpp"

#define CSTONET_QUOTE_(x) #x
#define CSTONET_QUOTE(x) CSTONET_QUOTE_(x)

namespace cstonet {
namespace CSTONET_LEVEL {

const KernelTable& table() {
  static constexpr KernelTable functions = {
      CSTONET_QUOTE(CSTONET_LEVEL),
      multiply,
      column_sums,
      activate,
      activate_shifted,
      sghmc,
      innovation,
      sum_squares,
      adam,
      momentum,
      prior_gradient,
      random_bits,
      random_normal,
  };
  return functions;
}

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
