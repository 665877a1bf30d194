"""Damaged and hostile files: a named error, nothing run, nothing written, memory bounded."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cstonet as cs
from cstonet.data.patsy_json import is_portable
from cstonet.errors import (
    CStoNetError,
    FileFormatError,
    FilePathError,
    NewerFileError,
    NotAvailableError,
)
from cstonet.files import archive
from cstonet.files.archive import ARRAYS, METADATA, read_archive, write_archive
from tests.fuzz.archives import linked, places, safetensors_bytes, zipped

from .make_golden import GOLDEN, units

FIT = GOLDEN / "fit_format_1.cst"
EXPECTED = json.loads((GOLDEN / "fit_format_1.json").read_text())


def test_a_file_of_the_first_format_loads_for_ever():
    loaded = cs.load(FIT)
    new = units(8, 2)
    # Stored numbers have all their bits; networks round as the processor does.
    assert loaded.params.to_dict() == EXPECTED["params"]
    assert loaded.bse.to_dict() == EXPECTED["bse"]
    np.testing.assert_allclose(loaded.cate(new), EXPECTED["cate"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(loaded.propensity(new), EXPECTED["propensity"], rtol=1e-5)
    assert loaded.selection.index[loaded.selection["outcome"]].tolist() == EXPECTED["selected"]
    assert "Causal-StoNet Results" in loaded.summary().as_text()
    assert "cstonet 0.1.0" in loaded.methods()


# The container -----------------------------------------------------------------------------------


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "cut.cst"
    path.write_bytes(FIT.read_bytes())
    refused = 0
    for length in reversed(range(FIT.stat().st_size)):
        os.truncate(path, length)
        try:
            cs.load(path)
        except FileFormatError:
            refused += 1
    assert refused == FIT.stat().st_size


def test_a_flipped_byte_changes_nothing_or_is_found(tmp_path):
    whole, path = FIT.read_bytes(), tmp_path / "flipped.cst"
    rng = np.random.default_rng(1)
    refused = 0
    for place in rng.choice(len(whole), 250, replace=False):
        flipped = bytearray(whole)
        flipped[place] ^= int(rng.integers(1, 256))
        path.write_bytes(flipped)
        try:
            loaded = cs.load(path)
        except FileFormatError:
            refused += 1
        else:
            assert loaded.params.to_dict() == EXPECTED["params"]
    assert refused > 200


def written(path, content):
    path.write_bytes(content)
    return path


@pytest.fixture
def parts():
    return read_archive(FIT)


def test_other_members_are_refused_and_nothing_is_unpacked(parts, tmp_path):
    metadata, arrays = parts
    strange = [
        [(METADATA, metadata)],
        [(METADATA, metadata), (ARRAYS, arrays), ("../evil", b"")],
        [("../" + METADATA, metadata), (ARRAYS, arrays)],
        [("/tmp/" + METADATA, metadata), (ARRAYS, arrays)],
        [(METADATA, metadata), (METADATA, metadata), (ARRAYS, arrays)],
        [(METADATA, metadata), (ARRAYS, arrays), (ARRAYS, arrays)],
        [(linked(METADATA), b"/etc/passwd"), (ARRAYS, arrays)],
        [],
    ]
    inside = tmp_path / "inside"
    inside.mkdir()
    for members in strange:
        with pytest.raises(FileFormatError, match=r"no fit that res\.save\(\) wrote"):
            cs.load(written(inside / "fit.cst", zipped(*members)))
    assert os.listdir(tmp_path) == ["inside"]
    assert os.listdir(inside) == ["fit.cst"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_of_packing_are_refused(parts, tmp_path, method):
    content = zipped((METADATA, parts[0]), (ARRAYS, parts[1]), method=method)
    path = written(tmp_path / "fit.cst", content)
    with pytest.raises(FileFormatError, match="packed in another way"):
        cs.load(path)


@pytest.mark.parametrize("bomb", [METADATA, ARRAYS])
def test_a_bomb_is_refused_before_it_goes_off(parts, tmp_path, bomb):
    contents = dict(zip((METADATA, ARRAYS), parts, strict=True)) | {bomb: bytes(64 * 2**20)}
    path = written(tmp_path / "bomb.cst", zipped(*contents.items()))
    tracemalloc.start()
    with pytest.raises(FileFormatError, match="out of proportion"):
        cs.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_a_bomb_that_lies_about_its_size_is_cut_short(parts, tmp_path):
    content = zipped((METADATA, parts[0]), (ARRAYS, bytes(64 * 2**20)))
    content = content.replace(struct.pack("<L", 64 * 2**20), struct.pack("<L", 99))
    path = written(tmp_path / "bomb.cst", content)
    tracemalloc.start()
    with pytest.raises(FileFormatError):
        cs.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20


def test_what_packs_like_a_bomb_is_saved_unpacked(tmp_path):
    path = tmp_path / "zeros.cst"
    zeros = bytes(8 * 2**20)
    write_archive(path, b"{}", zeros)
    assert path.stat().st_size > len(zeros)
    assert read_archive(path) == (b"{}", zeros)


# Paths -------------------------------------------------------------------------------------------


def test_paths_that_cannot_be(tmp_path):
    fit = cs.load(FIT)
    for bad in (tmp_path, tmp_path / "nowhere" / "fit.cst"):
        with pytest.raises(FilePathError, match="folder"):
            fit.save(bad)
    with pytest.raises(OSError, match="does not exist"):
        cs.load(tmp_path / "nothing.cst")
    with pytest.raises(FilePathError, match="is no file"):
        cs.load(tmp_path)
    (tmp_path / "text.cst").write_text("not a zip file")
    with pytest.raises(FileFormatError, match="damaged, or no fit"):
        cs.load(tmp_path / "text.cst")


def test_a_file_is_replaced_whole_or_stays(tmp_path, monkeypatch):
    path = tmp_path / "fit.cst"
    path.write_bytes(b"what was there")
    fit = cs.load(FIT)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(archive.os, "fsync", full)
        with pytest.raises(FilePathError, match="No space left"):
            fit.save(path)
    assert path.read_bytes() == b"what was there"
    assert os.listdir(tmp_path) == ["fit.cst"]
    fit.save(str(path))
    assert cs.load(path).params.equals(fit.params)
    assert os.listdir(tmp_path) == ["fit.cst"]


def test_a_link_to_a_file_stays_one(tmp_path):
    target, link = tmp_path / "fit.cst", tmp_path / "latest.cst"
    target.write_bytes(b"")
    link.symlink_to(target)
    cs.load(FIT).save(link)
    assert link.is_symlink()
    assert cs.load(target).params.to_dict() == EXPECTED["params"]


# The contents ------------------------------------------------------------------------------------


def rewritten(tmp_path, change=None, arrays=None, metadata=None):
    """The file with changed metadata or other arrays, intact as a zip file."""
    old, packed = read_archive(FIT)
    content = json.loads(old)
    if change is not None:
        change(content)
    path = tmp_path / "changed.cst"
    text = json.dumps(content).encode() if metadata is None else metadata
    write_archive(path, text, packed if arrays is None else arrays)
    return path


def entry(content, name):
    return next(entry for entry in content["entries"] if entry["type"] == name)


def test_a_newer_format_is_named(tmp_path):
    path = rewritten(tmp_path, lambda content: content.update(format=2, cstonet="9.1"))
    with pytest.raises(NewerFileError, match=r"made by a newer cstonet, 9\.1.*Update cstonet"):
        cs.load(path)


def test_a_field_that_is_not_known_yet_is_named(tmp_path):
    path = rewritten(tmp_path, lambda c: entry(c, "Design")["fields"].update(taste="sweet"))
    with pytest.raises(NewerFileError, match=r"holds Design\.taste.*Update cstonet"):
        cs.load(path)


def test_a_field_that_an_older_version_did_not_have_takes_its_default(tmp_path):
    def older(content):
        del entry(content, "Fold")["fields"]["beside"]
        del entry(content, "FitRecord")["fields"]["warnings"]

    loaded = cs.load(rewritten(tmp_path, older))
    assert loaded.warnings == ()
    assert loaded.networks.folds[0].beside == ()


def test_a_class_outside_the_list_is_not_made(tmp_path):
    for name in ("Popen", "os.system", "cstonet.files.registry.Kind", "Path", "object"):
        path = rewritten(tmp_path, lambda c, name=name: entry(c, "Plan").update(type=name))
        with pytest.raises(FileFormatError, match="does not know"):
            cs.load(path)


def hostile_code(mark):
    return f"__import__('pathlib').Path({str(mark)!r}).touch()"


def test_code_in_a_term_is_not_run(tmp_path):
    mark = tmp_path / "mark"

    def change(content):
        blocks = entry(content, "CovariateSpec")["json"]["blocks"]
        text = json.dumps(blocks).replace("center(x2)", "CODE")
        new = json.loads(text.replace("CODE", json.dumps(hostile_code(mark))[1:-1]))
        entry(content, "CovariateSpec")["json"]["blocks"] = new

    with pytest.raises(FileFormatError):
        cs.load(rewritten(tmp_path, change))
    assert not mark.exists()


def test_code_as_the_treatment_is_not_run(tmp_path):
    mark = tmp_path / "mark"

    def change(content):
        entry(content, "Received")["json"].update(name=hostile_code(mark), inputs=["x1"])

    loaded = cs.load(rewritten(tmp_path, change))
    with pytest.raises(NotAvailableError, match="plain computation"):
        loaded.predict(units(8, 2))
    assert not mark.exists()


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        b"[" * 200_000,
        b'{"format": NaN}',
        b'{"format": "1", "cstonet": "0"}',
        b'{"format": true, "cstonet": "0"}',
        b'{"format": 1, "cstonet": "0", "entries": [], "results": {"at": 0}}',
        b'{"format": 1, "cstonet": "0", "entries": 3}',
        b'{"format": ' + b"9" * 5000 + b"}",
    ],
)
def test_metadata_that_are_none(tmp_path, metadata):
    with pytest.raises(FileFormatError):
        cs.load(rewritten(tmp_path, metadata=metadata))


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("Plan", "folds", "two"),
        ("Plan", "folds", True),
        ("Plan", "seed", 1.5),
        ("Design", "family", "cauchy"),
        ("Design", "covariates", 3),
        ("Design", "covariates", ["x1"]),
        ("Effects", "names", [1, 2, 3]),
        ("Effects", "estimates", {"at": 0}),
        ("TrainedNetwork", "bic", None),
        ("TrainedNetwork", "inputs", {"array": 10**9}),
        ("TrainedNetwork", "inputs", {"array": -1}),
        ("NetworkSpec", "inputs", 10**12),
        ("FitRecord", "notes", [{"dict": []}]),
        ("FitRecord", "design", {"at": 10**6}),
        ("FitRecord", "design", {"at": True}),
        ("FitRecord", "design", {"nothing": 1}),
        ("FitRecord", "runtime", {"float": "1e5"}),
        ("Scaling", "limit", {"list": []}),
    ],
)
def test_fields_that_are_not_what_they_should_be(tmp_path, name, field, value):
    path = rewritten(tmp_path, lambda c: entry(c, name)["fields"].update({field: value}))
    with pytest.raises(FileFormatError):
        cs.load(path)


def test_entries_refer_to_earlier_ones_only(tmp_path):
    def circle(content):
        content["entries"][0] = {"type": "tuple", "items": [{"at": 0}]}

    with pytest.raises(FileFormatError):
        cs.load(rewritten(tmp_path, circle))


@pytest.mark.parametrize(
    "arrays",
    [
        b"",
        b"short",
        struct.pack("<Q", 2**63) + b"{}",
        safetensors_bytes(b"{"),
        safetensors_bytes({}),
        safetensors_bytes(
            {"0": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 8]}}, b"8" * 8
        ),
        safetensors_bytes({"0": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}}, b"8" * 8),
        safetensors_bytes({"0": {"dtype": "F99", "shape": [1], "data_offsets": [0, 8]}}, b"8" * 8),
        safetensors_bytes({"0": {"dtype": "F64", "shape": [1], "data_offsets": [0, 99]}}, b"8" * 8),
        safetensors_bytes({"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, b"8" * 8),
    ],
)
def test_arrays_that_are_none(tmp_path, arrays):
    with pytest.raises(FileFormatError):
        cs.load(rewritten(tmp_path, arrays=arrays))


def test_networks_that_are_not_finite_are_refused(tmp_path):
    from safetensors.numpy import load, save

    found = load(read_archive(FIT)[1])
    place = entry(DOCUMENT, "TrainedNetwork")["fields"]["weights"][0]["array"]
    found[str(place)] = np.full_like(found[str(place)], np.nan)
    with pytest.raises(FileFormatError, match="not finite"):
        cs.load(rewritten(tmp_path, arrays=save(found)))


def test_what_would_not_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_MOST_METADATA", 1000)
    with pytest.raises(NotAvailableError, match="more names"):
        write_archive(tmp_path / "fit.cst", b" " * 1001, b"")
    with pytest.raises(FileFormatError, match="out of proportion"):
        cs.load(FIT)


def test_a_file_without_room_in_memory_is_named(monkeypatch):
    monkeypatch.setattr(archive, "available_bytes", lambda: 10_000)
    with pytest.raises(MemoryError, match="more memory than there is"):
        cs.load(FIT)


def test_arrays_of_other_shapes_do_not_reach_the_kernel(tmp_path):
    from safetensors.numpy import load, save

    packed = read_archive(FIT)[1]
    found = load(packed)
    refused = 0
    some = list(found.items())[::4]
    for name, array in some:
        other = np.zeros(
            (*array.shape[:-1], array.shape[-1] + 1) if array.ndim else (1,), array.dtype
        )
        path = rewritten(tmp_path, arrays=save({**found, name: other}))
        try:
            loaded = cs.load(path)
        except FileFormatError:
            refused += 1
        else:
            with np.errstate(all="ignore"):
                try:
                    loaded.cate(units(8, 2))
                except (CStoNetError, ValueError):
                    refused += 1
    assert refused > len(some) / 2


DOCUMENT = json.loads(read_archive(FIT)[0])
PLACES = list(places(DOCUMENT))[1:]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["at", "array", "scalar", "dict", "list", "float", "withheld", "type"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(place=st.sampled_from(PLACES), value=anything)
def test_anything_anywhere_is_read_or_refused_by_name(tmp_path_factory, place, value):
    changed = json.loads(json.dumps(DOCUMENT))
    inside = changed
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    path = rewritten(tmp_path_factory.getbasetemp(), metadata=json.dumps(changed).encode())
    try:
        loaded = cs.load(path)
    except FileFormatError:
        return
    assert isinstance(loaded, cs.CausalResults)


@pytest.mark.parametrize(
    ("code", "portable"),
    [
        ("np.log(x1 / 10**6 + 1)", True),
        ("x1**2 * 10**-3", True),
        ("x1**(2 + 1)", True),
        ("np.sqrt(x1) ** 0.5 + 2 * 3", True),
        ("x1 + 9**9**9", False),
        ("x1 + 9**(9**9)", False),
        ("I(9)**9**9", False),
        ("(-9)**99999", False),
        ("1 << 10**9", False),
        ("'a' * 10**9", False),
        ("[0] * 10**9", False),
        ("x1 + len((0,) * 10**9)", False),
        ("x1.mean()", False),
        ("np.load(x1)", False),
        ("(lambda: 0)()", False),
        ("x1[0]", False),
        ("x1 +", False),
    ],
)
def test_code_that_a_file_may_hold(code, portable):
    assert is_portable(code, ["x1"]) is portable
