"""Tables and plots of the benchmarks, from their results files.

Writes into the results folder ``REPORT.md``, the headline and an index, and one page per protocol
with its pictures, for all results files that are there.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from common import RESULTS, Record
from pages.front import INTRODUCTION, METHODS, headline
from pages.headline import row_of
from pages.protocols import protocols_of
from pages.provenance import overview, provenance
from runner import read_records


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the report.

    Parameters
    ----------
    name : str
        The file is ``name.md``.
    files : tuple of str
        Results files that it is made of; it is there if one of them is.
    module : str
        Where its ``page`` is: takes the records of each file and the folder of the pictures.
    about : str
        What the index says about it.
    """

    name: str
    files: tuple[str, ...]
    module: str
    about: str

    def write(self, records: Sequence[Sequence[Record]], folder: Path) -> None:
        """Write the page and its pictures."""
        text = importlib.import_module(self.module).page(*map(list, records), folder)
        end = provenance([record for of_file in records for record in of_file])
        path = folder / f"{self.name}.md"
        path.write_text(f"{text.rstrip()}\n\n{end}".rstrip() + "\n", encoding="utf-8")


PAGES = (
    Page(
        "simulations",
        ("accuracy.jsonl", "timing.jsonl"),
        "pages.simulations",
        "the paper's simulations: errors, coverage, selection, standard errors, time",
    ),
    Page("paper", ("paper.jsonl",), "paper_report", "the paper's tables beside the published"),
    Page(
        "field",
        ("field.jsonl",),
        "field_report",
        "protocols that others publish, and real covariates with known effects",
    ),
    Page("missing", ("missing.jsonl",), "pages.missing", "missing covariates"),
    Page(
        "effects",
        ("effects.jsonl", "dose.jsonl"),
        "pages.effects",
        "three arms, mediations, continuous treatments",
    ),
    Page(
        "support",
        ("support.jsonl",),
        "pages.support",
        "thin support, rare arms, many and weak confounders: errors and refusals",
    ),
    Page(
        "workbench",
        ("workbench.jsonl",),
        "pages.workbench",
        "questions after a fit: groups, projections, bands, ratios, clusters, twins",
    ),
    Page("cost", ("scale.jsonl",), "pages.cost", "processor time and memory by n and p"),
    Page(
        "torture",
        ("torture.jsonl",),
        "pages.torture",
        "fits that are killed, interrupted, starved and fed with nonsense",
    ),
)


def write_report(folder: Path) -> Path:
    """Write all pages and their pictures into the folder of the results.

    Parameters
    ----------
    folder : Path
        Folder with at least one of the results files.

    Returns
    -------
    Path
        The first page, REPORT.md.
    """
    results = {name: read_records(folder / name) for page in PAGES for name in page.files}
    if not any(results.values()):
        raise FileNotFoundError(
            f"{folder} holds no results: run accuracy.py, field.py, support.py or scale.py first"
        )
    written = [page for page in PAGES if any(results[name] for name in page.files)]
    for page in written:
        page.write([results[name] for name in page.files], folder)
    rows = [row for row in map(row_of, protocols_of(results)) if row is not None]
    names = [page.name for page in written]
    by_page = {p.name: [r for name in p.files for r in results[name]] for p in written}
    text = [
        INTRODUCTION,
        *headline(rows, names, folder),
        "## Pages\n",
        *(f"- [{page.name}]({page.name}.md): {page.about}" for page in written),
        "",
        METHODS,
        "## Provenance\n",
        overview(by_page),
    ]
    path = folder / "REPORT.md"
    path.write_text("\n".join(text), encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    print(write_report(parser.parse_args().results))


if __name__ == "__main__":
    main()
