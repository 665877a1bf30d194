"""Tables that print 78 columns wide and export whole.

Text is laid out here: long names go on in further lines, and are cut only where these are too many.
HTML, LaTeX, Markdown and CSV come from the same cells, uncut and escaped (`formats`).
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence

from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable

from cstonet.reporting.formats import STYLE, Cells, csv_text, latex_text

WIDTH = 78

# A name may go on in so many lines, indented by so much, before it is cut.
_NAME_LINES, _INDENT = 3, 2
_BREAKS = " _.:-/,+*([{)]}"  # characters after which a name may be broken


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
        self._notes = tuple(notes)
        self.notes = [f"[{number}] {note}" for number, note in enumerate(notes, start=1)]

    def as_text(self) -> str:
        """Tables and notes as text, at most 78 columns wide."""
        # Tables share their rules: each but the last gives up the one below it.
        tables = [str(table) for table in self.tables]
        parts = [text.rsplit("\n", 1)[0] for text in tables[:-1]] + tables[-1:]
        return "\n".join([*parts, "Notes:", *(_wrap(note) for note in self.notes)])

    def as_html(self, *, styled: bool = True) -> str:
        """Tables and notes as HTML.

        Parameters
        ----------
        styled : bool
            Whether the styles come with it; without them, for a page that has them already.
        """
        tables = "\n".join(table.as_html() for table in self.tables)
        notes = "\n".join(f"<li>{html.escape(note)}</li>" for note in self._notes)
        style = f"<style>\n{STYLE}</style>\n" if styled else ""
        return (
            f"<div class='cstonet'>\n{style}{tables}\n<p>Notes:</p>\n"
            f"<ol class='notes'>\n{notes}\n</ol>\n</div>"
        )

    def as_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        """Tables as LaTeX (booktabs) tabulars, notes below.

        Parameters
        ----------
        caption, label : str, optional
            What to call it: with either, all of it is one float (``table``).
        """
        tables = "\n".join(table.as_latex_tabular() for table in self.tables)
        notes = " \\\\\n".join(map(latex_text, self.notes))
        if caption is None and label is None:
            return f"{tables}\n\n\\noindent Notes: \\\\\n{notes}"
        # A label without a caption would name the section around it.
        named = [rf"\caption{{{latex_text(caption or '')}}}"]
        named += [] if label is None else [rf"\label{{{label}}}"]
        return "\n".join(
            [
                r"\begin{table}[htbp]",
                r"\centering",
                *named,
                tables,
                r"\begin{minipage}{\linewidth}\footnotesize",
                f"Notes: \\\\\n{notes}",
                r"\end{minipage}",
                r"\end{table}",
            ]
        )

    def as_markdown(self) -> str:
        """Tables and notes as Markdown."""
        tables = "\n\n".join(table.as_markdown() for table in self.tables)
        notes = "\n".join(f"{number}. {note}" for number, note in enumerate(self._notes, start=1))
        return f"{tables}\n\nNotes:\n\n{notes}"

    def as_csv(self) -> str:
        """Tables and notes as comma-separated values."""
        tables = [table.as_csv() for table in self.tables]
        return "\n".join([*tables, csv_text([["Notes:"], *([note] for note in self.notes)])])


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
    width : int
        Characters of a line of text.
    rules : sequence of int
        Numbers of the rows that have a rule above them, in other formats than text.
    """

    def __init__(
        self,
        cells: list[list[str]],
        lines: list[str],
        *,
        aligns: str,
        headers: Sequence[str] | None = None,
        title: str = "",
        width: int = WIDTH,
        rules: Sequence[int] = (),
    ) -> None:
        self._lines = lines
        self._width = width
        self.cells = Cells(cells, aligns, headers, title, rules)
        super().__init__(cells, headers=headers, title=title)

    def as_text(self, **_: object) -> str:
        """The table between two rules, the title above."""
        title = [self.title.center(self._width).rstrip()] if self.title else []
        return "\n".join([*title, "=" * self._width, *self._lines, "=" * self._width])

    # SimpleTable would leave some cells unescaped and start anew where alignments change.

    def as_html(self, **_: object) -> str:
        """The cells as an HTML table."""
        return self.cells.as_html()

    def as_markdown(self) -> str:
        """The cells as a Markdown table."""
        return self.cells.as_markdown()

    def as_csv(self, **_: object) -> str:
        """The cells as comma-separated values."""
        return self.cells.as_csv()

    def as_latex_tabular(self, center: bool = True, **_: object) -> str:
        """The cells as a LaTeX (booktabs) tabular."""
        tabular = self.cells.as_latex()
        return f"\\begin{{center}}\n{tabular}\n\\end{{center}}" if center else tabular


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
        places = [k + 1 for k in range(room // 2, room) if _breakable(rest, k)]
        end = places[-1] if places else room
        lines.append((indent + rest[:end]).rstrip())
        rest = rest[end:].lstrip()
    return [*lines, (" " * _INDENT if lines else "") + rest]


def _breakable(name: str, place: int) -> bool:
    """Whether a name may be broken after a character: not within a number such as -0.37."""
    here, after = name[place], name[place + 1]
    return here in _BREAKS and not (here in ".,-+" and after.isdigit())


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
