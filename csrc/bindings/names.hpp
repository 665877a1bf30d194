// The words Python has for the kernel's enums: one table for each.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/blocks.hpp"
#include "core/errors.hpp"
#include "core/options.hpp"

namespace cstonet {

// Words<E>::what names the enum in messages, Words<E>::table lists its values.
template <class E>
struct Words;

template <class E>
using Word = std::pair<std::string_view, E>;

template <>
struct Words<Family> {
  static constexpr std::string_view what = "family";
  static constexpr Word<Family> table[] = {{"gaussian", Family::gaussian},
                                           {"bernoulli", Family::bernoulli},
                                           {"categorical", Family::categorical},
                                           {"poisson", Family::poisson}};
};

template <>
struct Words<Activation> {
  static constexpr std::string_view what = "activation";
  static constexpr Word<Activation> table[] = {
      {"tanh", Activation::tanh}, {"sigmoid", Activation::sigmoid}, {"relu", Activation::relu}};
};

template <>
struct Words<Initializer> {
  static constexpr std::string_view what = "initializer";
  static constexpr Word<Initializer> table[] = {{"normal", Initializer::normal},
                                                {"uniform", Initializer::uniform}};
};

template <>
struct Words<UpdateRule> {
  static constexpr std::string_view what = "optimizer rule";
  static constexpr Word<UpdateRule> table[] = {{"adam", UpdateRule::adam},
                                               {"momentum", UpdateRule::momentum}};
};

template <>
struct Words<PriorKind> {
  static constexpr std::string_view what = "prior";
  static constexpr Word<PriorKind> table[] = {
      {"none", PriorKind::none}, {"slab", PriorKind::slab}, {"mixture", PriorKind::mixture}};
};

template <>
struct Words<Decay> {
  static constexpr std::string_view what = "decay";
  static constexpr Word<Decay> table[] = {
      {"none", Decay::none}, {"polynomial", Decay::polynomial}, {"cosine", Decay::cosine}};
};

// The value a word stands for; an unknown word is refused.
template <class E>
E from_word(std::string_view word) {
  for (const auto& [name, value] : Words<E>::table)
    if (name == word) return value;
  throw InvalidArgument("unknown " + std::string(Words<E>::what) + " '" + std::string(word) + "'");
}

}  // namespace cstonet
