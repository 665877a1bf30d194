"""Columns of the user's data after the fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.errors import NotAvailableError, UnknownColumnError

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    x[3, 0] = np.nan
    return pd.DataFrame(
        {
            "y": rng.normal(size=40),
            "treat": np.tile([0, 1], 20),
            "x1": x[:, 0],
            "x2": x[:, 1],
            "region": np.tile(["north", "south", "south", "west"], 10),
        },
        index=pd.Index(range(100, 140)),
    )


@pytest.mark.parametrize("kind", [lambda frame: frame, pa.Table.from_pandas])
def test_columns_beside_the_formula_follow_the_rows_that_are_kept(frame, kind):
    model = CausalStoNet.from_formula("y ~ treat | x1 + x2", kind(frame), missing="drop")
    found = model.design.variables(["region", "x2"])
    expected = frame[["region", "x2"]].drop(index=103)
    assert found["region"].tolist() == expected["region"].tolist()
    np.testing.assert_array_equal(found["x2"], expected["x2"])
    assert found.index.equals(model.design.index)


def test_covariates_have_the_names_of_the_selection(frame):
    design = CausalStoNet.from_formula("y ~ treat | x2 + C(region)", frame).design
    south = design.variables(["C(region)[T.south]"]).iloc[:, 0]
    np.testing.assert_array_equal(south, (frame["region"] == "south").astype(float))


def test_unknown_columns_are_named(frame):
    design = CausalStoNet.from_formula("y ~ treat | x2", frame).design
    with pytest.raises(UnknownColumnError, match=r"'regoin'.*'region'"):
        design.variables(["regoin"])


def test_without_a_frame_only_covariates_are_there(frame):
    sparse = pytest.importorskip("scipy.sparse").csr_array(frame[["x2"]].to_numpy())
    design = CausalStoNet(frame["y"], frame["treat"], sparse, names=["x2"]).design
    np.testing.assert_array_equal(design.variables(["x2"]).iloc[:, 0], frame["x2"])
    with pytest.raises(NotAvailableError, match="'region' is not at hand"):
        design.variables(["region"])
