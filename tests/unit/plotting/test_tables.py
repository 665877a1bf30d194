"""Pictures of tables: where marks are is what the tables say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet.plotting.balance import THRESHOLD, love_plot
from cstonet.plotting.dose_response import dose_response_curve
from cstonet.plotting.forest import Row, forest
from cstonet.plotting.overlap import dose_weights, propensity_histograms
from cstonet.plotting.selection import selection_bars
from cstonet.plotting.trace import training_trace


def marks(ax):
    """Positions of the single marks, (k, 2)."""
    return np.array([line.get_xydata()[0] for line in ax.lines if line.get_marker() in "osD"])


def names(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def test_forest(ax):
    rows = [Row("ATE", 1.0, 0.5, 1.5), Row("POM[0]", -2.0, -2.25, -1.75, outer=(-2.5, -1.5))]
    assert forest(rows, xlabel="effect on y", ax=ax) is ax
    assert names(ax) == ["ATE", "POM[0]"]
    np.testing.assert_array_equal(marks(ax), [[1.0, 0.0], [-2.0, 1.0]])
    limits = [tuple(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2]
    assert limits == [(0, 0), (0.5, 1.5), (-2.5, -1.5), (-2.25, -1.75)]
    assert [text.get_text() for text in ax.texts] == [
        "1.000 [0.500, 1.500]",
        "-2.000 [-2.250, -1.750]",
    ]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first is at the top
    assert ax.get_xlabel() == "effect on y"
    assert ax.get_legend() is None


def test_forest_of_several_fits(ax):
    rows = [
        Row("ATE", 1.0, 0.5, 1.5, series=0),
        Row("ATE", 2.0, 1.5, 2.5, series=1),
        Row("ATT", 3.0, 2.5, 3.5, series=1),
    ]
    forest(rows, xlabel="", series=("first", "second"), ax=ax)
    assert names(ax) == ["ATE", "ATT"]
    drawn = [line for line in ax.lines if line.get_marker() in "os" and len(line.get_xdata())]
    (first, second, third) = (line.get_xydata()[0] for line in drawn)
    assert first[1] < 0 < second[1] < third[1]
    assert first[1] == pytest.approx(-second[1])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["first", "second"]
    assert drawn[0].get_color() != drawn[1].get_color()
    assert drawn[0].get_marker() != drawn[1].get_marker()


def test_love_plot(ax):
    table = pd.DataFrame(
        {"smd_before": [0.1, -0.5, 0.2, 0.01], "smd_after": [0.0, 0.05, -0.3, 0.02]},
        index=["a", "b", "c", "d"],
    )
    love_plot(table, measure="difference", most=3, ax=ax)
    # The three largest of either kind, by the difference before.
    assert names(ax) == ["b", "c", "a"]
    before, after = ax.lines[-2:]
    np.testing.assert_array_equal(before.get_xdata(), [-0.5, 0.2, 0.1])
    np.testing.assert_array_equal(after.get_xdata(), [0.05, -0.3, 0.0])
    assert {-THRESHOLD, THRESHOLD} <= {line.get_xdata()[0] for line in ax.lines[:-2]}
    assert ax.get_ylabel() == "3 of 4 covariates"


def test_love_plot_of_several_contrasts_and_of_infinite_differences(ax):
    table = pd.DataFrame(
        {
            "smd_before[b-a]": [0.1, np.inf],
            "smd_after[b-a]": [0.0, 0.5],
            "smd_before[c-a]": [0.2, 0.3],
            "smd_after[c-a]": [0.1, 0.1],
        },
        index=["x", "constant"],
    )
    love_plot(table, measure="difference", ax=ax)
    left, right = ax.child_axes
    assert names(left) == ["constant", "x"]
    assert [part.get_title(loc="left") for part in (left, right)] == ["b-a", "c-a"]
    before = left.lines[-2].get_xdata()
    assert np.isfinite(before).all()
    assert before[0] > 0.5  # beyond every finite one, and within the picture
    assert before[0] < left.get_xlim()[1]
    np.testing.assert_array_equal(right.lines[-1].get_xdata(), [0.1, 0.1])


def test_selection(ax):
    table = pd.DataFrame(
        {
            "treatment": [True, False, False, True],
            "outcome": [False, True, False, True],
            "treatment_probability": [0.9, 0.2, 0.001, np.nan],
            "outcome_probability": [0.1, 0.8, 0.002, np.nan],
            "strength": [0.1, 0.5, 0.0, 0.2],
            "kept": [False, False, False, True],
        },
        index=["a", "b", "c", "sex"],
    )
    selection_bars(table, ("treatment", "outcome"), "probability", most=3, ax=ax)
    left, right = ax.child_axes
    assert names(left) == ["sex", "a", "b"]
    assert [bar.get_width() for bar in left.patches] == [0.0, 0.9, 0.2]
    assert [bar.get_width() for bar in right.patches] == [0.0, 0.1, 0.8]
    assert [text.get_text() for text in left.texts] == ["kept"]
    colours = [bar.get_facecolor() for bar in left.patches]
    assert colours[0] == colours[1] != colours[2]
    assert left.get_title(loc="left") == "treatment"


def test_overlap_of_weighted_units(ax):
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 400)
    treatment, weights = rng.binomial(1, p), rng.uniform(0, 2, 400)
    propensity_histograms(
        np.column_stack([1 - p, p]), treatment, weights, levels=("no", "yes"), shown=(1,),
        bounds=[(0.05, 0.95)], treatment_name="job", ax=ax,
    )  # fmt: skip
    above, below = ax.patches
    for stairs, arm, sign in ((above, 1, 1), (below, 0, -1)):
        values, edges, _ = stairs.get_data()
        own = treatment == arm
        expected = np.histogram(p[own], edges, weights=weights[own])[0] / weights[own].sum()
        np.testing.assert_allclose(sign * values * np.diff(edges), expected, atol=1e-12)
    assert {0.05, 0.95} <= {line.get_xdata()[0] for line in ax.lines}
    assert ax.get_xlabel() == "propensity P(job = yes | x)"
    sizes = np.bincount(treatment)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        f"yes (n = {sizes[1]})", f"no (n = {sizes[0]})",
    ]  # fmt: skip


def test_overlap_has_a_panel_per_level(ax):
    rng = np.random.default_rng(1)
    p = rng.dirichlet([5, 5, 5], 300)
    propensity_histograms(
        p, np.arange(300) % 3, np.ones(300), levels="abc", shown=(0, 1, 2),
        bounds=[(0.01, 0.98)] * 3, treatment_name="drug", ax=ax,
    )  # fmt: skip
    titles = [part.get_title(loc="left") for part in ax.child_axes]
    assert titles == ["P(drug = a | x)", "P(drug = b | x)", "P(drug = c | x)"]
    for part in ax.child_axes:
        values = [stairs.get_data().values for stairs in part.patches]
        assert (values[0] >= 0).all()
        assert all((others <= 0).all() for others in values[1:])
    assert len({part.get_xlim() for part in ax.child_axes}) == 1


def test_propensities_that_are_all_the_same(ax):
    p = np.full((20, 2), 0.5)
    propensity_histograms(
        p, np.arange(20) % 2, np.ones(20), levels=(0, 1), shown=(1,),
        bounds=[(0.01, 0.99)], treatment_name="t", ax=ax,
    )  # fmt: skip
    ax.figure.draw_without_rendering()


def test_overlap_of_doses(ax):
    dose, weight = np.arange(10.0), np.linspace(0.5, 5, 10)
    bounded = weight > 4.9
    fifths = pd.DataFrame(
        {
            "n": 2,
            "from": dose[::2],
            "to": dose[1::2],
            "effective": [1.2, 1.6, 2.0, 1.0, 1.9],
        }
    )
    dose_weights(dose, weight, bounded, fifths, dose_name="mg", ax=ax)
    free, raised = (line for line in ax.lines if line.get_marker() in ("o", "s"))
    np.testing.assert_array_equal(free.get_xydata(), np.column_stack([dose, weight])[:-1])
    np.testing.assert_array_equal(raised.get_xydata(), [[9.0, 5.0]])
    assert [text.get_text() for text in ax.texts] == ["1", "2", "2", "1", "2"]
    assert [text.xy[0] for text in ax.texts] == [0.5, 2.5, 4.5, 6.5, 8.5]


def test_trace_by_stage_and_fold(ax):
    history = pd.DataFrame(
        [
            (fold, start, stage, epoch, 10 * stage + epoch + fold + start / 2, 7 - epoch)
            for fold in (0, 1)
            for start in (0, 1)
            for stage, epochs in ((0, 3), (1, 2))
            for epoch in range(epochs)
        ],
        columns=["fold", "start", "stage", "epoch", "fit", "nonzero"],
    )
    training_trace(history, {"fit": "likelihood", "nonzero": "kept weights"}, ax=ax)
    upper, lower = ax.child_axes
    first, second, mean, stage = upper.lines
    np.testing.assert_allclose(first.get_ydata(), [0.25, 1.25, 2.25, 10.25, 11.25])
    np.testing.assert_allclose(second.get_ydata(), first.get_ydata() + 1)
    np.testing.assert_allclose(mean.get_ydata(), first.get_ydata() + 0.5)
    np.testing.assert_array_equal(mean.get_xdata(), [1, 2, 3, 4, 5])
    assert stage.get_xdata()[0] == 3.5
    assert [text.get_text() for text in upper.texts] == ["stage 1", "stage 2"]
    assert lower.get_xlabel() == "epoch"
    assert lower.get_title(loc="left") == "kept weights"


def test_dose_response(ax):
    doses = np.linspace(0, 1, 12)
    table = pd.DataFrame({"dose": doses, "estimate": doses**2})
    for name, half in (("", 0.1), ("uniform_", 0.2)):
        table[f"{name}lower"], table[f"{name}upper"] = doses**2 - half, doses**2 + half
    dose_response_curve(table, alpha=0.1, dose_name="mg", outcome_name="y", ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), table[["dose", "estimate"]])
    assert ax.lines[0].get_marker() == "none"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["90 % band", "90 % pointwise", "estimate"]
    heights = [c.get_paths()[0].vertices[:, 1].max() for c in ax.collections]
    np.testing.assert_allclose(heights, [1.2, 1.1])


def test_a_single_dose_is_marked(ax):
    columns = ["dose", "estimate", "lower", "upper", "uniform_lower", "uniform_upper"]
    table = pd.DataFrame([[1.0, 2.0, 1.0, 3.0, 0.0, 4.0]], columns=columns)
    dose_response_curve(table, alpha=0.05, dose_name="mg", outcome_name="y", ax=ax)
    assert ax.lines[0].get_marker() == "o"
