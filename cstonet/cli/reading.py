"""Data of the command line: files of comma-separated values and tables, or standard input."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pandas as pd

from cstonet.errors import DataError, DuplicateColumnError, EmptyDataError, MissingPackageError

STANDARD_INPUT = "-"
# Files that the package reads by columns, see cstonet.data.arrow.
_TABLES = (".parquet", ".pq", ".feather", ".arrow", ".ipc")
_MAGIC = b"PAR1"  # how a Parquet file begins
_OPEN: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# By which columns may be separated, the usual one first, and what it is called.
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# What of a file shows how it is written.
_SAMPLE_BYTES, _SAMPLE_LINES = 2**16, 20
_DECIMAL_COMMA, _DECIMAL_POINT = (re.compile(rf"^[+-]?\d*{mark}\d+$") for mark in (",", r"\."))


def read_data(path: Path | str, *, notes: bool = True) -> Any:
    """The data that a word of the command line names.

    Parameters
    ----------
    path
        A file of comma-separated values, perhaps compressed; a Parquet or Arrow file; or ``-`` for
        either of them on standard input.
    notes
        Whether to say on standard error what was recognised.

    Returns
    -------
    DataFrame, pyarrow Table or Path
        Parquet and Arrow files stay where they are: only the columns that are needed are read.

    Raises
    ------
    DataError
        Or one of its children, if there is no table in it.
    """
    if str(path) == STANDARD_INPUT:
        content = sys.stdin.buffer.read()
        if content.startswith(_MAGIC):
            return _parquet(content)
        return _read_csv(content, io.BytesIO(content), "standard input", notes)
    path = Path(path)
    if path.suffix.lower() in _TABLES:
        with path.open("rb"):  # one that is not there, or not readable, is no table either
            return path
    with _OPEN.get(path.suffix.lower(), open)(path, "rb") as file:
        return _read_csv(_sample_of(file, path), path, str(path), notes)


def _parquet(content: bytes) -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingPackageError(
            "Standard input holds a Parquet file, which pyarrow reads. Install it with pip install "
            "'cstonet[arrow]', or send comma-separated values."
        ) from error
    try:
        return pq.read_table(io.BytesIO(content))
    except (OSError, ValueError) as error:
        raise DataError(f"Standard input is no Parquet file that can be read: {error}.") from None


def _sample_of(file: IO[bytes], path: Path) -> bytes:
    try:
        return file.read(_SAMPLE_BYTES)
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DataError(f"{path} cannot be decompressed: {error}.") from None


def _read_csv(beginning: bytes, source: Any, name: str, notes: bool) -> pd.DataFrame:
    """The frame in a file of separated values.

    Parameters
    ----------
    beginning
        Its first bytes, from which separator and decimal mark are recognised.
    source
        What pandas reads.
    name
        What to call it in messages.
    notes
        Whether to say what was recognised.
    """
    lines = beginning.decode("utf-8", errors="replace").splitlines()
    if len(beginning) >= _SAMPLE_BYTES:
        lines = lines[:-1]  # cut off in the middle
    lines = [line for line in lines if line.strip()][:_SAMPLE_LINES]
    separator = _separator(lines)
    rows = list(csv.reader(lines, delimiter=separator))
    _check_header(rows[0] if rows else [], name)
    decimal = "," if separator != "," and _has_decimal_commas(rows[1:]) else "."
    try:
        frame = pd.read_csv(source, sep=separator, decimal=decimal)
    except pd.errors.EmptyDataError:
        raise EmptyDataError(_unreadable(name, separator, "it is empty")) from None
    except (pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        raise DataError(_unreadable(name, separator, str(error).strip())) from None
    if notes and separator != ",":
        marks = " and decimal commas" if decimal == "," else ""
        print(
            f"cstonet: note: {name} is read with {_SEPARATORS[separator]} between its columns"
            f"{marks}.",
            file=sys.stderr,
        )
    return frame


def _separator(lines: list[str]) -> str:
    """The mark that splits all lines into as many columns as the first, more than one."""
    counts = {}
    for mark in _SEPARATORS:
        widths = [len(row) for row in csv.reader(lines, delimiter=mark)]
        if widths and widths[0] > 1 and len(set(widths)) == 1:
            counts[mark] = widths[0]
    return max(counts, key=lambda mark: counts[mark]) if counts else ","


def _check_header(header: list[str], name: str) -> None:
    twice = [column for column, times in Counter(header).items() if times > 1 and column]
    if twice:
        raise DuplicateColumnError(
            f"{name} has {Counter(header)[twice[0]]} columns named {twice[0]!r}. Give every column "
            "a name of its own in the first line."
        )


def _has_decimal_commas(rows: list[list[str]]) -> bool:
    """Whether numbers have commas, and none a point."""
    cells = [cell.strip() for row in rows for cell in row]
    commas = any(_DECIMAL_COMMA.match(cell) for cell in cells)
    return commas and not any(_DECIMAL_POINT.match(cell) for cell in cells)


def _unreadable(name: str, separator: str, why: str) -> str:
    marks = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}[separator]
    return (
        f"{name} cannot be read as {marks}-separated values: {why}. Check that it has a header "
        f"line, {_SEPARATORS[separator]} between the columns, and is encoded in UTF-8."
    )
