"""Data of the command line: files of comma-separated values and tables, or standard input."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import stat
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cstonet.data.columns import listing
from cstonet.errors import (
    DataError,
    DuplicateColumnError,
    EmptyDataError,
    MissingPackageError,
    UnknownColumnError,
)
from cstonet.places import as_path

STANDARD_INPUT = "-"
# Files that the package reads by columns, see cstonet.data.arrow.
_TABLES = (".parquet", ".pq", ".feather", ".arrow", ".ipc")
_MAGIC = b"PAR1"  # how a Parquet file begins
_OPEN: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
# How other documents begin, and what they are called.
_OTHERS = {
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet or document",
    b"\x1f\x8b": "a gzip archive, whose name must end in .gz",
    b"BZh": "a bzip2 archive, whose name must end in .bz2",
    b"\xfd7zXZ": "an xz archive, whose name must end in .xz",
    b"\x28\xb5\x2f\xfd": "a zstd archive, which must be unpacked",
    b"%PDF": "a PDF document",
    b"PAR1": "a Parquet file, whose name must end in .parquet",
    b"ARROW1": "an Arrow file, whose name must end in .arrow",
    b"-----BEGIN": "a key or a certificate",
}
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
        Or one of its children, if there is no table in it. No message holds what a file says that
        is no table: it may be a secret, and messages end in logs.
    """
    if str(path) == STANDARD_INPUT:
        if sys.stdin is None:
            raise DataError("Standard input is closed. Name a file, or send the data.")
        return _read_content(sys.stdin.buffer.read(), "standard input", notes)
    path = as_path(path)
    if stat.S_ISFIFO(path.stat().st_mode):  # as of <(…): it can be read only once
        return _read_content(path.read_bytes(), str(path), notes)
    if not path.is_file():
        raise DataError(f"{path} is a {'folder' if path.is_dir() else 'device'}, no file of data.")
    if path.suffix.lower() in _TABLES:
        with path.open("rb"):  # one that is not readable is no table either
            return path
    suffix = path.suffix.lower()
    with _decompressed(str(path)), _OPEN.get(suffix, open)(path, "rb") as file:
        beginning = file.read(_SAMPLE_BYTES)
    return _read_csv(beginning, path, str(path), notes)


def _read_content(content: bytes, name: str, notes: bool) -> Any:
    """The data in bytes that cannot be read again."""
    if content.startswith(_MAGIC):
        return _parquet(content)
    return _read_csv(content[:_SAMPLE_BYTES], io.BytesIO(content), name, notes)


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


@contextmanager
def _decompressed(name: str) -> Iterator[None]:
    """Say of an archive that it is damaged, at whichever of its bytes."""
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{name} cannot be decompressed: {error}.") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise DataError(f"{name} cannot be decompressed: {error}.") from None  # that of bz2


def _read_csv(beginning: bytes, source: Any, name: str, notes: bool) -> pd.DataFrame:
    """The frame in a file of separated values.

    Parameters
    ----------
    beginning
        Its first bytes, from which separator and decimal mark are recognised.
    source
        What pandas reads: a path, or bytes.
    name
        What to call it in messages.
    notes
        Whether to say what was recognised.
    """
    _check_text(beginning, name)
    lines = beginning.decode("utf-8", errors="replace").splitlines()
    if len(beginning) >= _SAMPLE_BYTES:
        lines = lines[:-1]  # cut off in the middle
    lines = [line for line in lines if line.strip()][:_SAMPLE_LINES]
    separator = _separator(lines)
    decimal = "," if separator != "," and _has_decimal_commas(lines[1:], separator) else "."
    frame = _parsed(source, name, separator, decimal)
    if notes and separator != ",":
        marks = " and decimal commas" if decimal == "," else ""
        print(
            f"cstonet: note: {name} is read with {_SEPARATORS[separator]} between its columns"
            f"{marks}.",
            file=sys.stderr,
        )
    return frame


def _check_text(beginning: bytes, name: str) -> None:
    """Refuse what is no text, or another document than a table."""
    what = next((what for magic, what in _OTHERS.items() if beginning.startswith(magic)), None)
    if what is None and beginning.lstrip()[:1] == b"<":
        what = "a page of HTML or XML"
    if what is None and b"\0" in beginning:
        what = "binary data, or text that is not in UTF-8"
    if what is not None:
        raise DataError(
            f"{name} is no table of comma-separated values: it holds {what}. Save the table as CSV "
            "in UTF-8, or as a Parquet file."
        )


def _parsed(source: Any, name: str, separator: str, decimal: str) -> pd.DataFrame:
    """The frame that pandas reads, with no column renamed, shifted or left out."""
    # Columns of one type whatever the chunks; no first column taken for labels of the rows.
    how: dict[str, Any] = {"sep": separator, "decimal": decimal, "index_col": False}

    def read(**more: Any) -> pd.DataFrame:
        if isinstance(source, io.BytesIO):
            source.seek(0)
        frame: pd.DataFrame = pd.read_csv(source, **how, **more)
        return frame

    if isinstance(source, Path):
        how["compression"] = _COMPRESSION.get(source.suffix.lower())
    try:
        with _decompressed(name), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            header = read(header=None, nrows=1, dtype=str, keep_default_na=False)
            _check_header(header.iloc[0].tolist(), name)
            frame = read(low_memory=False)
            return _with_large_numbers(frame, read)
    except pd.errors.EmptyDataError:
        raise EmptyDataError(_unreadable(name, separator, "it is empty")) from None
    except pd.errors.ParserWarning:
        why = "its rows have more values than its first line has names"
        raise DataError(_unreadable(name, separator, why)) from None
    except UnicodeDecodeError as error:
        why = f"the byte {error.object[error.start]:#04x} is no UTF-8"
        raise DataError(_unreadable(name, separator, why)) from None
    except pd.errors.ParserError as error:
        reason = str(error).partition("error: ")[2].strip() or str(error).strip()
        raise DataError(_unreadable(name, separator, reason.rstrip("."))) from None


def _with_large_numbers(frame: pd.DataFrame, read: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """A frame in which whole numbers that double precision rounds are exact, beside gaps, too."""
    wide = [
        str(label)
        for label, column in frame.items()
        if column.dtype == np.float64 and (column.abs() >= 2.0**53).any()
    ]
    for label in wide:
        try:
            with np.errstate(invalid="ignore"):
                exact = read(usecols=[label], dtype={label: "Int64"})[label]
        except (TypeError, ValueError):  # not whole, or beyond 64 bits
            continue
        frame[label] = exact
    return frame


def check_header(data: Any, names: Collection[str], file: str) -> None:
    """Refuse a file of text whose first line has none of the names that are looked for.

    Mostly it is no table, or has no header: its first line is data, which no message may repeat.
    """
    if isinstance(data, pd.DataFrame) and not any(name in names for name in data.columns):
        raise UnknownColumnError(
            f"{'Standard input' if file == STANDARD_INPUT else file} has none of the columns "
            f"{listing(sorted(names))}. Check that it is the right file, and that its first line "
            "holds the names of the columns."
        )


def _separator(lines: list[str]) -> str:
    """The mark that splits all lines into as many columns as the first, more than one."""
    counts = {}
    for mark in _SEPARATORS:
        widths = [len(row) for row in _rows(lines, mark)]
        if widths and widths[0] > 1 and len(set(widths)) == 1:
            counts[mark] = widths[0]
    return max(counts, key=lambda mark: counts[mark]) if counts else ","


def _check_header(header: list[str], name: str) -> None:
    """Refuse names that stand twice, of which pandas would rename one."""
    twice = [column for column, times in Counter(header).items() if times > 1 and column]
    if twice:
        raise DuplicateColumnError(
            f"{name} has {Counter(header)[twice[0]]} columns named {twice[0]!r}. Give every column "
            "a name of its own in the first line."
        )


def _rows(lines: list[str], separator: str) -> list[list[str]]:
    """The cells of lines; none if they are longer than any cell may be."""
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return []


def _has_decimal_commas(lines: list[str], separator: str) -> bool:
    """Whether numbers have commas, and none a point."""
    cells = [cell.strip() for row in _rows(lines, separator) for cell in row]
    commas = any(_DECIMAL_COMMA.match(cell) for cell in cells)
    return commas and not any(_DECIMAL_POINT.match(cell) for cell in cells)


def _unreadable(name: str, separator: str, why: str) -> str:
    marks = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}[separator]
    return (
        f"{name} cannot be read as {marks}-separated values: {why}. Check that it has a header "
        f"line, {_SEPARATORS[separator]} between the columns, and is encoded in UTF-8."
    )
