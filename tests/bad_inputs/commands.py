"""Words of the command line, and files that are damaged, odd or no tables."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from cstonet.cli import main
from cstonet.cli.fitting import option_flags
from cstonet.errors import CStoNetError
from tests.bad_inputs.columns import N
from tests.bad_inputs.outcome import Case
from tests.bad_inputs.roles import base

_FORMULA = "y ~ treat | ."
_SECRET = "hunter2"
_WORDS = (
    *("", " ", "no such thing", "-1", "0", "1", "0.5", "nan", "inf", "1e999", "2147483648"),
    *("9" * 5000, "1,2", ",", "1,,2", ":", ";", "a:b", "True", "auto", "None", "[]", "{}", "é"),
    *("\ud800", "x" * 5000, "\n", "%s", "{x}", "'", "../../etc/passwd", "/", ".", "-", "--"),
)
_FLAGS = (
    *("family", "treatment", "reference", "missing", "weights", "cluster", "seed", "n-jobs"),
    *("preset", "backend", "alpha", "out", "report", "save", "selection", "by"),
)


class Refused(CStoNetError):
    """The one line with which a command ended."""


def cases() -> Iterator[Case]:
    """Every flag with every word, words that are no commands, files of all kinds."""
    for flag in (*_FLAGS[:10], *(name.replace("_", "-") for name in option_flags())):
        for word in _WORDS:
            words = ("plan", str(_data()), _FORMULA, f"--{flag}={word}")
            run = partial(_run, words)
            yield Case("command line", f"--{flag}={ascii(word)[:40]}", run, _named(flag), _done)
    for flag in _FLAGS[10:]:
        for word in _WORDS:
            words = ("fit", str(_data()), "y ~ treat", f"--{flag}={word}")
            says = (*_named(flag), "formula", "no path", "folder", "device", "cannot be written")
            yield Case("command line", f"--{flag}={ascii(word)[:40]}", partial(_run, words), says)
    for words in _malformed():
        yield Case("command line", ascii(" ".join(words))[:60], partial(_run, words), ("",))
    for name, make in _files().items():
        for command in ("plan", "fit"):
            run = partial(_of_file, command, make, name)
            yield Case(
                "file", f"{command} {name}", run, (name.split()[-1], "0 rows", "'x1'", "'y'")
            )
        run = partial(_predicted, make, name)
        # No new units are a question, too.
        right = _done if name == "header.csv" else None
        yield Case("file", f"predict {name}", run, (name.split()[-1], "'x1'", "'x2'"), right)


def _named(flag: str) -> tuple[str, ...]:
    others = {"missing": ("Mediation", "missing"), "keep": ("keep",), "neighbours": ("gaps",)}
    field = flag.replace("-", "_")
    return (flag, field, field.removesuffix("s"), *others.get(field, ()), "folds", "hidden")


def _done(code: int) -> bool:
    return code == 0


def _run(words: tuple[str, ...]) -> int:
    """Run a command; its one line of an error is raised, anything else is a fault."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    said = [line for line in err.getvalue().splitlines() if "note: " not in line]
    if code == 2 and len(said) == 1 and said[0].startswith("cstonet: error: "):
        message = said[0].removeprefix("cstonet: error: ")
        if _SECRET in message:
            raise AssertionError(f"repeats what the file says: {message}")
        if not message.strip() or message.startswith("None"):
            raise AssertionError(f"says nothing: {message!r}")
        raise Refused(message)
    if code != 0 or said:
        raise AssertionError(f"ended with {code} and {said}")
    return code


def _malformed() -> Iterator[tuple[str, ...]]:
    data = str(_data())
    yield from ((), ("fly",), ("fit",), ("plan", data), ("plan", data, _FORMULA, "more"))
    yield from (("plan", data, _FORMULA, "--no-such"), ("plan", data, _FORMULA, "--seed"))
    yield from (("predict",), ("predict", data), ("predict", data, data), ("report", data))
    yield from (("report", "/"), ("report", ""), ("report", "."), ("predict", "", ""))
    yield from (("simulate",), ("simulate", "no"), ("simulate", "counts", "/no/such/x.csv"))
    yield from (("simulate", "counts", "x.csv", "--n", "0"), ("simulate", "counts", "/"))
    yield from (
        ("simulate", "counts", "/x", "--n", "x"),
        ("demo", "--n", "1"),
        ("demo", "--p", "0"),
    )
    yield from (("demo", "--n", "-1"), ("demo", "--seed", "-1"), ("demo", "--seed", "x"))
    yield from (("plan", "/no/such", _FORMULA), ("plan", "/", _FORMULA), ("plan", "", _FORMULA))
    yield from (("plan", "/dev/zero", _FORMULA), ("plan", data, ""), ("plan", data, "y ~ zz | ."))
    yield ("plan", "x" * 5000, _FORMULA)
    yield ("plan", "/no/such.parquet", _FORMULA)


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="bad-inputs-"))


@cache
def _data() -> Path:
    path = _folder() / "data.csv"
    base().to_csv(path, index=False)
    return path


@cache
def _fit() -> Path:
    path = _folder() / "fit.cst"
    small = ("--hidden=3,2", "--folds=2", "--starts=1", "--repeats=1", "--n-jobs=1", "--quiet")
    _run(("fit", str(_data()), _FORMULA, *small, f"--save={path}"))
    return path


def _of_file(command: str, make: Callable[[], bytes], name: str) -> int:
    return _run((command, str(_written(make, name)), _FORMULA))


def _predicted(make: Callable[[], bytes], name: str) -> int:
    return _run(("predict", str(_fit()), str(_written(make, name))))


def _written(make: Callable[[], bytes], name: str) -> Path:
    path = _folder() / name.split()[-1]
    path.write_bytes(make())
    return path


def _table() -> bytes:
    rng = np.random.default_rng(2)
    noise = pd.DataFrame(rng.normal(size=(N * 50, 4)), columns=["y", "treat", "x1", "x2"])
    return noise.to_csv(index=False).encode()


def _parquet() -> bytes:
    buffer = io.BytesIO()
    base().to_parquet(buffer)
    return buffer.getvalue()


def _feather() -> bytes:
    buffer = io.BytesIO()
    base().to_feather(buffer)
    return buffer.getvalue()


def _twice() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    arrays = [pa.array(base()[name]) for name in ("y", "treat", "x1", "x1")]
    pq.write_table(pa.Table.from_arrays(arrays, ["y", "treat", "x1", "x1"]), buffer)
    return buffer.getvalue()


def _damaged(make: Callable[[], bytes], how: str) -> bytes:
    content = bytearray(make())
    if how == "cut":
        return bytes(content[: len(content) // 2])
    at = {"head": 2, "middle": len(content) // 2, "tail": len(content) - 12}[how]
    content[at : at + 8] = bytes(255 - byte for byte in content[at : at + 8])
    return bytes(content)


def _files() -> dict[str, Callable[[], bytes]]:
    """Contents by what is wrong with them, and a name of the file."""
    found: dict[str, Callable[[], bytes]] = {}
    archives: dict[str, Callable[[], bytes]] = {
        "x.csv.gz": lambda: gzip.compress(_table(), mtime=0),
        "x.csv.bz2": lambda: bz2.compress(_table()),
        "x.csv.xz": lambda: lzma.compress(_table()),
        "x.parquet": _parquet,
        "x.feather": _feather,
    }
    for name, make in archives.items():
        for how in ("cut", "head", "tail") if name != "x.feather" else ("cut", "head"):
            found[f"{how} {name}"] = partial(_damaged, make, how)
        found[f"empty {name}"] = bytes
        found[f"text {name}"] = lambda: f"{_SECRET},b\n1,2\n".encode()
        found[f"other name {name}.csv"] = make
    texts = {
        "nothing.csv": b"",
        "newlines.csv": b"\n\n\n",
        "header.csv": b"y,treat,x1,x2\n",
        "twice.csv": b"y,treat,x1,x1\n1,0,1,2\n",
        "longer.csv": b"y,treat,x1,x2\n1,2,3,4,5\n1,2,3,4,6\n",
        "ragged.csv": b"y,treat,x1,x2\n1,2,3,4\n1,2,3,4,5\n",
        "no-header.csv": f"{_SECRET},1,2,3\n5,6,7,8\n".encode(),
        "page.csv": f"<html><p>{_SECRET}</p></html>".encode(),
        "passwd.csv": f"root:x:0:0:{_SECRET}:/root:/bin/sh\nbin:x:1:1:b:/:/bin/sh\n".encode(),
        "env.csv": f"TOKEN={_SECRET}\nOTHER=2\n".encode(),
        "token.csv": _SECRET.encode(),
        "key.csv": f"-----BEGIN KEY-----\n{_SECRET}\n-----END KEY-----\n".encode(),
        "object.json": f'{{"password": "{_SECRET}",\n "b": 2}}'.encode(),
        "binary.csv": bytes(range(256)) * 40,
        "nulls.csv": bytes(1000),
        "utf16.csv": f"y,treat,{_SECRET}\n1,0,2\n".encode("utf-16"),
        "latin.csv": f"y,treat,{_SECRET}\n1,0,\xe9\n".encode("latin-1"),
        "quote.csv": f'y,treat,x1\n1,0,"{_SECRET}\n'.encode(),
        "pdf.csv": f"%PDF-1.4 {_SECRET}".encode(),
        "zip.csv": b"PK\x03\x04" + _SECRET.encode(),
        "a.zip": b"PK\x03\x04" + _SECRET.encode(),
        "a.xlsx": b"PK\x03\x04" + _SECRET.encode(),
        "wide-cell.csv": b"y,treat,x1\n1,0," + b"9" * 200_000 + b"\n",
        "long-line.csv": _SECRET.encode() * 50_000,
    }
    for name, content in texts.items():
        found[name] = partial(bytes, content)
    found["twice.parquet"] = _twice
    return found
