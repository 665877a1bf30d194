"""Tables that print 78 columns wide and export whole.

Text is laid out here: long names go on in further lines, and are cut only where these are too many.
HTML, LaTeX and CSV come from the same cells, uncut and escaped, through statsmodels' `SimpleTable`.
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

# A name may go on in so many lines, indented by so much, before it is cut.
_NAME_LINES, _INDENT = 3, 2
_BREAKS = " _.:-/,+*([{)]}"  # characters after which a name may be broken
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
    body = [line for row in cells for line in _row_lines(row, widths)]
    lines = [*_row_lines(headers, widths), "-" * WIDTH, *body]
    if footer is not None:
        lines.append(footer)
        cells = [*cells, [footer, *[""] * (len(headers) - 1)]]
    return Table(cells, lines, aligns="l" + "r" * (len(headers) - 1), headers=headers)


def _row_lines(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """The name with the numbers beside it, and below it what is left of a long one."""
    name, *numbers = cells
    first, *more = broken(name, widths[0])
    aligned = (cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))
    return [" ".join([first.ljust(widths[0]), *aligned]), *more]


def broken(name: str, width: int) -> list[str]:
    """A name in lines of at most `width` characters, all but the first indented."""
    rest = " ".join(name.split())
    lines: list[str] = []
    while len(rest) + _INDENT * bool(lines) > width:
        indent = " " * _INDENT if lines else ""
        room = width - len(indent)
        if len(lines) == _NAME_LINES - 1:
            # The closing bracket of "POM[level]" survives the cut.
            lines.append(indent + shorten(rest, room, tail=1 if rest.endswith("]") else 0))
            return lines
        # After a separator in the second half of the line, if there is one.
        places = [k + 1 for k in range(room // 2, room) if rest[k] in _BREAKS]
        end = places[-1] if places else room
        lines.append((indent + rest[:end]).rstrip())
        rest = rest[end:].lstrip()
    return [*lines, (" " * _INDENT if lines else "") + rest]


def halves(
    left: tuple[str, str], right: tuple[str, str], widths: tuple[int, int, int]
) -> list[str]:
    """Two labelled values side by side; one below the other where the left one is too long.

    Parameters
    ----------
    left, right
        (label, value) each.
    widths
        Characters of the left half, of the gap and of the right half.
    """
    room, gap, own = widths
    beside, text = pair(*right, own), " ".join(" ".join(left).split())
    if len(text) <= room:
        return [pair(*left, room) + " " * gap + beside]
    return [*broken(text, WIDTH), " " * (room + gap) + beside]


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


# Other formats -----------------------------------------------------------------------------------


def _html_cell(value: object) -> str:
    return f"<td>{html.escape(str(value))}</td>"


def _latex(value: object) -> str:
    return str(value).translate(_LATEX_SPECIALS)


def _csv(rows: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().rstrip("\n")
