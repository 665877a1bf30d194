"""E-values, against the example of VanderWeele and Ding (2017)."""

from __future__ import annotations

import pytest

from cstonet.estimators.evalues import evalue, evalue_of_limits


def test_published_example():
    # Formula feeding and infant deaths from respiratory infections: RR 3.9 (1.8 to 8.7).
    assert round(evalue(3.9), 2) == 7.26
    assert round(evalue_of_limits(1.8, 8.7), 1) == 3.0


def test_a_confounder_of_the_e_value_moves_the_ratio_to_one():
    # The bounding factor of two risk ratios r is r² / (2r - 1).
    for ratio in (1.2, 3.9, 50.0):
        r = evalue(ratio)
        assert r**2 / (2 * r - 1) == pytest.approx(ratio, rel=1e-12)


def test_ratios_below_one_and_intervals_that_hold_one():
    assert evalue(0.25) == evalue(4.0)
    assert evalue(1.0) == evalue_of_limits(0.8, 1.3) == 1.0
    assert evalue_of_limits(0.2, 0.5) == evalue(2.0)
