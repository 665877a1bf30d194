"""Tables that print 78 columns wide and export whole.

Text is laid out here and long names are cut; HTML, LaTeX and CSV come from the same cells, uncut
and escaped, through statsmodels' `SimpleTable`.
"""

from __future__ import annotations

import csv
import html
import io
import textwrap
from collections.abc import Iterable, Sequence

from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable

WIDTH = 78

_LATEX_SPECIALS = str.maketrans(
    {char: f"\\{char}" for char in "#$%&_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "…": r"\ldots{}"}
    # A row may not begin with a bare bracket: LaTeX takes it for an argument of the line break.
    | {"[": "{[}"}
)


class CausalSummary(Summary):  # type: ignore[misc]  # statsmodels is untyped
    """A statsmodels summary with numbered notes that are escaped for each format.

    Parameters
    ----------
    tables : list of SimpleTable
        The tables, from top to bottom.
    notes : sequence of str
        Notes, to be numbered.
    """

    def __init__(self, tables: list[SimpleTable], notes: Sequence[str]) -> None:
        super().__init__()
        self.tables = tables
        self.notes = [f"[{number}] {note}" for number, note in enumerate(notes, start=1)]

    def as_text(self) -> str:
        """Tables and notes as text, at most 78 columns wide."""
        # Tables share their rules: each but the last gives up the one below it.
        tables = [str(table) for table in self.tables]
        parts = [text.rsplit("\n", 1)[0] for text in tables[:-1]] + tables[-1:]
        return "\n".join([*parts, "Notes:", *(_wrap(note) for note in self.notes)])

    def as_html(self) -> str:
        """Tables and notes as HTML."""
        tables = "\n".join(table.as_html() for table in self.tables)
        return f"{tables}\n<p>Notes:<br/>{'<br/>'.join(map(html.escape, self.notes))}</p>"

    def as_latex(self) -> str:
        """Tables as LaTeX (booktabs) tabulars, notes below."""
        tables = "\n".join(table.as_latex_tabular() for table in self.tables)
        notes = " \\\\\n".join(map(_latex, self.notes))
        return f"{tables}\n\n\\noindent Notes: \\\\\n{notes}"

    def as_csv(self) -> str:
        """Tables and notes as comma-separated values."""
        tables = [table.as_csv() for table in self.tables]
        return "\n".join([*tables, _csv([["Notes:"], *([note] for note in self.notes)])])


class Table(SimpleTable):  # type: ignore[misc]  # statsmodels is untyped
    """A `SimpleTable` whose text is laid out beforehand and whose cells are escaped.

    Parameters
    ----------
    cells : list of list of str
        The cells in full.
    lines : list of str
        The body of the table as text.
    aligns : str
        Column alignments for LaTeX.
    headers : sequence of str or None
        Column names.
    title : str
        Title above the table.
    """

    def __init__(
        self,
        cells: list[list[str]],
        lines: list[str],
        *,
        aligns: str,
        headers: Sequence[str] | None = None,
        title: str = "",
    ) -> None:
        self._lines = lines
        self._aligns = aligns
        self._has_headers = headers is not None
        super().__init__(cells, headers=headers, title=title, html_fmt={"data_fmts": [_html_cell]})

    def as_text(self, **_: object) -> str:
        """The table between two rules, the title above."""
        title = [self.title.center(WIDTH).rstrip()] if self.title else []
        return "\n".join([*title, "=" * WIDTH, *self._lines, "=" * WIDTH])

    def as_csv(self, **_: object) -> str:
        """The cells as comma-separated values."""
        return _csv(self.data)

    def as_latex_tabular(self, center: bool = True, **_: object) -> str:
        """The cells as a LaTeX (booktabs) tabular."""
        # SimpleTable would leave some cells unescaped and start anew where alignments change.
        rows = [" & ".join(map(_latex, row)) + r" \\" for row in self.data]
        if self._has_headers:
            rows.insert(1, r"\midrule")
        tabular = [
            rf"\begin{{tabular}}{{{self._aligns}}}",
            *(r"\toprule", *rows, r"\bottomrule"),
            r"\end{tabular}",
        ]
        return "\n".join([r"\begin{center}", *tabular, r"\end{center}"] if center else tabular)


# Text --------------------------------------------------------------------------------------------


def table_with_headers(
    cells: list[list[str]], headers: list[str], widths: Sequence[int], footer: str | None = None
) -> Table:
    """A table with names on the left and numbers on the right, perhaps with a closing line."""
    lines = [_line(headers, widths), "-" * WIDTH, *(_line(row, widths) for row in cells)]
    if footer is not None:
        lines.append(footer)
        cells = [*cells, [footer, *[""] * (len(headers) - 1)]]
    return Table(cells, lines, aligns="l" + "r" * (len(headers) - 1), headers=headers)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *numbers = cells
    # The closing bracket of "POM[level]" survives the cut.
    name = shorten(name, widths[0], tail=1 if name.endswith("]") else 0)
    aligned = (cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))
    return " ".join([name.ljust(widths[0]), *aligned])


def pair(label: str, value: str, width: int) -> str:
    """Label on the left, value on the right; of a long value its bracketed end survives."""
    room = width - len(label) - 1
    bracket = value.rfind(" (")
    tail = len(value) - bracket if bracket > 0 else 0
    return f"{label} {shorten(value, room, tail=tail).rjust(room)}"


def shorten(text: str, width: int, tail: int = 0) -> str:
    """Cut a text to `width` characters on one line, keeping its last `tail` ones if they fit."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    head = width - 1 - tail
    if head < 1:
        return f"{text[: width - 1]}…"
    return f"{text[:head]}…{text[len(text) - tail :]}"


def _wrap(note: str) -> str:
    return textwrap.fill(note, WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def count(number: int) -> str:
    """An integer with its thousands apart where it has five digits or more."""
    return f"{number:,}".replace(",", " ") if abs(number) >= 10_000 else str(number)


# Other formats -----------------------------------------------------------------------------------


def _html_cell(value: object) -> str:
    return f"<td>{html.escape(str(value))}</td>"


def _latex(value: object) -> str:
    return str(value).translate(_LATEX_SPECIALS)


def _csv(rows: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().rstrip("\n")
