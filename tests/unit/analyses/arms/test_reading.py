"""Treatments with more than two levels, as users give them, and all that can be wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import CausalStoNet
from cstonet.errors import OneArmedError, TreatmentLeakError, UnknownLevelError

N = 30


@pytest.fixture
def frame():
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {"y": rng.normal(size=N), "arm": np.resize(["b", "a", "c"], N), "x": rng.normal(size=N)}
    )


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (["b", "a", "c"], ("a", "b", "c")),
        ([2, 0, 1], (0, 1, 2)),
        ([2.0, -1.0, 1.0], (-1, 1, 2)),
        (pd.Categorical(["lo", "hi", "no"], ["no", "lo", "hi"]), ("no", "lo", "hi")),
    ],
)
def test_more_levels_are_found(values, levels, frame):
    arm = pd.Series(values).iloc[np.resize(np.arange(3), N)].to_numpy()
    arm = pd.Categorical(arm, levels) if isinstance(values, pd.Categorical) else arm
    design = CausalStoNet.from_formula("y ~ arm | x", frame.assign(arm=arm)).design
    assert design.treatment.kind == "multilevel"
    assert design.treatment.levels == levels
    assert [levels[code] for code in design.treatment.codes] == list(arm)


@pytest.mark.parametrize("values", [np.resize([0.5, 1.0, 2.0], N), np.resize(np.arange(15), N)])
def test_numbers_are_levels_on_request(values, frame):
    design = CausalStoNet.from_formula(
        "y ~ arm | x", frame.assign(arm=values), treatment="multilevel"
    ).design
    assert design.treatment.levels == tuple(np.unique(values))


@pytest.mark.parametrize("reference", ["a", "b", "c"])
def test_reference_comes_first(reference, frame):
    design = CausalStoNet.from_formula("y ~ arm | x", frame, reference=reference).design
    assert design.treatment.levels[0] == reference
    assert list(design.treatment.levels[1:]) == sorted({"a", "b", "c"} - {reference})
    np.testing.assert_array_equal(
        np.array(design.treatment.levels)[design.treatment.codes], frame.arm
    )


def test_reference_of_a_binary_treatment_by_any_spelling(frame):
    treat = np.resize([0, 1, 1], N)
    design = CausalStoNet(frame.y, treat, frame[["x"]], reference=1.0).design
    assert design.treatment.kind == "binary"
    assert design.treatment.levels == (1, 0)
    np.testing.assert_array_equal(design.treatment.codes, 1 - treat)


def test_unknown_reference(frame):
    with pytest.raises(UnknownLevelError, match=r"'arm' has no level 'd'.*'a', 'b', 'c'"):
        CausalStoNet.from_formula("y ~ arm | x", frame, reference="d")
    with pytest.raises(UnknownLevelError, match="reference"):
        cs.CausalStoNet.from_formula("y ~ arm | x", frame, reference=0)


def test_small_arms(frame):
    rare = frame.assign(arm=np.where(np.arange(N) == 0, "d", frame.arm))
    with pytest.raises(OneArmedError, match="arm = 'd' has 1 unit"):
        CausalStoNet.from_formula("y ~ arm | x", rare)
    rare = frame.assign(arm=np.where(np.arange(N) < 3, "d", frame.arm))
    with pytest.raises(OneArmedError, match=r"'d' has 3 unit.*5 fold"):
        cs.fit("y ~ arm | x", rare, folds=5)


@pytest.mark.parametrize(
    "leak",
    [
        lambda arm: arm,
        lambda arm: arm.map({"a": 3.0, "b": 1.0, "c": 2.0}),
        lambda arm: (arm == "b").astype(float),
    ],
    ids=["copy", "relabelled", "one arm's indicator"],
)
def test_covariate_made_of_the_treatment(leak, frame):
    with pytest.raises(TreatmentLeakError, match="is the treatment 'arm'"):
        CausalStoNet.from_formula("y ~ arm | .", frame.assign(z=leak(frame.arm)))


def test_covariate_constant_in_one_arm_is_legal(frame):
    z = np.where(frame.arm == "a", 0.0, np.random.default_rng(0).normal(size=N))
    assert CausalStoNet.from_formula("y ~ arm | .", frame.assign(z=z)).design.covariates == (
        "x",
        "z",
    )
