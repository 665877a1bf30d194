"""What all pictures share: sizes, colours, small type, names that fit, panels, legends.

Everything is set on the artists themselves: matplotlib's own settings are the user's, and stay as
they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cstonet.errors import MissingPackageError, OptionError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text
    from numpy.typing import ArrayLike

# Widths of a journal's column and page, in inches; dots per inch of a new figure.
COLUMN, PAGE = 3.5, 7.0
_DPI = 150
# Points: of labels and ticks, and of what stands inside a picture.
TEXT, SMALL = 8.0, 7.0
# Height of a line of text, in points.
_LINE = 11.0
# Widths of lines, in points.
THIN, LINE, THICK = 0.6, 1.2, 2.4
INK, MUTED, FAINT = "#222222", "#767676", "#d4d4d4"
# Dark, middle and light, so that they differ in greyscale too, and blue against orange, which every
# kind of colour blindness leaves apart. Series differ in marker and dash as well.
COLOURS = ("#12436d", "#d1641b", "#86b6d6", "#6b6b6b")
MARKERS = ("o", "s", "D", "^")
DASHES = ("-", "--", ":", "-.")
# Characters of a covariate's name that a picture has room for.
_LONGEST = 30
# Those that a picture of a column's width has room for.
_SHORT = 8


def canvas(ax: Axes | None, width: float, height: float) -> Axes:
    """The Axes to draw into: those given, or those of a new figure of so many inches.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    OptionError
        If something else was given.
    """
    try:
        import matplotlib.pyplot as plt
        from matplotlib.axes import Axes
    except ImportError as error:
        raise MissingPackageError(
            "pictures need matplotlib, which is not installed: pip install 'cstonet[plot]'"
        ) from error
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), dpi=_DPI, layout="constrained")
    if not isinstance(ax, Axes):
        raise OptionError(f"ax must be one Axes of matplotlib, not {type(ax).__name__}")
    return tidy(ax)


def tidy(ax: Axes) -> Axes:
    """Small type, no box, quiet ticks."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_linewidth(THIN)
        ax.spines[side].set_color(MUTED)
    ax.tick_params(labelsize=TEXT, length=2.5, width=THIN, color=MUTED, labelcolor=INK)
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_fontsize(TEXT)
        text.set_color(INK)
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_offset_text().set_fontsize(SMALL)
    return ax


def panels(
    ax: Axes, rows: int, columns: int, *, gap: tuple[float, float] = (0.15, 0.4)
) -> list[Axes]:
    """Axes inside others, row by row, which become an empty frame: its `child_axes`.

    A picture of several panels is so a single Axes, to be placed in any figure.

    Parameters
    ----------
    ax
        The frame.
    rows, columns
        How many panels.
    gap
        Room between columns and between rows, in widths and heights of a panel.
    """
    ax.set_axis_off()
    width = 1 / (columns + gap[0] * (columns - 1))
    height = 1 / (rows + gap[1] * (rows - 1))
    return [
        tidy(
            ax.inset_axes(
                (
                    column * (1 + gap[0]) * width,
                    1 - height * (1 + row * (1 + gap[1])),
                    width,
                    height,
                )
            )
        )
        for row in range(rows)
        for column in range(columns)
    ]


def literal(text: Text) -> Text:
    """A text that says what the data say: a dollar sign in a name starts no formula."""
    text.set_parse_math(False)
    return text


def label(ax: Axes, x: str | None = None, y: str | None = None) -> None:
    """Name the axes."""
    if x is not None:
        literal(ax.xaxis.label).set_text(x)
    if y is not None:
        literal(ax.yaxis.label).set_text(y)


def heading(ax: Axes, text: str, *, lifted: bool = False, size: float = TEXT) -> None:
    """What a panel is about, above it at the left; lifted if a line of text is between them."""
    pad = 3.0 + (_LINE if lifted else 0.0)
    literal(ax.set_title(text, loc="left", fontsize=size, color=INK, pad=pad))


def shortened(name: object, longest: int = _LONGEST) -> str:
    """A name in at most so many characters: the middle goes, ends tell names apart."""
    text = str(name)
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[-tail:]}"


def rows_named(
    ax: Axes, places: Sequence[float], names: Sequence[object], longest: int = _LONGEST
) -> None:
    """Names at the left, one for each row, without ticks or a spine; the first is at the top."""
    ax.set_yticks(list(places), [shortened(name, longest) for name in names])
    for text in ax.get_yticklabels():
        literal(text)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(max(places) + 0.6, min(places) - 0.6)


def rows_height(rows: int, *, room: float = 0.7) -> float:
    """Inches that so many rows of text need, and the axis below them."""
    return room + 0.155 * rows


def names_width(names: Iterable[object], longest: int = _LONGEST) -> float:
    """Inches that names at the left need beyond those that a column has room for."""
    letters = max((len(shortened(name, longest)) for name in names), default=0)
    return 0.058 * max(letters - _SHORT, 0)


def reference_line(ax: Axes, at: float, *, vertical: bool = True, dashed: bool = False) -> None:
    """A quiet line behind everything."""
    draw = ax.axvline if vertical else ax.axhline
    draw(at, color=MUTED, linewidth=THIN, linestyle="--" if dashed else "-", zorder=0)


def band(
    ax: Axes,
    at: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    name: str,
    colour: str = COLOURS[0],
    opacity: float = 0.25,
    rasterized: bool = False,
) -> None:
    """Shade what is between two limits, without an edge.

    Parameters
    ----------
    ax
        The picture.
    at, lower, upper : (k,)
        Places, and the limits there.
    name
        What the legend calls it.
    colour, opacity
        Of the shade.
    rasterized
        Whether files with vectors hold it as pixels: so many places would make them large.
    """
    shade = ax.fill_between(at, lower, upper, color=colour, alpha=opacity, linewidth=0, label=name)
    shade.set_rasterized(rasterized)


def legend_above(
    ax: Axes,
    *,
    handles: Sequence[Artist] | None = None,
    room: float = COLUMN,
    lifted: bool = False,
    right: bool = False,
) -> None:
    """A legend above the picture, without a box.

    Parameters
    ----------
    ax
        The picture.
    handles
        What to name; None: all that has a label.
    room
        Inches that it may be wide; what does not fit goes below.
    lifted
        Whether room is left for the heading of a panel.
    right
        Whether it ends at the right, to have the room above the names of rows, rather than begins
        at the left.
    """
    from matplotlib.transforms import ScaledTranslation

    offset = ScaledTranslation(0.0, _LINE / 72 if lifted else 0.0, ax.figure.dpi_scale_trans)
    if handles is None:
        handles = ax.get_legend_handles_labels()[0]
    legend = ax.legend(
        handles=list(handles),
        loc="lower right" if right else "lower left",
        bbox_to_anchor=(1.0 if right else 0.0, 1.0),
        ncols=_columns_in([str(handle.get_label()) for handle in handles], room),
        frameon=False,
        fontsize=SMALL,
        bbox_transform=ax.transAxes + offset,
        borderaxespad=0.2,
        borderpad=0.0,
        handlelength=1.6,
        handletextpad=0.5,
        columnspacing=1.2,
    )
    for text in legend.get_texts():
        literal(text)


def _columns_in(labels: Sequence[str], room: float) -> int:
    """How many names of a legend stand beside each other in so many inches."""
    for columns in range(len(labels), 1, -1):
        rows = -(-len(labels) // columns)
        widest = [max(map(len, labels[k : k + rows])) for k in range(0, len(labels), rows)]
        if sum(0.36 + 0.055 * letters for letters in widest) < room - 0.4:
            return columns
    return 1
