"""The page of support.py: errors, honesty of the intervals, refusals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import Record
from metrics import (
    ORACLE,
    by_method,
    coverage_error,
    interval_truth,
    spread_ratio,
    summarize,
)
from pairs import Figure, paired, ratio_of_means
from support_data import DESIGNS
from support_twins import TWINS
from tables import (
    DASH,
    bias_text,
    coverage_text,
    figure_text,
    filled_table,
    number,
    percent_text,
    with_error,
)
from tuning import without_tuning

FILE = "support.jsonl"
# Least squares with everything: what errors are compared with beside the oracle's.
LEAST_SQUARES = "ols"
# Name of the effect in the subpopulation that `res.support()` describes.
SUBPOPULATION = "support"
TITLES = {name: design.title for name, design in DESIGNS.items()} | {
    name: twin.title for name, twin in TWINS.items()
}
# Effects beside the ATE that a design is about.
OTHER_EFFECTS = {
    "arm-slope": ("POM[0]", "POM[1]"),
    **dict.fromkeys(TWINS, ("ATT", SUBPOPULATION)),
}
# Errors by which a fit says that the data hold no answer. Other errors are failures.
REFUSALS = ("SeparationError", "TreatmentLeakError")

INTRODUCTION = """\
# Support

Designs with rare arms, treatments that covariates determine, many medium or weak confounders,
outcomes linear in everything, and twins of LaLonde's data: real covariates, treatments and
earnings from models fitted to them. Errors and coverage are those of the population's effect,
except for "support", the subpopulation proposed by `res.support()`, where it is that of its rows,
and for intervals that are meant for the rows' mean effect (§), which are asked about that.
"RMSE / oracle" and "/ ols" compare with AIPW with the true nuisances and with least squares on
every covariate (HC1) on the same data sets. "SE / spread" is the mean standard error over the
standard deviation of the estimates. "Refused" are fits that raised `SeparationError`, "not
estimable" those whose results say so of the ATE; "narrow and wrong" are intervals that miss the
truth with neither. All three are shares of all data sets but those where a fit failed for another
reason. ± is one Monte-Carlo standard error. On the twins the oracle's own weights are of no use for
the ATE: most rows have propensities below 0.005, and its interval rests on treated units that
hardly ever occur.
"""


@dataclass(frozen=True, slots=True)
class Honesty:
    """What a method claimed on the data sets of a design, as shares of them.

    Parameters
    ----------
    n_sets, n_failed : int
        Data sets with an estimate or a refusal, and those where the fit failed.
    refused, not_estimable, narrow_and_wrong : float
        Shares of `n_sets`; NaN without any.
    """

    n_sets: int
    n_failed: int
    refused: float
    not_estimable: float
    narrow_and_wrong: float

    @classmethod
    def of(cls, records: Sequence[Record]) -> Honesty:
        """Count the claims of one method."""
        refused = sum(is_refusal(r) for r in records)
        done = [r for r in records if "error" not in r]
        n_sets = refused + len(done)
        if not n_sets:
            return cls(0, len(records), math.nan, math.nan, math.nan)
        # The oracle's records are copies of others, which may carry their verdict.
        claimed = [r for r in done if r["method"] == ORACLE or r.get("estimable") is not False]
        wrong = sum(
            not r["lower"] <= interval_truth(r, "population") <= r["upper"] for r in claimed
        )
        return cls(
            n_sets=n_sets,
            n_failed=len(records) - n_sets,
            refused=refused / n_sets,
            not_estimable=(len(done) - len(claimed)) / n_sets,
            narrow_and_wrong=wrong / n_sets,
        )


def is_refusal(record: Record) -> bool:
    """Whether the fit said that the data hold no answer."""
    return str(record.get("error", "")).partition(":")[0] in REFUSALS


def of_effect(record: Record, name: str) -> Record | None:
    """The record as if the effect of this name were the ATE; None where it has no such effect.

    A refusal is one of every effect. That an effect is estimable is said of the ATE only.
    """
    if "error" in record:
        return record
    found = record.get("effects", {}).get(name)
    if found is None:
        return None
    figures = {key: found[key] for key in ("estimate", "se", "lower", "upper", "oracle")}
    truths = {"ate": found["truth"], "sample_ate": found["sample_truth"]}
    return record | figures | truths | {"estimable": None, "pehe": None}


def rmse_ratio(records: Sequence[Record], reference: Sequence[Record]) -> Figure:
    """RMSE over that of another method, on the data sets that both have estimates of."""
    squares = ratio_of_means(paired(records, reference, _square))
    root = math.sqrt(squares.value)
    return Figure(root, squares.error / (2 * root) if root > 0 else math.nan)


def _square(record: Record) -> float:
    return float((record["estimate"] - record["ate"]) ** 2)


def design_table(records: Sequence[Record]) -> str:
    """One line per method; columns that nothing fills are left out."""
    methods = by_method(records)
    summaries = [summarize(found, errors="population") for found in methods.values()]
    claims = [Honesty.of(found) for found in methods.values()]
    oracle, squares = methods.get(ORACLE, []), methods.get(LEAST_SQUARES, [])
    columns = {
        "method": list(methods),
        "data sets": [str(claim.n_sets) for claim in claims],
        "failed": [str(claim.n_failed) if claim.n_failed else DASH for claim in claims],
        "bias": [bias_text(summary) for summary in summaries],
        "RMSE": [with_error(s.rmse, s.rmse_error) for s in summaries],
        "/ oracle": _ratios(methods, oracle, ORACLE),
        "/ ols": _ratios(methods, squares, LEAST_SQUARES),
        "coverage": [coverage_text(summary) for summary in summaries],
        "width": [number(summary.width) for summary in summaries],
        "SE / spread": [figure_text(spread_ratio(found)) for found in methods.values()],
        "refused": [_share(claim.refused, claim.n_sets) for claim in claims],
        "not estimable": [_share(claim.not_estimable, claim.n_sets) for claim in claims],
        "narrow and wrong": [
            _share(claim.narrow_and_wrong, claim.n_sets, zero="0 %") for claim in claims
        ],
    }
    return filled_table(columns)


def _ratios(methods: dict[str, list[Record]], reference: Sequence[Record], name: str) -> list[str]:
    return [
        DASH if method == name else figure_text(rmse_ratio(found, reference))
        for method, found in methods.items()
    ]


def _share(share: float, n_sets: int, zero: str = DASH) -> str:
    if not share > 0:
        return zero if n_sets else DASH
    return percent_text(Figure(share, coverage_error(share * n_sets, n_sets)), 0)


def support_tables(records: Sequence[Record]) -> list[str]:
    """A heading and a table per design, then those of its other effects."""
    text = []
    for name, title in TITLES.items():
        members = [r for r in records if r["group"] == name]
        if not members:
            continue
        text += [f"## {title[0].upper()}{title[1:]} (`{name}`)\n", design_table(members)]
        for effect in OTHER_EFFECTS.get(name, ()):
            found = [r for r in (of_effect(member, effect) for member in members) if r is not None]
            if any("error" not in r for r in found):
                text += [f"{_effect_title(effect, found)}:\n", design_table(found)]
    return text


def _effect_title(effect: str, found: Sequence[Record]) -> str:
    if effect != SUBPOPULATION:
        return effect
    shares = [r["share"] for r in found if "share" in r]
    return f"The subpopulation of `res.support()`, {100 * np.mean(shares):.0f} % of the rows"


def page(records: Sequence[Record], folder: Path) -> str:  # noqa: ARG001
    """Tables of every design; data sets that served to choose options are left out.

    Parameters
    ----------
    records : sequence of dict
        Results of support.py.
    folder : Path
        Not used: the page has no picture.
    """
    fresh, others = without_tuning(FILE, records)
    if not others:
        return f"{INTRODUCTION}\nAll results are of data sets that served to choose options.\n"
    return "\n".join([INTRODUCTION, *support_tables(fresh)])
