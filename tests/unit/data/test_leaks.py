"""Covariates that are the treatment or the outcome."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.errors import (
    DataError,
    TreatmentLeakError,
)

N = 20  # rows of the frame


@pytest.mark.parametrize(
    "leak",
    [
        lambda a: a,
        lambda a: 1 - a,
        lambda a: 3.5 - 7.0 * a,
        lambda a: (a - a.mean()) / a.std(),
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
    with pytest.raises(DataError, match="'again' equals the outcome 'y'"):
        read_design(frame.assign(again=frame.y))
    with pytest.raises(DataError, match="'y' equals the outcome 'y'"):
        CausalStoNet(frame.y, frame.treat, frame[["x1", "y"]])


def test_a_copy_in_the_rows_that_count_is_a_copy(frame, read_design):
    weights = np.where(np.arange(N) < 12, 1.0, 0.0)
    there = weights > 0
    with pytest.raises(DataError, match="'x1' equals the outcome"):
        read_design(frame.assign(x1=np.where(there, frame["y"], 0.0)), weights=weights)
    with pytest.raises(TreatmentLeakError, match="'x1' is the treatment"):
        read_design(frame.assign(x1=np.where(there, 2.0 * frame["treat"], 7.0)), weights=weights)
