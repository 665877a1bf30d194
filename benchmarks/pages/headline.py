"""The figures of the headline: the package's default on every protocol, beside the best peer."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from common import Record
from metrics import (
    NOMINAL,
    Coverage,
    Truth,
    absolute_error,
    coverage_of,
    cpu_of,
    data_set_of,
    oracle_records,
    selection_figures,
)
from pairs import Figure, paired, ratio_of_means

from pages.protocols import Protocol
from pages.provenance import is_former, is_own
from pages.support import is_refusal

# Monte-Carlo errors by which a figure must be worse to count as a miss.
ERRORS_OF_A_MISS = 2
# Share of the default's data sets that a peer must have done to be compared.
LEAST_SHARE = 0.5
# Share of the data sets from which on the package's own "no answer" ends all comparison.
MOST_UNANSWERED = 0.5
# Data sets below which there is no Monte-Carlo error to speak of: such protocols have no line.
MIN_SETS = 2


@dataclass(frozen=True, slots=True)
class Comparison:
    """The default beside a peer, on the data sets of both.

    Parameters
    ----------
    peer : str
        Name of the peer.
    n_sets, former : int
        Data sets of both, and how many of the peer's results are of former settings.
    error, pehe, cost : Figure
        The default's over the peer's: mean absolute error, PEHE, processor seconds.
    own_pehe, peer_pehe : Figure
        Mean PEHE of either.
    own_seconds, peer_seconds : float
        Median processor seconds of either, where those of both were measured.
    """

    peer: str
    n_sets: int
    former: int
    error: Figure
    pehe: Figure
    own_pehe: Figure
    peer_pehe: Figure
    cost: Figure
    own_seconds: float
    peer_seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the headline table.

    Parameters
    ----------
    title, page : str
        The protocol and its page.
    n_sets : int
        Data sets that the default was asked about.
    refused, failed, not_estimable : int
        Of these: the fit said that the data hold no answer, failed, or gave an answer with the
        verdict that the effect cannot be estimated.
    errors : {"sample", "population"}
        The truth that errors are measured against.
    fresh : bool
        Whether data sets that served to choose options could be left out.
    former : int
        Results of the default that are of a former recipe.
    oracle, length : Figure
        Mean absolute error and mean length of the intervals, over the oracle's.
    coverage : Coverage
        Share of the intervals that hold the truth.
    pehe : Figure
        Mean PEHE.
    selection : dict of (Figure, Figure)
        FSR and NSR by model.
    seconds : float
        Median processor seconds; NaN where none were measured.
    n_peers : int
        Peers that have done enough of the data sets to be compared.
    best : Comparison or None
        Of these the one beside which the default does worst; None without any, and where the
        package itself has no answer.
    """

    title: str
    page: str
    n_sets: int
    refused: int
    failed: int
    not_estimable: int
    errors: Truth
    fresh: bool
    former: int
    oracle: Figure
    length: Figure
    coverage: Coverage
    pehe: Figure
    selection: dict[str, tuple[Figure, Figure]]
    seconds: float
    n_peers: int
    best: Comparison | None

    @property
    def covers_too_little(self) -> bool:
        """Whether coverage is below the nominal one by more than noise."""
        return self.coverage.share + ERRORS_OF_A_MISS * self.coverage.nominal_error < NOMINAL

    @property
    def unanswered(self) -> bool:
        """Whether the package says of most data sets that it has no answer to rely on."""
        return self.refused + self.not_estimable > MOST_UNANSWERED * self.n_sets


def is_worse(ratio: Figure) -> bool:
    """Whether a ratio is above one by more than noise, on its logarithm."""
    return math.log(ratio.value) > ERRORS_OF_A_MISS * ratio.error / ratio.value


def row_of(protocol: Protocol) -> Row | None:
    """The figures of a protocol; None where data sets are too few."""
    line = protocol.line
    own = [r for r in protocol.records if r["method"] == line.method]
    done = [r for r in own if "error" not in r]
    sets = {data_set_of(r): r for r in own}
    if len(sets) < MIN_SETS:
        return None
    oracle = oracle_records(done) if line.oracle else []
    error = partial(absolute_error, errors=line.errors, scaled=line.scaled)
    refused = sum(is_refusal(r) for r in sets.values())
    compared = comparisons(protocol, done)
    row = Row(
        title=line.title,
        page=protocol.page,
        n_sets=len(sets),
        refused=refused,
        failed=sum("error" in r for r in sets.values()) - refused,
        not_estimable=sum(r.get("estimable") is False for r in sets.values()),
        errors=line.errors,
        fresh=protocol.fresh,
        former=sum(is_former(r) for r in sets.values()),
        oracle=ratio_of_means(paired(done, oracle, error)),
        length=ratio_of_means(paired(done, oracle, _length)),
        coverage=coverage_of(done),
        pehe=_mean(done, partial(_pehe, scaled=line.scaled)),
        selection={
            model: selection_figures(list(sets.values()), model)
            for model in ("outcome", "treatment")
        },
        seconds=_median([cpu for cpu in map(cpu_of, sets.values()) if cpu is not None]),
        n_peers=len(compared),
        best=max(compared, key=lambda c: c.error.value, default=None),
    )
    # An error where the package has said that there is no answer is no win and no defeat.
    return replace(row, best=None) if row.unanswered else row


def comparisons(protocol: Protocol, own: Sequence[Record]) -> list[Comparison]:
    """The default beside every peer that has done enough of its data sets.

    Parameters
    ----------
    protocol : Protocol
        The line and the results of all methods.
    own : sequence of dict
        The default's, with an estimate.
    """
    line = protocol.line
    wanted = len({data_set_of(r) for r in own}) * LEAST_SHARE
    peers: dict[str, list[Record]] = {}
    for record in protocol.records:
        if not is_own(record):
            peers.setdefault(record["method"], []).append(record)
    found = [compare(own, records, line.errors, line.scaled) for records in peers.values()]
    return [c for c in found if c.n_sets >= wanted and math.isfinite(c.error.value)]


def compare(
    own: Sequence[Record], peer: Sequence[Record], errors: Truth, scaled: bool
) -> Comparison:
    """Two methods on the data sets of both."""
    error = partial(absolute_error, errors=errors, scaled=scaled)
    pehe = partial(_pehe, scaled=scaled)
    done = [[r for r in records if "error" not in r] for records in (own, peer)]
    common = {data_set_of(r) for r in done[0]} & {data_set_of(r) for r in done[1]}
    mine, theirs = ([r for r in records if data_set_of(r) in common] for records in done)
    costs = paired(mine, theirs, cpu_of)
    return Comparison(
        peer=peer[0]["method"],
        n_sets=len(common),
        former=sum(map(is_former, theirs)),
        error=ratio_of_means(paired(mine, theirs, error)),
        pehe=ratio_of_means(paired(mine, theirs, pehe)),
        own_pehe=_mean(mine, pehe),
        peer_pehe=_mean(theirs, pehe),
        cost=ratio_of_means(costs),
        own_seconds=_median([seconds for pair in costs for seconds in pair.own]),
        peer_seconds=_median([seconds for pair in costs for seconds in pair.other]),
    )


def _length(record: Record) -> float:
    return float(record["upper"] - record["lower"])


def _pehe(record: Record, scaled: bool) -> float | None:
    if record["pehe"] is None:
        return None
    return float(record["pehe"] / (record["y_sd"] if scaled else 1.0))


def _mean(records: Sequence[Record], figure: Callable[[Record], float | None]) -> Figure:
    return Figure.mean_of([value for value in map(figure, records) if value is not None])


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan
