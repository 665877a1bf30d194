"""The first page of the report: headline tables and pictures, where the package falls short."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path

from metrics import NOMINAL
from pairs import Figure
from plots import Point, PointPanel, plot_points, point_of_ratio
from tables import DASH, figure_text, filled_table, number, percent_text

from pages.headline import ERRORS_OF_A_MISS, LEAST_SHARE, Comparison, Row, is_worse

INTRODUCTION = """\
# What the default does, and where it falls short

Made by `benchmarks/report.py` from the results files beside it. Every line is a protocol. *Oracle*
is AIPW with the true nuisances, on Twins with the true propensity and risks fitted to both twins'
outcomes: a yardstick, which an estimator may beat. *Peers* are methods of others that did at least
half of the data sets. *Best peer* is the one of them beside which the default does worst: it has
the largest ratio of mean absolute errors, each taken on the data sets of both. A peer chosen by its
result is helped by luck, and the more peers there are, the more so. Where the package says of most
data sets that it has no answer to rely on, it is compared with nobody. Ratios are below one where
the package's default is better; of several groups or effects they are geometric means. ± is one
Monte-Carlo standard error; with a handful of data sets it is itself uncertain. **Bold**: worse than
the best peer by more than two of them, or covering less than 95 % by more than two errors of a
method that covers 95 %.
"""

MARKS = """\
- † Every data set served to choose the package's options; elsewhere those that did are left out.
- ‡ Some or all of the package's results, or of the peer's behind whose name it stands, are of a
  former recipe, see "Provenance".
"""

METHODS = """\
## Methods

Every method has one setting for all data. The package's presets go by their names, with changes
such as "stonet/screen=100": "calibrated" is the default, "stonet" the paper's method with constants
from the data, "paper:…" Algorithm A1 with the settings published for an experiment. Peers:
DoubleML's interactive regression model with 5 folds and LightGBM (300 trees, learning rate 0.05;
"-stopped": growth stops when a held-out tenth of the rows no longer gains) or the lasso and L1
logistic regression with cross-validated penalties; EconML's CausalForestDML (mean of its effects
with its interval; "-dr": its doubly robust mean effect); stochtree's BART with the treatment as a
covariate (10 grow-from-root sweeps, 200 burn-in, 1000 draws); "ols": least squares on every
covariate with robust errors (HC1). Intervals of BART, BCF and the mean of EconML's effects are of
the rows at hand: pages ask these about the rows' mean effect, and mark it (§). Peers of single
pages are described there.
"""


def headline(rows: Sequence[Row], pages: Collection[str], folder: Path) -> list[str]:
    """Tables, misses and pictures of the first page.

    Parameters
    ----------
    rows : sequence of Row
        A line each.
    pages : collection of str
        Names of the pages that there are: lines link to these.
    folder : Path
        Where the pictures go.
    """
    if not rows:
        return []
    plot_headline(rows, folder)
    return [
        "## Headline\n",
        tally(rows),
        error_table(rows, pages),
        "Diamonds in the pictures are misses: what is bold in the table.\n",
        "![Error over the oracle's and over the best peer's](headline_error.png)\n",
        "![Coverage of the 95 % intervals](headline_coverage.png)\n",
        "## Where it falls short\n",
        *shortfalls(rows),
        "## Effects of rows, and selection\n",
        effects_table(rows, pages),
        MARKS,
        notes(rows),
    ]


def notes(rows: Sequence[Row]) -> str:
    """What the figures are measured against, and what they count."""
    population = "; ".join(row.title for row in rows if row.errors == "population")
    against = f", and to the population's on: {population}" if population else ""
    return (
        f"Errors are distances to the mean effect of the rows at hand{against}. Coverage is that "
        "of the population's effect where it is known, else of the rows': intervals meant for the "
        "population then cover more often than 95 %. Seconds are medians of processor time; a dash "
        "where it was not measured, and a peer's are shown beside the default's on the data sets "
        'where both were. "Refused" and "not estimable" count data sets where the package says '
        "that there is no answer, or that its answer is not to be relied on.\n"
    )


def tally(rows: Sequence[Row]) -> str:
    """How often the default is better and worse than the best peer, in a sentence.

    Data sets that served to choose the package's options prove nothing in its favour.
    """
    ratios = [row.best.error for row in rows if row.best is not None and row.fresh]
    better, worse = ([r for r in ratios if is_worse(one(r))] for one in (_inverse, _same))
    smaller, larger = (sum(one(r).value > 1 for r in ratios) for one in (_inverse, _same))
    missed = sum(row.covers_too_little for row in rows)
    return (
        f"{len(rows)} protocols, {len(ratios)} of them beside peers on data sets that served to "
        f"choose nothing: the default's error is smaller on {smaller} ({len(better)} by more than "
        f"two Monte-Carlo errors), larger on {larger} ({len(worse)}). Its coverage is below 95 % "
        f"by more than two on {missed}.\n"
    )


def _same(ratio: Figure) -> Figure:
    return ratio


def _inverse(ratio: Figure) -> Figure:
    return Figure(1 / ratio.value, ratio.error / ratio.value**2)


def error_table(rows: Sequence[Row], pages: Collection[str]) -> str:
    """Error, coverage and cost of every protocol."""
    return filled_table(
        {
            "protocol": [_title(row, pages) for row in rows],
            "data sets": [_sets(row) for row in rows],
            "error / oracle": [figure_text(row.oracle) for row in rows],
            "peers": [str(row.n_peers) for row in rows],
            "best peer": [_peer(row) for row in rows],
            "error / best peer": [
                DASH
                if row.best is None
                else _bold(figure_text(row.best.error), is_worse(row.best.error))
                for row in rows
            ],
            "coverage": [_bold(percent_text(r.coverage.figure), r.covers_too_little) for r in rows],
            "length / oracle": [figure_text(row.length) for row in rows],
            "CPU s": [
                number(row.seconds)
                if row.best is None or not math.isfinite(row.best.own_seconds)
                else _bold(number(row.best.own_seconds), _is_slower(row.best))
                for row in rows
            ],
            "peer's CPU s": [
                DASH if row.best is None else number(row.best.peer_seconds) for row in rows
            ],
        }
    )


def effects_table(rows: Sequence[Row], pages: Collection[str]) -> str:
    """PEHE and selection, of the protocols where either is known."""
    shown = [row for row in rows if math.isfinite(row.pehe.value) or _rates(row, "outcome") != DASH]
    # Beside a peer that says nothing about rows' effects, the default stands alone.
    best = [row.best if row.best and math.isfinite(row.best.pehe.value) else None for row in shown]
    return filled_table(
        {
            "protocol": [_title(row, pages) for row in shown],
            "PEHE": [
                figure_text(row.pehe)
                if peer is None
                else _bold(figure_text(peer.own_pehe), is_worse(peer.pehe))
                for row, peer in zip(shown, best, strict=True)
            ],
            "best peer": [
                DASH if peer is None else _peer(row) for row, peer in zip(shown, best, strict=True)
            ],
            "its PEHE": [DASH if peer is None else figure_text(peer.peer_pehe) for peer in best],
            "FSR / NSR, outcome": [_rates(row, "outcome") for row in shown],
            "FSR / NSR, treatment": [_rates(row, "treatment") for row in shown],
        }
    )


def shortfalls(rows: Sequence[Row]) -> list[str]:
    """What is bold in the tables, in words, and what the tables cannot tell."""
    text = []
    for row in rows:
        best = row.best
        if row.covers_too_little:
            covered = percent_text(row.coverage.figure)
            text.append(f"{row.title}: intervals cover in {covered}, not 95 %")
        if best is not None and is_worse(best.error):
            times = figure_text(best.error)
            text.append(
                f"{row.title}: {times} times the error of {best.peer}, {best.n_sets} data sets"
            )
        if best is not None and is_worse(best.pehe):
            text.append(f"{row.title}: {figure_text(best.pehe)} times the PEHE of {best.peer}")
    slower = [
        f"{row.title} ({number(row.best.own_seconds)} s, {row.best.peer} "
        f"{number(row.best.peer_seconds)} s)"
        for row in rows
        if row.best is not None and _is_slower(row.best)
    ]
    open_cases = [
        f"{row.title} ({figure_text(row.best.error)}, {row.best.peer})"
        for row in rows
        if row.best is not None and row.best.error.value > 1 and not is_worse(row.best.error)
    ]
    unanswered = [row.title for row in rows if row.unanswered]
    alone = [row.title for row in rows if row.best is None and not row.unanswered]
    if not text:
        text = ["Nowhere by more than two Monte-Carlo errors in error, coverage or PEHE"]
    for title, names in (
        ("Takes more processor time than the best peer", slower),
        ("Error larger than the best peer's, but within two Monte-Carlo errors", open_cases),
        ("No answer to rely on for most data sets, by the package's own word", unanswered),
        (f"No peer did {100 * LEAST_SHARE:.0f} % of the data sets", alone),
    ):
        if names:
            text.append(f"{title}: {'; '.join(names)}")
    return [*(f"- {line}." for line in text), ""]


def plot_headline(rows: Sequence[Row], folder: Path) -> None:
    """Error over the oracle's and the best peer's, and coverage, a row per protocol."""
    names = [row.title for row in rows]
    ratios = [
        None
        if row.best is None
        else point_of_ratio(
            row.best.error.value,
            row.best.error.error,
            miss=is_worse(row.best.error),
            note=row.best.peer,
        )
        for row in rows
    ]
    oracle = [
        point_of_ratio(row.oracle.value, row.oracle.error, miss=False)
        if math.isfinite(row.oracle.value)
        else None
        for row in rows
    ]
    axis = "ratio of mean absolute errors (± 2 errors)"
    plot_points(
        names,
        [
            PointPanel("default / oracle", axis, oracle, 1.0, logarithmic=True),
            PointPanel("default / best peer", axis, ratios, 1.0, logarithmic=True),
        ],
        folder / "headline_error.png",
    )
    covered = [row for row in rows if math.isfinite(row.coverage.share)]
    far = [ERRORS_OF_A_MISS * row.coverage.nominal_error for row in covered]
    bands = [(max(NOMINAL - error, 0.0), min(NOMINAL + error, 1.0)) for error in far]
    shares = [Point(row.coverage.share, miss=row.covers_too_little) for row in covered]
    label = f"coverage of the 95 % intervals (grey: 95 % ± {ERRORS_OF_A_MISS} errors)"
    plot_points(
        [row.title for row in covered],
        [PointPanel("", label, shares, NOMINAL, percent=True, bands=bands)],
        folder / "headline_coverage.png",
    )


def _is_slower(best: Comparison) -> bool:
    return is_worse(best.cost)


def _bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted else text


def _title(row: Row, pages: Collection[str]) -> str:
    marks = ("" if row.fresh else " †") + (" ‡" if row.former else "")
    return (f"[{row.title}]({row.page}.md)" if row.page in pages else row.title) + marks


def _sets(row: Row) -> str:
    counts = {
        "refused": row.refused,
        "failed": row.failed,
        "not estimable": row.not_estimable,
    }
    return ", ".join([str(row.n_sets), *(f"{n} {kind}" for kind, n in counts.items() if n)])


def _peer(row: Row) -> str:
    if row.best is None:
        return DASH
    answered = row.n_sets - row.refused - row.failed
    sets = "" if row.best.n_sets == answered else f" ({row.best.n_sets} sets)"
    return f"{row.best.peer}{' ‡' if row.best.former else ''}{sets}"


def _rates(row: Row, model: str) -> str:
    false, missed = row.selection[model]
    if not math.isfinite(false.value):
        return DASH
    return f"{percent_text(false, 0)} / {percent_text(missed, 0)}"
