"""Figures over data sets: errors, coverage, selection rates, and their Monte-Carlo errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from common import Z95, FloatArray, Record
from pairs import Figure, Pairs, ratio_of_means

Truth: TypeAlias = Literal["sample", "population"]
Model: TypeAlias = Literal["outcome", "treatment"]
ORACLE = "oracle"
# The package's default, which peers are compared with.
REFERENCE = "calibrated"


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
    width : float
        Mean length of the intervals.
    pehe, pehe_error : float
        Mean over data sets of the root mean squared error of the rows' effects.
    seconds : float
        Median of what a fit took, see `cost_of`.
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
    width: float = math.nan
    pehe: float = math.nan
    pehe_error: float = math.nan
    seconds: float = math.nan


def truth_of(record: Record, truth: Truth) -> float:
    """The mean effect of the population where it is asked for and known, else of the rows."""
    known = truth == "population" and record["ate"] is not None
    return float(record["ate"] if known else record["sample_ate"])


def cost_of(record: Record) -> float:
    """Processor seconds of a fit; seconds on the clock where nothing else was measured."""
    return float(record["cpu"] if "cpu" in record else record["seconds"])


def absolute_error(record: Record, *, errors: Truth = "sample", scaled: bool = False) -> float:
    """Distance of an estimate to the truth, maybe in standard deviations of the outcome."""
    unit = record["y_sd"] if scaled else 1.0
    return float(abs(record["estimate"] - truth_of(record, errors)) / unit)


def coverage_error(covered: float, n_sets: int) -> float:
    """Monte-Carlo standard error of a coverage.

    √(c (1 - c) / m) would be zero when every interval covers, so two successes and two failures
    are added (Agresti and Coull).
    """
    share, count = (covered + 2) / (n_sets + 4), n_sets + 4
    return math.sqrt(share * (1 - share) / count)


def coverage_of(records: Sequence[Record], truth: Truth = "population") -> Figure:
    """Share of the intervals that hold the truth.

    Several intervals of the same number of a data set may cover together: where their variance is
    larger than that of as many independent ones, the error grows by the root of the ratio.
    """
    found = [
        r
        for r in records
        if "error" not in r and math.isfinite(r["upper"] - r["lower"] + truth_of(r, truth))
    ]
    if not found:
        return Figure()
    covered = np.array([r["lower"] <= truth_of(r, truth) <= r["upper"] for r in found], float)
    share, count = float(covered.mean()), len(found)
    seeds = np.unique([r["seed"] for r in found], return_inverse=True)[1]
    variance = np.sum(np.bincount(seeds, weights=covered - share) ** 2) / count**2
    independent = share * (1 - share) / count
    inflation = max(1.0, variance / independent) if independent > 0 else 1.0
    return Figure(share, coverage_error(covered.sum(), count) * math.sqrt(inflation))


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
    units = np.array([r["y_sd"] if scaled else 1.0 for r in done])
    truths = np.array([truth_of(r, errors) for r in done])
    error = (np.array([r["estimate"] for r in done]) - truths) / units
    mae, square, bias = (Figure.mean_of(e) for e in (np.abs(error), error**2, error))
    rmse = math.sqrt(square.value)
    ratio = Figure()
    if all(r["oracle"] is not None for r in done):
        oracle = np.abs(np.array([r["oracle"][0] for r in done]) - truths) / units
        ratio = ratio_of_means([Pairs(np.arange(len(done)), np.abs(error), oracle)])
    held = coverage_of(done, coverage)
    pehe = Figure.mean_of(
        [r["pehe"] / unit for r, unit in zip(done, units, strict=True) if r["pehe"] is not None]
    )
    return Summary(
        method=method,
        n_sets=len(done),
        n_failed=len(records) - len(done),
        mae=mae.value,
        mae_error=mae.error,
        rmse=rmse,
        rmse_error=square.error / (2 * rmse) if rmse > 0 else math.nan,
        bias=bias.value,
        bias_error=bias.error,
        oracle_ratio=ratio.value,
        oracle_ratio_error=ratio.error,
        coverage=held.value,
        coverage_error=held.error,
        width=float(np.mean([r["upper"] - r["lower"] for r in done] / units)),
        pehe=pehe.value,
        pehe_error=pehe.error,
        seconds=float(np.median([cost_of(r) for r in done])),
    )


def honesty(records: Sequence[Record], kind: str) -> tuple[float, float]:
    """Mean of one kind of standard error over the estimates' own spread, and its coverage.

    Parameters
    ----------
    records : sequence of dict
        Results with an estimate, on data sets whose population has a known mean effect.
    kind : str
        "se", or another figure of the records.
    """
    errors = np.array([r["estimate"] - r["ate"] for r in records])
    claimed = np.array([r[kind] for r in records])
    return float(claimed.mean() / errors.std()), float(np.mean(np.abs(errors) <= Z95 * claimed))


def spread_ratio(records: Sequence[Record], kind: str = "se") -> Figure:
    """Mean of one kind of standard error over the estimates' own spread.

    The spread of m normal estimates is known to a share of about 1 / √(2m), by which its error
    outweighs that of the mean standard error.
    """
    ratio, _ = honesty(records, kind)
    return Figure(ratio, ratio / math.sqrt(2 * len(records)))


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
