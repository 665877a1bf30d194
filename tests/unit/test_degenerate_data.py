"""Degenerate data: a sensible answer, or a named error or warning that says what to do.

Every case spoils a small data set whose effects are known, for each kind of analysis that it
concerns. An answer is sensible if the leading effect is within `FAR` standard errors of the truth:
four are more than chance gives in any of a hundred cases, and leave something to the crude models
of quick fits. Where a spoilt covariate adds nothing, the answer is that of the sound data.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import cstonet as cs
from cstonet import errors
from cstonet.settings.options import FitOptions

N, FAR = 300, 4.0
ALL = "arms dose mediation mar"
# Formula and arguments of every kind of analysis, and its leading effect.
KINDS: dict[str, tuple[str, dict[str, Any], float]] = {
    "arms": ("y ~ treat | .", {}, 1.0),
    "dose": ("y ~ dose | .", {"treatment": "continuous"}, 1.0),
    "mediation": ("y ~ treat | . | m", {}, 1.8),
    "mar": ("y ~ treat | .", {"missing": "mar"}, 1.0),
}
FEW = errors.FewUnitsWarning, r"Few units decide about the \w+: .* Look at their outcomes"


def sound(kind: str) -> pd.DataFrame:
    """Two confounders, three covariates without meaning, and the effects of `KINDS`."""
    rng = np.random.default_rng(20)
    frame = pd.DataFrame(rng.normal(size=(N, 5)), columns=[f"x{j}" for j in range(1, 6)])
    if kind == "dose":
        frame["dose"] = 0.6 * frame["x1"] + rng.normal(size=N)
    else:
        frame["treat"] = rng.binomial(1, expit(0.6 * frame["x1"]))
    if kind == "mediation":
        frame["m"] = 0.0
    return with_outcome(frame, rng)


def with_outcome(frame: pd.DataFrame, rng: np.random.Generator, **columns: Any) -> pd.DataFrame:
    """Other columns, and a mediator, if there is one, and an outcome that follow from them."""
    frame = frame.assign(**columns)
    x, causes = frame["x1"] + 0.5 * frame["x2"], frame.get("dose", frame.get("treat"))
    if "m" in frame:
        frame["m"] = 0.8 * causes + 0.5 * x + rng.normal(size=len(frame))
        causes = causes + frame["m"]
    frame["y"] = causes + x + rng.normal(size=len(frame))
    return frame


@dataclass(frozen=True)
class Case:
    """How data are spoilt, and what is to come of it; a warning goes with an answer."""

    spoil: Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]
    kinds: str = ALL
    raises: tuple[type[Exception], str] | None = None
    warns: tuple[type[Warning], str] | None = None
    truth: float | None = None  # None: that of the kind
    finite_only: bool = False  # there is a number to estimate, but no telling which
    arguments: Callable[[np.random.Generator], dict[str, Any]] = field(default=lambda rng: {})
    slow_kinds: str = ""  # those that quick fits are too crude for


def added(make: Callable[[pd.DataFrame, np.random.Generator], Any]) -> Case:
    """A covariate, or several, that change nothing."""

    def spoil(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        return frame.join(pd.DataFrame(make(frame, rng), index=frame.index).add_prefix("z"))

    return Case(spoil)


def weighted(make: Callable[[np.random.Generator], np.ndarray], **said: Any) -> Case:
    return Case(lambda f, rng: f, arguments=lambda rng: {"weights": make(rng)}, **said)


def outcome(make: Callable[[pd.DataFrame, np.random.Generator], Any], **said: Any) -> Case:
    return Case(lambda f, rng: f.assign(y=make(f, rng)), **said)


def treatment(make: Callable[[pd.DataFrame, np.random.Generator], Any], **said: Any) -> Case:
    said = {"kinds": "arms"} | said
    return Case(lambda f, rng: with_outcome(f, rng, treat=make(f, rng)), **said)


def dose(make: Callable[[pd.DataFrame, np.random.Generator], Any], **said: Any) -> Case:
    return Case(lambda f, rng: with_outcome(f, rng, dose=make(f, rng)), kinds="dose", **said)


def marked(values: Any, rows: list[int], value: float) -> np.ndarray:
    """Some values with another one in some rows."""
    changed = np.array(values, dtype=float)
    changed[rows] = value
    return changed


def few(chosen: int, rng: np.random.Generator) -> np.ndarray:
    """Zeros, but ones in a few rows."""
    return marked(np.zeros(N), rng.choice(N, chosen, replace=False).tolist(), 1.0)


COVARIATES = {
    "hardly any variance": added(lambda f, rng: 1 + 1e-9 * rng.normal(size=N)),
    "constant but for one row": added(lambda f, rng: marked(np.zeros(N), [7], 1.0)),
    "constant but for one huge value": added(lambda f, rng: marked(np.zeros(N), [7], 1e6)),
    "two copies": added(lambda f, rng: np.column_stack([f["x1"], f["x1"]])),
    "50 copies": added(lambda f, rng: np.tile(f["x1"], (50, 1)).T),
    "dummies of all levels": added(lambda f, rng: np.eye(4)[rng.integers(0, 4, N)]),
    "a level that occurs once": added(
        lambda f, rng: {"g": np.where(np.arange(N) == 5, "rare", rng.choice(list("abc"), N))}
    ),
    "shares that sum to one": added(lambda f, rng: rng.dirichlet(np.ones(4), N)),
    "sums of others": added(lambda f, rng: f["x1"] + f["x2"]),
    "Cauchy": added(lambda f, rng: rng.standard_cauchy((N, 3))),
    "a row number": added(lambda f, rng: np.arange(N)),
}

CASES = {
    "more copies than rows": Case(
        lambda f, rng: f[:60].join(
            pd.DataFrame(np.tile(rng.normal(size=(60, 40)), 2)).add_prefix("z")
        ),
        kinds="arms dose",
    ),
    "a single covariate": Case(lambda f, rng: f.drop(columns=["x3", "x4", "x5"]).eval("x2 = x1")),
    "constant covariates": Case(
        lambda f, rng: f.assign(x1=1.0, x2=2.0, x3=0.0, x4=0.0, x5=0.0),
        kinds="arms dose mediation",
        finite_only=True,  # nothing is left to adjust for
    ),
    "four times the same rows": Case(
        lambda f, rng: pd.concat([f[: N // 4]] * 4, ignore_index=True), finite_only=True
    ),
    "Cauchy outcome": outcome(lambda f, rng: f["y"] + rng.standard_cauchy(N), warns=FEW),
    "two outliers of 1e8": outcome(lambda f, rng: marked(f["y"], [3, 50], 1e8), warns=FEW),
    "outcome with a point mass and a tail": outcome(
        lambda f, rng: np.where(rng.random(N) < 0.8, 0.0, np.exp(3 * f["y"])),
        warns=FEW,
        finite_only=True,
    ),
    "three events": outcome(
        lambda f, rng: few(3, rng),
        warns=FEW,
        truth=0.0,
        kinds="arms dose",
        slow_kinds="mediation mar",
    ),
    "one event": outcome(
        lambda f, rng: few(1, rng),
        warns=FEW,
        truth=0.0,
        kinds="arms dose",
        slow_kinds="mediation mar",
    ),
    "three of N counted": outcome(
        lambda f, rng: few(3, rng),
        warns=FEW,
        truth=0.0,
        arguments=lambda rng: {"family": "poisson"},
    ),
    "no event in an arm": outcome(
        lambda f, rng: ((rng.random(N) < 0.3) & (f["treat"] == 1)).astype(int),
        kinds="arms mediation mar",
        truth=0.3,
    ),
    "outcome separated by a covariate": outcome(
        lambda f, rng: (f["x1"] > 0).astype(int), kinds="arms mediation", truth=0.0
    ),
    "outcome separated but for a few": outcome(
        lambda f, rng: np.where(f["x1"].abs() < 0.1, rng.integers(0, 2, N), f["x1"] > 0),
        kinds="arms mediation",
        truth=0.0,
    ),
    "outcome without noise": Case(
        lambda f, rng: f.assign(y=f.get("treat", f.get("dose")) + f["x1"]),
        kinds="arms dose",
    ),
    "outcome that the treatment determines": outcome(
        lambda f, rng: 3.0 * f["treat"] + 1, kinds="arms mediation mar", truth=3.0
    ),
    "separated by one covariate": treatment(
        lambda f, rng: (f["x1"] > 0).astype(int),
        slow_kinds="mediation mar",
        raises=(errors.SeparationError, r"determine treat \(x1 above all\).*Leave out"),
    ),
    "separated by two covariates": treatment(
        lambda f, rng: (f["x1"] + f["x2"] > 0).astype(int),
        slow_kinds="mediation mar",
        warns=(errors.LostSupportWarning, r"[5-9]\d% of the units .*no counterpart in"),
        finite_only=True,
    ),
    "separated where a fold trains": Case(
        lambda f, rng: with_outcome(
            f.assign(half=np.arange(N) % 2),
            rng,
            treat=np.where(np.arange(N) % 2, f["x1"] > 0, f["treat"]).astype(int),
        ),
        kinds="arms",
        arguments=lambda rng: {"cluster": "half"},
        warns=(errors.FewUnitsWarning, "Few clusters decide about the ATE: 2 of 2 make 100%"),
    ),
    "a third level of five": treatment(
        lambda f, rng: np.where(few(5, rng) > 0, 2, f["treat"]), finite_only=True
    ),
    "an arm of five": treatment(
        lambda f, rng: few(5, rng).astype(int),
        slow_kinds="mediation mar",
        warns=FEW,
    ),
    "equal weights": weighted(lambda rng: np.full(N, 3.7)),
    "tiny weights": weighted(lambda rng: 1e-150 * rng.uniform(1, 2, N)),
    "huge weights": weighted(lambda rng: 1e300 * rng.uniform(1, 2, N)),
    "half of the weights are next to nothing": weighted(
        lambda rng: np.where(rng.random(N) < 0.5, 1e-60, 1.0)
    ),
    "weights over six decades": weighted(lambda rng: 10.0 ** rng.uniform(-3, 3, N)),
    "weights over 600 decades": weighted(
        lambda rng: 10.0 ** rng.uniform(-300, 300, N),
        raises=(errors.UnevenWeightsError, r"One row has \d+% of the weight of all data.*trim"),
    ),
    "one row has the weight of an arm": Case(
        lambda f, rng: f.assign(w=np.where(np.arange(N) == f["treat"].argmax(), 1e6, 1.0)),
        kinds="arms mediation mar",
        arguments=lambda rng: {"weights": "w"},
        raises=(errors.UnevenWeightsError, "of the weight of all data"),
    ),
    "half of the rows in one cluster": Case(
        lambda f, rng: f.assign(c=np.where(np.arange(N) < N // 2, 0, rng.integers(1, 20, N))),
        arguments=lambda rng: {"cluster": "c"},
    ),
    "rows at the minimum": Case(
        lambda f, rng: with_outcome(f[:8], rng, treat=np.arange(8) % 2),
        kinds="arms mediation",
        finite_only=True,
    ),
    "a row less than that": Case(
        lambda f, rng: f[:7].assign(treat=np.arange(7) % 2),
        kinds="arms mediation mar",
        raises=(errors.OneArmedError, "has 3 unit.*at least 4 in each arm"),
    ),
    "doses at the minimum": Case(lambda f, rng: f[:20], kinds="dose", finite_only=True),
    "a dose less than that": Case(
        lambda f, rng: f[:19], kinds="dose", raises=(errors.TooFewRowsError, "at least 20 units")
    ),
    "three doses": dose(
        lambda f, rng: f["dose"].round().clip(-1, 1),
        raises=(errors.TreatmentTypeError, "has 3 values.*treatment='multilevel'"),
    ),
    "Cauchy doses": dose(
        lambda f, rng: rng.standard_cauchy(N) * 3,
        warns=(errors.OutlyingDoseWarning, r"np.arcsinh\(dose\)"),
        finite_only=True,
    ),
    "doses with a long tail": dose(
        lambda f, rng: np.exp(2.5 * rng.normal(size=N)),
        warns=(errors.OutlyingDoseWarning, r"half of the doses lie within .*np.log\(dose\)"),
        finite_only=True,
    ),
    "an outlying dose": dose(
        lambda f, rng: marked(f["dose"], [4], 1e8),
        warns=(errors.OutlyingDoseWarning, r"in 1 rows \(100000000.0\)"),
        finite_only=True,
    ),
    "doses that are mostly zero": dose(
        lambda f, rng: np.where(rng.random(N) < 0.9, 0.0, f["dose"].abs()),
        warns=(errors.PointMassWarning, "is 0 for 9.% of the units"),
        finite_only=True,
    ),
    "a dose that covariates determine": dose(
        lambda f, rng: f["x1"] + 0.5 * f["x2"], finite_only=True
    ),
    "a mediator that is the same for nearly all": Case(
        lambda f, rng: f.assign(m=few(6, rng), y=f["y"] - f["m"]),
        kinds="mediation",
        truth=1.0,
    ),
    "a copy of a mediator": Case(
        lambda f, rng: f.assign(m2=2 * f["m"] + 1),
        kinds="mediation",
        arguments=lambda rng: {"formula": "y ~ treat | . | m + m2"},
        raises=(errors.MediatorLeakError, "same up to units. Keep one"),
    ),
    "mediators that sum to another": Case(
        lambda f, rng: f.assign(m2=f["x3"] - f["m"], m3=f["x3"] + rng.normal(size=N)).eval(
            "m3 = m + m2"
        ),
        kinds="mediation",
        arguments=lambda rng: {"formula": "y ~ treat | . | m + m2 + m3"},
        raises=(errors.MediatorLeakError, "sum of multiples of others.*Leave one of them out"),
    ),
}
EACH = [
    pytest.param(kind, name, slow, marks=[pytest.mark.slow] if slow else [], id=f"{kind}-{name}")
    for name, case in CASES.items()
    for kinds, slow in ((case.kinds, False), (case.slow_kinds, True))
    for kind in kinds.split()
]


def fit(kind: str, case: Case, options: FitOptions | None) -> cs.CausalResults:
    formula, arguments, _ = KINDS[kind]
    rng = np.random.default_rng(100)
    frame = case.spoil(sound(kind), rng)
    if kind == "mar":
        gaps = rng.random(len(frame)) < 0.15
        frame["x2"] = frame["x2"].astype(float).mask(gaps)
    said = {"formula": formula, **arguments, **case.arguments(rng)}
    return cs.fit(said.pop("formula"), frame, options=options, seed=1, **said)


def finite(results: cs.CausalResults) -> bool:
    numbers = [results.params, results.bse, results.conf_int()]
    return all(np.isfinite(values.to_numpy()).all() for values in numbers)


@pytest.fixture(scope="module")
def options(quick_options) -> FitOptions:
    """As long as it takes to see that covariates determine a treatment."""
    return quick_options(epochs=60)


Fits = Callable[[str, bool], cs.CausalResults]


@pytest.fixture(scope="module")
def soundly(options: FitOptions) -> Fits:
    """The fit of sound data, quick or with the options that users have."""
    return cache(lambda kind, slow: fit(kind, Case(lambda f, rng: f), None if slow else options))


@pytest.mark.parametrize("kind", KINDS)
def test_sound_data_have_their_effects_and_nothing_is_said(kind, soundly):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = soundly(kind, False)
    assert abs(results.params.iloc[0] - KINDS[kind][2]) < FAR * results.bse.iloc[0]


@pytest.mark.parametrize(
    ("kind", "slow"),
    [
        ("arms", False),
        ("dose", False),
        ("mediation", False),
        # A few crude imputations differ by more.
        pytest.param("mar", True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", COVARIATES)
def test_covariates_without_anything_new_change_nothing(kind, slow, name, soundly, options):
    """Not by more than half a standard error, which the choice of the seed moves effects by."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results, plain = fit(kind, COVARIATES[name], None if slow else options), soundly(kind, slow)
    assert finite(results)
    assert abs(results.params.iloc[0] - plain.params.iloc[0]) < 0.5 * plain.bse.iloc[0]
    assert 2 / 3 < results.bse.iloc[0] / plain.bse.iloc[0] < 3 / 2


@pytest.mark.parametrize(("kind", "name", "slow"), EACH)
def test_degenerate_data_end_in_an_answer_or_in_words_that_help(kind, name, slow, options):
    case = CASES[name]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if case.raises is not None:
            with pytest.raises(case.raises[0], match=case.raises[1]) as caught:
                fit(kind, case, None if slow else options)
            assert isinstance(caught.value, errors.CStoNetError)
            return
        results = fit(kind, case, None if slow else options)
    assert finite(results)
    assert all(issubclass(one.category, errors.CStoNetWarning) for one in told)
    if case.warns is not None:
        expected, says = case.warns
        said = [str(one.message) for one in told if one.category is expected]
        assert [text for text in said if re.search(says, text)]
    if not case.finite_only:
        truth = KINDS[kind][2] if case.truth is None else case.truth
        assert abs(results.params.iloc[0] - truth) < FAR * results.bse.iloc[0]
