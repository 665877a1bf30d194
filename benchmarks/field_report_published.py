"""The part of the field page that says what others published of the same simulations."""

from __future__ import annotations

from collections.abc import Sequence

import field_published as published
from field_published import Published
from metrics import Summary
from pairs import Figure
from tables import DASH, markdown_table, number, percent_text

# Published figures of simulations by protocol.
PUBLISHED = {"irm": published.IRM, "multi-arm": published.ARMS}


def published_columns(
    figures: Sequence[Published], summaries: Sequence[Summary]
) -> dict[str, list[str]]:
    """Columns of published figures beside the peers with the same learners."""
    of_peer = {each.peer: each for each in figures if each.peer}
    found = [of_peer.get(s.method) for s in summaries]
    return {
        "published MAE": [DASH if f is None else number(f.mae) for f in found],
        "published coverage": [DASH if f is None else f"{100 * f.coverage:.1f} %" for f in found],
        "published length": [DASH if f is None else number(f.length) for f in found],
    }


def published_table(figures: Sequence[Published]) -> str:
    """All published figures of a protocol, with the Monte-Carlo error of their coverage."""
    rows = [
        [
            each.learners,
            str(each.repetitions),
            number(each.mae),
            percent_text(Figure(each.coverage, each.coverage_error)),
            number(each.length),
        ]
        for each in figures
    ]
    return markdown_table(
        ["published: outcome, treatment", "data sets", "MAE", "coverage", "length"], rows
    )


def irm_published() -> list[str]:
    """What DoubleML publishes of its simulation, in its present and in a former run."""
    return [
        f"Published: {published.IRM_SOURCE}.\n",
        published_table(published.IRM),
        f"A former run of the same simulation: {published.IRM_FORMER_SOURCE}.\n",
        published_table((published.IRM_FORMER,)),
    ]


def arms_published() -> list[str]:
    """What DoubleML publishes of its simulation with three arms."""
    return [
        f"Published: {published.ARMS_SOURCE}.\n",
        published_table((*published.ARMS, published.ARMS_TUNED)),
    ]


PUBLISHED_LINES = {"irm": irm_published, "multi-arm": arms_published}


def bands() -> list[str]:
    """One line about what the package does not have."""
    figures = "; ".join(
        f"{kind}, {learners}: pointwise {100 * point:.1f} % (length {number(length)}), uniform "
        f"{100 * uniform:.1f} % ({number(width)})"
        for kind, learners, point, length, uniform, width in published.BANDS
    )
    return [
        "## Bands over groups and curves of effects (GATE, CATE)\n",
        f"The package has none yet. Published coverage of 95 % bands: {figures} "
        f"({published.BANDS_SOURCE}).\n",
    ]
