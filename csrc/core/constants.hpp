// Numbers that more than one file needs.
#pragma once

namespace cstonet {

inline constexpr double kLogTwoPi = 1.8378770664093454836;

}  // namespace cstonet
