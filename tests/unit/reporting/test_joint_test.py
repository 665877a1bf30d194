"""Wald tests against plain formulas, and what bias takes from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, f

from cstonet.estimators import Effects
from cstonet.reporting.joint_test import JointTest

DIFFERENCES = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])


@pytest.fixture
def effects() -> Effects:
    root = np.array([[0.3, 0.0, 0.0], [0.1, 0.2, 0.0], [0.0, 0.1, 0.4]])
    return Effects(
        names=("a", "b", "c"),
        n_contrasts=3,
        estimates=np.array([0.2, 1.1, -0.4]),
        covariance=root @ root.T,
        influence=np.empty((0, 3)),
        n_clipped=0,
        clip=0.0,
        variance_kind="influence",
    )


def plain(effects, estimates, matrix=DIFFERENCES) -> float:
    gap = matrix @ estimates
    return float(gap @ np.linalg.solve(matrix @ effects.covariance @ matrix.T, gap))


def test_it_is_the_plain_formula(effects):
    found = JointTest.of(effects, DIFFERENCES, "equal effects")
    square = plain(effects, effects.estimates)
    assert found.statistic == pytest.approx(square, rel=1e-12)
    assert (found.df, found.df_denom) == (2, None)
    assert found.pvalue == pytest.approx(chi2.sf(square, 2), rel=1e-10)
    # However the hypotheses are written down.
    other = JointTest.of(effects, np.array([[1, 1.0], [2, -3]]) @ DIFFERENCES, "equal")
    assert other.statistic == pytest.approx(square, rel=1e-10)


def test_few_degrees_of_freedom_make_it_f(effects):
    few = replace(effects, freedom=np.array([np.inf, 30.0, 12.0]))
    found = JointTest.of(few, DIFFERENCES, "equal effects")
    statistic = plain(effects, effects.estimates) / 2
    assert found.statistic == pytest.approx(statistic, rel=1e-12)
    assert found.df_denom == 12
    assert found.pvalue == pytest.approx(f.sf(statistic, 2, 12), rel=1e-10)
    assert str(found).startswith("equal effects: F(2, 12) = ")


def test_with_one_hypothesis_it_is_the_square_of_z(effects):
    found = JointTest.of(effects, np.array([[0.0, 1.0, 0.0]]), "no effect")
    assert found.statistic == pytest.approx(1.1**2 / effects.covariance[1, 1], rel=1e-12)


@pytest.mark.parametrize("bias", [[0.0, 0.3, 0.0], [0.2, 0.1, 0.4], [0.0, np.inf, np.inf]])
def test_bias_leaves_the_smallest_statistic(effects, bias):
    lost = replace(effects, bias=np.array(bias))
    found = JointTest.of(lost, DIFFERENCES, "equal effects").statistic
    moves = [np.linspace(-min(b, 3), min(b, 3), 25 if b else 1) for b in bias]
    tried = [
        plain(effects, effects.estimates + move)
        for move in np.stack(np.meshgrid(*moves), axis=-1).reshape(-1, 3)
    ]
    assert found <= min(tried) + 1e-6
    # The grid is nearly as fine as the statistic is flat at its minimum.
    assert found == pytest.approx(min(tried), abs=0.2)


def test_no_hypothesis_is_no_test(effects):
    found = JointTest.of(effects, np.empty((0, 3)), "no slopes")
    assert found.df == 0
    assert np.isnan(found.pvalue)


def test_units_of_the_estimates_do_not_matter(effects):
    """A slope of a column in millions, beside one of an indicator, is tested as well."""
    units = np.array([1.0, 1e-9, 1e7])
    scaled = replace(
        effects,
        estimates=effects.estimates * units,
        covariance=effects.covariance * np.outer(units, units),
    )
    plainly, found = (JointTest.of(one, np.eye(3), "none") for one in (effects, scaled))
    assert found.df == plainly.df == 3
    assert found.statistic == pytest.approx(plainly.statistic, rel=1e-9)
