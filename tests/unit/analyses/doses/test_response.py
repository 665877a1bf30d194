"""The dose-response curve of a fit, its table and its plot."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from cstonet.analyses.doses.response import read_doses
from cstonet.errors import (
    DoseRangeError,
    OptionError,
    ThinSupportWarning,
)
from cstonet.estimators.dose_curve import estimate_curve


def test_curve_and_its_table(simulation, fitted):
    response = fitted.dose_response()
    table = response.table
    assert list(table) == [
        "dose", "estimate", "se", "lower", "upper", "uniform_lower", "uniform_upper", "effective",
    ]  # fmt: skip
    assert len(table) == 50
    low, high = response.support
    assert (table["dose"].iloc[0], table["dose"].iloc[-1]) == (low, high)
    share = (simulation.data["dose"] < low).mean()
    assert share == pytest.approx(0.025, abs=2 / 500)
    assert (table["uniform_lower"] < table["lower"]).all()
    assert (table["uniform_upper"] > table["upper"]).all()
    np.testing.assert_allclose(
        table["upper"] - table["estimate"], 1.959964 * table["se"], rtol=1e-6
    )
    z = (table["estimate"] - simulation.curve(table["dose"])) / table["se"]
    assert abs(z).max() < 5
    assert "50 doses" in repr(response)
    assert "<table" in response._repr_html_()
    one = fitted.dose_response(5.0, alpha=0.1).table
    np.testing.assert_allclose(one["uniform_upper"], one["upper"])


def test_options_of_the_curve(fitted):
    wide = fitted.dose_response(5.0, bandwidth=3.0)
    assert wide.bandwidth == 3.0
    narrow, narrower = (fitted.dose_response(5.0, bandwidth=h).table["se"] for h in (0.5, 0.05))
    assert narrow.iloc[0] < narrower.iloc[0]
    assert fitted.dose_response(trim=0.2).support[0] > fitted.dose_response().support[0]
    for option in (
        {"alpha": 1.5}, {"trim": 0.5}, {"bandwidth": 0.0}, {"bandwidth": np.nan},
        {"alpha": "5%"}, {"alpha": None}, {"trim": "none"}, {"trim": None},
        {"bandwidth": "wide"}, {"bandwidth": [1.0, 2.0]}, {"bandwidth": True},
        {"bandwidth": 1e-300},
    ):  # fmt: skip
        with pytest.raises(OptionError, match=next(iter(option))):
            fitted.dose_response(**option)


def test_masked_doses_are_not_finite():
    masked = np.ma.masked_array([4.0, 5.0, np.nan, 6.0], mask=[False, True, False, False])
    with pytest.raises(OptionError, match="grid holds 2 values that are not finite"):
        read_doses(masked, "grid")
    with pytest.raises(OptionError, match="grid holds 1 values that are not finite"):
        read_doses(masked[1], "grid")
    np.testing.assert_array_equal(read_doses(masked[[0, 3]], "grid"), [4.0, 6.0])


def test_units_behind_a_point_are_counted(simulation, fitted):
    dose = simulation.data["dose"].to_numpy()
    table = fitted.dose_response([4.0, 6.0], bandwidth=0.5).table
    kernel = np.exp(-0.5 * ((dose - table["dose"].to_numpy()[:, None]) / 0.5) ** 2)
    expected = kernel.sum(axis=1) ** 2 / (kernel**2).sum(axis=1)
    np.testing.assert_allclose(table["effective"], expected)
    assert np.isfinite(table["se"]).all()
    with pytest.warns(ThinSupportWarning, match="at 50 of 50 doses .*fewer than 10") as caught:
        table = fitted.dose_response(bandwidth=1e-3).table
    assert caught[0].filename == __file__
    without = table["effective"] < 3
    assert without.any()
    assert table.loc[without, ["se", "lower", "uniform_upper"]].isna().all().all()
    assert np.isfinite(table["estimate"]).all()
    assert np.isfinite(table.loc[~without]).all().all()


def test_nearest_unit_may_have_no_weight(simulation, fitted):
    """Beside a dose of weight zero the kernel is centred on the nearest unit that counts."""
    nuisances = fitted.dose_nuisances
    order = np.argsort(nuisances.dose)
    middle, weights = order[250], np.ones(500)
    weights[order[230:270]] = 0
    results = estimate_curve(
        replace(nuisances, weights=weights),
        nuisances.dose[[middle]],
        support=(3.0, 7.0),
        clip=0.01,
        bandwidth=1e-3,
    )
    assert np.isfinite(results.estimates).all()


def test_errors_of_a_curve_are_those_of_a_repetition(simulation):
    """Two repetitions that lie apart by 2 g: each has its own variance, and g² is added."""
    truth, doses, gap = simulation.nuisances(), np.array([4.0, 6.0]), 0.7
    options = {"support": (3.0, 7.0), "clip": 0.01, "bandwidth": 1.0}

    def shifted(by):
        """μ̂ off by a constant, and left so: outcomes are off by as much."""
        return estimate_curve(
            replace(truth, y=truth.y + by, mu=truth.mu + by, mu_grid=truth.mu_grid + by),
            doses,
            **options,
        )

    alone, both = [shifted(gap), shifted(-gap)], shifted(0.0)
    combined = both.over_repetitions(alone)
    np.testing.assert_array_equal(combined.estimates, both.estimates)
    np.testing.assert_allclose(
        combined.standard_errors, np.sqrt(both.standard_errors**2 + gap**2), rtol=1e-9
    )
    same = both.over_repetitions([both, both])
    np.testing.assert_allclose(same.variance, both.variance, rtol=1e-12)


def test_grid_outside_the_data(fitted):
    low, high = fitted.dose_response().support
    with pytest.warns(UserWarning, match=r"2 of 3 doses .*: -1000\.0, 1000\.0") as caught:
        table = fitted.dose_response([-1000, 5, 1000]).table
    assert caught[0].filename == __file__
    assert list(table["dose"]) == [5.0]
    with pytest.raises(DoseRangeError, match=f"none of the 2 doses .*{low:.6g} to {high:.6g}"):
        fitted.dose_response([-1000.0, 1000.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.dose_response([low, high])


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ([[1.0, 2.0]], "one-dimensional"),
        ([], "shape is"),
        (["low", "high"], "it holds 'low', 'high'"),
        (["1", "2"], "it holds '1', '2'"),
        ("5", "it holds '5'"),
        ([1.0, None], "1 values that are not finite"),
        ([True], "it holds True"),
        ({4, 5}, "it holds"),
        ([1 + 1j], "it holds"),
        ([[1.0], [2.0, 3.0]], "rows differ"),
        ([1.0, np.nan], "1 values that are not finite"),
        (np.inf, "not finite"),
    ],
)
def test_malformed_grid(fitted, grid, says):
    with pytest.raises(OptionError, match=f"grid.*{says}"):
        fitted.dose_response(grid)


def test_plot(fitted):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    _, ax = plt.subplots()
    assert fitted.dose_response().plot(ax) is ax
    assert ax.get_xlabel() == "dose"
    assert ax.get_ylabel() == "mean of y"
    assert len(ax.collections) == 2
    assert fitted.dose_response().plot() is not ax
    plt.close("all")
