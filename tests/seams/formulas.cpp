// Single formulas of the core, each of which has a NumPy twin in the tests.
#include <array>

#include "bindings/convert.hpp"
#include "core/bic.hpp"
#include "core/prior.hpp"
#include "core/product.hpp"
#include "core/rng.hpp"
#include "core/schedule.hpp"
#include "seams.hpp"

namespace cstonet::seams {
namespace {

MixturePrior mixture(double inclusion, double spike, double slab) {
  return {.inclusion = inclusion, .spike_variance = spike, .slab_variance = slab};
}

FloatArray prior_gradient(const FloatArray& w, double inclusion, double spike, double slab) {
  FloatArray out(w.size());
  kernels().prior_gradient(mixture(inclusion, spike, slab).pass(1.0), w.data(), w.size(),
                           out.mutable_data());
  return out;
}

// A visible block of its own: its observed values and its predictors are whole panels.
VisibleBlock lone_block(const std::string& family, Index size) {
  return {.layer = 0,
          .unit = 0,
          .block = {.family = from_word<Family>(family),
                    .size = size,
                    .visible = true,
                    .feeds = false,
                    .weight = 1.0,
                    .column = 0}};
}

std::pair<Panel, Panel> observed_and_predicted(const FloatArray& y, const FloatArray& eta) {
  Panel visible = panel_from_array(y, "y");
  require_shape(eta, "eta", {visible.rows(), visible.columns()});
  return {std::move(visible), panel_from_array(eta, "eta")};
}

FloatArray residual(const std::string& family, double variance, const FloatArray& y,
                    const FloatArray& eta) {
  const auto [visible, predictor] = observed_and_predicted(y, eta);
  Panel out(visible.rows(), visible.columns());
  visible_residual(lone_block(family, visible.columns()), variance, visible, predictor, out);
  return array_from_panel(out);
}

DoubleArray family_log_density(const std::string& family, double variance, const FloatArray& y,
                               const FloatArray& eta) {
  const auto [visible, predictor] = observed_and_predicted(y, eta);
  const VisibleBlock block = lone_block(family, visible.columns());
  std::vector<double> out;
  for (Index i = 0; i < visible.rows(); ++i)
    out.push_back(log_density(block, variance, visible, predictor, i));
  return array_from_doubles(out);
}

FloatArray normals(const Stream& stream, std::uint32_t purpose, std::uint32_t a, std::uint32_t b,
                   Index n) {
  FloatArray out(checked_count(n, "n"));
  random_stream(stream).normals(static_cast<Purpose>(purpose), a, b,
                                std::span(out.mutable_data(), out.size()));
  return out;
}

py::array_t<std::uint32_t> random_bits(std::array<std::uint32_t, 2> key,
                                       std::array<std::uint32_t, 3> counter, Index n) {
  py::array_t<std::uint32_t> out(checked_count(n, "n"));
  kernels().random_bits(key.data(), counter.data(), n, out.mutable_data());
  return out;
}

// (ψ(z), ψ(z + d) - ψ(z)).
py::tuple activation(const std::string& kind, const FloatArray& z, const FloatArray& d) {
  const auto psi = from_word<Activation>(kind);
  require_shape(z, "z", {kAny});
  require_shape(d, "d", {z.size()});
  FloatArray value(z.size()), shifted(z.size()), change(z.size());
  kernels().activate(psi, z.data(), z.size(), value.mutable_data());
  kernels().activate_shifted(psi, z.data(), d.data(), z.size(), shifted.mutable_data(),
                             change.mutable_data());
  return py::make_tuple(value, change);
}

// a b (transpose = false) or a' b.
FloatArray product(const FloatArray& a, const FloatArray& b, bool transpose) {
  const Panel left = panel_from_array(a, "a");
  require_shape(b, "b", {transpose ? left.rows() : left.columns(), kAny});
  const Panel right = panel_from_array(b, "b");
  Panel out(transpose ? left.columns() : left.rows(), right.columns());
  if (transpose)
    multiply_transposed(left, right, out);
  else
    multiply(left, right, out);
  return array_from_panel(out);
}

// Collects the names of a struct's fields.
struct FieldNames {
  std::vector<std::string>& names;
  template <class T>
  void operator()(const char* name, T&) const {
    names.emplace_back(name);
  }
};

template <class T>
std::vector<std::string> field_names() {
  T value{};
  std::vector<std::string> names;
  value.fields(FieldNames{names});
  return names;
}

template <class E>
void add_words(py::dict& all) {
  py::list words;
  for (const auto& [word, value] : Words<E>::table) words.append(std::string(word));
  all[py::str(std::string(Words<E>::what))] = words;
}

}  // namespace

Index checked_count(Index count, const std::string& name) {
  require(count >= 0, name + " must not be negative");
  return count;
}

RandomStream random_stream(const Stream& stream) {
  return RandomStream(stream[0], stream[1], stream[2], stream[3]);
}

void register_formulas(py::module_& m) {
  m.def("prior_gradient", prior_gradient);
  m.def("prior_threshold", [](double inclusion, double spike, double slab) {
    return mixture(inclusion, spike, slab).threshold();
  });
  m.def("prior_log_density", [](double w, double inclusion, double spike, double slab) {
    return mixture(inclusion, spike, slab).log_density(w);
  });
  m.def("slab_probability", [](double w, double inclusion, double spike, double slab) {
    return mixture(inclusion, spike, slab).slab_probability(w);
  });
  m.def("residual", residual);
  m.def("log_density", family_log_density);
  m.def("normals", normals);
  m.def("random_bits", random_bits);
  m.def("activation", activation);
  m.def("multiply", product);
  m.def("bic", &bic);
  m.def("rates_at", [](py::object stage, int epoch) {
    return rates_at(from_python<StageOptions>(stage), epoch);
  });
  m.def("steps_at", [](py::object stage, int epoch) {
    return steps_at(from_python<StageOptions>(stage), epoch);
  });
  m.def("spike_at", [](py::object prior, py::object stage, int epoch) {
    return spike_at(from_python<PriorOptions>(prior), from_python<StageOptions>(stage), epoch);
  });
}

void register_options(py::module_& m) {
  m.def("option_fields", [] {
    py::dict all;
    all["SamplerOptions"] = field_names<SamplerOptions>();
    all["PriorOptions"] = field_names<PriorOptions>();
    all["OptimizerOptions"] = field_names<OptimizerOptions>();
    all["StageOptions"] = field_names<StageOptions>();
    all["TrainingOptions"] = field_names<TrainingOptions>();
    return all;
  });
  m.def("option_words", [] {
    py::dict all;
    add_words<Family>(all);
    add_words<Activation>(all);
    add_words<Initializer>(all);
    add_words<UpdateRule>(all);
    add_words<PriorKind>(all);
    add_words<Decay>(all);
    return all;
  });
  m.def("read_options",
        [](py::object options) { static_cast<void>(from_python<TrainingOptions>(options)); });
}

}  // namespace cstonet::seams
