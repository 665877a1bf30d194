"""A page of HTML that needs nothing else: styles and pictures are inside."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cstonet.reporting.formats import STYLE, Cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAGE_STYLE = """\
body { margin: 0; color: #1a1a1a; background: #fff; }
main { max-width: 52rem; margin: 0 auto; padding: 1.5rem 1.5rem 4rem;
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 0.3rem; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 0.6rem; border-bottom: 1px solid #ccc; }
nav { font-size: 0.9rem; } nav a { margin-right: 1rem; }
a { color: #1f4e79; }
p.lead { font-size: 1.1rem; margin: 0.2rem 0 1rem; }
p.absent { color: #666; font-style: italic; }
.cstonet.wide { max-width: none; font-size: 0.8rem; }
.cstonet.wide th, .cstonet.wide td { padding: 0.15rem 0.35rem; }
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; }
figcaption { font-size: 0.85rem; color: #444; }
pre { background: #f5f5f5; padding: 0.8rem; overflow-x: auto; font-size: 0.85rem; }
@media print { nav { display: none; } h2 { break-after: avoid; } figure { break-inside: avoid; } }
"""
_DPI = 160
# Significant digits of the largest number in a column, and columns from which on they are narrow.
_DIGITS, _MANY_COLUMNS = 3, 8


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    title
        What stands above it.
    parts
        Pieces of HTML, from top to bottom.
    """

    title: str
    parts: Sequence[str]

    @property
    def anchor(self) -> str:
        """Where links to it lead."""
        return "-".join(self.title.lower().split())


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole page.

    Parameters
    ----------
    title, lead
        Heading, and the sentence below it, as text.
    sections
        The parts, in their order.
    """
    links = "\n".join(
        f"<a href='#{section.anchor}'>{html.escape(section.title)}</a>" for section in sections
    )
    body = "\n".join(
        f"<section id='{section.anchor}'>\n<h2>{html.escape(section.title)}</h2>\n"
        + "\n".join(section.parts)
        + "\n</section>"
        for section in sections
    )
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>{html.escape(title)}</title>\n<style>\n{STYLE}{_PAGE_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{html.escape(title)}</h1>\n<p class='lead'>{html.escape(lead)}</p>\n"
        f"<nav>\n{links}\n</nav>\n{body}\n</main>\n</body>\n</html>\n"
    )


def picture(axes: Axes, caption: str) -> str:
    """A picture with its caption, as part of the text; its figure is closed."""
    import matplotlib.pyplot as plt

    buffer, figure = io.BytesIO(), axes.get_figure(root=True)
    assert figure is not None
    figure.savefig(buffer, format="png", dpi=_DPI, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)  # nobody else has it
    content = base64.b64encode(buffer.getvalue()).decode("ascii")
    text = html.escape(caption)
    return (
        f"<figure>\n<img alt='{text}' src='data:image/png;base64,{content}'>\n"
        f"<figcaption>{text}</figcaption>\n</figure>"
    )


def paragraph(text: str, kind: str | None = None) -> str:
    """A paragraph of text."""
    return f"<p{'' if kind is None else f' class={kind!r}'}>{html.escape(text)}</p>"


def paragraphs(text: str) -> list[str]:
    """Paragraphs of a text in which blank lines separate them."""
    return [paragraph(" ".join(part.split())) for part in text.split("\n\n") if part.strip()]


def preformatted(text: str) -> str:
    """Text as it is laid out."""
    return f"<pre>{html.escape(text)}</pre>"


def frame(table: pd.DataFrame, title: str = "") -> str:
    """A frame as a table: its index on the left, the numbers of a column with the same decimals."""
    shown = table.reset_index()
    columns = [_column(shown.iloc[:, k]) for k in range(shown.shape[1])]
    aligns = "".join("l" if k < table.index.nlevels else "r" for k in range(shown.shape[1]))
    rows = list(zip(*columns, strict=True))
    cells = Cells(rows, aligns, [str(name) for name in shown.columns], title)
    kind = "cstonet wide" if shown.shape[1] > _MANY_COLUMNS else "cstonet"
    return f"<div class='{kind}'>\n{cells.as_html()}\n</div>"


def _column(values: pd.Series) -> list[str]:
    """The cells of a column; its largest number has a few significant digits."""
    if not pd.api.types.is_float_dtype(values):
        return [str(value) for value in values]
    sizes = values[np.isfinite(values)].abs()
    largest = float(sizes.max()) if len(sizes) else 0.0
    decimals = 0 if largest == 0 else max(0, _DIGITS - 1 - math.floor(math.log10(largest)))
    # Rounded before it is written, and nothing negative about zero.
    return ["" if pd.isna(v) else f"{round(v, decimals) + 0.0:.{decimals}f}" for v in values]
