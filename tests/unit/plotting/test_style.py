"""What pictures share: palette, names, panels, and who may draw where."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from cstonet.errors import MissingPackageError, OptionError
from cstonet.plotting import style


def lightness(colour):
    """L* of a colour, from 0 (black) to 100 (white)."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    y = linear @ [0.2126, 0.7152, 0.0722]
    return 116 * np.cbrt(y) - 16


def test_three_series_differ_in_greyscale():
    dark, middle, light = (lightness(colour) for colour in style.COLOURS[:3])
    assert middle - dark > 15
    assert light - middle > 15
    assert lightness("white") - light > 15


def test_new_figures_have_the_width_asked_for_and_can_be_closed():
    ax = style.canvas(None, style.COLUMN, 2.0)
    assert tuple(ax.figure.get_size_inches()) == (3.5, 2.0)
    assert not ax.spines["top"].get_visible()
    assert plt.get_fignums() == [ax.figure.number]
    plt.close(ax.figure)
    assert not plt.get_fignums()


def test_axes_given_are_drawn_into(ax):
    assert style.canvas(ax, 1.0, 1.0) is ax
    assert not plt.get_fignums()
    with pytest.raises(OptionError, match="ax must be one Axes of matplotlib, not ndarray"):
        style.canvas(np.array([ax]), 1.0, 1.0)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'cstonet\[plot\]'"):
        style.canvas(None, 1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "longest", "expected"),
    [("age", 5, "age"), ("abcdefghij", 5, "ab…ij"), ("abcdefghij", 6, "abc…ij"), (1.5, 5, "1.5")],
)
def test_names_that_are_too_long_lose_their_middle(name, longest, expected):
    assert style.shortened(name, longest) == expected


def test_dollars_in_names_start_no_formula(ax):
    style.rows_named(ax, [0, 1], ["price in $", "cost in $"])
    style.label(ax, x="a $ b $", y="$x$")
    texts = [*ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label]
    assert not any(text.get_parse_math() for text in texts)
    ax.figure.draw_without_rendering()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["price in $", "cost in $"]


def test_panels_fill_their_frame_row_by_row(ax):
    parts = style.panels(ax, 2, 3, gap=(0.5, 1.0))
    assert ax.child_axes == parts
    ax.figure.draw_without_rendering()
    inside = ax.transAxes.inverted()
    boxes = [inside.transform_bbox(part.get_window_extent()).bounds for part in parts]
    # Three panels and two gaps of half a panel; two panels and one gap of a panel.
    np.testing.assert_allclose([box[2] for box in boxes], 1 / 4, atol=1e-9)
    np.testing.assert_allclose([box[3] for box in boxes], 1 / 3, atol=1e-9)
    np.testing.assert_allclose([box[0] for box in boxes], [0, 3 / 8, 6 / 8] * 2, atol=1e-9)
    np.testing.assert_allclose([box[1] for box in boxes], [2 / 3] * 3 + [0] * 3, atol=1e-9)
