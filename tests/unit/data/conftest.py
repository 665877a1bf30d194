"""A small frame with an outcome, a treatment, numbers and a group; designs read from frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.data.design import Design

N = 20


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "y": rng.normal(size=N),
            "treat": np.resize([0, 1, 1, 0, 1], N),
            "x1": rng.normal(size=N),
            "x2": rng.normal(size=N),
            "g": np.resize(["a", "b", "c"], N),
        },
        index=[f"unit {i}" for i in range(N)],
    )


def read(frame: pd.DataFrame, formula: str = "y ~ treat | .", **kwargs: Any) -> Design:
    """Read the design; whether that succeeds or not, the frame must stay as it was."""
    before = frame.copy(deep=True)
    try:
        return CausalStoNet.from_formula(formula, frame, **kwargs).design
    finally:
        pd.testing.assert_frame_equal(frame, before)


@pytest.fixture
def read_design() -> Callable[..., Design]:
    return read


def changed_value(frame: pd.DataFrame, column: str, row: int, value: Any) -> pd.DataFrame:
    """Copy the frame with another value in one place."""
    changed = frame.copy()
    changed.iloc[row, changed.columns.get_loc(column)] = value
    return changed


@pytest.fixture
def with_value() -> Callable[..., pd.DataFrame]:
    return changed_value
