"""Files on the command line: separators, compression, tables, standard input, what is no table."""

from __future__ import annotations

import io
import sys

import pandas as pd
import pytest

from cstonet.cli.reading import read_data
from cstonet.errors import DataError, DuplicateColumnError

FRAME = pd.DataFrame({"y": [1.5, -2.25, 0.0], "treat": [0, 1, 1], "where": ["a;b", "c,d", "e"]})


class Input:
    """Standard input with these bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize(
    ("separator", "name"), [(",", None), (";", "semicolons"), ("\t", "tabs"), ("|", "bars")]
)
def test_separators_are_recognised(separator, name, tmp_path, capsys):
    path = tmp_path / "data.csv"
    FRAME.to_csv(path, index=False, sep=separator)
    pd.testing.assert_frame_equal(read_data(path), FRAME)
    said = capsys.readouterr().err
    assert said == "" if name is None else f"read with {name}" in said


def test_decimal_commas_are_recognised(tmp_path, capsys):
    path = tmp_path / "data.csv"
    FRAME.to_csv(path, index=False, sep=";", decimal=",")
    pd.testing.assert_frame_equal(read_data(path), FRAME)
    assert "decimal commas" in capsys.readouterr().err


def test_one_column_of_text_stays_one(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("note\na;b\nc\n")
    assert list(read_data(path)["note"]) == ["a;b", "c"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_compressed_files(suffix, tmp_path):
    path = tmp_path / f"data.csv{suffix}"
    FRAME.to_csv(path, index=False)
    pd.testing.assert_frame_equal(read_data(path), FRAME)


def test_damaged_compression_is_named(tmp_path):
    path = tmp_path / "data.csv.gz"
    FRAME.to_csv(path, index=False)
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(DataError, match="cannot be decompressed"):
        read_data(path)
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match="cannot be decompressed"):
        read_data(path)


def test_standard_input(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", Input(FRAME.to_csv(index=False, sep=";").encode()))
    pd.testing.assert_frame_equal(read_data("-"), FRAME)
    pytest.importorskip("pyarrow")
    FRAME.to_parquet(tmp_path / "data.parquet")
    content = (tmp_path / "data.parquet").read_bytes()
    monkeypatch.setattr(sys, "stdin", Input(content))
    pd.testing.assert_frame_equal(read_data("-").to_pandas(), FRAME)
    monkeypatch.setattr(sys, "stdin", Input(content[:40]))
    with pytest.raises(DataError, match="no Parquet file"):
        read_data("-")


def test_tables_stay_where_they_are(tmp_path):
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1")
    assert read_data(path) == path
    with pytest.raises(FileNotFoundError):
        read_data(tmp_path / "other.parquet")


def test_names_that_stand_twice_are_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("y,treat,y\n1,2,3\n")
    with pytest.raises(DuplicateColumnError, match="2 columns named 'y'"):
        read_data(path)


@pytest.mark.parametrize(
    "content", [b"", b"y,treat\n1,2\n1,2,3\n", b"y,treat\n\xff\xfe,1\n"], ids=str
)
def test_what_is_no_table_is_said_so(content, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as comma-separated values"):
        read_data(path)


def test_missing_files_have_their_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_data(tmp_path / "missing.csv")
