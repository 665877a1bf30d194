"""``res.plot`` of every analysis: the numbers that are drawn are those of the results."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

import cstonet as cs
from cstonet.errors import (
    ColumnTypeError,
    InfiniteValuesError,
    MissingValuesError,
    NotAvailableError,
    NotOfThisFitError,
    OptionError,
    UnknownColumnError,
    UnknownLevelError,
)


@pytest.fixture(autouse=True)
def untouched():
    """Draw without a screen; no setting may change."""
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    plt.close("all")


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure(figsize=(4, 3)).subplots()


@pytest.fixture(scope="module")
def binary(fit_quickly):
    data = cs.datasets.simulation2(n=300, p=6, seed=3).data
    rng = np.random.default_rng(3)
    data["region"] = rng.choice(["north", "south"], 300)
    data["holes"] = np.where(np.arange(300) == 7, np.nan, rng.normal(size=300))
    data["far"] = np.where(np.arange(300) == 7, np.inf, rng.normal(size=300))
    data["one"] = 1.0
    data["flag"] = rng.binomial(1, 0.4, 300)
    data["w"] = rng.uniform(0.5, 2.0, 300)
    return fit_quickly("y ~ treat | x1 + x2 + x3 + x4 + x5 + x6", data, weights="w")


@pytest.fixture(scope="module")
def three(fit_quickly):
    simulation = cs.datasets.three_arms(n=400, p=6, seed=3)
    return fit_quickly(simulation.formula, simulation.data)


@pytest.fixture(scope="module")
def long_named(options):
    simulation = cs.datasets.three_arms(n=400, p=6, seed=3)
    data = simulation.data.rename(columns=lambda name: f"{name} in the year before $$ enrolment")
    outcome, treatment = data.columns[:2]
    levels = data[treatment].map(lambda level: f"{level} dose of the newer drug")
    model = cs.CausalStoNet(data[outcome], levels, data.iloc[:, 2:])
    return model.fit(options=options, seed=1, n_jobs=1)


@pytest.fixture(scope="module")
def doses(fit_quickly):
    simulation = cs.datasets.dose_curve(n=300, p=6, seed=3)
    data = simulation.data.assign(half=np.arange(300) % 2)
    return fit_quickly(f"{simulation.formula} - half", data)


@pytest.fixture(scope="module")
def mediated(fit_quickly):
    simulation = cs.datasets.linear_mediation(n=300, p=5, seed=3)
    return fit_quickly(simulation.formula, simulation.data)


def marks(ax):
    lines = [line for line in ax.lines if line.get_marker() in ("o", "s") and len(line.get_xdata())]
    return np.array([line.get_xydata()[0] for line in lines])


@pytest.mark.parametrize("fit", ["binary", "three", "doses", "mediated"])
@pytest.mark.parametrize(
    "picture", ["effects", "overlap", "balance", "cate", "selection", "network", "trace"]
)
def test_every_picture_of_every_analysis(fit, picture, ax, request):
    results = request.getfixturevalue(fit)
    assert getattr(results.plot, picture)(ax=ax) is ax
    ax.figure.draw_without_rendering()
    assert picture in repr(results.plot)


@pytest.mark.parametrize(
    "picture", ["effects", "overlap", "balance", "cate", "selection", "network", "trace"]
)
def test_nothing_is_cut_off(long_named, picture):
    """Names of covariates, of levels and of the outcome that no column has room for."""
    figure = getattr(long_named.plot, picture)().figure
    figure.draw_without_rendering()
    left, bottom, right, top = figure.get_tightbbox().extents
    width, height = figure.get_size_inches()
    assert left > -0.01
    assert bottom > -0.01
    assert right < width + 0.01
    assert top < height + 0.01
    assert width <= 7.0


def test_effects_are_the_contrasts_of_params(three, ax):
    three.plot.effects(alpha=0.1, ax=ax)
    contrasts = list(three.params.index[:2])
    assert [text.get_text() for text in ax.get_yticklabels()] == contrasts
    np.testing.assert_array_equal(marks(ax)[:, 0], three.params[contrasts])
    intervals = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2][1:]
    np.testing.assert_allclose(intervals, three.conf_int(0.1).loc[contrasts])
    assert ax.get_xlabel() == "effect on y, 90 % interval"


def test_effects_by_name(binary, ax):
    binary.plot.effects(["ATT", "POM[1]"], ax=ax)
    expected = [binary.effect("ATT").estimate, binary.params["POM[1]"]]
    np.testing.assert_array_equal(marks(ax)[:, 0], expected)
    assert ax.get_xlabel().startswith("estimate for y")
    with pytest.raises(NotAvailableError, match="no effect 'ATX'"):
        binary.plot.effects(["ATX"], ax=ax)
    with pytest.raises(OptionError, match="at least one effect"):
        binary.plot.effects([], ax=ax)


def test_fits_beside_each_other(binary, mediated, ax):
    binary.plot.effects(compare={"all": binary, "mediated": mediated}, ax=ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["ATE", "TE", "NDE", "NIE"]
    np.testing.assert_array_equal(marks(ax)[:, 0], [binary.params["ATE"], *mediated.params])
    with pytest.raises(OptionError, match="compare must name"):
        binary.plot.effects(compare={}, ax=ax)


def test_overlap_has_the_bounds_of_the_estimator(binary, three, ax):
    binary.plot.overlap(ax=ax)
    least = binary.effects.clip
    bounds = {line.get_xdata()[0] for line in ax.lines[1:]}
    assert bounds <= {least[1], 1 - least[0]}
    values, edges, _ = ax.patches[0].get_data()
    treated, weights = binary.nuisances.treatment == 1, binary.nuisances.weights
    expected, _ = np.histogram(
        binary.propensity()[treated], edges, weights=weights[treated], density=True
    )
    np.testing.assert_allclose(values, expected)
    three.plot.overlap(level="high", ax=ax)
    assert ax.get_xlabel() == "propensity P(treat = high | x)"
    with pytest.raises(UnknownLevelError, match="level"):
        three.plot.overlap(level="huge", ax=ax)


def test_balance_is_that_of_the_table(binary, doses, ax):
    table = binary.balance()
    binary.plot.balance(most=4, ax=ax)
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert len(shown) == 4
    np.testing.assert_array_equal(ax.lines[-2].get_xdata(), table.loc[shown, "smd_before"])
    np.testing.assert_array_equal(ax.lines[-1].get_xdata(), table.loc[shown, "smd_after"])
    assert doses.plot.balance().get_xlabel() == "correlation with the dose"
    with pytest.raises(OptionError, match="most must be a whole number"):
        binary.plot.balance(most=0)


def test_effects_of_units(binary, three, ax):
    binary.plot.cate(ax=ax)
    (units,) = (line for line in ax.lines if line.get_label() == "unit")
    np.testing.assert_array_equal(units.get_ydata(), np.sort(binary.cate()))
    limits = binary.cate(intervals=0.95)
    (band,) = ax.collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(limits["upper"].max())
    other = three.plot.cate(contrast=("high", "low"))
    (units,) = (line for line in other.lines if line.get_label() == "unit")
    np.testing.assert_array_equal(units.get_ydata(), np.sort(three.cate(contrast=("high", "low"))))
    assert other.get_ylabel() == "effect on y\nhigh – low"
    assert three.plot.cate().get_ylabel() == "effect on y\nlow – placebo"


def test_effects_along_a_column(binary, ax):
    binary.plot.cate("x1", alpha=0.1, ax=ax)
    curve = binary.effect_along("x1", alpha=0.1)
    np.testing.assert_array_equal(ax.lines[-1].get_xydata(), curve[["at", "estimate"]])
    (band,) = ax.collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(curve["upper"].max())
    values = binary.design.variables(["x1"])["x1"]
    points = ax.lines[-2].get_xydata()
    np.testing.assert_allclose(points, np.column_stack([values, binary.cate()]))
    with pytest.raises(UnknownColumnError, match="x99"):
        binary.plot.cate("x99", ax=ax)


def test_effects_by_category(binary, doses, ax):
    binary.plot.cate("region", ax=ax)
    table = binary.gate("region").table
    assert [text.get_text() for text in ax.get_xticklabels()] == list(table.index)
    np.testing.assert_array_equal(marks(ax), np.column_stack([[0, 1], table["estimate"]]))
    north = binary.cate()[(binary.design.variables(["region"])["region"] == "north").to_numpy()]
    box = np.array(ax.collections[1].get_segments()[0])[:, 1]
    np.testing.assert_allclose(box, np.quantile(north, [0.25, 0.75]))
    few = doses.plot.cate("half")
    halves = doses.cate().groupby(doses.design.variables(["half"])["half"].to_numpy()).mean()
    np.testing.assert_allclose(marks(few)[:, 1], halves)


def test_effects_in_groups(binary, ax):
    groups = binary.gate("region", alpha=0.1)
    binary.plot.effects(groups=groups, ax=ax)
    table, whole = groups.table, binary.effect("ATE", alpha=0.1)
    np.testing.assert_array_equal(marks(ax)[:, 0], [*table["estimate"], whole.estimate])
    lines = [tuple(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2][1:]
    simultaneous = table[["lower_simultaneous", "upper_simultaneous"]].to_numpy()
    pointwise = table[["lower", "upper"]].to_numpy()
    expected = [pair for both in zip(simultaneous, pointwise, strict=True) for pair in both]
    np.testing.assert_array_equal(lines, [*expected, (whole.lower, whole.upper)])
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names[-1] == "everyone (n = 300)"
    assert names[0] == f"north (n = {table['n'].iloc[0]})"
    with pytest.raises(OptionError, match="groups= goes with neither"):
        binary.plot.effects(["ATE"], groups=groups)


def test_selection_measures(binary, doses, ax):
    binary.plot.selection(measure="strength", most=2, ax=ax)
    left, right = ax.child_axes
    shown = [text.get_text() for text in left.get_yticklabels()]
    table = binary.selection.loc[shown]
    assert [bar.get_width() for bar in right.patches] == list(table["outcome_strength"])
    with pytest.raises(OptionError, match=r"measure must be one of .*, not 'size'"):
        doses.plot.selection(measure="size", ax=ax)


def test_networks_by_fold_and_start(binary, mediated, ax):
    bic = binary.networks.bic
    best = bic.loc[bic["bic"].idxmin()]
    binary.plot.network(least=0.0, ax=ax)
    said = ax.texts[-1].get_text()
    assert said.startswith(f"fold {best['fold']:.0f}, start {best['start']:.0f}; ")
    assert f"of {best['nonzero']:.0f} kept weights" in said
    names = {text.get_text() for text in ax.texts[:-1]}
    assert {"treat", "y"} <= names
    chosen = binary.networks.folds[int(best["fold"])].starts[0]
    assert names <= {"treat", "y", *(f"x{j + 1}" for j in chosen.inputs)}
    assert "fold 1, start 0" in binary.plot.network(fold=1, start=0).texts[-1].get_text()
    held = mediated.plot.network(model="mediator")
    assert set(mediated.design.mediators.names) <= {text.get_text() for text in held.texts}
    for wrong, said in (
        ({"fold": 9}, "fold must be one of 0, …, 1, not 9"),
        ({"fold": True}, "fold must be"),
        ({"start": 5}, "start must be one of 0, not 5"),
        ({"least": 2}, "least must lie between 0 and 1"),
    ):
        with pytest.raises(OptionError, match=said):
            binary.plot.network(**wrong)
    with pytest.raises(OptionError, match="model must be 'outcome' or 'mediator'"):
        mediated.plot.network(model="dose")


def test_trace_of_both_networks_of_a_mediation(mediated, ax):
    mediated.plot.trace(model="mediator", ax=ax)
    titles = [part.get_title(loc="left") for part in ax.child_axes]
    history = mediated.networks.mediator.trace
    assert len(titles) == sum(column.startswith("held_out_") for column in history)
    means = history.groupby(["stage", "epoch"])["held_out_treatment"].mean()
    np.testing.assert_allclose(ax.child_axes[0].lines[2].get_ydata(), means)
    with pytest.raises(OptionError, match="model must be"):
        mediated.plot.trace(model="dose")


def test_sensitivity(binary, doses, mediated, ax):
    answer = binary.sensitivity("ATT")
    binary.plot.sensitivity(answer, most=2, ax=ax)
    square = next(line for line in ax.lines if line.get_marker() == "s")
    assert square.get_xdata()[0] == answer.robustness_value
    dots = next(line for line in ax.lines if line.get_marker() == "o").get_xydata()
    known = answer.benchmarks[["r2_treatment", "r2_outcome"]].to_numpy()
    assert 0 < len(dots) <= 2
    assert all((known == dot).all(axis=1).any() for dot in dots)
    assert "bound of the ATT" in ax.get_title(loc="left")
    assert "bound of the ATE" in binary.plot.sensitivity("ATE").get_title(loc="left")
    without = binary.sensitivity(benchmarks=False)
    assert binary.plot.sensitivity(without).get_title(loc="left")
    assert "bound of the AME" in doses.plot.sensitivity().get_title(loc="left")
    with pytest.raises(NotOfThisFitError, match="without"):
        mediated.plot.sensitivity()
    with pytest.raises(OptionError, match="of must name an effect"):
        binary.plot.sensitivity(1)


def test_targeting(binary, three, doses, mediated, ax):
    answer = binary.heterogeneity(alpha=0.1)
    assert binary.plot.toc(answer, ax=ax) is ax
    (line,) = (line for line in ax.lines if len(line.get_xdata()) > 2)
    np.testing.assert_array_equal(line.get_xydata(), answer.toc[["share", "estimate"]])
    (band,) = ax.collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(answer.toc["upper"].max())
    assert "90 % pointwise" in [text.get_text() for text in ax.get_legend().get_texts()]
    other = three.plot.toc(contrast=("high", "low"))
    assert other.get_ylabel() == "gain in effect on y\nhigh – low"
    with pytest.raises(OptionError, match="not both"):
        three.plot.toc(answer, contrast=("high", "low"))
    for fit in (doses, mediated):
        with pytest.raises(NotOfThisFitError, match=r"plot.cate\(\)"):
            fit.plot.toc()


def test_dose_response_is_for_doses(doses, binary, mediated, ax):
    assert doses.plot.dose_response([4.0, 5.0], ax=ax) is ax
    table = doses.dose_response([4.0, 5.0]).table
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), table[["dose", "estimate"]])
    for fit in (binary, mediated):
        with pytest.raises(NotOfThisFitError, match=r"levels, not doses: plot.effects"):
            fit.plot.dose_response()
    with pytest.raises(AttributeError, match="efects"):
        _ = binary.plot.efects


def test_effect_along(binary, three):
    table = binary.effect_along("x1", at=[0.0, 1.0])
    assert list(table) == [
        "at", "estimate", "se", "lower", "upper", "lower_simultaneous", "upper_simultaneous",
    ]  # fmt: skip
    np.testing.assert_array_equal(table["at"], [0.0, 1.0])
    half = (table["upper"] - table["estimate"]) / table["se"]
    assert half.between(1.96, 2.1).all()  # Student's t with about twenty degrees of freedom or more
    assert (table["upper_simultaneous"] > table["upper"]).all()
    one = binary.effect_along("x1", at=0.0)
    np.testing.assert_allclose(one["upper"], one["upper_simultaneous"])
    forth = three.effect_along("x1", contrast=("high", "low"))["estimate"]
    back = three.effect_along("x1", contrast=("low", "high"))["estimate"]
    np.testing.assert_allclose(forth, -back)
    assert len(forth) == 40
    with pytest.raises(OptionError, match="say which"):
        three.effect_along("x1")


def test_effect_along_is_a_projection(binary):
    """A column of two values has a line through the two, which a projection finds as well."""
    line = binary.effect_along("flag", at=[0.0, 1.0])
    fit = binary.projection("flag")
    np.testing.assert_allclose(line["estimate"], [fit.params.iloc[0], fit.params.sum()], rtol=1e-8)
    variances = [fit.cov_params().iloc[0, 0], fit.cov_params().to_numpy().sum()]
    np.testing.assert_allclose(line["se"] ** 2, variances, rtol=1e-6)


@pytest.mark.parametrize(
    ("by", "at", "error", "says"),
    [
        ("region", None, ColumnTypeError, "'region' does not hold numbers"),
        ("holes", None, MissingValuesError, "'holes' is missing for 1 of the 300"),
        ("far", None, InfiniteValuesError, "'far' holds infinite"),
        ("one", None, NotAvailableError, "'one' is 1 for all units"),
        ("y", None, NotAvailableError, "outcome"),
        ("x1", [], OptionError, "at must be"),
        ("x1", [[1.0]], OptionError, "at must be"),
        ("x1", "low", OptionError, "at must be"),
        ("x1", [np.nan], OptionError, "at must be"),
    ],
)
def test_effects_along_what_is_no_scale(binary, by, at, error, says):
    with pytest.raises(error, match=says):
        binary.effect_along(by, at=at)
