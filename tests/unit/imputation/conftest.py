"""A frame with gaps of every kind, and fits of frames with gaps in a moment."""

import numpy as np
import pandas as pd
import pytest

import cstonet as cs

QUICK = {"folds": 2, "repeats": 1, "starts": 1, "updates": 300, "imputations": 4, "seed": 3}


def fit_in_a_moment(frame, missing="mar", formula="y ~ treat | .", **changes):
    return cs.fit(formula, frame, missing=missing, **(QUICK | {"n_jobs": 1} | changes))


@pytest.fixture(scope="session")
def fit_gaps():
    return fit_in_a_moment


def mixed_frame(n=400, seed=0):
    """A number, a 0/1 column, a category and a boolean with gaps, and complete columns."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    group = np.array(["a", "b", "c"])[rng.integers(3, size=n)]
    flag = (x[:, 0] + rng.normal(size=n) > 0).astype(float)
    treat = (x[:, 0] + rng.normal(size=n) > 0).astype(int)
    y = treat + x[:, 0] + (group == "b") + rng.normal(size=n)
    frame = pd.DataFrame({"y": y, "treat": treat, "x1": x[:, 0], "x2": x[:, 1], "x3": x[:, 2]})
    frame["flag"] = flag
    frame["group"] = pd.Categorical(group)
    frame["yes"] = pd.array(rng.random(n) < 0.5, dtype="boolean")
    for name in ("x1", "flag", "group", "yes"):
        frame.loc[rng.random(n) < 0.15, name] = pd.NA if name == "yes" else np.nan
    return frame


@pytest.fixture
def mixed():
    return mixed_frame()


@pytest.fixture(scope="session")
def fitted():
    """A fit of that frame."""
    return fit_in_a_moment(mixed_frame())
