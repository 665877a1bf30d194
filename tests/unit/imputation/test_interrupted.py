"""Fits with missing covariates stop when they are told to, also while imputing."""

import time

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.imputation import conditionals, regressions
from cstonet.imputation.regressions import fit_softmax

COLUMNS = 60


class Enough(Exception):
    pass


def holey_frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, COLUMNS))
    x[rng.random(x.shape) < 0.05] = np.nan
    x[:, 0] = rng.normal(size=n)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(COLUMNS)])
    frame.insert(0, "treat", rng.integers(2, size=n))
    frame.insert(0, "y", rng.normal(size=n))
    return frame


@pytest.mark.parametrize(
    ("module", "name"), [(regressions, "fit_linear"), (conditionals._Part, "draw")]
)
def test_a_fit_stops_while_it_imputes(monkeypatch, module, name):
    """Ctrl-C and exceptions of the callback reach the workers by the same sign."""
    original, calls, told = getattr(module, name), [], []

    def slow(*arguments):
        calls.append(name)
        time.sleep(0.02)
        return original(*arguments)

    def stop(done, total):
        if calls:
            told.append(len(calls))
            raise Enough

    monkeypatch.setattr(module, name, slow)
    with pytest.raises(Enough):
        cs.fit("y ~ treat | .", holey_frame(), missing="mar", n_jobs=1, folds=2, progress=stop)
    # The one that was under way, and one that had passed the sign; it would be hundreds.
    assert len(calls) - told[0] <= 2


def test_levels_look_at_the_sign_too():
    def stop(_):
        raise Enough

    rng = np.random.default_rng(0)
    with pytest.raises(Enough):
        fit_softmax(rng.normal(size=(30, 2)), rng.integers(3, size=30), 3, stop=stop)
