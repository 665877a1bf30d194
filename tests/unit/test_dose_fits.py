"""Fits of a continuous treatment, and what their results can be asked."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import cstonet as cs
from cstonet.doses.estimation import DoseEstimates
from cstonet.doses.reading import dose_values
from cstonet.doses.response import read_doses
from cstonet.doses.results import DoseResults
from cstonet.errors import (
    ConstantTreatmentError,
    DoseRangeError,
    LengthMismatchError,
    MissingValuesError,
    NotAvailableError,
    OptionError,
    OutlyingDoseWarning,
    PointMassWarning,
    ThinSupportWarning,
    TooFewRowsError,
    TreatmentLeakError,
    UnknownColumnError,
)
from cstonet.estimators.dispersion import Dispersion
from cstonet.estimators.dose_curve import estimate_curve
from cstonet.estimators.marginal_effect import estimate_marginal_effect
from cstonet.received import Received
from cstonet.roles import Vector

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


@pytest.fixture(scope="module")
def simulation():
    return cs.datasets.dose_curve(n=500, p=8, seed=3)


@pytest.fixture(scope="module")
def options(quick_options):
    return quick_options(epochs=40, hidden=(8, 6), starts=1)


@pytest.fixture(scope="module")
def fitted(simulation, options):
    model = cs.CausalStoNet.from_formula(simulation.formula, simulation.data)
    return model.fit(options=options, seed=1, n_jobs=1)


# Estimates ----------------------------------------------------------------------------------------


def test_fit_finds_the_marginal_effect(simulation, fitted):
    assert fitted.design.treatment_kind == "continuous"
    assert list(fitted.params.index) == ["AME"]
    assert abs(fitted.params["AME"] - simulation.ame) < FOUR * fitted.bse["AME"]
    assert fitted.params["AME"] > FOUR * fitted.bse["AME"]
    # The models have learnt most of what there is to know.
    nuisances, truth = fitted.dose_nuisances, simulation.nuisances()
    for name in ("mu", "mean"):
        got, true = getattr(nuisances, name), getattr(truth, name)
        assert np.mean((got - true) ** 2) < 0.3 * true.var()
    assert fitted.nobs == 500
    assert "treatment_variance" in fitted.trace


def test_linear_gaussian_effect_is_that_of_least_squares(options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    dose = X[:, 0] + rng.normal(size=600)
    y = 1.5 * dose + X[:, 0] - X[:, 1] + rng.normal(size=600)
    results = cs.CausalStoNet(y, dose, X).fit(options=options, seed=1, n_jobs=1)
    ols = sm.OLS(y, sm.add_constant(np.column_stack([dose, X]))).fit()
    assert abs(results.params["AME"] - 1.5) < FOUR * results.bse["AME"]
    # Both are efficient, so they differ by less than they err, and have the same standard error.
    assert abs(results.params["AME"] - ols.params[1]) < results.bse["AME"]
    assert results.bse["AME"] == pytest.approx(ols.bse[1], rel=0.25)
    curve = results.dose_response([-1.0, 0.0, 1.0]).table
    assert (abs(curve["estimate"] - 1.5 * curve["dose"]) < FOUR * curve["se"]).all()


@pytest.mark.parametrize(("factor", "shift"), [(1000.0, 0.0), (0.01, 70.0), (-1.0, 0.0)])
def test_units_of_the_dose_do_not_matter(simulation, options, fitted, factor, shift):
    data = simulation.data.assign(dose=factor * simulation.data["dose"] + shift)
    model = cs.CausalStoNet.from_formula(simulation.formula, data)
    other = model.fit(options=options, seed=1, n_jobs=1)
    t, before = other.tvalues["AME"], fitted.tvalues["AME"]
    if factor < 0:  # the network starts elsewhere, as seen from the dose
        assert abs(other.params["AME"] + fitted.params["AME"]) < FOUR * fitted.bse["AME"]
        return
    assert t == pytest.approx(before, abs=1e-3)
    assert factor * other.params["AME"] == pytest.approx(fitted.params["AME"], rel=1e-4)
    doses = np.array([3.0, 5.0, 7.0])
    one = fitted.dose_response(doses).table
    two = other.dose_response(factor * doses + shift).table
    np.testing.assert_allclose(two["estimate"], one["estimate"], atol=1e-3 * one["se"].min())


def test_threads_do_not_change_a_bit(simulation, options, fitted):
    model = cs.CausalStoNet.from_formula(simulation.formula, simulation.data)
    other = model.fit(options=options, seed=1, n_jobs=3)
    assert other.params["AME"] == fitted.params["AME"]
    np.testing.assert_array_equal(other.dose_nuisances.mu_grid, fitted.dose_nuisances.mu_grid)
    pd.testing.assert_frame_equal(other.dose_response().table, fitted.dose_response().table)


@pytest.mark.parametrize("recipe", ["search", "prune"])
def test_risks_with_weights(simulation, quick_options, recipe):
    data = simulation.data.assign(y=(simulation.data["y"] > 0).astype(int))
    weights = np.random.default_rng(0).uniform(0.5, 2, size=len(data))
    weights[:5] = 0.0
    model = cs.CausalStoNet.from_formula(simulation.formula, data, weights=weights)
    results = model.fit(options=quick_options(recipe, epochs=30), seed=1, n_jobs=1)
    assert results.dose_nuisances.mu_grid.min() >= 0
    assert results.dose_nuisances.mu_grid.max() <= 1
    assert results.params["AME"] > 3 * results.bse["AME"]
    assert "risk of y = 1" in results.summary().as_text()
    assert results.dose_response().table["estimate"].between(-0.2, 1.2).all()


def test_repetitions_are_averaged(simulation, quick_options):
    options = quick_options(repeats=2, starts=1)
    model = cs.CausalStoNet.from_formula(simulation.formula, simulation.data)
    results = model.fit(options=options, seed=1, n_jobs=1)
    assert len(results.networks.splits) == 4
    again = model.fit(options=options, seed=1, n_jobs=1)
    assert again.params["AME"] == results.params["AME"]


def test_heteroscedastic_doses_are_noticed(quick_options):
    simulation = cs.datasets.dose_curve(n=800, p=5, seed=2, heteroscedastic=True)
    model = cs.CausalStoNet.from_formula(simulation.formula, simulation.data)
    results = model.fit(options=quick_options(epochs=30, starts=1), seed=1, n_jobs=1)
    assert results.dispersion.heteroscedastic
    correlation = np.corrcoef(np.log(results.dose_nuisances.variance), np.log(simulation.variance))
    assert correlation[0, 1] > 0.7
    assert "a variance that depends on them" in " ".join(results.summary().as_text().split())


# Curve --------------------------------------------------------------------------------------------


def test_curve_and_its_table(simulation, fitted):
    response = fitted.dose_response()
    table = response.table
    assert list(table) == [
        "dose", "estimate", "se", "lower", "upper", "uniform_lower", "uniform_upper", "effective",
    ]  # fmt: skip
    assert len(table) == 50
    low, high = response.support
    assert (table["dose"].iloc[0], table["dose"].iloc[-1]) == (low, high)
    share = (simulation.data["dose"] < low).mean()
    assert share == pytest.approx(0.025, abs=2 / 500)
    assert (table["uniform_lower"] < table["lower"]).all()
    assert (table["uniform_upper"] > table["upper"]).all()
    np.testing.assert_allclose(
        table["upper"] - table["estimate"], 1.959964 * table["se"], rtol=1e-6
    )
    z = (table["estimate"] - simulation.curve(table["dose"])) / table["se"]
    assert abs(z).max() < 5
    assert "50 doses" in repr(response)
    assert "<table" in response._repr_html_()
    one = fitted.dose_response(5.0, alpha=0.1).table
    np.testing.assert_allclose(one["uniform_upper"], one["upper"])


def test_options_of_the_curve(fitted):
    wide = fitted.dose_response(5.0, bandwidth=3.0)
    assert wide.bandwidth == 3.0
    assert wide.table["se"].iloc[0] < fitted.dose_response(5.0, bandwidth=0.2).table["se"].iloc[0]
    assert fitted.dose_response(trim=0.2).support[0] > fitted.dose_response().support[0]
    for option in (
        {"alpha": 1.5}, {"trim": 0.5}, {"bandwidth": 0.0}, {"bandwidth": np.nan},
        {"alpha": "5%"}, {"alpha": None}, {"trim": "none"}, {"trim": None},
        {"bandwidth": "wide"}, {"bandwidth": [1.0, 2.0]}, {"bandwidth": True},
        {"bandwidth": 1e-300},
    ):  # fmt: skip
        with pytest.raises(OptionError, match=next(iter(option))):
            fitted.dose_response(**option)


def test_masked_doses_are_not_finite():
    masked = np.ma.masked_array([4.0, 5.0, np.nan, 6.0], mask=[False, True, False, False])
    with pytest.raises(OptionError, match="grid holds 2 values that are not finite"):
        read_doses(masked, "grid")
    with pytest.raises(OptionError, match="grid holds 1 values that are not finite"):
        read_doses(masked[1], "grid")
    np.testing.assert_array_equal(read_doses(masked[[0, 3]], "grid"), [4.0, 6.0])


def test_units_behind_a_point_are_counted(simulation, fitted):
    dose = simulation.data["dose"].to_numpy()
    table = fitted.dose_response([4.0, 6.0], bandwidth=0.5).table
    kernel = np.exp(-0.5 * ((dose - table["dose"].to_numpy()[:, None]) / 0.5) ** 2)
    expected = kernel.sum(axis=1) ** 2 / (kernel**2).sum(axis=1)
    np.testing.assert_allclose(table["effective"], expected)
    assert np.isfinite(table["se"]).all()
    with pytest.warns(ThinSupportWarning, match="at 50 of 50 doses .*fewer than 10") as caught:
        table = fitted.dose_response(bandwidth=1e-3).table
    assert caught[0].filename == __file__
    without = table["effective"] < 3
    assert without.any()
    assert table.loc[without, ["se", "lower", "uniform_upper"]].isna().all().all()
    assert np.isfinite(table["estimate"]).all()
    assert np.isfinite(table.loc[~without]).all().all()


def test_nearest_unit_may_have_no_weight(simulation, fitted):
    """Beside a dose of weight zero the kernel is centred on the nearest unit that counts."""
    nuisances = fitted.dose_nuisances
    order = np.argsort(nuisances.dose)
    middle, weights = order[250], np.ones(500)
    weights[order[230:270]] = 0
    results = estimate_curve(
        replace(nuisances, weights=weights),
        nuisances.dose[[middle]],
        support=(3.0, 7.0),
        clip=0.01,
        bandwidth=1e-3,
    )
    assert np.isfinite(results.estimates).all()


def test_errors_of_a_curve_are_those_of_a_repetition(simulation):
    """Two repetitions that lie apart by 2 g: each has its own variance, and g² is added."""
    truth, doses, gap = simulation.nuisances(), np.array([4.0, 6.0]), 0.7
    options = {"support": (3.0, 7.0), "clip": 0.01, "bandwidth": 1.0}

    def shifted(by):
        """μ̂ off by a constant, and left so: outcomes are off by as much."""
        return estimate_curve(
            replace(truth, y=truth.y + by, mu=truth.mu + by, mu_grid=truth.mu_grid + by),
            doses,
            **options,
        )

    alone, both = [shifted(gap), shifted(-gap)], shifted(0.0)
    combined = both.over_repetitions(alone)
    np.testing.assert_array_equal(combined.estimates, both.estimates)
    np.testing.assert_allclose(
        combined.standard_errors, np.sqrt(both.standard_errors**2 + gap**2), rtol=1e-9
    )
    same = both.over_repetitions([both, both])
    np.testing.assert_allclose(same.influence, both.influence, rtol=1e-12)


def test_grid_outside_the_data(fitted):
    low, high = fitted.dose_response().support
    with pytest.warns(UserWarning, match=r"2 of 3 doses .*: -1000\.0, 1000\.0") as caught:
        table = fitted.dose_response([-1000, 5, 1000]).table
    assert caught[0].filename == __file__
    assert list(table["dose"]) == [5.0]
    with pytest.raises(DoseRangeError, match=f"none of the 2 doses .*{low:.6g} to {high:.6g}"):
        fitted.dose_response([-1000.0, 1000.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.dose_response([low, high])


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ([[1.0, 2.0]], "one-dimensional"),
        ([], "shape is"),
        (["low", "high"], "it holds 'low', 'high'"),
        (["1", "2"], "it holds '1', '2'"),
        ("5", "it holds '5'"),
        ([1.0, None], "1 values that are not finite"),
        ([True], "it holds True"),
        ({4, 5}, "it holds"),
        ([1 + 1j], "it holds"),
        ([[1.0], [2.0, 3.0]], "rows differ"),
        ([1.0, np.nan], "1 values that are not finite"),
        (np.inf, "not finite"),
    ],
)
def test_malformed_grid(fitted, grid, says):
    with pytest.raises(OptionError, match=f"grid.*{says}"):
        fitted.dose_response(grid)


def test_plot(fitted):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    _, ax = plt.subplots()
    assert fitted.dose_response().plot(ax) is ax
    assert ax.get_xlabel() == "dose"
    assert ax.get_ylabel() == "mean of y"
    assert len(ax.collections) == 2
    assert fitted.dose_response().plot() is not ax
    plt.close("all")


# Units --------------------------------------------------------------------------------------------


def test_outcomes_and_slopes_of_training_rows(fitted):
    nuisances = fitted.dose_nuisances
    outcomes = fitted.potential_outcomes(dose=[4.0, 6.0])
    assert list(outcomes.columns) == [4.0, 6.0]
    assert outcomes.columns.name == "dose"
    contrast = fitted.cate(contrast=(6.0, 4.0))
    np.testing.assert_allclose(contrast, outcomes[6.0] - outcomes[4.0])
    np.testing.assert_array_equal(fitted.cate(), nuisances.slope)
    np.testing.assert_array_equal(fitted.predict(), nuisances.mu)
    step = 1e-4
    ends = fitted.potential_outcomes(dose=[5 - step, 5 + step]).to_numpy()
    np.testing.assert_allclose(
        fitted.cate(dose=5.0), (ends[:, 1] - ends[:, 0]) / (2 * step), atol=1e-5
    )


def test_new_units(simulation, fitted):
    new = simulation.data.head(7)
    step = 1e-4
    doses = [5 - step, 5.0, 5 + step]
    outcomes = fitted.potential_outcomes(new, dose=doses).to_numpy()
    slope = (outcomes[:, 2] - outcomes[:, 0]) / (2 * step)
    np.testing.assert_allclose(fitted.cate(new, dose=5.0), slope, atol=1e-6)
    np.testing.assert_allclose(fitted.cate(new, dose=[5.0] * 7), slope, atol=1e-6)
    np.testing.assert_allclose(
        fitted.cate(new, contrast=(doses[2], doses[0])), outcomes[:, 2] - outcomes[:, 0]
    )
    np.testing.assert_allclose(fitted.predict(new.assign(dose=5.0)), outcomes[:, 1])
    assert list(fitted.cate(new).index) == list(new.index)
    without = new.drop(columns="dose")
    np.testing.assert_array_equal(fitted.cate(without, dose=5.0), fitted.cate(new, dose=5.0))
    for ask in (fitted.predict, fitted.cate):
        assert ask(new.head(0)).empty
        with pytest.raises(UnknownColumnError, match="'dose'"):
            ask(without)
        with pytest.raises(MissingValuesError, match="1 missing"):
            ask(new.assign(dose=[np.nan, *new["dose"][1:]]))
    with pytest.raises(LengthMismatchError, match="2 values but there are 7"):
        fitted.cate(new, dose=[4.0, 5.0])


def test_expressions_of_new_units(simulation, options):
    data = simulation.data.rename(columns={"dose": "d"}).assign(d=lambda f: f["d"] - f["d"].min())
    model = cs.CausalStoNet.from_formula("y ~ np.sqrt(d) | .", data)
    results = model.fit(options=options, seed=1, n_jobs=1)
    new = data.head(5)
    at = results.potential_outcomes(new, dose=np.sqrt(new["d"])).to_numpy()
    np.testing.assert_allclose(results.predict(new), np.diag(at))
    by_name = new.drop(columns="d").assign(**{"np.sqrt(d)": np.sqrt(new["d"])})
    np.testing.assert_array_equal(results.predict(by_name), results.predict(new))
    for ask in (results.predict, results.cate):
        assert len(ask(new)) == 5
        with pytest.raises(UnknownColumnError, match=r"'d' \(for the treatment 'np.sqrt\(d\)'\)"):
            ask(new.drop(columns="d"))
        with pytest.raises(MissingValuesError, match="1 missing"):
            ask(new.assign(d=[np.nan, *new["d"][1:]]))


def test_expressions_that_depend_on_other_rows(simulation, options):
    model = cs.CausalStoNet.from_formula("y ~ I(dose - dose.mean()) | .", simulation.data)
    results = model.fit(options=options, seed=1, n_jobs=1)
    new = simulation.data.head(5)
    with pytest.raises(NotAvailableError, match="depends on all rows"):
        results.predict(new)
    name, mean = "I(dose - dose.mean())", simulation.data["dose"].mean()
    assert len(results.predict(new.assign(**{name: new["dose"] - mean}))) == 5


@pytest.mark.parametrize(
    "code", ["d / d.max()", "d - d.min()", "d.cumsum()", "d.diff().fillna(0)", "d.rank()"]
)
def test_no_expression_of_all_rows_passes_for_one_by_rows(code):
    rng = np.random.default_rng(3)
    for top in (0, 20, 39):  # the largest dose may be anywhere
        d = rng.uniform(1, 2, size=40)
        d[top], d[(top + 7) % 40] = 3, 0.5
        frame = pd.DataFrame({"d": d})
        assert not Received.of(Vector.from_expression(code, frame), frame).by_rows
        assert Received.of(Vector.from_expression("np.log(d)", frame), frame).by_rows
        assert Received.of(Vector.from_expression("I(d > 1.5)", frame), frame).by_rows


def test_expressions_that_use_names_of_the_session(simulation, options):
    middle = 5.0
    model = cs.CausalStoNet.from_formula("y ~ I(dose > middle) | .", simulation.data)
    results = model.fit(options=options, seed=1, n_jobs=1)
    middle = 1.0
    with pytest.raises(NotAvailableError, match=r"uses 'middle', which may have changed"):
        results.predict(simulation.data.head(5))
    assert middle == 1.0


def test_doses_that_no_unit_had(simulation, fitted):
    for ask in (
        lambda: fitted.potential_outcomes(dose=1000),
        lambda: fitted.potential_outcomes(simulation.data.head(2), dose=1000),
        lambda: fitted.cate(dose=1000),
        lambda: fitted.cate(contrast=(1000, 5)),
        lambda: fitted.predict(simulation.data.head(2).assign(dose=[5.0, 1000.0])),
    ):
        with pytest.raises(DoseRangeError, match="extrapolate"):
            ask()


def test_what_a_dose_does_not_have(fitted, make_results):
    with pytest.raises(NotAvailableError, match=r"no effect 'ATT'.*dose_response"):
        fitted.effect("ATT")
    with pytest.raises(NotAvailableError, match="density"):
        fitted.propensity()
    with pytest.raises(NotAvailableError, match="no arms"):
        fitted.test_equal_arms()
    with pytest.raises(OptionError, match="name the doses"):
        fitted.potential_outcomes()
    with pytest.raises(OptionError, match="pair of doses"):
        fitted.cate(contrast=[1, 2, 3])
    with pytest.raises(OptionError, match="one dose for all"):
        fitted.cate(dose=[4.0, 5.0])
    with pytest.raises(NotAvailableError, match="has levels, not doses"):
        make_results().dose_response()
    with pytest.raises(OptionError, match="no sampling variation"):
        fitted.t_test([0.0])


def test_inference(fitted):
    assert fitted.effect().name == "AME"
    assert fitted.effect() == fitted.effect("AME")
    test = fitted.t_test("AME = 0")
    np.testing.assert_allclose(test.tvalue.item(), fitted.tvalues["AME"])
    np.testing.assert_allclose(fitted.conf_int(simultaneous=True), fitted.conf_int(), rtol=1e-12)
    assert "AME" in repr(fitted)


# Diagnostics --------------------------------------------------------------------------------------


def test_weighting_balances_the_covariates(simulation, fitted):
    balance = fitted.balance()
    x1 = simulation.data["x1"]
    expected = np.corrcoef(x1, simulation.data["dose"])[0, 1]
    np.testing.assert_allclose(balance.loc["x1", "correlation_before"], expected)
    assert abs(balance.loc["x1", "correlation_after"]) < 0.5 * abs(expected)


def test_overlap(fitted):
    overlap = fitted.overlap()
    assert list(overlap["n"]) == [100] * 5 + [500]
    assert (overlap["effective"] <= overlap["n"]).all()
    assert overlap.loc["all", "n_bounded"] == fitted.effects.n_clipped
    assert (overlap["from"] <= overlap["to"]).all()


# Summary ------------------------------------------------------------------------------------------


def oracle_results(simulation, plan, *, heteroscedastic=False, **changes):
    names = [f"x{j}" for j in range(1, 6)]
    selected = np.array([True, False, True, False, True])
    selection = pd.DataFrame(
        {"treatment": selected, "outcome": [True] * 4 + [False], "strength": 0.2}, index=names
    ).assign(treatment_count=12 * selected, outcome_count=[12, 11, 12, 9, 0])
    selection.attrs["fits"] = 12
    nuisances = simulation.nuisances()
    return DoseResults(
        design=cs.CausalStoNet.from_formula(simulation.formula, simulation.data).design,
        plan=plan,
        estimates=DoseEstimates(
            nuisances,
            Dispersion(nuisances.variance, heteroscedastic, 0.0004 if heteroscedastic else 0.4),
            estimate_marginal_effect(nuisances, clip=0.01),
            (),
            (nuisances,),
        ),
        selection=selection,
        networks=SimpleNamespace(n_nonzero=41, n_weights=123),
        notes=(),
        runtime=1.0,
        **changes,
    )


def test_golden(make_plan, check_golden):
    simulation = cs.datasets.dose_curve(n=300, p=5, seed=1)
    results = oracle_results(simulation, make_plan(network_label="5-8-5-1"))
    check_golden("summary_dose.txt", str(results.summary()))


def test_summary(fitted, make_plan):
    for results in (
        fitted,
        oracle_results(
            cs.datasets.dose_curve(n=300, p=5, seed=1, heteroscedastic=True),
            make_plan(),
            heteroscedastic=True,
        ),
    ):
        text = results.summary().as_text()
        assert max(map(len, text.splitlines())) <= 78
        assert "dose (continuous)" in text
        assert "POM" not in text
        for form in ("as_html", "as_latex", "as_csv"):
            assert "AME" in getattr(results.summary(), form)()
    assert "p < 0.001" in text


# Bad input ----------------------------------------------------------------------------------------


def test_bad_doses(simulation):
    data = simulation.data
    with pytest.raises(ConstantTreatmentError, match="'dose' is 3 in all"):
        cs.fit(simulation.formula, data.assign(dose=3.0))
    weights = np.where(np.arange(500) < 100, 1.0, 0.0)
    with pytest.raises(ConstantTreatmentError, match="is 3 in all 100 rows with positive weight"):
        cs.fit(
            simulation.formula,
            data.assign(dose=np.where(weights > 0, 3.0, data["dose"])),
            weights=weights,
        )
    with pytest.raises(TooFewRowsError, match=r"at least 20 units .* there are 15"):
        cs.fit(simulation.formula, data.head(15))
    with pytest.raises(OptionError, match=r"reference=2: .*no reference level"):
        cs.fit(simulation.formula, data, reference=2)
    with pytest.raises(TreatmentLeakError, match=r"'grams' is the treatment 'dose'.*other units"):
        cs.fit(simulation.formula, data.assign(grams=(2 + data["dose"] / 1000).astype("float32")))
    # A covariate far from zero is not a copy because its digits are few.
    far = (1e7 + data["x6"]).astype("float32")
    assert cs.CausalStoNet.from_formula(simulation.formula, data.assign(x6=far)).design.dose.size


@pytest.mark.parametrize("column", ["dose", "y", "x1"])
def test_advice_on_gaps_works(simulation, column):
    data = simulation.data.copy()
    data.loc[3, column] = np.nan
    with pytest.raises(MissingValuesError, match=r"'drop'.*continuous treatment") as caught:
        cs.CausalStoNet.from_formula(simulation.formula, data)
    assert "'mar'" not in str(caught.value)
    with pytest.raises(MissingValuesError, match=r"'mar' is not available .*missing='drop'"):
        cs.CausalStoNet.from_formula(simulation.formula, data, missing="mar")
    model = cs.CausalStoNet.from_formula(simulation.formula, data, missing="drop")
    assert len(model.design.dose) == 499


def test_outlying_doses_are_named(simulation):
    data = simulation.data.assign(dose=simulation.data["dose"].where(np.arange(500) > 0, 1e6))
    with pytest.warns(OutlyingDoseWarning, match=r"in 1 rows \(1000000.0\)") as caught:
        cs.CausalStoNet.from_formula(simulation.formula, data)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without = (np.arange(500) > 0).astype(float)
        cs.CausalStoNet.from_formula(simulation.formula, data, weights=without)
        cs.CausalStoNet.from_formula(simulation.formula, simulation.data)


def outliers_named(dose):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dose_values(Vector.from_values(dose, "d", pd.RangeIndex(len(dose))), None)
    return [str(w.message) for w in caught if w.category is OutlyingDoseWarning]


@pytest.mark.parametrize(("n", "far"), [(100, 1), (300, 3), (2000, 25)])
@pytest.mark.parametrize("value", [1e9, -1e9, 1e200])
def test_outliers_do_not_hide_behind_each_other(n, far, value):
    rng = np.random.default_rng(n)
    normal, positive = rng.normal(size=n), rng.exponential(size=n)
    normal[:far] = positive[:far] = value
    (said,) = outliers_named(normal)
    assert f"in {far} rows" in said
    assert "np.log" not in said
    (said,) = outliers_named(positive)
    assert ("np.log(d)" in said) == (value > 0)
    # No range in the middle: most have the same dose.
    normal[far : int(0.95 * n)] = 0.5
    if n - int(0.95 * n) > 2 * far:
        assert len(outliers_named(normal)) == 1


@pytest.mark.parametrize("seed", range(5))
def test_long_tails_are_no_outliers(seed):
    rng = np.random.default_rng(seed)
    for n in (100, 5000):
        mixed = np.where(rng.random(n) < 0.4, rng.normal(size=n), 1e3 + rng.normal(size=n))
        few = np.where(rng.random(n) < 0.93, 0.0, rng.exponential(size=n))
        for dose in (rng.exponential(size=n), rng.lognormal(size=n), mixed, few):
            assert outliers_named(dose) == []


def test_a_dose_that_is_the_outcome(simulation):
    data = simulation.data.assign(dose=3 - 2 * simulation.data["y"])
    with pytest.raises(TreatmentLeakError, match="'dose' is the outcome 'y'"):
        cs.CausalStoNet.from_formula(simulation.formula, data)


def test_a_code_that_dose_and_outcome_share_makes_no_copy(simulation):
    data = simulation.data.copy()
    data.loc[7, ["dose", "y"]] = 99999999.0
    with pytest.warns(OutlyingDoseWarning):
        cs.CausalStoNet.from_formula(simulation.formula, data)
    data["dose"] = 3 - 2 * data["y"]
    with (
        pytest.warns(OutlyingDoseWarning),
        pytest.raises(TreatmentLeakError, match="'dose' is the outcome 'y'"),
    ):
        cs.CausalStoNet.from_formula(simulation.formula, data)


def test_a_dose_that_the_covariates_determine_is_noted(make_plan):
    simulation = cs.datasets.dose_curve(n=300, p=5, seed=1)
    results = oracle_results(simulation, make_plan())
    text = " ".join(results.summary().as_text().split())
    assert "all but determine" not in text
    surprise = results.dose_nuisances.surprise
    results.dose_nuisances = replace(
        results.dose_nuisances, mean=results.dose_nuisances.dose - 0.1 * surprise
    )
    text = " ".join(results.summary().as_text().split())
    assert "99% of its variance. They all but determine it" in text


def test_a_point_mass_is_named(simulation, options):
    data = simulation.data
    for share in (0.08, 0.4):
        zero = data.assign(dose=data["dose"].where(np.arange(500) >= share * 500, 0.0))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = cs.CausalStoNet.from_formula(simulation.formula, zero)
        assert len(caught) == (share == 0.4)
    assert caught[0].category is PointMassWarning
    assert caught[0].filename == __file__
    said = str(caught[0].message)
    assert "'dose' is 0 for 40% of the units" in said
    assert "treatment='multilevel'" in said
    assert "I(dose != 0)" in said
    text = " ".join(model.fit(options=options, seed=1, n_jobs=1).summary().as_text().split())
    assert "40% of the units have the dose 0" in text
    # Rows of weight zero do not make a mass, nor does a single unit.
    heavy = np.where(np.arange(500) == 7, 1e6, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cs.CausalStoNet.from_formula(simulation.formula, data, weights=heavy)
        twin = data.assign(dose=data["dose"].where(np.arange(500) != 8, data["dose"][7]))
        heavy[8] = 0.0
        cs.CausalStoNet.from_formula(simulation.formula, twin, weights=heavy)
    weights = (zero["dose"] != 0).to_numpy(dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cs.CausalStoNet.from_formula(simulation.formula, zero, weights=weights)


@pytest.mark.parametrize("name", ["dose (mg)", 'a "b"', "class", "np.arctan(dose)"])
def test_advice_on_a_point_mass_works(simulation, name):
    value = 0.1234567891
    data = simulation.data.assign(dose=simulation.data["dose"].where(np.arange(500) >= 200, value))
    if name == "np.arctan(dose)":
        formula = f"y ~ {name} | x1 + x2"
    else:
        data = data.rename(columns={"dose": name})
        formula = f"y ~ Q({name!r}) | x1 + x2"
    with pytest.warns(PointMassWarning, match="for 40% of the units") as caught:
        cs.CausalStoNet.from_formula(formula, data)
    advised = re.search(r"two parts: (I\(.*\)) as a", str(caught[0].message))[1]
    design = cs.CausalStoNet.from_formula(f"y ~ {advised} | x1 + x2", data).design
    assert design.treatment_kind == "binary"
    np.testing.assert_array_equal(np.asarray(design.treatment) == 0, np.arange(500) < 200)


def test_folds_share_the_doses(simulation, fitted):
    dose = simulation.data["dose"].to_numpy()
    cuts = np.quantile(dose, np.linspace(0, 1, 11))
    for split in fitted.networks.splits:
        counts = np.histogram(dose[split.test], cuts)[0]
        assert counts.max() - counts.min() <= 2


def test_variance_is_that_of_the_influence_function(simulation):
    model = cs.CausalStoNet.from_formula(simulation.formula, simulation.data)
    assert model.plan().variance == model.plan(variance="influence").variance == "influence"
    assert model.plan("paper").variance == "influence"
    with pytest.raises(OptionError, match=r"variance='paper' .*continuous treatment"):
        model.fit(variance="paper")


def test_kinds_of_treatment(simulation):
    def kind(values, **options):
        data = simulation.data.assign(dose=values)
        return cs.CausalStoNet.from_formula(simulation.formula, data, **options).design

    few = np.resize(np.arange(6), 500)
    assert kind(few).treatment_kind == "multilevel"
    assert kind(few).dose is None
    with pytest.warns(PointMassWarning, match="for 17% of the units"):
        counted = kind(few, treatment="continuous")
    assert counted.treatment_kind == "continuous"
    np.testing.assert_array_equal(counted.dose, few)
    assert counted.treatment_levels == ()
    assert kind(np.resize(np.arange(11), 500)).treatment_kind == "continuous"
