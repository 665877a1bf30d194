"""The page of the paper's tables, from the results of paper.py, beside the published figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import published
from common import Record
from metrics import coverage_error, selection_rates
from pages.shared import failures
from paper_tables import NOISE_FREE, SCENARIOS, TABLES
from published import Figure, paper_name
from tables import markdown_table, number
from tcga import GENE_PREFIX, PAPERS_CLINICAL, PAPERS_GENES

ORACLE = "oracle"
# How many covariates a list of the most frequently selected ones has.
LISTED = 14

INTRODUCTION = """\
# The paper's tables

Made by `benchmarks/paper.py`, one command for each (`--table NAME`). "calibrated" is the package's
default, "stonet" the paper's method with constants from the data, "paper:…" Algorithm A1 with the
settings published for the experiment, trained once on all rows to learn from ("folds=1") from three
starts instead of ten. Of rows that were not learnt from, presets give plain AIPW with the
nuisances that their networks predict, as the paper does; in sample and in "(one fit)" the default
is the package's own estimator, with cross-fitting and slopes. *Published* is what the paper prints:
for all presets, its Causal-StoNet. Brackets hold Monte-Carlo standard errors over data sets or
draws; where splits of the same rows are averaged, the standard deviation over splits; in published
figures, what the paper prints there. Baselines are those of the paper, in `benchmarks/baselines/`,
with the settings of their authors. A dash: nothing published, or nothing to be had.
"""


def page(records: Sequence[Record], folder: Path) -> str:
    """All tables, the figure's picture in this folder."""
    text = [INTRODUCTION]
    for name in TABLES:
        text.append(table_text(name, records))
        if name == "varying-n" and _of(records, name):
            from paper_plots import plot_by_size

            plot_by_size(sizes(_of(records, name)), folder / "paper_varying_n.png")
            text.append("![Mean absolute error by sample size](paper_varying_n.png)\n")
    not_run = "; ".join(f"{name}: {reason}" for name, reason in published.NOT_RUN.items())
    text.append(f"Of the paper's methods, not run here: {not_run}.\n")
    return "\n".join(text)


def table_text(name: str, records: Sequence[Record]) -> str:
    """Title, note and table of one of `TABLES`."""
    table = TABLES[name]
    mine = _of(records, table.results_of or name)
    body = WRITERS[name](mine) if any("error" not in r for r in mine) else "No results yet.\n"
    return "\n".join([f"## {table.title}\n", f"{table.note}\n", body, *failures(mine)])


def _of(records: Iterable[Record], table: str) -> list[Record]:
    """The results of a table: their groups begin with its name."""
    return [r for r in records if r["group"].replace(",", " ").split()[0] == table]


def by_method(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Results with an estimate, per method, the package's first."""
    methods: dict[str, list[Record]] = {}
    for record in records:
        if "error" not in record:
            methods.setdefault(record["method"], []).append(record)

    def order(method: str) -> tuple[bool, str]:
        own = paper_name(method) == published.CAUSAL_STONET
        return not own, method if own else ""

    return {method: methods[method] for method in sorted(methods, key=order)}


def mean_text(values: Iterable[float], *, splits: bool = False) -> str:
    """A mean with its Monte-Carlo error in brackets; over splits, with their standard deviation."""
    found = np.array([v for v in values if v is not None and math.isfinite(v)])
    if not len(found):
        return "–"
    if len(found) == 1:
        return number(float(found[0]))
    # Splits of the same rows are no independent data sets: their spread is what can be told.
    error = float(found.std(ddof=1) / (1 if splits else math.sqrt(len(found))))
    # As many decimals as the error needs for two digits.
    decimals = max(0, 1 - math.floor(math.log10(error))) if error > 0 else 4
    return f"{found.mean():.{decimals}f} ({error:.{decimals}f})"


def out(record: Record) -> Record:
    """The figures out of sample, as those of a record."""
    return record["out"]


def errors_of(
    records: Iterable[Record], part: Callable[[Record], Record], *, scaled: bool = False
) -> list[float]:
    """Absolute errors against the rows' own mean effect, maybe in units of the outcome's spread."""
    found = [part(r) for r in records]
    return [abs(f["estimate"] - f["sample_ate"]) / (f["y_sd"] if scaled else 1) for f in found]


def oracle_errors(records: Iterable[Record], part: Callable[[Record], Record]) -> list[float]:
    """The oracle's absolute errors on the data sets of these records, one per data set."""
    sets = {(r["group"], r["seed"]): part(r) for r in records if "error" not in r}
    return [abs(f["oracle"][0] - f["sample_ate"]) for f in sets.values() if f.get("oracle")]


def inside(record: Record) -> Record:
    """The figures in sample."""
    return record


def _with_published(
    methods: Iterable[str], figures: dict[str, tuple[Figure, ...]]
) -> dict[str, tuple[str, ...]]:
    """Published figures per method here, then those of methods that are not run."""
    width = len(next(iter(figures.values())))
    blank = ("–",) * width
    found: dict[str, tuple[str, ...]] = {}
    for method in methods:
        printed = figures.get(paper_name(method))
        found[method] = blank if printed is None else tuple(f.text() for f in printed)
    shown = {paper_name(method) for method in found}
    for name, printed in figures.items():
        if name not in shown:
            found[f"{name}, not run"] = tuple(f.text() for f in printed)
    return found


def _acic_ate(records: Sequence[Record]) -> str:
    methods = by_method(records)
    rows = []
    for method, printed in _with_published(methods, published.ACIC_ATE).items():
        mine = methods.get(method, [])
        rows.append(
            [
                method,
                str(len(mine)),
                mean_text(errors_of(mine, inside, scaled=True), splits=True),
                mean_text(errors_of(mine, out, scaled=True), splits=True),
                *printed,
            ]
        )
    header = ["method", "splits", "in sample", "out of sample"]
    return markdown_table([*header, "published, in", "published, out"], rows)


def _acic_cate(records: Sequence[Record]) -> str:
    methods = by_method(records)
    rows = []
    for method, printed in _with_published(methods, published.ACIC_CATE).items():
        mine = methods.get(method, [])
        pehe = mean_text((out(r)["pehe"] for r in mine), splits=True)
        plain = [abs(out(r)["mean_effect"] - out(r)["sample_ate"]) for r in mine]
        own = paper_name(method) == published.CAUSAL_STONET
        weighted = mean_text(errors_of(mine, out), splits=True) if own else "–"
        effect = mean_text(plain, splits=True)
        rows.append([method, str(len(mine)), pehe, effect, weighted, *printed])
    header = ["method", "splits", "√PEHE", "error of the mean effect", "error of AIPW"]
    return markdown_table([*header, "published √PEHE", "published error"], rows)


def coverage(records: Sequence[Record], truth: str = "sample_ate") -> str:
    """Share of intervals that hold the truth ± its Monte-Carlo error; a dash without intervals."""
    known = [r for r in records if math.isfinite(r["se"]) and math.isfinite(r[truth])]
    if not known:
        return "–"
    covered = sum(r["lower"] <= r[truth] <= r["upper"] for r in known)
    error = coverage_error(covered, len(known))
    return f"{100 * covered / len(known):.0f} ± {100 * error:.0f} %"


def _twins(records: Sequence[Record]) -> str:
    methods = by_method(records)
    rows = [[ORACLE, "–", mean_text(oracle_errors(records, inside)), *["–"] * 5]]
    figures = {name: (figure,) for name, figure in published.TWINS.items()}
    for method, printed in _with_published(methods, figures).items():
        mine = methods.get(method, [])
        signed = [r["estimate"] - r["sample_ate"] for r in mine]
        rows.append(
            [
                method,
                str(len(mine)),
                mean_text(errors_of(mine, inside)),
                mean_text(signed),
                number(math.sqrt(np.mean(np.square(signed)))) if mine else "–",
                coverage(mine),
                mean_text(r["spread"] for r in mine if "spread" in r),
                *printed,
            ]
        )
    header = ["method", "draws", "absolute error", "bias", "RMSE", "covers"]
    return markdown_table([*header, "spread of the parts' mean", "published estimate"], rows)


def _missing(records: Sequence[Record]) -> str:
    rows = []
    for scenario in (NOISE_FREE, *SCENARIOS):
        named = {r["group"] for r in records if r["group"].split(",")[0] == f"missing {scenario}"}
        for group in sorted(named):
            mine = [r for r in records if r["group"] == group]
            label = group.removeprefix("missing ")
            if scenario != NOISE_FREE:  # without noise the oracle does not err
                oracle = [mean_text(oracle_errors(mine, part)) for part in (out, inside)]
                rows.append([label, ORACLE, *["–"] * 2, *oracle, *["–"] * 5])
            for method, found in by_method(mine).items():
                rates = [r for m in ("outcome", "treatment") for r in selection_rates(found, m)]
                rows.append(
                    [
                        label,
                        method,
                        str(len(found)),
                        _published_missing(scenario),
                        *(mean_text(errors_of(found, part)) for part in (out, inside)),
                        coverage(found, "ate"),
                        *map(number, rates),
                    ]
                )
    header = ["values", "method", "data sets", "published, out", "out of sample", "in sample"]
    return markdown_table([*header, "covers", "FSR_Y", "NSR_Y", "FSR_A", "NSR_A"], rows)


def _published_missing(scenario: str) -> str:
    """The published error; that of complete data was computed without noise."""
    if scenario == "complete":
        return "–"
    return published.MISSING["complete" if scenario == NOISE_FREE else scenario].text()


def sizes(records: Sequence[Record]) -> dict[int, dict[str, list[Record]]]:
    """Results of the figure by training size and method."""
    found: dict[int, list[Record]] = {}
    for record in records:
        found.setdefault(int(record["group"].split()[1]), []).append(record)
    return {n: by_method(found[n]) for n in sorted(found)}


def _varying(records: Sequence[Record]) -> str:
    rows = []
    for n, methods in sizes(records).items():
        everything = [r for mine in methods.values() for r in mine]
        oracle = [mean_text(oracle_errors(everything, part)) for part in (inside, out)]
        rows.append([str(n), ORACLE, "–", *oracle, *["–"] * 5])
        for method, mine in methods.items():
            outcome = selection_rates(mine, "outcome")
            rows.append(
                [
                    str(n),
                    method,
                    str(len(mine)),
                    *(mean_text(errors_of(mine, part)) for part in (inside, out)),
                    coverage(mine, "ate"),
                    mean_text(out(r)["pehe"] for r in mine),
                    *map(number, outcome),
                    number(float(np.median([r["cpu"] for r in mine]))),
                ]
            )
    header = ["training rows", "method", "data sets", "in sample", "out of sample", "covers"]
    return markdown_table([*header, "√PEHE, out", "FSR_Y", "NSR_Y", "CPU seconds"], rows)


def _tcga(records: Sequence[Record]) -> str:
    rows = []
    for group in sorted({r["group"] for r in records}):
        methods = by_method([r for r in records if r["group"] == group])
        figures = {name: (figure,) for name, figure in published.TCGA.items()}
        label = group.removeprefix("tcga, ")
        shown = _with_published(methods, figures)
        for method, printed in shown.items():
            mine = methods.get(method, [])
            if not mine:
                continue
            rows.append(
                [
                    label,
                    method,
                    str(len(mine)),
                    mean_text((r["estimate"] for r in mine), splits=True),
                    mean_text((r["se"] for r in mine), splits=True),
                    mean_text((r["spread"] for r in mine if "spread" in r), splits=True),
                    *printed,
                ]
            )
    header = ["genes", "method", "partitions", "estimate", "standard error"]
    return markdown_table([*header, "spread of the parts' mean", "published"], rows)


def selections(records: Sequence[Record], *models: str) -> tuple[Counter[str], int]:
    """In how many parts each covariate was selected for one of the models, and of how many."""
    counts: Counter[str] = Counter()
    parts = [part for r in records for part in r.get("parts", ()) if "selected" in part]
    for part in parts:
        counts.update({name for model in models for name in part["selected"][model]})
    return counts, len(parts)


def _twins_covariates(records: Sequence[Record]) -> str:
    mine = by_method(records).get("calibrated", [])
    rows = []
    found = {model: selections(mine, model) for model in ("treatment", "outcome")}
    names = {name for counts, _ in found.values() for name in counts}
    names |= set(published.TWINS_COVARIATES["outcome"])

    def order(name: str) -> tuple[float, str]:
        return -sum(counts[name] for counts, _ in found.values()), name

    for name in sorted(names, key=order):
        cells = [name]
        for model, (counts, parts) in found.items():
            paper = published.TWINS_COVARIATES[model].get(name, 0)
            cells += [f"{3 * counts[name] / max(parts, 1):.1f}", str(paper)]
        rows.append(cells)
    header = ["covariate", "treatment", "paper", "outcome", "paper"]
    counts, parts = found["outcome"]
    sentence = (
        f"gestat10 is selected for the outcome in {counts['gestat10']} of {parts} parts, for the "
        f"treatment in {found['treatment'][0]['gestat10']}.\n"
    )
    return f"{sentence}\n{markdown_table(header, rows)}"


def _tcga_covariates(records: Sequence[Record]) -> str:
    text = []
    for group in sorted({r["group"] for r in records}):
        mine = by_method([r for r in records if r["group"] == group]).get("calibrated", [])
        for model in ("treatment", "outcome"):
            counts, parts = selections(mine, model)
            text.append(_list_of(counts, parts, f"{group}, {model}"))
        named = [*PAPERS_CLINICAL, *(f"{GENE_PREFIX}{gene}" for gene in PAPERS_GENES)]
        either, _ = selections(mine, "treatment", "outcome")
        hits = [f"{name} ({either[name]})" for name in named if either[name]]
        text.append(f"- {group}, of those that the paper names: {', '.join(hits) or 'none'}")
    return "\n".join(text) + "\n"


def _list_of(counts: Counter[str], parts: int, label: str) -> str:
    listed = ", ".join(f"{name} ({count})" for name, count in counts.most_common(LISTED))
    return f"- {label}, selected in so many of {parts} parts: {listed or 'none'}"


WRITERS: dict[str, Callable[[Sequence[Record]], str]] = {
    "acic-ate": _acic_ate,
    "acic-cate": _acic_cate,
    "twins": _twins,
    "twins-covariates": _twins_covariates,
    "missing": _missing,
    "varying-n": _varying,
    "tcga": _tcga,
    "tcga-covariates": _tcga_covariates,
}
