"""What the command line writes: tables in the format that a file's name ends with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cstonet.errors import OptionError
from cstonet.places import check_place, write_text
from cstonet.reporting.exports import plain, to_json

if TYPE_CHECKING:
    from cstonet.analyses.results import CausalResults

_PAGE = "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>{title}</title></head>"


def _html(results: CausalResults, alpha: float) -> str:
    head = _PAGE.format(title="Causal-StoNet results")
    return f"{head}\n<body>\n{results.summary(alpha).as_html()}\n</body></html>"


# By the end of the file's name.
FORMATS: dict[str, Callable[[CausalResults, float], str]] = {
    ".txt": lambda results, alpha: results.summary(alpha).as_text(),
    ".html": _html,
    ".tex": lambda results, alpha: results.summary(alpha).as_latex(),
    ".md": lambda results, alpha: results.summary(alpha).as_markdown(),
    ".csv": lambda results, alpha: results.tidy(alpha).to_csv(index=False).rstrip("\n"),
    ".json": lambda results, alpha: results.to_json(alpha),
}


def check_outputs(tables: list[Path], *others: Path | None) -> None:
    """Find before a fit what would fail after it.

    Raises
    ------
    OptionError
        If a table's name says no format that there is.
    FilePathError
        If there is no folder to write to.
    """
    for path in tables:
        if path.suffix.lower() not in FORMATS:
            raise OptionError(
                f"--out {path}: the end of the name says the format, one of {', '.join(FORMATS)}."
            )
    for place in (*tables, *filter(None, others)):
        check_place(place)


def write_tables(results: CausalResults, tables: list[Path], alpha: float) -> None:
    """Write the summary into files, each in the format of its name."""
    for path in tables:
        text = FORMATS[path.suffix.lower()](results, alpha)
        write_text(path, f"{text}\n")


def as_json(results: CausalResults, alpha: float, groups: Any = None) -> str:
    """The results as JSON text, with effects by group if there are any."""
    content = results.to_dict(alpha)
    if groups is not None:
        content["groups"] = plain(groups.table.rename_axis("group").reset_index())
    return to_json(content, indent=2)
