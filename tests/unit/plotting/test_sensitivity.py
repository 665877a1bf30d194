"""Contours of what a confounder could do, with bounds that are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from cstonet.plotting.sensitivity import confounding_contours


def bounds(centre):
    def of(r2_outcome, r2_treatment):
        bias = 4 * np.sqrt(r2_outcome * r2_treatment / (1 - r2_treatment))
        return centre - bias, centre + bias

    return of


BENCHMARKS = pd.DataFrame(
    {"r2_outcome": [0.1, 0.1, 0.2, 1.0], "r2_treatment": [0.1, 0.11, 0.2, 0.0]},
    index=["age", "sex", "income", "harmless"],
)


@pytest.mark.parametrize("estimate", [1.0, -1.0])
def test_zero_is_where_the_nearer_bound_is(ax, estimate):
    # 16 r² / (1 - r) = 1 on the diagonal.
    robustness = (-1 + np.sqrt(1 + 64)) / 32
    got = confounding_contours(
        bounds(estimate), estimate, robustness, BENCHMARKS, what="ATE", ax=ax
    )
    assert got is ax
    zero = ax.collections[-1]
    x, y = np.concatenate([path.vertices for path in zero.get_paths()]).T
    # Lines between points of a grid with steps h err by h²/8 times second derivatives, which are
    # at most 1 / (4 x²), and less than that where x is large.
    known = np.minimum(x, y) > 0.05
    error = 4 * np.sqrt(y * x / (1 - x))[known] - 1.0
    assert np.abs(error).max() < 2 * (0.9 / 79) ** 2 / 8 / (4 * 0.05**2) * 2
    assert known.sum() > 10
    side = "lower" if estimate > 0 else "upper"
    assert ax.get_title(loc="left") == f"{side} bound of the ATE; estimate {estimate:g}"
    square = next(line for line in ax.lines if line.get_marker() == "s")
    np.testing.assert_array_equal(square.get_xydata(), [[robustness, robustness]])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["bound of zero", "robustness value 0.22"]
    ax.figure.draw_without_rendering()


def test_the_strongest_covariates_have_names_that_do_not_overlap(ax):
    confounding_contours(bounds(1.0), 1.0, 0.22, BENCHMARKS, what="ATE", most=3, ax=ax)
    dots = next(line for line in ax.lines if line.get_marker() == "o")
    np.testing.assert_array_equal(dots.get_xydata(), [[0.2, 0.2], [0.11, 0.1], [0.1, 0.1]])
    named = [text for text in ax.texts if text.get_text() in BENCHMARKS.index]
    assert {text.get_text() for text in named} == {"age", "sex", "income"}
    ax.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in named]  # without the line to the point
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_no_strength_takes_a_large_effect_to_zero(ax):
    none = BENCHMARKS.iloc[:0]
    confounding_contours(bounds(1e6), 1e6, 0.999, none, what="ATE", ax=ax)
    assert ax.get_xlim() == (0.0, 0.9)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["robustness value 1.00"]
    ax.figure.draw_without_rendering()
