// The covariates, and what is computed from them column by column.
#include <algorithm>
#include <numeric>
#include <optional>

#include "bindings/convert.hpp"
#include "bindings/polling.hpp"
#include "bindings/products.hpp"
#include "bindings/register.hpp"
#include "core/errors.hpp"
#include "core/score.hpp"

namespace cstonet {
namespace {

FloatArray gather(const PyDataset& dataset, const IndexArray& rows, const IndexArray& columns) {
  const std::vector<Index> wanted = rows_from_array(rows, "rows", dataset.data);
  const std::vector<Index> subset = columns_from_array(columns, "columns", dataset.data);
  Panel out(std::ssize(wanted), std::ssize(subset));
  dataset.data.gather(wanted, subset, out);
  return array_from_panel(out);
}

DoubleArray square_sums_of(const PyDataset& dataset, const IndexArray& rows, ThreadCount threads,
                           const py::object& progress) {
  const std::vector<Index> wanted = rows_from_array(rows, "rows", dataset.data);
  std::vector<double> sums;
  Hooks hooks;
  run_released(hooks, progress, [&] { sums = square_sums(dataset.data, wanted, threads, hooks); });
  return array_from_doubles(sums);
}

using Sums = std::span<const double>;

// What score_sums and score_statistics are asked with.
struct ScoreCall {
  const PyDataset& dataset;
  std::vector<Index> rows, covariates;
  std::vector<double> mean_squares;
  bool with_squares;
  PyProducts made;
  ThreadCount threads;
  std::vector<Index> others;
  std::optional<Panel> slopes;

  ScoreCall(const PyDataset& data, const IndexArray& listed_rows, const py::object& products,
            const std::optional<DoubleArray>& squares, const std::optional<IndexArray>& listed,
            ThreadCount count, const py::object& explained)
      : dataset(data),
        rows(rows_from_array(listed_rows, "rows", data.data)),
        covariates(data.data.columns()),
        with_squares(squares.has_value()),
        made(products_from_python(products)),
        threads(count) {
    std::iota(covariates.begin(), covariates.end(), Index{0});
    if (listed) covariates = columns_from_array(*listed, "covariates", data.data);
    if (!explained.is_none()) {
      others = columns_from_array(array_from<IndexArray>(explained.attr("others"), "others"),
                                  "others", data.data);
      const auto given = array_from<FloatArray>(explained.attr("slopes"), "slopes");
      require_shape(given, "slopes", {std::ssize(others) + 1, std::ssize(covariates)});
      slopes = panel_from_array(given, "slopes");
    }
    require(std::ssize(rows) == made.products.rows, "residuals needs a row for each of rows");
    if (!squares) return;
    require_shape(*squares, "mean_squares", {data.data.columns()});
    for (Index j : covariates) mean_squares.push_back(squares->data()[j]);
  }
  Index features() const { return with_squares ? 2 : 1; }
  Index directions() const { return made.products.size(); }

  // Calls take(feature, direction, first, Σ g f, Σ g² f²) with the sums of neighbouring covariates,
  // for all of them.
  template <class Take>
  void run(const py::object& progress, Take&& take) const {
    const ScoreRequest request{.data = dataset.data,
                               .rows = rows,
                               .covariates = covariates,
                               .mean_squares = mean_squares,
                               .products = made.products,
                               .threads = threads,
                               .others = others,
                               .slopes = slopes ? &*slopes : nullptr};
    Hooks hooks;
    run_released(hooks, progress, [&] {
      score_sums(request, hooks, [&](Index first, const ScoreSums& sums) {
        for (Index feature = 0; feature < features(); ++feature) {
          const FeatureSums& own = feature == 0 ? sums.linear : sums.square;
          const auto of = [&](const std::vector<double>& part, Index k) {
            return std::span(part).subspan(k * sums.covariates, sums.covariates);
          };
          for (Index k = 0; k < sums.directions; ++k)
            take(feature, k, first, of(own.sum, k), of(own.squares, k));
        }
      });
    });
  }
};

py::object score_sums_of(const PyDataset& dataset, const IndexArray& rows,
                         const py::object& products, const std::optional<DoubleArray>& mean_squares,
                         const std::optional<IndexArray>& covariates, ThreadCount threads,
                         const py::object& progress, const py::object& explained) {
  const ScoreCall call(dataset, rows, products, mean_squares, covariates, threads, explained);
  const Index q = std::ssize(call.covariates), size = q * call.directions();
  DoubleArray out({call.features(), Index{2}, call.directions(), q});
  double* to = out.mutable_data();
  call.run(progress, [&](Index feature, Index k, Index first, Sums sum, Sums squares) {
    double* at = to + 2 * feature * size + k * q + first;
    std::ranges::copy(sum, at);
    std::ranges::copy(squares, at + size);
  });
  return out.attr("swapaxes")(2, 3);
}

// Bytes up to which covariates that are packed here are packed elsewhere, too: several processes
// may share a machine, whose memory only this one has asked for.
constexpr std::size_t kPackedElsewhere = std::size_t{1} << 26;

// How to make the covariates again elsewhere, for pickle: from the user's arrays, which several
// processes may share.
py::tuple rebuilt(const py::object& self) {
  const auto& d = self.cast<const PyDataset&>();
  require(!d.is_completed, "completed covariates stay in their process");
  const auto& k = d.kept;
  const py::object type = py::type::of(self);
  if (k.size() == 3) {
    const std::size_t pack_bytes = d.data.is_packed() ? kPackedElsewhere : 0;
    return py::make_tuple(type, py::make_tuple(k[0], k[1], k[2], d.limit, pack_bytes));
  }
  return py::make_tuple(type.attr("compressed"),
                        py::make_tuple(k[0], k[1], k[2], d.data.rows(), k[3], k[4], d.limit));
}

py::object score_statistics(const PyDataset& dataset, const IndexArray& rows,
                            const py::object& products,
                            const std::optional<DoubleArray>& mean_squares,
                            const std::optional<IndexArray>& covariates, ThreadCount threads,
                            const py::object& progress, const py::object& explained) {
  const ScoreCall call(dataset, rows, products, mean_squares, covariates, threads, explained);
  const Index q = std::ssize(call.covariates);
  FloatArray out({call.features(), call.directions(), q});
  float* to = out.mutable_data();
  call.run(progress, [&](Index feature, Index k, Index first, Sums sum, Sums squares) {
    float* at = to + (feature * call.directions() + k) * q + first;
    std::ranges::transform(sum, squares, at, score);
  });
  return out.attr("swapaxes")(1, 2);
}

}  // namespace

void register_data(py::module_& m) {
  py::class_<PyDataset>(m, "Dataset")
      .def(py::init<py::array, DoubleArray, DoubleArray, double, std::size_t>(),
           py::arg("x").noconvert(), py::arg("center"), py::arg("inverse_scale"), py::arg("limit"),
           py::arg("pack_bytes"))
      .def_static(
          "compressed",
          [](py::array values, py::array row_index, py::array first_entry, Index rows,
             DoubleArray center, DoubleArray inverse_scale, double limit) {
            return PyDataset(std::move(values), std::move(row_index), std::move(first_entry), rows,
                             std::move(center), std::move(inverse_scale), limit);
          },
          py::arg("values").noconvert(), py::arg("row_index").noconvert(),
          py::arg("first_entry").noconvert(), py::arg("rows"), py::arg("center"),
          py::arg("inverse_scale"), py::arg("limit"))
      .def_property_readonly("rows", [](const PyDataset& d) { return d.data.rows(); })
      .def_property_readonly("columns", [](const PyDataset& d) { return d.data.columns(); })
      .def_property_readonly("is_packed", [](const PyDataset& d) { return d.data.is_packed(); })
      .def("gather", gather, py::arg("rows"), py::arg("columns"))
      .def("square_sums", square_sums_of, py::arg("rows"), py::arg("threads"),
           py::arg("progress") = py::none())
      .def("score_sums", score_sums_of, py::arg("rows"), py::arg("products"),
           py::arg("mean_squares").none(true), py::arg("covariates").none(true), py::arg("threads"),
           py::arg("progress") = py::none(), py::arg("explained") = py::none())
      .def("score_statistics", score_statistics, py::arg("rows"), py::arg("products"),
           py::arg("mean_squares").none(true), py::arg("covariates").none(true), py::arg("threads"),
           py::arg("progress") = py::none(), py::arg("explained") = py::none())
      .def(
          "trained_on", [](const py::object& self, const IndexArray&) { return self; },
          py::arg("inputs"))
      .def("__reduce__", rebuilt);
}

}  // namespace cstonet
