"""The diagram of a network: which weights are drawn, where, and how."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.plotting.network import Diagram, network_diagram


@pytest.fixture
def diagram():
    """Three covariates, a hidden layer of two, a layer with the treatment, the outcome."""
    return Diagram(
        inputs=("age", "sex", "idle"),
        weights=(
            # idle feeds only unit 2, which feeds nothing.
            np.array([[2.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]),
            np.array([[1.0, 0.0], [0.0, -2.0], [0.0, 0.0]]),
            np.array([[1.5], [-3.0]]),
        ),
        visible=((), ("treat",), ("y",)),
    )


def test_only_whole_paths_of_large_weights(diagram):
    first, second, last = diagram.drawn(0.0)
    # All that were kept, but for what leads to a unit from which nothing goes on.
    np.testing.assert_array_equal(first, [[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(second, [[1, 0], [0, 1], [0, 0]])
    np.testing.assert_array_equal(last, [[1], [1]])
    # Of the largest of each layer, those on a path: sex has none to the treatment any more.
    first, second, last = diagram.drawn(0.6)
    assert not first.any()
    assert not second.any()
    np.testing.assert_array_equal(last, [[0], [1]])


def test_every_covariate_keeps_its_strongest_paths():
    """Two hidden layers, the second with the treatment; weak covariates are not left out."""
    rng = np.random.default_rng(4)
    shapes = ((12, 10), (10, 9), (9, 1))
    weights = [rng.normal(size=shape) for shape in shapes]
    weights[0][3] *= 1e-6
    diagram = Diagram(tuple("abcdefghijkl"), tuple(weights), ((), ("treat",), ("y",)))
    masks = diagram.drawn(None)
    a, b, c = (np.abs(w) for w in weights)
    for x in range(12):
        to_treatment = int((a[x] * b[:, 8]).argmax())
        assert masks[0][x, to_treatment]
        assert masks[1][to_treatment, 8]
        through = a[x][:, None] * b[:, :8] * c[:8, 0]
        first, second = np.unravel_index(through.argmax(), through.shape)
        assert masks[0][x, first]
        assert masks[1][first, second]
        assert masks[2][second, 0]
    # The sixty largest, and at most two more for each covariate.
    assert 60 <= masks[0].sum() <= 60 + 24
    kept = a[masks[0]]
    assert np.sort(kept)[-60:].min() >= np.partition(a, -60, axis=None)[-60]


def test_diagram(diagram, ax):
    assert network_diagram(diagram, least=0.0, title="fold 1", ax=ax) is ax
    segments = [np.array(s) for c in ax.collections for s in c.get_segments()]
    widths = np.concatenate([c.get_linewidths() for c in ax.collections])
    assert len(segments) == len(widths) == 6
    # One collection per layer and sign; width is proportional to size within the layer.
    positive, negative = ax.collections[:2]
    np.testing.assert_allclose(positive.get_linewidths()[0] / negative.get_linewidths()[0], 2.0)
    assert positive.get_linestyle() != negative.get_linestyle()
    np.testing.assert_array_equal([s[:, 0] for s in positive.get_segments()], [[0, 1]])
    texts = [text.get_text() for text in ax.texts]
    assert texts[:-1] == ["age", "sex", "treat", "y"]  # nothing leads from idle anywhere
    assert texts[-1] == "fold 1; 6 of 7 kept weights are drawn"
    named = {text.get_text(): text.xy for text in ax.texts[:-1]}
    assert (named["treat"][0], named["y"]) == (2, (3, 0.5))
    # Lines begin and end at units.
    ends = {tuple(end) for s in segments for end in s}
    assert set(named.values()) <= ends


def test_paths_do_not_cross_where_they_need_not(ax):
    """A network of parallel paths in a shuffled order is drawn without a crossing."""
    order = np.random.default_rng(2).permutation(6)
    first = np.eye(6)[order]
    diagram = Diagram(
        inputs=tuple("abcdef"),
        weights=(first, np.eye(6)[:, order], np.ones((6, 1))),
        visible=((), (), ("y",)),
    )
    network_diagram(diagram, ax=ax)
    heights = [s[:, 1] for c in ax.collections[:4] for s in np.array(c.get_segments())]
    np.testing.assert_allclose(np.ptp(heights, axis=1), 0.0, atol=1e-12)


def test_a_network_without_weights(ax):
    empty = Diagram(("x",), (np.zeros((1, 2)), np.zeros((2, 1))), (("t",), ("y",)))
    network_diagram(empty, ax=ax)
    assert "0 of 0 kept weights" in ax.texts[-1].get_text()
    ax.figure.draw_without_rendering()
