"""Files on the command line: separators, compression, tables, standard input, what is no table."""

from __future__ import annotations

import io
import os
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest

from cstonet.cli.reading import check_header, read_data
from cstonet.data.formula import formula_words
from cstonet.errors import DataError, DuplicateColumnError, UnknownColumnError

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


def test_pipes_are_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    rows = pd.DataFrame({"y": np.arange(20_000), "t": 1.5})  # more than is looked at first
    writer = threading.Thread(target=lambda: rows.to_csv(path, index=False))
    writer.start()
    pd.testing.assert_frame_equal(read_data(path), rows)
    writer.join()


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


def test_names_that_stand_twice_far_to_the_right_are_refused(tmp_path):
    path = tmp_path / "wide.csv"
    names = ["y", "treat", *(f"a gene of number {j}" for j in range(8000)), "y"]
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    with pytest.raises(DuplicateColumnError, match="2 columns named 'y'"):
        read_data(path)


@pytest.mark.parametrize("rows", ["1,2,3\n1,2,4\n", "1,2,3,4\n"])
def test_rows_that_are_longer_than_the_header_are_not_shifted(rows, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("y,treat\n" + rows)
    with pytest.raises(DataError, match="more values than its first line has names"):
        read_data(path)


def test_whole_numbers_beside_gaps_are_exact(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(f"id,x,y\n{2**53},1.5,1\n,2.5,2\n{2**53 + 1},1e300,3\n")
    frame = read_data(path)
    assert frame["id"].dropna().tolist() == [2**53, 2**53 + 1]
    assert frame["x"].dtype == np.float64


def test_levels_do_not_depend_on_the_chunk_they_are_read_in(tmp_path):
    path = tmp_path / "data.csv"
    cells = ["1"] * 300_000 + ["a"] * 300_000
    path.write_text("\n".join(["g,h", *(f"{cell},0" for cell in cells)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(read_data(path)["g"]) == {"1", "a"}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"<html><body>secret</body></html>", "a page of HTML"),
        (b"PK\x03\x04secret", "a zip archive or a spreadsheet"),
        (b"secret,\x00,2\n", "binary data"),
        ("secret,b\n1,2\n".encode("utf-16"), "binary data"),
        (b"-----BEGIN PRIVATE KEY-----\nsecret\n", "a key"),
        (b"secret,b\n\xff,1\n", "0xff is no UTF-8"),
        (b"secret,b\n'\"1,1\n1,2,3\n", "Expected 2 fields"),
    ],
)
def test_what_is_no_table_is_not_repeated(content, what, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=what) as caught:
        read_data(path)
    assert "secret" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_first_line_that_is_no_header_is_not_repeated(tmp_path):
    path = tmp_path / "passwd"
    path.write_text("root:x:0:0:secret:/root:/bin/bash\nbin:x:1:1::/:/bin/sh\n")
    names = formula_words("log(y) ~ treat | . - Q('an id')")
    assert names >= {"y", "treat", "an id"}
    with pytest.raises(UnknownColumnError, match=r"none of the columns.*first line") as caught:
        check_header(read_data(path), names, str(path))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("place", ["beginning", "middle", "end"])
def test_archives_that_are_damaged_anywhere(suffix, place, tmp_path):
    path = tmp_path / f"data.csv{suffix}"
    noise = np.random.default_rng(1).normal(size=(4000, 3))
    pd.DataFrame(noise, columns=list("abc")).to_csv(path, index=False)
    content = bytearray(path.read_bytes())
    at = {"beginning": 12, "middle": len(content) // 2, "end": len(content) - 40}[place]
    content[at : at + 20] = bytes(20)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"data\.csv"):
        read_data(path)
    path.write_bytes(content[:at])
    with pytest.raises(DataError, match="cannot be decompressed"):
        read_data(path)


@pytest.mark.parametrize("path", ["/dev/zero", "/"])
def test_devices_and_folders_are_no_files(path):
    with pytest.raises(DataError, match="no file of data"):
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
