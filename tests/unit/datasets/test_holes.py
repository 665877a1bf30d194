"""Simulations with holes: how many, where, and why."""

import numpy as np
import pandas as pd
import pytest

from cstonet.datasets import many_holes, paper_holes, punch_holes, simulation2
from cstonet.errors import OptionError


def test_shares_and_truths():
    sim = simulation2(n=4000, p=8, seed=1)
    for mechanism in ("mcar", "mar", "mnar"):
        holes = punch_holes(sim, share=0.2, mechanism=mechanism)
        shares = holes.data.isna().mean()
        # Four standard errors of a share of 4000.
        assert np.abs(shares[["x1", "x4"]] - 0.2).max() < 4 * np.sqrt(0.16 / 4000)
        assert shares.drop(["x1", "x4"]).sum() == 0
        assert holes.ate == sim.ate
        kept = holes.data["x1"].notna()
        pd.testing.assert_series_equal(holes.data["x1"][kept], sim.data["x1"][kept])
    assert sim.data.notna().all().all()


def test_mechanisms():
    sim = simulation2(n=4000, p=8, seed=1)

    def difference(holes, column):
        gap = holes.data["x1"].isna()
        values = sim.data[column]
        return (values[gap].mean() - values[~gap].mean()) / values.std()

    error = 1 / np.sqrt(4000 * 0.2 * 0.8)
    at_random = punch_holes(sim, share=0.2, mechanism="mcar")
    assert abs(difference(at_random, "x1")) < 4 * error
    assert difference(punch_holes(sim, share=0.2, mechanism="mar"), "y") > 10 * error
    assert difference(punch_holes(sim, share=0.2, mechanism="mnar"), "x1") < -10 * error
    paper = paper_holes(sim)
    gaps = paper.data[["x1", "x4"]].isna().groupby(sim.data["treat"]).mean()
    assert (gaps.loc[1] > 3 * gaps.loc[0]).all()
    assert difference(paper, "x1") < -8 * error


def test_levels():
    complete, holes = many_holes(n=500, p=25, seed=2)
    assert holes.data.iloc[:, 2:22].isna().any().all()
    assert holes.data.iloc[:, 22:].notna().all().all()
    assert isinstance(complete.data["x7"].dtype, pd.CategoricalDtype)
    assert set(complete.data["x6"]) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"share": 1.5}, "share"),
        ({"mechanism": "magic"}, "mechanism"),
        ({"columns": ["x99"]}, "'x99'"),
    ],
)
def test_errors(changes, message):
    with pytest.raises(OptionError, match=message):
        punch_holes(simulation2(n=50, p=6), **changes)
