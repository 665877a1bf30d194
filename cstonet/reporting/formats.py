"""Cells of a table as HTML, LaTeX, Markdown and comma-separated values, escaped for each."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Rules above, below the heads and at the end, as in print; numbers of one width. All selectors
# begin with the class, so that a page's own tables stay as they are.
STYLE = """\
.cstonet { font-family: system-ui, sans-serif; font-size: 0.9rem; line-height: 1.35; }
.cstonet { max-width: 46rem; overflow-x: auto; }
.cstonet table { border-collapse: collapse; margin: 0 0 1rem; width: 46rem; border: 0; }
.cstonet caption { font-weight: 600; padding: 0.3rem; caption-side: top; text-align: left; }
.cstonet th, .cstonet td { padding: 0.15rem 0.7rem; border: 0; background: none; }
.cstonet tr { background: none; }
.cstonet th { font-weight: 600; border-bottom: 1px solid; }
.cstonet tr.rule td { border-top: 1px solid; }
.cstonet td { font-variant-numeric: tabular-nums; }
.cstonet .l { text-align: left; }
.cstonet .r { text-align: right; }
.cstonet tbody { border-top: 1px solid; border-bottom: 2px solid; }
.cstonet thead { border-top: 2px solid; }
.cstonet ol.notes { margin: 0; padding-left: 1.6rem; font-size: 0.85em; }
"""

_LATEX_SPECIALS = str.maketrans(
    {char: f"\\{char}" for char in "#$%&_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "…": r"\ldots{}"}
    # A row may not begin with a bare bracket: LaTeX takes it for an argument of the line break.
    | {"[": "{[}"}
)


@dataclass(frozen=True, slots=True)
class Cells:
    """A table without a layout.

    Attributes
    ----------
    rows
        The cells.
    aligns
        "l" or "r" for every column.
    headers
        Names of the columns, if they have any.
    title
        What stands above it.
    rules
        Numbers of the rows that have a rule above them.
    """

    rows: Sequence[Sequence[str]]
    aligns: str
    headers: Sequence[str] | None = None
    title: str = ""
    rules: Sequence[int] = ()

    def as_html(self) -> str:
        """A table element, to be styled by `STYLE`."""
        caption = f"<caption>{html.escape(self.title)}</caption>\n" if self.title else ""
        head = ""
        if self.headers is not None:
            head = f"<thead>\n{self._html_row(self.headers, 'th')}\n</thead>\n"
        body = "\n".join(
            self._html_row(row, "td", " class='rule'" if number in self.rules else "")
            for number, row in enumerate(self.rows)
        )
        return f"<table>\n{caption}{head}<tbody>\n{body}\n</tbody>\n</table>"

    def _html_row(self, row: Sequence[str], tag: str, kind: str = "") -> str:
        cells = "".join(
            f"<{tag} class='{align}'>{html.escape(str(cell))}</{tag}>"
            for cell, align in zip(row, self.aligns, strict=True)
        )
        return f"<tr{kind}>{cells}</tr>"

    def as_latex(self) -> str:
        """A tabular of the package booktabs."""
        rows = [
            (r"\midrule" + "\n" if number in self.rules else "")
            + " & ".join(map(latex_text, row))
            + r" \\"
            for number, row in enumerate(self.rows)
        ]
        if self.headers is not None:
            rows = [" & ".join(map(latex_text, self.headers)) + r" \\", r"\midrule", *rows]
        return "\n".join(
            [
                rf"\begin{{tabular}}{{{self.aligns}}}",
                *(r"\toprule", *rows, r"\bottomrule"),
                r"\end{tabular}",
            ]
        )

    def as_markdown(self) -> str:
        """A table of pipes, which needs heads: those of a table without any are empty."""
        heads = [""] * len(self.aligns) if self.headers is None else self.headers
        rule = ["---:" if align == "r" else "---" for align in self.aligns]
        lines = [f"**{_markdown_cell(self.title)}**\n"] if self.title else []
        for row in (heads, rule, *self.rows):
            lines.append("| " + " | ".join(map(_markdown_cell, row)) + " |")
        return "\n".join(lines)

    def as_csv(self) -> str:
        """Comma-separated values, the heads first."""
        heads = [] if self.headers is None else [self.headers]
        return csv_text([*heads, *self.rows])


def latex_text(value: object) -> str:
    """Text as LaTeX prints it."""
    return str(value).translate(_LATEX_SPECIALS)


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as comma-separated values."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().rstrip("\n")


def _markdown_cell(value: object) -> str:
    return " ".join(str(value).replace("|", "\\|").split())
