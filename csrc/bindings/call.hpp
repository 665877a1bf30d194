// Functions with many arguments: Python calls them with a list of arguments, C++ with a struct.
#pragma once

#include <utility>

namespace cstonet {

// `function`, which takes a Call, as a function of the listed members of one. The rest of the
// members keep what Call gives them.
template <class Call, class Result, class... Members>
auto unpacked(Result (*function)(const Call&), Members Call::*... members) {
  return [=](Members... values) {
    Call call;
    ((call.*members = std::move(values)), ...);
    return function(call);
  };
}

}  // namespace cstonet
