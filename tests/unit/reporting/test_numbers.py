"""Numbers as text: plain, and no digit that a standard error does not support."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.reporting.inference import Effect
from cstonet.reporting.numbers import (
    count,
    decimals_for,
    plain,
    probability,
    pvalue,
    share,
    statistic,
    with_error,
    with_errors,
)


def test_thousands_are_plain():
    effect = Effect("ATE", 8123.4, 1214.7, 5742.6, 10504.2, 0.0, 0.05)
    assert str(effect) == "ATE = 8123 (SE 1215, 95% CI 5743 to 10504)"
    assert count(16209) == "16 209"
    assert count(1215) == "1215"


@pytest.mark.parametrize("error", [2.6e-6, 1e-5, 0.00136, 0.0249, 0.25, 1.0, 7.7, 24.9, 25.0, 1e6])
def test_decimals_show_the_error_to_two_per_cent_and_no_further(error):
    decimals = decimals_for(error)
    assert abs(float(f"{error:.{decimals}f}") - error) <= 0.02 * error
    # One decimal less could move it by more than that.
    assert decimals == 0 or 0.5 * 10.0 ** (1 - decimals) > 0.02 * error


def test_errors_without_a_size():
    assert decimals_for(0.0) == decimals_for(np.nan) == decimals_for(np.inf) == 3
    assert decimals_for(1e-9) is None


def test_rows_of_comparable_errors_share_decimals():
    errors = np.array([0.26, 0.11, 0.0031])
    values = np.column_stack([[1.23456, 2.0, 0.98765], errors])
    rows = with_errors(values, errors, (11, 9))
    assert rows == [["1.235", "0.260"], ["2.000", "0.110"], ["0.9877", "0.0031"]]


def test_what_is_too_large_or_too_small_is_scientific_by_itself():
    errors = np.array([0.1, 1e-9])
    rows = with_errors(np.column_stack([[1.5, 2e-8], errors]), errors, (11, 9))
    assert rows == [["1.500", "0.100"], ["2.000e-08", "1.00e-09"]]
    assert with_error(2e9, 1e8) == ["2.000e+09", "1.000e+08"]
    assert with_error(float("nan"), float("nan")) == ["nan", "nan"]


def test_plain_numbers():
    assert [plain(x) for x in (0.0, 2.0, 5.0546, 12345.6, 0.0123456, -0.5)] == [
        "0",
        "2",
        "5.055",
        "12346",
        "0.01235",
        "-0.5",
    ]
    assert plain(1200.0) == "1200"
    assert plain(3.2e-12) == "3.200e-12"
    assert plain(4.5e11, 2) == "4.5e+11"


def test_probabilities_tests_and_shares():
    assert [pvalue(p) for p in (0.0004, 0.0005, 0.04, 1.0)] == [
        "<0.001",
        "<0.001",
        "0.040",
        "1.000",
    ]
    assert [probability(p) for p in (0.0, 0.5, 0.9999)] == ["<0.001", "0.500", ">0.999"]
    assert [share(s) for s in (0.0, 0.002, 0.2)] == ["0.00", "<0.01", "0.20"]
    assert [statistic(z) for z in (-1.2349, 1.44e7)] == ["-1.23", "1.44e+07"]
