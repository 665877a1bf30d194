"""What an omitted confounder could do to an estimate: bounds, robustness values, text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from cstonet.errors import OptionError
from cstonet.estimators import Nuisances, estimate_target, led_by
from cstonet.estimators.omitted_variables import bias_scale
from cstonet.reporting.inference import Effect
from cstonet.reporting.ratios import Ratio
from cstonet.reporting.sensitivity import Sensitivity

COVARIANCE = np.array([[0.04, 0.01, 0.05], [0.01, 0.02, 0.0], [0.05, 0.0, 0.5]])


@pytest.fixture
def sensitivity():
    critical = 1.96
    effect = Effect("ATE", 2.0, 0.2, 2 - critical * 0.2, 2 + critical * 0.2, 1e-6, 0.05)
    strengths = pd.DataFrame(
        {"r2_outcome": [0.02, 0.3, 0.1], "r2_treatment": [0.01, 0.2, 0.0]},
        index=pd.Index(["age", "a very long name of a covariate", "sex"], name="covariate"),
    )
    return Sensitivity(
        effect=effect,
        residual_variance=1.5,
        representer_variance=6.0,
        covariance=COVARIANCE,
        critical=critical,
        hidden=0.0,
        strengths=strengths,
        risk_ratio=None,
        outcome="y",
        treatment="treat",
    )


def test_bounds_are_the_published_formula(sensitivity):
    lower, upper = sensitivity.bounds([0.1, 0.3], 0.2, rho=0.5)
    bias = 0.5 * np.sqrt(1.5 * 6.0) * np.sqrt(np.array([0.1, 0.3]) * 0.2 / 0.8)
    np.testing.assert_allclose(lower, 2 - bias, rtol=1e-12)
    np.testing.assert_allclose(upper, 2 + bias, rtol=1e-12)


def test_confidence_bounds_have_the_error_of_estimate_and_scale(sensitivity):
    lower, upper = sensitivity.confidence_bounds(0.1, 0.2)
    factor = np.sqrt(0.1 * 0.2 / 0.8)
    scale = np.sqrt(1.5 * 6.0)
    gradient = factor * np.array([6.0, 1.5]) / (2 * scale)
    for side, found in ((-1, lower), (1, upper)):
        slopes = np.array([1.0, *(side * gradient)])
        expected = 2 + side * (factor * scale + 1.96 * np.sqrt(slopes @ COVARIANCE @ slopes))
        assert float(found) == pytest.approx(expected, rel=1e-12)


def test_without_confounding_they_are_the_confidence_limits(sensitivity):
    lower, upper = sensitivity.confidence_bounds(0.0, 0.7)
    assert (float(lower), float(upper)) == pytest.approx(
        (sensitivity.effect.lower, sensitivity.effect.upper), rel=1e-12
    )
    hidden = replace(sensitivity, hidden=0.3)
    assert float(hidden.confidence_bounds(0, 0)[0]) == pytest.approx(float(lower) - 0.3)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("hidden", [0.0, 0.4])
def test_robustness_values_are_where_the_bounds_reach_zero(sensitivity, sign, hidden):
    effect = replace(sensitivity.effect, estimate=sign * 2.0)
    turned = replace(sensitivity, effect=effect, hidden=hidden)
    side = 0 if sign > 0 else 1
    for value, bounds in (
        (turned.robustness_value, turned.bounds),
        (turned.robustness_value_ci, turned.confidence_bounds),
    ):
        root = optimize.brentq(lambda r, of=bounds: float(of(r, r)[side]), 1e-9, 0.99, xtol=1e-14)
        assert value == pytest.approx(root, abs=1e-8)


def test_bounds_and_errors_are_those_of_doubleml():
    # DoubleML 0.11.4 with these nuisances as external predictions: cf_y = 0.1, cf_d = 0.2, rho = 1.
    # Its score enters the bounds with the sign of its derivative, -1, so that its errors of the
    # lower and the upper bound have changed places: a bootstrap of 40 000 draws gives 0.1133 below
    # and 0.1169 above. Its robustness value comes from a minimiser.
    i = np.arange(400)
    x = np.sin(1.7 * i) * 1.3 + np.cos(0.37 * i)
    p = 1 / (1 + np.exp(-0.8 * x))
    treatment = ((i * 0.6180339887498949) % 1 < p).astype(np.int64)
    mu = np.column_stack([0.5 * x, 1 + 0.9 * x])
    y = mu[i, treatment] + np.sin(12.9898 * i) * 1.4 + np.cos(78.233 * i) * 0.6
    nuisances = Nuisances(y, treatment, mu, np.column_stack([1 - p, p]), None, i % 2)
    effect = estimate_target(nuisances, "ATE", (1, 0), clip=0.0, name="ATE")
    found = Sensitivity.of(
        effect,
        led_by([effect], bias_scale(nuisances, "ATE", (1, 0), clip=0.0)),
        strengths=pd.DataFrame(columns=["r2_outcome", "r2_treatment"], dtype=float),
        outcome="y",
        treatment="d",
        alpha=0.05,
    )
    assert effect.freedom is None
    np.testing.assert_allclose(
        found.bounds(0.1, 0.2), (0.5336669545409798, 1.3201240717003244), rtol=1e-12
    )
    of_doubleml = {"lower": 0.11665459265264266, "upper": 0.11303584241752043}
    lower, upper = found.confidence_bounds(0.1, 0.2)
    assert (0.5336669545409798 - lower) / found.critical == pytest.approx(
        of_doubleml["upper"], rel=1e-10
    )
    assert (upper - 1.3201240717003244) / found.critical == pytest.approx(
        of_doubleml["lower"], rel=1e-10
    )
    assert found.robustness_value == pytest.approx(0.30966042962564144, abs=2e-6)


def test_what_is_not_significant_needs_no_confounder(sensitivity):
    weak = replace(sensitivity, effect=replace(sensitivity.effect, estimate=0.1))
    assert weak.robustness_value > 0
    assert weak.robustness_value_ci == 0
    assert "not significant" in str(weak)
    assert replace(sensitivity, hidden=3.0).robustness_value_ci == 0


def test_benchmarks_are_bounds_strongest_first(sensitivity):
    table = sensitivity.benchmarks
    assert list(table.index) == ["a very long name of a covariate", "age", "sex"]
    assert {"r2_outcome", "r2_treatment", "bias", "lower", "upper"} <= set(table.columns)
    lower, upper = sensitivity.bounds(table["r2_outcome"], table["r2_treatment"])
    np.testing.assert_array_equal(table[["lower", "upper"]], np.column_stack([lower, upper]))
    np.testing.assert_allclose(table["bias"], (upper - lower) / 2, rtol=1e-12)
    assert table.loc["sex", "bias"] == 0


def test_contours_are_bounds_on_the_side_of_zero(sensitivity):
    grid = sensitivity.contour([0.0, 0.1], [0.0, 0.2, 0.3])
    assert grid.shape == (6, 4)
    row = grid[(grid["r2_outcome"] == 0.1) & (grid["r2_treatment"] == 0.3)].iloc[0]
    assert row["adjusted"] == float(sensitivity.bounds(0.1, 0.3)[0])
    assert row["limit"] == float(sensitivity.confidence_bounds(0.1, 0.3)[0])
    default = sensitivity.contour()
    assert default["r2_outcome"].max() > sensitivity.robustness_value
    assert default["adjusted"].min() < 0 < default["adjusted"].max()


def test_an_outcome_that_is_fully_explained_leaves_nothing_to_confounders(sensitivity):
    perfect = replace(sensitivity, residual_variance=0.0)
    assert perfect.robustness_value == perfect.robustness_value_ci == 1.0
    assert perfect.confidence_bounds(1.0, 1.0) == sensitivity.confidence_bounds(0, 0)
    assert (perfect.benchmarks["bias"] == 0).all()


@pytest.mark.parametrize("broken", [(-0.1, 0.2), (0.1, 1.2), (0.1, np.nan), ("much", 0.1)])
def test_strengths_must_be_shares(sensitivity, broken):
    with pytest.raises(OptionError, match="must lie between 0 and 1"):
        sensitivity.bounds(*broken)
    with pytest.raises(OptionError, match="rho"):
        sensitivity.bounds(0.1, 0.1, rho=2)


def test_a_confounder_that_determines_the_treatment_could_do_anything(sensitivity):
    lower, upper = sensitivity.confidence_bounds(0.5, 1.0)
    assert (float(lower), float(upper)) == (-np.inf, np.inf)


def test_text_fits_the_page_and_says_what_it_means(sensitivity, check_golden):
    text = str(sensitivity)
    assert max(map(len, text.splitlines())) <= 78
    check_golden("sensitivity.txt", text)
    for form in ("as_html", "as_latex", "as_csv"):
        other = getattr(sensitivity.summary(), form)()
        assert "a very long name of a covariate" in other
        assert "an omitted confounder would have to explain" in other


@pytest.mark.parametrize(
    ("outcome", "treatment", "says"),
    [
        (0.9, 0.6, "explain the estimate away"),
        (0.55, 0.4, "its significance would not"),
        (0.01, 0.01, "sign and significance would stay"),
    ],
)
def test_the_strongest_covariate_is_put_into_words(sensitivity, outcome, treatment, says):
    strengths = sensitivity.strengths.iloc[:1].assign(r2_outcome=outcome, r2_treatment=treatment)
    assert says in " ".join(str(replace(sensitivity, strengths=strengths)).split())
    none = replace(sensitivity, strengths=sensitivity.strengths.iloc[:0])
    assert "No covariate" in str(none)
    assert none.contour().shape == (1600, 4)


def test_e_values_come_from_the_risk_ratio(sensitivity):
    assert sensitivity.evalue is None
    assert sensitivity.evalue_ci is None
    ratio = Ratio("RR", 3.9, 1.0, 1.8, 8.7, 0.001, 0.05)
    binary = replace(sensitivity, risk_ratio=ratio)
    assert (round(binary.evalue, 2), round(binary.evalue_ci, 1)) == (7.26, 3.0)
    assert "E-value 7.26" in str(binary)
    assert list(binary.table)[-2:] == ["evalue", "evalue_ci"]
    assert len(sensitivity.table) == 1
