"""Covariates that are the treatment or the outcome, in their units or in others."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cstonet import CausalStoNet
from cstonet.data.leaks import check_no_outcome
from cstonet.data.matrix import Rows
from cstonet.data.other_units import find_in, log_arrangements
from cstonet.errors import (
    DataError,
    OutcomeLeakError,
    OutcomeLeakWarning,
    TreatmentLeakError,
)

N = 20  # rows of the frame

# Strictly monotone functions of numbers about zero, and what rounding leaves of them.
OTHER_UNITS = {
    "reversed": lambda y: -y,
    "affine": lambda y: 2 * y + 1,
    "single precision": lambda y: (2 * y + 1000).astype(np.float32),
    "exponential": lambda y: np.exp(y / 4),
    "rounded exponential": lambda y: np.exp(-y / 4).astype(np.float32),
    "logarithm": lambda y: np.log(y - y.min() + 1),
    "ranks": lambda y: np.argsort(np.argsort(y)),
    "computed otherwise": lambda y: (y + 0.1 - 0.3) ** 3 * (1 + 1e-15 * np.cos(1e6 * y)),
    "on a high level": lambda y: 1e12 + y,
    "huge": lambda y: 1e300 * y,
    "tiny": lambda y: -1e-300 * y,
}


@pytest.fixture
def wide() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    data = pd.DataFrame(rng.normal(size=(60, 3)), columns=["x1", "x2", "y"])
    return data.assign(treat=np.resize([0, 1, 1], 60), dose=rng.normal(size=60))


@pytest.mark.parametrize(
    "leak",
    [
        lambda a: a,
        lambda a: 1 - a,
        lambda a: 3.5 - 7.0 * a,
        lambda a: (a - a.mean()) / a.std(),
        lambda a: np.exp(a),
        lambda a: a == 1,
        lambda a: np.where(a == 1, "drug", "none"),
        lambda a: pd.Categorical(np.where(a == 1, "drug", "none")),
        lambda a: a.astype(np.float32),
    ],
)
def test_covariate_equal_to_the_treatment(leak, frame, read_design):
    with pytest.raises(TreatmentLeakError, match=r"'copy(\[T\..*\])?' is the treatment 'treat'"):
        read_design(frame.assign(copy=leak(frame.treat)))


def test_covariate_nearly_equal_to_the_treatment_is_legal(frame, read_design):
    almost = frame.treat.to_numpy(copy=True)
    almost[-1] = 1 - almost[-1]
    assert "almost" in read_design(frame.assign(almost=almost)).covariates


def test_covariate_equal_to_the_outcome(frame, read_design):
    with pytest.raises(OutcomeLeakError, match="'again' equals the outcome 'y'"):
        read_design(frame.assign(again=frame.y))
    with pytest.raises(OutcomeLeakError, match="'y' equals the outcome 'y'"):
        CausalStoNet(frame.y, frame.treat, frame[["x1", "y"]])


def test_a_copy_in_the_rows_that_count_is_a_copy(frame, read_design):
    weights = np.where(np.arange(N) < 12, 1.0, 0.0)
    there = weights > 0
    with pytest.raises(DataError, match="'x1' equals the outcome"):
        read_design(frame.assign(x1=np.where(there, frame["y"], 0.0)), weights=weights)
    with pytest.raises(OutcomeLeakError, match="'x1' holds the outcome 'y' in other units"):
        read_design(frame.assign(x1=np.where(there, np.exp(frame["y"]), -5.0)), weights=weights)
    with pytest.raises(TreatmentLeakError, match="'x1' is the treatment"):
        read_design(frame.assign(x1=np.where(there, 2.0 * frame["treat"], 7.0)), weights=weights)


@pytest.mark.parametrize("name", OTHER_UNITS)
def test_the_outcome_in_other_units(name, wide, read_design):
    leak = wide.assign(copy=OTHER_UNITS[name](wide["y"].to_numpy()))
    expected = "'copy' holds the outcome 'y' in other units.*Take it out of the covariates"
    with pytest.raises(OutcomeLeakError, match=expected):
        read_design(leak, "y ~ treat | x1 + copy + x2")


@pytest.mark.parametrize("name", OTHER_UNITS)
def test_the_dose_in_other_units(name, wide, read_design):
    leak = wide.assign(copy=OTHER_UNITS[name](wide["dose"].to_numpy()))
    with pytest.raises(TreatmentLeakError, match="'copy' is the treatment 'dose'"):
        read_design(leak, "y ~ dose | x1 + copy + x2")
    extreme = name in ("huge", "tiny")  # which no outcome may be
    with pytest.raises(DataError, match="ranges from" if extreme else "cannot be its own cause"):
        read_design(leak, "copy ~ dose | x1 + x2")


@pytest.mark.parametrize(
    "storage",
    [sparse.csr_array, np.asfortranarray, np.float32],
    ids=["sparse", "by columns", "single"],
)
def test_a_copy_however_it_is_stored(storage, wide):
    X = np.column_stack([wide["x1"], np.exp(wide["y"] / 4), wide["x2"]])
    with pytest.raises(OutcomeLeakError, match="'x2' holds the outcome"):
        CausalStoNet(wide["y"].to_numpy(), wide["treat"].to_numpy(), storage(X))


def test_a_copy_with_gaps(wide, read_design):
    copy = np.where(np.arange(60) % 4 == 1, np.nan, np.exp(wide["y"]))
    with pytest.raises(OutcomeLeakError, match="'copy' holds the outcome"):
        read_design(wide.assign(copy=copy), "y ~ treat | x1 + copy", missing="mar")


def test_all_copies_are_named(wide, read_design):
    leak = wide.assign(a=-wide["y"], b=np.exp(wide["y"]))
    with pytest.raises(OutcomeLeakError, match=r"'a' holds .*, and so 'b'"):
        read_design(leak, "y ~ treat | a + x1 + b")


def test_ties_go_with_ties(wide, read_design):
    counts = np.random.default_rng(2).poisson(4, size=60).astype(float)
    data = wide.assign(y=counts)
    with pytest.raises(OutcomeLeakError, match="'copy' holds"):
        read_design(data.assign(copy=np.sqrt(counts)), "y ~ treat | x1 + copy")
    # In the order of the rows, too, so that nothing falls where counts are equal.
    for finer in (0.3 * np.random.default_rng(3).random(60), np.arange(60) / 200):
        read_design(data.assign(finer=counts + finer), "y ~ treat | x1 + finer")


@pytest.mark.parametrize(
    "relabelled",
    [
        lambda b: 1 - b,
        lambda b: 3 + 7 * b,
        lambda b: b == 0,
        lambda b: np.where(b == 1, "yes", "no"),
    ],
)
def test_a_binary_outcome_relabelled(relabelled, wide, read_design):
    binary = np.resize([0, 1, 0, 0, 1], 60)
    data = wide.assign(y=binary, copy=relabelled(binary))
    with pytest.raises(OutcomeLeakError, match=r"'copy(\[T\..*\])?' (holds|equals) the outcome"):
        read_design(data, "y ~ treat | x1 + copy")


def test_an_outcome_with_three_levels_relabelled(wide, read_design):
    levels = np.resize([0, 1, 2, 0], 60)
    with pytest.raises(OutcomeLeakError, match="'copy' holds"):
        read_design(wide.assign(y=levels, copy=-5.0 * levels**2), "y ~ treat | x1 + copy")
    # Labels have no order: 'high' < 'low' < 'none'.
    words = np.array(["none", "low", "high"])[levels]
    with pytest.raises(OutcomeLeakError, match="'copy' has the levels of the outcome 'y'"):
        read_design(wide.assign(y=levels, copy=words), "y ~ treat | x1 + copy")
    words[7] = "low" if words[7] == "none" else "none"
    read_design(wide.assign(y=levels, other=words), "y ~ treat | x1 + other")


def test_what_is_no_copy_is_legal(wide, read_design):
    """Part of the outcome, or much of it, is not all of it."""
    y = wide["y"].to_numpy()
    noise = np.random.default_rng(9).normal(size=60)
    binary = np.resize([0, 1, 0, 0, 1], 60)
    other = np.r_[1 - binary[:1], binary[1:]]
    parts = wide.assign(rounded=np.round(y), positive=y > 0, size=np.abs(y), near=y + 0.2 * noise)
    formula = "y ~ treat | rounded + positive + size + near"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_design(parts, formula)
        read_design(wide.assign(y=binary, other=other), "y ~ treat | x1 + other")


def test_a_covariate_that_is_nearly_the_outcome_is_named():
    rng = np.random.default_rng(4)
    y, treatment = 3 * rng.normal(size=500), np.resize([0, 1], 500)
    for near in (y + 0.01 * rng.normal(size=500), np.exp(-np.round(y, 2))):
        X = pd.DataFrame({"x1": rng.normal(size=500), "near": near})
        with pytest.warns(OutcomeLeakWarning, match="'near' nearly is the outcome"):
            CausalStoNet(y, treatment, X)
    earlier = y + 0.3 * rng.normal(size=500)  # correlates 0.995
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CausalStoNet(y, treatment, np.column_stack([earlier, X["x1"]]))


def test_a_few_events_may_coincide():
    """One event of 60 is that of one of three rare indicators in one of ten such data sets."""
    rng = np.random.default_rng(1)
    y = (np.arange(60) == 7) * 1.0
    X = np.column_stack([rng.normal(size=60), 1 - y, rng.normal(size=60)])
    with pytest.warns(OutcomeLeakWarning, match="'b' holds .* with so few events and 3 covariates"):
        check_no_outcome(Rows(X), ["a", "b", "c"], y, "y")
    with pytest.raises(OutcomeLeakError, match="'b' equals"):  # as ever, however few
        check_no_outcome(Rows(np.column_stack([X[:, 0], y])), ["a", "b"], y, "y")


def test_outcomes_of_clusters_may_coincide_with_their_covariates(wide, read_design):
    """Five villages lie as high as they are rich in one of 60 data sets; 60 villages never do."""
    village = np.resize(np.arange(5), 60)
    data = wide.assign(y=village**2, height=3.0 * village + 1, village=village)
    with pytest.warns(OutcomeLeakWarning, match="'height' holds"):
        read_design(data, "y ~ treat | x1 + height", cluster="village")
    with pytest.raises(OutcomeLeakError):
        read_design(data, "y ~ treat | x1 + height")


def test_arrangements_are_counted():
    values = np.array([2.0, 1.0, 2.0, 3.0, 2.0, 1.0])  # 6! / (2! 3! 1!)
    assert np.exp(log_arrangements(values)) == pytest.approx(60)
    assert np.exp(log_arrangements(np.arange(5.0))) == pytest.approx(120)


@pytest.mark.parametrize("outcome", ["continuous", "rare"])
def test_wide_data_cost_next_to_nothing(outcome):
    """A few rows rule the others out, rare indicators beside a rare outcome, too."""
    rng = np.random.default_rng(6)
    n, p = 3000, 2000
    y = rng.normal(size=n) if outcome == "continuous" else (np.arange(n) % 500 == 3) * 1.0
    X = (rng.random((n, p)) < 0.02).astype(np.float32)
    X[:, ::2] = rng.normal(size=(n, p // 2))
    read = []

    class Counting(Rows):
        def part(self, rows, columns):
            found = super().part(rows, columns)
            read.append(found.size)
            return found

    assert find_in(Counting(X), y).copies.size == 0
    # Two probes of about 64 rows each, of n.
    assert sum(read) < 0.05 * X.size
