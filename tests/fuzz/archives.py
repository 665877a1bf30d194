"""Damaged and hostile versions of the files that the package writes: a fit, a checkpoint.

`mutated` changes a file at one of its layers: its bytes, its members as a zip file, its JSON, its
arrays. Each class of changes has a name, so that reports can count by it.
"""

from __future__ import annotations

import io
import json
import random
import re
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from .chance import NUMBERS, TEXTS, often, plain_value

# Bytes of a bomb: more than reading any of the files takes, less than any machine has.
BOMB = 64 * 2**20


def zipped(
    *members: tuple[str | zipfile.ZipInfo, bytes],
    method: int = zipfile.ZIP_DEFLATED,
    comment: bytes = b"",
) -> bytes:
    """A zip file with these members: name or ZipInfo, and content."""
    whole = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(whole, "w", method) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for member, content in members:
            archive.writestr(member, content)
        archive.comment = comment
    return whole.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    """The members of a zip file, by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def linked(name: str) -> zipfile.ZipInfo:
    """A member that claims to be a symbolic link."""
    member = zipfile.ZipInfo(name)
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    return member


def safetensors_bytes(header: Any, data: bytes = b"") -> bytes:
    """Arrays as safetensors has them, with any header: an object, or the bytes themselves."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all values of a JSON document, its own (the empty one) first."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def mutated(chance: random.Random, content: bytes) -> tuple[str, bytes]:
    """A file changed in one way or, now and then, in several.

    Parameters
    ----------
    chance
        Source of choices.
    content
        The file: a zip file of JSON and arrays, JSON alone, or anything.

    Returns
    -------
    kind : str
        The class of the last change.
    changed : bytes
    """
    kind, changed = _changed(chance, content, _applicable(content))
    # A bomb is not unpacked, to be changed further, by those who made it.
    while kind != "bomb" and often(chance, 0.2):
        kind, changed = _changed(chance, changed, _applicable(changed)[:-1])
    return kind, changed


def _changed(chance: random.Random, content: bytes, kinds: tuple[str, ...]) -> tuple[str, bytes]:
    """One change; of the bytes where what was changed before has lost the layer."""
    kind = chance.choice(kinds)
    try:
        return kind, _CHANGES[kind](chance, content)
    except Exception:
        return "bytes", _bytes(chance, content)


def _applicable(content: bytes) -> tuple[str, ...]:
    """Classes of changes that a file has layers for; those of the bytes first, bombs last."""
    if zipfile.is_zipfile(io.BytesIO(content)):
        return tuple(_CHANGES)
    of_bytes = ("bytes", "cut", "pieces")
    return (*of_bytes, "json", "json") if content[:1] in (b"{", b"[") else (*of_bytes, "bytes")


# Bytes -------------------------------------------------------------------------------------------


def _bytes(chance: random.Random, content: bytes) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(chance.choice((1, 1, 2, 8))):
        changed[chance.randrange(len(changed))] ^= chance.randint(1, 255)
    return bytes(changed)


def _cut(chance: random.Random, content: bytes) -> bytes:
    return content[: chance.randint(0, max(0, len(content) - 1))]


def _pieces(chance: random.Random, content: bytes) -> bytes:
    """A piece left out, doubled, zeroed, or put elsewhere."""
    first, last = sorted(chance.randint(0, len(content)) for _ in range(2))
    head, piece, tail = content[:first], content[first:last], content[last:]
    how = chance.randrange(4)
    if how == 0:
        return head + tail
    if how == 1:
        return head + piece + piece + tail
    if how == 2:
        return head + bytes(len(piece)) + tail
    return piece + head + tail


# Members -----------------------------------------------------------------------------------------


def _members(chance: random.Random, content: bytes) -> bytes:
    """Members that are swapped, left out, doubled, renamed, strange, or packed in another way."""
    found = list(unzipped(content).items())
    how = chance.randrange(9)
    at = chance.randrange(len(found))
    name, inside = found[at]
    if how == 0:
        found.reverse()
    elif how == 1:
        found = [(n, found[(k + 1) % len(found)][1]) for k, (n, _) in enumerate(found)]
    elif how == 2:
        del found[at]
    elif how == 3:
        found.insert(chance.randint(0, len(found)), (name, inside))
    elif how == 4:
        found[at] = (_evil_name(chance, name), inside)
    elif how == 5:
        found.append((_evil_name(chance, name), b"escaped"))
    elif how == 6:
        return zipped(*((linked(n) if k == at else n, c) for k, (n, c) in enumerate(found)))
    elif how == 7:
        found[at] = (name, zipped(*found))
    method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    if how == 8:
        method = chance.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    return zipped(*found, method=method)


def _evil_name(chance: random.Random, name: str) -> str:
    beginning = chance.choice(("../", "../../", "/tmp/", "/", "./", "a/../../", "C:\\", "..\\"))
    return chance.choice((beginning + name, beginning + "escaped", name + "/", name.upper(), "."))


def _bomb(chance: random.Random, content: bytes) -> bytes:
    """A member that unpacks to far more, and says so or not."""
    name = chance.choice(list(unzipped(content)))
    packed = _bombed(content, name)
    if often(chance, 0.5):
        lie = struct.pack("<L", chance.choice((0, 1, 99, 2**20, 2**32 - 1)))
        packed = packed.replace(struct.pack("<L", BOMB), lie)
    return packed


@lru_cache(maxsize=64)
def _bombed(content: bytes, name: str) -> bytes:
    return zipped(*(unzipped(content) | {name: bytes(BOMB)}).items())


def _header(chance: random.Random, content: bytes) -> bytes:
    """A field of a local or central header: flags, method, sizes, offsets, attributes."""
    changed = bytearray(content)
    marks = [found.start() for found in re.finditer(b"PK\1\2|PK\3\4", content)]
    end = content.rfind(b"PK\5\6")
    at = chance.choice([*marks, end])
    field = at + chance.randint(4, 45 if at != end else 21)
    value = chance.choice((0, 1, 9, 255, 2**16 - 1, 2**31, 2**32 - 1))
    size = chance.choice((2, 4))
    changed[field : field + size] = struct.pack("<Q", value)[:size]
    return bytes(changed)


# Contents ----------------------------------------------------------------------------------------


def _json(chance: random.Random, content: bytes) -> bytes:
    """Any value of the JSON part in another's place, or changed, left out, doubled."""
    if content[:1] in (b"{", b"["):
        return _changed_json(chance, content)
    found = unzipped(content)
    texts = [name for name in found if name.endswith(".json")]
    name = chance.choice(texts)
    return zipped(*(found | {name: _changed_json(chance, found[name])}).items())


def _changed_json(chance: random.Random, text: bytes) -> bytes:
    if often(chance, 0.02):
        return chance.choice((b"", b"{", b"null", b"[" * 100_000, b'{"format": 1e999}', b"\xff"))
    document: Any = json.loads(text)
    paths = _places_of(text)
    for _ in range(chance.choice((1, 1, 1, 3))):
        path = chance.choice(paths)
        try:
            inside, key = _inside(document, path[:-1]), path[-1]
            _change_item(chance, document, inside, key, paths)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change has removed the place
    return json.dumps(document).encode()


@lru_cache(maxsize=64)
def _places_of(text: bytes) -> tuple[tuple[Any, ...], ...]:
    return tuple(places(json.loads(text)))[1:]


def _inside(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def _change_item(
    chance: random.Random, document: Any, inside: Any, key: Any, paths: tuple[tuple[Any, ...], ...]
) -> None:
    how = chance.randrange(6)
    old = inside[key]
    if how == 0:
        del inside[key]
    elif how == 1:
        inside[key] = _inside(document, chance.choice(paths))
    elif how == 2 and isinstance(inside, list):
        inside.insert(key, old)
    elif how == 2:
        inside[chance.choice(TEXTS[6:])] = old
    elif how == 3 and isinstance(old, str):
        inside[key] = chance.choice(TEXTS)
    elif how == 3 and isinstance(old, int | float):
        inside[key] = chance.choice((old + 1, old - 1, -old, chance.choice(NUMBERS)))
    else:
        inside[key] = plain_value(chance)


def _arrays(chance: random.Random, content: bytes) -> bytes:
    """Arrays with other headers, other values, or of another length."""
    found = unzipped(content)
    name = chance.choice([name for name in found if name.endswith(".safetensors")])
    packed = found[name]
    (length,) = struct.unpack_from("<Q", packed)
    header, data = json.loads(packed[8 : 8 + length]), packed[8 + length :]
    how = chance.randrange(5)
    if how == 0:
        data = _values(chance, header, data)
    elif how == 1:
        data = chance.choice((_cut, _pieces, _bytes))(chance, data)
    elif how == 2:
        header = json.loads(_changed_json(chance, json.dumps(header).encode()))
    elif how == 3:
        _reshape(chance, header)
    changed = safetensors_bytes(header, data)
    if how == 4:
        size = chance.choice((0, 1, length - 1, length + 1, 2**31, 2**62, 2**64 - 1))
        changed = struct.pack("<Q", size) + packed[8:]
    return zipped(*(found | {name: changed}).items())


def _values(chance: random.Random, header: Mapping[str, Any], data: bytes) -> bytes:
    """One array full of a number that no fit has, or of anything."""
    about = header[chance.choice(list(header))]
    first, last = about["data_offsets"]
    formats = {"F64": "<d", "F32": "<f", "I64": "<q", "I32": "<i"}
    form = formats.get(about["dtype"], "<B")
    numbers = (0, 1, -1, 2**31 - 1) if form[1] in "qi" else (0.0, 1e30, float("nan"), float("inf"))
    one = struct.pack(form, 255 if form == "<B" else chance.choice(numbers))
    if often(chance, 0.3):
        one = chance.randbytes(len(one))
    return data[:first] + one * ((last - first) // len(one)) + data[last:]


def _reshape(chance: random.Random, header: dict[str, Any]) -> None:
    """Other shapes of the same length, or another type of the same width."""
    about = header[chance.choice(list(header))]
    same = {"F64": "I64", "I64": "F64", "F32": "I32", "I32": "F32", "U8": "BOOL", "BOOL": "U8"}
    if often(chance, 0.3):
        about["dtype"] = same.get(about["dtype"], "F64")
        return
    total = 1
    for extent in about["shape"]:
        total *= extent
    about["shape"] = chance.choice(
        ([total], [1, total], [total, 1], [total, 1, 1], [0, total], [2**40, total], [-1])
    )


_CHANGES: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "bytes": _bytes,
    "cut": _cut,
    "pieces": _pieces,
    "members": _members,
    "header": _header,
    "json": _json,
    "arrays": _arrays,
    "bomb": _bomb,
}
