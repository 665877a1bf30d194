"""Figures over data sets: errors, coverage, selection rates, and their Monte-Carlo errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from common import Z95, FloatArray, Record
from numpy.typing import NDArray
from pairs import Figure, Pairs, ratio_of_means

Truth: TypeAlias = Literal["sample", "population"]
Model: TypeAlias = Literal["outcome", "treatment"]
ORACLE = "oracle"
# The package's default, which peers are compared with.
REFERENCE = "calibrated"
# Peers whose intervals are of the mean effect of the rows at hand, not of the population's.
INTERVALS_OF_ROWS = frozenset({"bart", "bcf", "econml-forest"})
NOMINAL = 0.95
# Data sets from which a spread of estimates can be told: its error is a sixth then.
MIN_SETS_OF_SPREAD = 20


@dataclass(frozen=True, slots=True)
class Summary:
    """One method on one group of data sets; NaN where a figure is not defined.

    Each ``*_error`` is the Monte-Carlo standard error of the figure before it.

    Parameters
    ----------
    method : str
        Name of the method.
    n_sets, n_failed : int
        Data sets with an estimate, and those where the method failed.
    mae, mae_error, rmse, rmse_error : float
        Mean absolute and root mean squared error.
    bias, bias_error : float
        Mean error.
    oracle_ratio, oracle_ratio_error : float
        MAE over the oracle's on the same data sets.
    coverage, coverage_error : float
        Share of 95 % intervals that hold the truth.
    covers_rows : bool
        Whether that is the truth of the rows because the method's intervals are of these, where
        other methods' are asked about the population's.
    width : float
        Mean length of the intervals.
    pehe, pehe_error : float
        Mean over data sets of the root mean squared error of the rows' effects.
    seconds : float
        Median of what a fit took.
    by_clock : bool
        Whether that is time on the clock, as some results carry no processor time.
    """

    method: str
    n_sets: int
    n_failed: int
    mae: float = math.nan
    mae_error: float = math.nan
    rmse: float = math.nan
    rmse_error: float = math.nan
    bias: float = math.nan
    bias_error: float = math.nan
    oracle_ratio: float = math.nan
    oracle_ratio_error: float = math.nan
    coverage: float = math.nan
    coverage_error: float = math.nan
    covers_rows: bool = False
    width: float = math.nan
    pehe: float = math.nan
    pehe_error: float = math.nan
    seconds: float = math.nan
    by_clock: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """Share of the intervals that hold the truth; NaN without any.

    Parameters
    ----------
    share : float
        The share.
    n_independent : float
        Independent intervals of which a share is as uncertain: no more than there are, and fewer
        where intervals of the same number of a data set cover together.
    """

    share: float = math.nan
    n_independent: float = math.nan

    @property
    def figure(self) -> Figure:
        """The share with its Monte-Carlo error."""
        return Figure(
            self.share, coverage_error(self.share * self.n_independent, self.n_independent)
        )

    @property
    def nominal_error(self) -> float:
        """Monte-Carlo error that the share would have if intervals covered as they should.

        What a shortfall is judged by: the error of a share that fell short is larger, and would
        excuse it.
        """
        return math.sqrt(NOMINAL * (1 - NOMINAL) / self.n_independent)


def truth_of(record: Record, truth: Truth) -> float:
    """The mean effect of the population where it is asked for and known, else of the rows."""
    known = truth == "population" and record["ate"] is not None
    return float(record["ate"] if known else record["sample_ate"])


def interval_truth(record: Record, truth: Truth) -> float:
    """The truth that an interval should hold: that of the rows if it is meant for these."""
    return truth_of(record, "sample" if record["method"] in INTERVALS_OF_ROWS else truth)


def cpu_of(record: Record) -> float | None:
    """Processor seconds of a fit; None where only time on the clock was measured."""
    return float(record["cpu"]) if "cpu" in record else None


def seconds_of(records: Sequence[Record]) -> tuple[float, bool]:
    """Median of what fits took, and whether by the clock: where some carry no processor time."""
    by_clock = any("cpu" not in r for r in records)
    return float(np.median([r["seconds" if by_clock else "cpu"] for r in records])), by_clock


def data_set_of(record: Record) -> tuple[str, int]:
    """What a result was computed from; results of several effects share it."""
    return record["data"] if "data" in record else record["group"], record["seed"]


def absolute_error(record: Record, *, errors: Truth = "sample", scaled: bool = False) -> float:
    """Distance of an estimate to the truth, maybe in standard deviations of the outcome."""
    unit = record["y_sd"] if scaled else 1.0
    return float(abs(record["estimate"] - truth_of(record, errors)) / unit)


def coverage_error(covered: float, n_sets: float) -> float:
    """Monte-Carlo standard error of a coverage.

    √(c (1 - c) / m) would be zero when every interval covers, so two successes and two failures
    are added (Agresti and Coull).
    """
    share, count = (covered + 2) / (n_sets + 4), n_sets + 4
    return math.sqrt(share * (1 - share) / count)


def coverage_of(records: Sequence[Record], truth: Truth = "population") -> Coverage:
    """Share of the intervals that hold the truth, see `interval_truth`.

    Several intervals of the same number of a data set may cover together: where their variance is
    larger than that of as many independent ones, they count for fewer. Where all cover or none
    does, nothing is known about that, and those of a number count for one.
    """
    found = [
        r
        for r in records
        if "error" not in r and math.isfinite(r["upper"] - r["lower"] + interval_truth(r, truth))
    ]
    if not found:
        return Coverage()
    covered = np.array([r["lower"] <= interval_truth(r, truth) <= r["upper"] for r in found], float)
    share, count = float(covered.mean()), len(found)
    seeds = np.unique([r["seed"] for r in found], return_inverse=True)[1]
    independent = share * (1 - share) / count
    if independent == 0:
        return Coverage(share, float(seeds.max() + 1))
    variance = np.sum(np.bincount(seeds, weights=covered - share) ** 2) / count**2
    return Coverage(share, count / max(1.0, float(variance / independent)))


def selection_rates(records: Sequence[Record], model: Model) -> tuple[float, float]:
    r"""False and negative selection rate, Σ|Ŝ_i \ S| / Σ|Ŝ_i| and Σ|S \ Ŝ_i| / Σ|S|.

    The sums are over data sets, as in the paper. Nothing selected is nothing falsely selected;
    without any record of a selection both are NaN.
    """
    false, missed = selection_figures(records, model)
    return false.value, missed.value


def selection_figures(records: Sequence[Record], model: str) -> tuple[Figure, Figure]:
    """The rates of `selection_rates` with their errors: ratios of sums, so by the delta method."""
    selections = [r["selection"] for r in records if r.get("selection") is not None]
    counts = [selection[model] for selection in selections if model in selection]
    if not counts:
        return Figure(), Figure()
    selected, false, missed, true = (
        np.array([count[name] for count in counts], float)
        for name in ("selected", "false", "missed", "true")
    )
    return _share_of_sums(false, selected), _share_of_sums(missed, true)


def _share_of_sums(part: FloatArray, whole: FloatArray) -> Figure:
    if whole.sum() == 0:
        return Figure(0.0, math.nan)
    share = float(part.sum() / whole.sum())
    residual = (part - share * whole) / whole.mean()
    return Figure(share, Figure.mean_of(residual).error)


def summarize(
    records: Sequence[Record],
    *,
    errors: Truth = "sample",
    coverage: Truth = "population",
    scaled: bool = False,
) -> Summary:
    """Figures of one method on one group of data sets.

    Several effects of a data set are averaged within it first, so that each counts once.

    Parameters
    ----------
    records : sequence of dict
        Results of the method.
    errors, coverage : {"sample", "population"}
        The truth that errors are measured against, and that intervals should cover.
    scaled : bool
        Whether errors, widths and PEHE are in standard deviations of the outcome.
    """
    done = [r for r in records if "error" not in r]
    method = records[0]["method"]
    if not done:
        return Summary(method, 0, len(records))
    places = {data_set: i for i, data_set in enumerate(dict.fromkeys(map(data_set_of, done)))}
    sets = np.array([places[data_set_of(r)] for r in done])
    units = np.array([r["y_sd"] if scaled else 1.0 for r in done])
    truths = np.array([truth_of(r, errors) for r in done])
    error = (np.array([r["estimate"] for r in done]) - truths) / units
    size, square, bias = (_mean_within(sets, e) for e in (np.abs(error), error**2, error))
    mae, mean_square, mean_error = (Figure.mean_of(e) for e in (size, square, bias))
    rmse = math.sqrt(mean_square.value)
    ratio = Figure()
    if all(r["oracle"] is not None for r in done):
        oracle = np.abs(np.array([r["oracle"][0] for r in done]) - truths) / units
        ratio = ratio_of_means([Pairs(np.arange(len(size)), size, _mean_within(sets, oracle))])
    held = coverage_of(done, coverage).figure
    pehe = Figure.mean_of(
        [r["pehe"] / unit for r, unit in zip(done, units, strict=True) if r["pehe"] is not None]
    )
    seconds, by_clock = seconds_of(done)
    return Summary(
        method=method,
        n_sets=len(size),
        n_failed=len(records) - len(done),
        mae=mae.value,
        mae_error=mae.error,
        rmse=rmse,
        rmse_error=mean_square.error / (2 * rmse) if rmse > 0 else math.nan,
        bias=mean_error.value,
        bias_error=mean_error.error,
        oracle_ratio=ratio.value,
        oracle_ratio_error=ratio.error,
        coverage=held.value,
        coverage_error=held.error,
        covers_rows=any(interval_truth(r, coverage) != truth_of(r, coverage) for r in done),
        width=float(np.mean([r["upper"] - r["lower"] for r in done] / units)),
        pehe=pehe.value,
        pehe_error=pehe.error,
        seconds=seconds,
        by_clock=by_clock,
    )


def _mean_within(sets: NDArray[np.int64], values: FloatArray) -> FloatArray:
    """Means (m,) of values (k,) by the data set, 0 to m - 1, that each is of."""
    means: FloatArray = np.bincount(sets, weights=values) / np.bincount(sets)
    return means


def spread_ratio(records: Sequence[Record]) -> Figure:
    """Mean standard error over the estimates' own spread; NaN where data sets are too few.

    The spread of m normal estimates is known to a share of about 1 / √(2m), by which its error
    outweighs that of the mean standard error.

    Parameters
    ----------
    records : sequence of dict
        Results on data sets whose population has a known mean effect.
    """
    done = [r for r in records if "error" not in r]
    if len(done) < MIN_SETS_OF_SPREAD:
        return Figure()
    spread = np.std([r["estimate"] - r["ate"] for r in done], ddof=1)
    ratio = float(np.mean([r["se"] for r in done]) / spread)
    return Figure(ratio, ratio / math.sqrt(2 * len(done)))


def oracle_records(records: Sequence[Record]) -> list[Record]:
    """The oracle's results on the data sets of these records, one per data set."""
    sets = {(r["group"], r["seed"]): r for r in records if r.get("oracle") is not None}
    oracle = []
    for record in sets.values():
        estimate, se = record["oracle"]
        oracle.append(
            record
            | {
                "method": ORACLE,
                "recipe": "",
                "estimate": estimate,
                "se": se,
                "lower": estimate - Z95 * se,
                "upper": estimate + Z95 * se,
                "selection": None,
                "pehe": None,
                "seconds": math.nan,
                "cpu": math.nan,
            }
        )
    return oracle


def by_method(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Results per method: the oracle, the package's default, others as they first appear."""
    methods: dict[str, list[Record]] = {}
    ordered = sorted(records, key=lambda record: record["method"] != REFERENCE)
    for record in [*oracle_records(records), *ordered]:
        methods.setdefault(record["method"], []).append(record)
    return methods
