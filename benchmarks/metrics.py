"""Figures over data sets: errors, coverage, selection rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from common import Z95, Record

Truth: TypeAlias = Literal["sample", "population"]
Model: TypeAlias = Literal["outcome", "treatment"]
ORACLE = "oracle"


@dataclass(frozen=True, slots=True)
class Summary:
    """One method on one group of data sets; NaN where a figure is not defined.

    Parameters
    ----------
    method : str
        Name of the method.
    n_sets, n_failed : int
        Data sets with an estimate, and those where the method failed.
    mae, rmse : float
        Mean absolute and root mean squared error.
    bias, bias_error : float
        Mean error, and its Monte-Carlo standard error.
    oracle_ratio : float
        MAE over the oracle's on the same data sets.
    coverage, coverage_error : float
        Share of 95 % intervals that hold the truth, and its Monte-Carlo standard error.
    width : float
        Mean length of the intervals.
    pehe : float
        Mean over data sets of the root mean squared error of the rows' effects.
    seconds : float
        Median time of a fit.
    """

    method: str
    n_sets: int
    n_failed: int
    mae: float
    rmse: float
    bias: float
    bias_error: float
    oracle_ratio: float
    coverage: float
    coverage_error: float
    width: float
    pehe: float
    seconds: float


def truth_of(record: Record, truth: Truth) -> float:
    """The mean effect of the population where it is asked for and known, else of the rows."""
    known = truth == "population" and record["ate"] is not None
    return float(record["ate"] if known else record["sample_ate"])


def coverage_error(covered: int, n_sets: int) -> float:
    """Monte-Carlo standard error of a coverage.

    √(c (1 - c) / m) would be zero when every interval covers, so two successes and two failures
    are added (Agresti and Coull).
    """
    share, count = (covered + 2) / (n_sets + 4), n_sets + 4
    return math.sqrt(share * (1 - share) / count)


def selection_rates(records: Sequence[Record], model: Model) -> tuple[float, float]:
    r"""False and negative selection rate, Σ|Ŝ_i \ S| / Σ|Ŝ_i| and Σ|S \ Ŝ_i| / Σ|S|.

    The sums are over data sets, as in the paper. Nothing selected is nothing falsely selected;
    without any record of a selection both are NaN.
    """
    counts = [r["selection"][model] for r in records if r.get("selection") is not None]
    if not counts:
        return math.nan, math.nan
    selected, false, missed, true = (
        sum(count[name] for count in counts) for name in ("selected", "false", "missed", "true")
    )
    return (false / selected if selected else 0.0), missed / true


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
        return Summary(method, 0, len(records), *[math.nan] * 10)
    units = np.array([r["y_sd"] if scaled else 1.0 for r in done])
    truths = np.array([truth_of(r, errors) for r in done])
    error = (np.array([r["estimate"] for r in done]) - truths) / units
    covered = sum(r["lower"] <= truth_of(r, coverage) <= r["upper"] for r in done)
    widths = np.array([r["upper"] - r["lower"] for r in done])
    ratio = math.nan
    if all(r["oracle"] is not None for r in done):
        oracle = np.abs((np.array([r["oracle"][0] for r in done]) - truths) / units).mean()
        ratio = float(np.abs(error).mean() / oracle) if oracle > 0 else math.nan
    pehe = [r["pehe"] / unit for r, unit in zip(done, units, strict=True) if r["pehe"] is not None]
    return Summary(
        method=method,
        n_sets=len(done),
        n_failed=len(records) - len(done),
        mae=float(np.mean(np.abs(error))),
        rmse=float(np.sqrt(np.mean(error**2))),
        bias=float(error.mean()),
        bias_error=float(error.std(ddof=1) / np.sqrt(len(error))) if len(error) > 1 else math.nan,
        oracle_ratio=ratio,
        coverage=covered / len(done),
        coverage_error=coverage_error(covered, len(done)),
        width=float(np.mean(widths / units)),
        pehe=float(np.mean(pehe)) if pehe else math.nan,
        seconds=float(np.median([r["seconds"] for r in done])),
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


def mae_on_sets_of(
    records: Sequence[Record],
    reference: Sequence[Record],
    *,
    errors: Truth = "sample",
    scaled: bool = False,
) -> float:
    """MAE of a reference method on the data sets of another; NaN unless it has done them all."""
    wanted = {r["seed"] for r in records if "error" not in r}
    same = [r for r in reference if r["seed"] in wanted and "error" not in r]
    if not wanted or len(same) < len(wanted):
        return math.nan
    return summarize(same, errors=errors, scaled=scaled).mae


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
                "estimate": estimate,
                "se": se,
                "lower": estimate - Z95 * se,
                "upper": estimate + Z95 * se,
                "selection": None,
                "pehe": None,
                "seconds": math.nan,
            }
        )
    return oracle


def by_method(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Results per method, in the order of their first appearance, the oracle first."""
    methods: dict[str, list[Record]] = {}
    for record in [*oracle_records(records), *records]:
        methods.setdefault(record["method"], []).append(record)
    return methods
