"""Tables that several pages have."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

from common import Record
from metrics import (
    ORACLE,
    REFERENCE,
    Summary,
    Truth,
    absolute_error,
    selection_figures,
)
from pairs import mean_difference, paired
from tables import (
    DASH,
    bias_text,
    coverage_text,
    figure_text,
    filled_table,
    markdown_table,
    number,
    seconds_text,
    with_error,
)


def groups_of(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Results per group, simulations and sizes in natural order."""
    names = sorted({r["group"] for r in records}, key=natural_order)
    return {name: [r for r in records if r["group"] == name] for name in names}


def natural_order(text: str) -> list[tuple[int, str]]:
    """A sort key under which n=800 comes before n=1000."""
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def of_single_effects(records: Sequence[Record], *, led: bool = False) -> list[Record]:
    """Results of several effects as one result per effect, in groups of their own.

    Parameters
    ----------
    records : sequence of dict
        Results of one effect stay what they are.
    led : bool
        Whether to take also those apart in which one effect leads the others.
    """
    single: list[Record] = []
    for record in records:
        if "error" in record or "effects" not in record or ("estimate" in record and not led):
            single.append(record)
            continue
        for name, effect in record["effects"].items():
            figures = {key: effect[key] for key in ("estimate", "se", "lower", "upper")}
            single.append(
                record
                | figures
                | {
                    "group": f"{record['group']}: {name}",
                    "data": record["group"],
                    "ate": effect["truth"],
                    "sample_ate": effect["truth"],
                    "oracle": _oracle_of(effect),
                    "pehe": None,
                }
            )
    return single


def _oracle_of(effect: Record) -> list[float] | None:
    """Estimate and standard error, which are either in one field or in two."""
    oracle = effect.get("oracle")
    return [oracle, effect["oracle_se"]] if isinstance(oracle, float) else oracle


def summary_table(summaries: Sequence[Summary], differences: Sequence[str] = ()) -> str:
    """Errors, coverage and cost; columns that nothing fills are left out.

    Parameters
    ----------
    summaries : sequence of Summary
        One per method.
    differences : sequence of str
        What the package's default does better or worse than each, see `difference_texts`.
    """
    return filled_table(
        {
            "method": [s.method for s in summaries],
            "data sets": [str(s.n_sets) for s in summaries],
            "failed": [str(s.n_failed) if s.n_failed else DASH for s in summaries],
            "MAE": [with_error(s.mae, s.mae_error) for s in summaries],
            f"{REFERENCE} - it": list(differences) or [DASH] * len(summaries),
            "RMSE": [with_error(s.rmse, s.rmse_error) for s in summaries],
            "bias": [bias_text(s) for s in summaries],
            "/ oracle": [
                DASH if s.method == ORACLE else with_error(s.oracle_ratio, s.oracle_ratio_error)
                for s in summaries
            ],
            "coverage": [coverage_text(s) for s in summaries],
            "width": [number(s.width) for s in summaries],
            "PEHE": [with_error(s.pehe, s.pehe_error) for s in summaries],
            "seconds": [seconds_text(s.seconds, s.by_clock) for s in summaries],
        }
    )


def difference_texts(
    methods: dict[str, list[Record]], *, errors: Truth = "sample", scaled: bool = False
) -> list[str]:
    """Mean of |error of the package's default| - |error of the method| on the sets of both."""
    size = partial(absolute_error, errors=errors, scaled=scaled)
    reference = methods.get(REFERENCE, [])
    texts = []
    for name, records in methods.items():
        compared = name not in (ORACLE, REFERENCE)
        difference = mean_difference(paired(reference, records, size)) if compared else None
        texts.append(DASH if difference is None else figure_text(difference, signed=True))
    return texts


def selection_table(
    methods: dict[str, list[Record]], models: Sequence[str] = ("outcome", "treatment")
) -> str:
    """FSR and NSR of every model, for the methods that select; empty if none does."""
    rows = []
    for method, records in methods.items():
        rates = [rate for model in models for rate in selection_figures(records, model)]
        if any(math.isfinite(rate.value) for rate in rates):
            rows.append([method, *(figure_text(rate) for rate in rates)])
    header = ["selection", *(f"{rate} {model}" for model in models for rate in ("FSR", "NSR"))]
    return markdown_table(header, rows) if rows else ""


def failures(records: Sequence[Record]) -> list[str]:
    """Which fits failed, why, and how often; empty if none did."""
    failed = Counter(f"{r['method']} ({r['error']})" for r in records if "error" in r)
    if not failed:
        return []
    counts = "; ".join(f"{what}, {count} times" for what, count in failed.items())
    return [f"Failed: {counts}.\n"]
