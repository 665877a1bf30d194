"""Fits of all kinds in extreme units: the same bits, or an error that says what to do.

Powers of two change no digit of anything that is standardised, so fits in other such units are
equal bit by bit. Overflows and invalid operations in the package are errors in all tests.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.errors import (
    ConstantMediatorError,
    ConstantOutcomeError,
    ConstantTreatmentError,
    ExtremeScaleError,
)

N = 200
KINDS = {
    "arms": ("y ~ t | x1 + x2", {}),
    "missing": ("y ~ t | x1 + x2", {"missing": "mar"}),
    "doses": ("y ~ d | x1 + x2", {}),
    "mediation": ("y ~ t | x1 + x2 | m", {}),
}
# Variables that effects are in units of, with the power, and the power of two they may reach.
VARIABLES = [
    ("arms", "y", 1, 460),
    ("missing", "y", 1, 460),
    ("doses", "y", 1, 460),
    ("doses", "d", -1, 160),
    ("mediation", "y", 1, 460),
    ("mediation", "m", 0, 460),
]


def on_a_grid(values: np.ndarray) -> np.ndarray:
    """Numbers of which sums are exact, and the mean is zero."""
    rounded = np.round(values * 2**10) / 2**10
    rounded[0] -= rounded.sum()
    return rounded


def data_of(kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    x1, x2 = on_a_grid(rng.normal(size=N)), on_a_grid(rng.normal(size=N))
    d = on_a_grid(0.7 * x1 + rng.normal(size=N))
    t = (rng.random(N) < 1 / (1 + np.exp(-1.5 * x1))).astype(int)
    m = on_a_grid(t + 0.5 * x2 + rng.normal(size=N))
    y = {"doses": d, "mediation": t + m}.get(kind, 2 * t) + 1.5 * x1 + rng.normal(size=N)
    data = pd.DataFrame({"y": on_a_grid(y), "t": t, "d": d, "m": m, "x1": x1, "x2": x2})
    if kind == "missing":
        data.loc[np.arange(N) % 5 == 2, "x2"] = np.nan
    return data


@dataclass
class Fitted:
    effects: np.ndarray
    balance: np.ndarray
    notes: tuple[str, ...]


@pytest.fixture(scope="module")
def fitted(quick_options):
    plain: dict[str, Fitted] = {}

    def fit(kind: str, **changed: np.ndarray) -> Fitted:
        if kind not in plain or changed:
            formula, options = KINDS[kind]
            model = CausalStoNet.from_formula(formula, data_of(kind).assign(**changed), **options)
            results = model.fit(options=quick_options(epochs=6), seed=1, n_jobs=1)
            results.summary()
            effects = np.r_[results.effects.estimates, results.effects.standard_errors]
            found = Fitted(effects, results.balance().to_numpy(), results.notes)
            if changed:
                return found
            plain[kind] = found
        return plain[kind]

    return fit


@pytest.mark.parametrize("power", [-990, -520, 520, 990])
@pytest.mark.parametrize("kind", KINDS)
def test_covariates_have_any_scale(fitted, kind, power):
    far = fitted(kind, x1=np.ldexp(data_of(kind)["x1"].to_numpy(), power))
    np.testing.assert_array_equal(far.effects, fitted(kind).effects)
    np.testing.assert_array_equal(far.balance, fitted(kind).balance)
    assert not any("constant" in note for note in far.notes)


@pytest.mark.parametrize("kind", KINDS)
def test_covariates_have_any_level(fitted, kind):
    """Up to the digits that the data hold: multiples of 2^-10 are exact on a level of 2^42."""
    for level in (1e12, 2.0**42):
        high = fitted(kind, x1=level + data_of(kind)["x1"].to_numpy())
        np.testing.assert_array_equal(high.effects, fitted(kind).effects)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("kind", "name", "enters", "power"), VARIABLES)
def test_other_variables_have_any_scale_up_to_a_limit(fitted, kind, name, enters, power, sign):
    far = fitted(kind, **{name: np.ldexp(data_of(kind)[name].to_numpy(), sign * power)})
    back = np.ldexp(far.effects, -sign * enters * power)
    np.testing.assert_array_equal(back, fitted(kind).effects)


@pytest.mark.parametrize(
    ("kind", "name", "role"),
    [
        ("arms", "y", "outcome"),
        ("missing", "y", "outcome"),
        ("doses", "y", "outcome"),
        ("doses", "d", "treatment"),
        ("mediation", "y", "outcome"),
        ("mediation", "m", "mediator"),
    ],
)
def test_beyond_it_they_are_refused_with_the_factor(kind, name, role):
    formula, options = KINDS[kind]
    own = data_of(kind)[name] / data_of(kind)[name].abs().max()
    for size, advice in (
        (2e200, r"Divide it by 1e200"),
        (2e146, r"Divide it by 1e146"),
        (2e-200, r"Multiply it by 1e200"),
        (2e-310, r"Multiply it by 1e310"),
    ):
        data = data_of(kind).assign(**{name: size * own})
        with pytest.raises(ExtremeScaleError, match=rf"The {role} '{name}' ranges.*{advice}"):
            CausalStoNet.from_formula(formula, data, **options)


def test_a_variable_that_only_rounding_moves_is_constant():
    third = np.where(np.arange(N) % 2, 0.1 * 3, 0.3) + 1e-17 * np.resize(np.arange(9), N)
    with pytest.raises(ConstantOutcomeError, match=r"'y' is 0.3 in all"):
        CausalStoNet.from_formula("y ~ t | x1", data_of("arms").assign(y=third))
    with pytest.raises(ConstantTreatmentError, match=r"'d' is 0.3 in all"):
        CausalStoNet.from_formula(
            "y ~ d | x1", data_of("doses").assign(d=third), treatment="continuous"
        )
    with pytest.raises(ConstantMediatorError, match=r"'m' is 0.3"):
        CausalStoNet.from_formula("y ~ t | x1 | m", data_of("mediation").assign(m=third))


def test_outcomes_and_doses_suit_each_other():
    data = data_of("doses")
    for y, d, advice in ((1e120, 1e-40, "Divide"), (1e-120, 1e40, "Multiply")):
        far = data.assign(y=y * data["y"], d=d * data["d"])
        with pytest.raises(ExtremeScaleError, match=rf"'d' on the outcome 'y'.* {advice} the"):
            CausalStoNet.from_formula("y ~ d | x1", far)


@pytest.mark.parametrize("kind", KINDS)
def test_constant_covariates_are_named(fitted, kind):
    x1 = data_of(kind)["x1"].to_numpy()
    (note,) = (n for n in fitted(kind, x1=np.float32(1e12 + x1)).notes if "constant" in n)
    assert note == "x1 is constant, up to rounding, and explains nothing."


def test_many_constant_covariates_are_listed(quick_options):
    data = data_of("arms").assign(**{f"c{j}": float(j) for j in range(8)})
    model = CausalStoNet.from_formula("y ~ t | . - d - m", data)
    results = model.fit(options=quick_options(epochs=2), seed=1, n_jobs=1)
    expected = "c0, c1, c2, c3, c4 and 3 more are constant, up to rounding, and explain nothing."
    assert expected in results.notes
    assert expected in " ".join(str(results.summary()).split())


@pytest.mark.parametrize("power", [-990, 990])
def test_weights_have_any_scale(quick_options, power):
    weights = np.random.default_rng(5).integers(0, 4, size=N) * 1.0
    model = [
        CausalStoNet.from_formula("y ~ d | x1 + x2", data_of("doses"), weights=own)
        for own in (weights, np.ldexp(weights, power))
    ]
    one, far = (m.fit(options=quick_options(epochs=2), seed=1, n_jobs=1).effects for m in model)
    np.testing.assert_array_equal(far.estimates, one.estimates)
    np.testing.assert_array_equal(far.covariance, one.covariance)


def test_questions_after_a_fit_bear_extreme_covariates(quick_options):
    plain = data_of("arms")
    far = plain.assign(x1=np.ldexp(plain["x1"].to_numpy(), 900))
    one, other = (
        CausalStoNet.from_formula("y ~ t | x1 + x2", data).fit(
            options=quick_options(epochs=6), seed=1, n_jobs=1
        )
        for data in (plain, far)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        benchmarks = [fit.sensitivity().benchmarks for fit in (one, other)]
        pd.testing.assert_frame_equal(*benchmarks, check_exact=True)
        pd.testing.assert_series_equal(
            one.cate(plain.head()), other.cate(far.head()), check_exact=True
        )
        with pytest.raises(ExtremeScaleError, match=r"term 'x1' .*Divide it by 1e2"):
            other.projection("x1")
