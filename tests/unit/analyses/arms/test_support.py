"""Where arms can be compared: conditions that describe it, and fits that say where they cannot."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array
from scipy.special import stdtrit

from cstonet.analyses.arms import support
from cstonet.analyses.arms.cautions import check_separation, telling
from cstonet.analyses.arms.support import Condition, Support
from cstonet.data.conditions import Variables, holds
from cstonet.errors import (
    LostSupportWarning,
    NotAvailableError,
    SeparationError,
    UnknownColumnError,
)
from cstonet.estimators import TARGETS, estimate_target
from cstonet.estimators.support import MOST_LOST, Overlap
from cstonet.reporting.inference import Effect
from cstonet.settings.estimator_plan import SHARE_CLIP

N = 600
NAMES = ("x1", "g", "x2", "x3", "x4")


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    """Four numbers and a group."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(N, 5))
    values[:, 1] = rng.integers(0, 2, N)
    return values


@pytest.fixture(scope="module")
def treatment() -> np.ndarray:
    return np.random.default_rng(2).integers(0, 2, N)


# Description --------------------------------------------------------------------------------------

BOXES = {
    "side": lambda x: x[:, 0] < 0.5,
    "band": lambda x: np.abs(x[:, 0]) < 0.6,
    "box": lambda x: (x[:, 0] < 0.5) & (x[:, 1] == 1),
    "three": lambda x: (x[:, 0] < 0.5) & (x[:, 1] == 1) & (x[:, 2] >= -0.5),
}


@pytest.mark.parametrize("kind", BOXES)
def test_a_planted_box_is_found(X, treatment, kind):
    """Cuts are quantiles 4 % apart with two digits: a side is off by half a step, 2 % of units."""
    inside = BOXES[kind](X)
    conditions, mask = support.describe(X, NAMES, ~inside, treatment)
    right = {"side": {"x1"}, "band": {"x1"}, "box": {"x1", "g"}, "three": {"x1", "g", "x2"}}[kind]
    assert {condition.covariate for condition in conditions} == right
    assert np.mean(mask != inside) < 0.02 * (2 if kind == "band" else 1) + 0.02
    assert (~inside)[mask].mean() <= 0.05
    for condition in conditions:
        if condition.covariate == "g":
            assert condition == Condition("g", "=", 1.0)
        if condition.covariate == "x1" and condition.operator == "<":
            assert condition.value == pytest.approx(0.6 if kind == "band" else 0.5, abs=0.12)


def test_it_is_the_units_of_its_conditions(X, treatment):
    conditions, mask = support.describe(X, NAMES, ~BOXES["three"](X), treatment)
    frame = pd.DataFrame(X, columns=NAMES)
    everyone = holds(
        " and ".join(map(str, conditions)), Variables(NAMES, frame.__getitem__, N, None, {})
    )
    np.testing.assert_array_equal(mask, everyone)


def test_numbers_have_two_digits(X, treatment):
    for scale in (1.0, 7123.0):
        lost = ~BOXES["side"](X)
        (condition,), _ = support.describe(scale * X, NAMES, lost, treatment)
        assert condition.value == float(f"{condition.value:.2g}")
        assert len(str(condition)) <= len("x1 < -1234")


def test_few_values_are_cut_where_they_are(X, treatment):
    grades = np.random.default_rng(3).integers(1, 6, N).astype(float)
    given = np.column_stack([grades, X[:, 2:]])
    conditions, mask = support.describe(given, ("grade", "a", "b", "c"), grades > 3, treatment)
    assert conditions == (Condition("grade", "<", 4.0),)
    np.testing.assert_array_equal(mask, grades <= 3)


def test_there_are_never_more_than_three_conditions(X, treatment):
    inside = (X[:, 0] < 0.5) & (X[:, 1] == 1) & (X[:, 2] > -0.3) & (X[:, 3] > 0) & (X[:, 4] < 0)
    conditions, mask = support.describe(X, NAMES, ~inside, treatment)
    assert len(conditions) == 3
    # No description is good enough; one is better than none.
    assert (~inside)[mask].mean() < (~inside).mean()


def test_everyone_is_no_condition(X, treatment):
    lost = np.arange(N) % 25 == 0  # four per cent
    conditions, mask = support.describe(X, NAMES, lost, treatment)
    assert conditions == ()
    assert mask.all()


def test_every_arm_keeps_its_smallest_number(X):
    """Hardly anybody is treated where nobody is lost: the box must be larger than that."""
    inside = X[:, 0] < -0.5
    rare = np.where(inside, np.arange(N) % 20 == 0, np.arange(N) % 2 == 0).astype(np.int64)
    assert rare[inside].sum() < support._FEWEST
    _, mask = support.describe(X, NAMES, ~inside, rare)
    assert np.bincount(rare[mask], minlength=2).min() >= support._FEWEST
    # With enough of them the box itself is found.
    often = np.where(inside, np.arange(N) % 3 == 0, rare).astype(np.int64)
    _, mask = support.describe(X, NAMES, ~inside, often)
    assert np.mean(mask != inside) < 0.04


def test_sparse_covariates_are_described_alike(X, treatment):
    lost = ~BOXES["box"](X)
    dense = support.describe(X, NAMES, lost, treatment)
    sparse = support.describe(csc_array(X), NAMES, lost, treatment)
    assert sparse[0] == dense[0]
    np.testing.assert_array_equal(sparse[1], dense[1])


# Conditions as text -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.5, 7200.0, 2 / 3, float(np.float32(0.1)), 12345.678, 3e8, -2])
def test_text_says_the_same_as_the_condition(value):
    condition = Condition("x1", ">=", value)
    values = np.array([np.nextafter(value, -np.inf), value, np.nextafter(value, np.inf)])
    frame = pd.DataFrame({"x1": values})
    told = holds(str(condition), Variables(("x1",), frame.__getitem__, 3, None, {}))
    assert told.tolist() == [False, True, True]


def test_text_is_short_where_it_can_be():
    assert str(Condition("re75", "<", 7200.0)) == "re75 < 7200"
    assert str(Condition("x1", ">=", -0.92)) == "x1 >= -0.92"


def test_names_of_conditions_can_be_read_again(X):
    names = ("C(region)[T.b]", "years of school", "1", "class")
    variables = Variables(
        names, lambda name: pd.Series(X[:, names.index(name)], name=name), N, None, {}
    )
    for j, name in enumerate(names):
        text = str(Condition(name, "<", 0.5))
        np.testing.assert_array_equal(holds(text, variables), X[:, j] < 0.5, err_msg=text)


def test_a_support_says_who_it_is(X):
    mask = X[:, 0] < 0.3
    found = Support((Condition("x1", "<", -9.0),), mask, None, 0.0)
    assert found.share == pytest.approx(mask.mean())
    assert found.condition == "x1 < -9"


# Separation ---------------------------------------------------------------------------------------


def test_the_covariates_that_tell_arms_apart_are_named(X):
    treated = (X[:, 2] > 0).astype(np.int64)
    assert telling(X, NAMES, treated) == ["x2"]
    # With ties, and in three arms.
    arms = np.where(X[:, 1] == 1, 1, 2 * (X[:, 3] > 1.0))
    assert sorted(telling(X, NAMES, arms)) == ["g", "x3"]
    copies = np.column_stack([X, -5 * X[:, 2], X[:, 2] ** 3, X[:, 2]])
    found = telling(copies, (*NAMES, "c1", "c2", "c3"), treated)
    assert found == ["x2", "c1", "c2"]  # no more than three


def separated(X, share):
    """Overlap in which so many units have a counterpart."""
    treatment = (X[:, 2] > 0).astype(np.int64)
    probabilities = np.where(np.eye(2, dtype=bool)[treatment], 1 - 1e-6, 1e-6)
    probabilities[: round(share * N)] = 0.5
    return Overlap(probabilities, treatment, np.full(2, 0.025), np.ones(N))


def test_separated_arms_are_refused_and_covariates_named(X):
    arms = SimpleNamespace(name="drug")
    with pytest.raises(SeparationError, match=r"determine drug \(x2 above all\).* only 3.0% of"):
        check_separation(separated(X, 0.03), arms, X, NAMES)
    check_separation(separated(X, 0.06), arms, X, NAMES)


def test_units_count_by_their_weights(X):
    overlap = separated(X, 0.03)
    heavy = np.where(np.arange(N) < round(0.03 * N), 3.0, 1.0)
    weighted = Overlap(overlap.probabilities, overlap.treatment, overlap.least, heavy)
    check_separation(weighted, SimpleNamespace(name="drug"), X, NAMES)


# Fits ---------------------------------------------------------------------------------------------


def frame(assign, seed=0, n=400) -> pd.DataFrame:
    """Data with a treatment that a function of covariates and random numbers assigns."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.normal(size=(n, 4)), columns=["x1", "x2", "x3", "x4"])
    data["region"] = rng.choice(list("abc"), n)
    data["treat"] = np.asarray(assign(data, rng.random(n))).astype(int)
    noise = rng.normal(size=n)
    return data.assign(y=data.x1 + data.x2 + data.treat * (1 + data.x1) + noise)


def by_threshold(data, u):
    """Everybody above, nobody below, and a lottery between."""
    return np.where(data.x1 > 0.5, True, np.where(data.x1 < -0.5, False, u < 0.5))


@pytest.fixture(scope="module")
def lost(fit_quickly):
    with pytest.warns(LostSupportWarning, match="the ATE is not estimable from these data"):
        return fit_quickly("y ~ treat | .", frame(by_threshold))


@pytest.fixture(scope="module")
def randomised(fit_quickly):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fit_quickly("y ~ treat | .", frame(lambda data, u: u < 0.5))


def test_a_category_that_decides_the_treatment_is_refused(fit_quickly):
    """No column by itself is the treatment: those of two other regions are together."""
    data = frame(lambda data, u: data.region == "a")
    with pytest.raises(SeparationError, match=r"determine treat \(region\[T\.") as caught:
        fit_quickly("y ~ treat | .", data)
    assert "x1" not in str(caught.value)


def test_lost_support_comes_first(lost):
    assert lost.estimable is False
    assert lost.lost_share > MOST_LOST
    overlap = lost._cross_fits.overlap
    assert lost.lost_share == pytest.approx(overlap.lost("ATE", (1, 0)).mean())
    assert "not estimable" in lost.warnings[0]
    text = lost.summary().as_text()
    assert "Estimand: ATE, treat = 1 against 0: not estimable\n" in text
    flat = " ".join(text.split())
    before, _, after = flat.partition("of the units that the ATE asks about")
    assert after.startswith(" have no counterpart in another arm")
    assert "Warning" in before
    assert before.count("Warning") == 1
    assert max(map(len, text.splitlines())) <= 78


def test_its_interval_is_wider_than_the_standard_error_says(lost, randomised):
    for results, wider in ((lost, True), (randomised, False)):
        one, limits = results.effect("ATE"), results.conf_int().loc["ATE"]
        assert [one.lower, one.upper] == limits.tolist()
        half = (one.upper - one.lower) / 2
        bias = 0.0 if results.effects.bias is None else results.effects.bias[0]
        assert (bias > 0) == wider
        # Few units decide the means: quantiles of Student's t.
        assert (half > 1.1 * 1.96 * one.se) == wider
        assert half > bias + 1.95 * one.se


def test_another_estimand_may_be_estimable(lost, fit_quickly):
    """The overlap population loses nobody."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", LostSupportWarning)
        overlap = fit_quickly("y ~ treat | .", frame(by_threshold), estimand="ATO")
    assert overlap.estimable
    assert overlap.lost_share == 0
    assert overlap.effects.bias[0] == 0 < overlap.effects.bias[1]
    asked = lost.effect("ATT")
    plain = 2 * 2.1 * asked.se  # Student's t of more than twenty degrees of freedom
    assert asked.upper - asked.lower > plain


def test_support_describes_where_the_effect_is_estimable(lost):
    found = lost.support()
    assert {condition.covariate for condition in found.conditions} == {"x1"}
    x1 = lost.design.X[:, 0]
    # The lottery is from -0.5 to 0.5; what tells its edges is a smooth function of x1.
    assert found.mask[np.abs(x1) < 0.3].all()
    assert found.share < 1
    assert found.lost <= 0.05
    assert found.share == pytest.approx(found.mask.mean())
    assert 0.2 < found.share < 0.8
    assert found.lost <= 0.05
    assert found.effect.name == "ATE"
    assert lost.effect("ATE", where=found.condition) == found.effect
    assert lost.effect("ATE", where=found) == found.effect
    assert lost.effect("ATE", where=found.mask) == found.effect
    assert str(found).startswith(f"{found.condition}: {found.share:.0%} of units (")
    # The effect is 1 + x1, and its error includes the draw of the units.
    truth = 1 + x1[found.mask].mean()
    assert abs(found.effect.estimate - truth) < 4 * found.effect.se


def test_an_alpha_is_that_of_the_effect(lost):
    found, wide = lost.support(alpha=0.5), lost.support()
    assert found.effect.alpha == 0.5
    assert found.effect.upper - found.effect.lower < wide.effect.upper - wide.effect.lower


def test_among_some_weights_and_bounds_are_theirs_alone(lost):
    """One repetition of the cross-fitting: its nuisances of these units are all there is."""
    mask = lost.design.X[:, 0] < 0.4
    only = lost.nuisances.among(mask)
    clip = tuple(SHARE_CLIP * np.bincount(only.treatment) / only.n)
    assert lost.plan.clip_by_share
    for target in TARGETS:
        twin = estimate_target(only, target, (1, 0), clip=clip, name=target)
        found = lost.effect(target, where="x1 < 0.4")
        assert found.estimate == pytest.approx(twin.estimates[0], rel=1e-9)
        assert found.se == pytest.approx(twin.standard_errors[0], rel=1e-9)


def test_naming_everybody_does_not_hide_what_extrapolation_could(lost):
    """Among all units the interval is as long as that of the effect itself."""
    everyone, whole = lost.effect("ATE", where=np.ones(400, dtype=bool)), lost.effect("ATE")
    assert everyone.estimate == pytest.approx(whole.estimate, rel=1e-9)
    t = stdtrit(lost.effects.freedom[0], 0.975)
    for one in (everyone, whole):
        hidden = one.upper - one.estimate - t * one.se
        assert hidden == pytest.approx(lost.effects.bias[0], rel=1e-6)
    inside = lost.effect("ATE", where="x1 < 0.5 and x1 > -0.5")  # a lottery
    only = lost.nuisances.among(np.abs(lost.design.X[:, 0]) < 0.5)
    clip = tuple(SHARE_CLIP * np.bincount(only.treatment) / only.n)
    twin = Effect.of(estimate_target(only, "ATE", (1, 0), clip=clip, name="ATE"), "ATE", 0.05)
    assert (inside.lower, inside.upper) == pytest.approx((twin.lower, twin.upper), rel=1e-9)


def test_effects_among_some_need_both_arms(lost):
    with pytest.raises(NotAvailableError, match="are in one of the arms of ATE: at least 5"):
        lost.effect("ATE", where="x1 > 0.6")
    with pytest.raises(UnknownColumnError, match=r"neither a column nor a covariate 'x9'"):
        lost.effect("ATE", where="x9 > 0.6")


def test_randomised_data_lose_nobody(randomised):
    assert randomised.estimable is True
    assert randomised.lost_share == 0
    assert not [w for w in randomised.warnings if "counterpart" in w or "Overlap" in w]
    assert "not estimable" not in randomised.summary().as_text()
    found = randomised.support()
    assert found.conditions == ()
    assert found.mask.all()
    assert str(found).startswith("all units: 100% of units (400); ATE = ")
    assert randomised.effect("ATE", where=found.condition) == found.effect
    whole = randomised.effect("ATE")
    assert found.effect.estimate == pytest.approx(whole.estimate, rel=1e-9)
