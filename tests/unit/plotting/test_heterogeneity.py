"""Pictures of effects that differ between units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet.plotting.heterogeneity import (
    effects_along,
    effects_by_category,
    is_scale,
    sorted_effects,
)


def test_sorted_effects_have_shares_by_weight(ax):
    effects = pd.DataFrame({"estimate": [3.0, 1.0, 2.0]})
    effects["lower"], effects["upper"] = effects["estimate"] - 1, effects["estimate"] + 1
    sorted_effects(effects, np.array([2.0, 1.0, 1.0]), what="effect", alpha=0.1, ax=ax)
    units, average = (line for line in ax.lines if line.get_label() in ("unit", "average"))
    np.testing.assert_allclose(units.get_xydata(), [[1 / 8, 1], [3 / 8, 2], [3 / 4, 3]])
    assert average.get_ydata()[0] == pytest.approx((2 * 3 + 1 + 2) / 4)
    (band,) = ax.collections
    assert band.get_paths()[0].vertices[:, 1].max() == 4.0
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["90 % interval of a unit", "unit", "average"]


def test_effects_along_a_number(ax):
    curve = pd.DataFrame({"at": [0.0, 1.0], "estimate": [1.0, 2.0]})
    effects_along(
        np.array([0.0, 0.5]), np.array([1.5, 2.5]), curve, name="age", what="effect", alpha=0.05,
        ax=ax,
    )  # fmt: skip
    points, line = ax.lines[-2:]
    np.testing.assert_array_equal(points.get_xydata(), [[0.0, 1.5], [0.5, 2.5]])
    np.testing.assert_array_equal(line.get_xydata(), curve)
    assert not ax.collections  # no band is known
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "effect")


def test_effects_by_category(ax):
    members = pd.Series(["n", "s", "n", "s"])
    effects = np.array([1.0, 3.0, 2.0, 5.0])
    groups = pd.DataFrame(
        {"estimate": [1.5, 4.0], "lower": [1.0, 3.5], "upper": [2.0, 4.5]}, index=["n", "s"]
    )
    effects_by_category(members, effects, groups, name="r", what="effect", alpha=0.05, ax=ax)
    points = [line.get_xydata()[0] for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(points, [[0, 1.5], [1, 4.0]])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["n", "s"]
    boxes = [np.array(c.get_segments()[0])[:, 1] for c in ax.collections]
    np.testing.assert_allclose(boxes[1], np.quantile([1.0, 2.0], [0.25, 0.75]))
    np.testing.assert_allclose(boxes[2], [1.0, 2.0])
    np.testing.assert_allclose(boxes[5], [3.5, 4.5])


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (range(20), True),
        ([1.0, 2.0] * 10, False),
        ([True, False], False),
        (list("abcdefghijk"), False),
        (pd.Categorical(range(20)), False),
    ],
)
def test_numbers_with_few_values_are_categories(values, scale):
    assert is_scale(pd.Series(values)) is scale
