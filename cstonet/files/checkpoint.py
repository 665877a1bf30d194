"""A fit that goes on where it was interrupted: finished folds, each in a file of a folder.

The folder holds `checkpoint.json`, which says whose folds these are, and a file for every result,
written like a saved fit. Every file is written beside its place, synchronised with the disk, and
put there at once: whenever a process is killed, what is there is whole.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from cstonet.data.columns import listing
from cstonet.errors import CheckpointError, FilePathError, NotEnoughMemoryError
from cstonet.files.archive import read_archive
from cstonet.files.codec import Encoder
from cstonet.files.document import open_document, write_document
from cstonet.places import as_path, held, sweep, write_text

T = TypeVar("T")

MANIFEST, LOCK, SUFFIX = "checkpoint.json", "lock", ".part"
# Raised when a folder cannot be gone on with by what was there before.
FORMAT = 1
_KEY = re.compile(r"[a-z0-9-]+")
# Bytes of a manifest that are read: many times what a plan with many covariates to keep takes.
_MOST_MANIFEST = 2**26

Identity = Mapping[str, Mapping[str, Any]]
"""Whose results these are: values by name, in sections such as "data"; as JSON has them."""


class Checkpoint:
    """Results in a folder, under names; see :class:`cstonet.crossfit.keeping.Keeper`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def where(self) -> str:
        """The folder."""
        return str(self._folder)

    def recall(self, key: str, take_back: Callable[[Any], T]) -> T | None:
        """What was kept under a name, as somebody takes it back; None if nothing was.

        Raises
        ------
        CheckpointError
            If the file is damaged, or is not what its name says.
        """
        path = self._path(key)
        if not path.exists():
            return None
        try:
            content, decoder = open_document(*read_archive(path))
            if content["key"] != key:
                raise ValueError(f"it holds {content['key']!r}")
            return take_back(decoder.decode(content["value"]))
        except NotEnoughMemoryError:
            raise
        except MemoryError as error:
            raise NotEnoughMemoryError(f"There is not enough memory to read {path}.") from error
        except Exception as error:
            # Whatever the parts of a wrong file do to each other, the file is what is wrong.
            raise CheckpointError(
                f"checkpoint: {str(path)!r} is damaged, or nothing that this fit wrote "
                f"({type(error).__name__}). Delete this file: its part of the work is done anew."
            ) from error

    def keep(self, key: str, value: object) -> None:
        """Keep a value, whole or not at all.

        Raises
        ------
        FilePathError
            If the disk refuses it.
        """
        encoder = Encoder(with_data=True)
        encoded = encoder.encode(value)
        write_document(self._path(key), encoder, {"key": key, "value": encoded})

    def forget(self, prefix: str) -> None:
        """Drop what was kept under names that begin so."""
        try:
            for path in self._folder.glob(f"{prefix}*{SUFFIX}"):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise FilePathError(f"{self.where!r} cannot be cleared: {error.strerror}.") from error

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no name of a result")
        return self._folder / f"{key}{SUFFIX}"


@contextmanager
def opened(path: str | os.PathLike[str], identity: Identity) -> Iterator[Checkpoint]:
    """The checkpoint in a folder, which nobody else may use meanwhile.

    Parameters
    ----------
    path
        The folder. It is made if it is not there; the one that it is to be in must be.
    identity
        Whose results they are.

    Raises
    ------
    CheckpointError
        If the folder holds those of other data, options or versions, or something else.
    InUseError
        If another fit uses it.
    FilePathError
        If there can be no such folder.
    """
    folder = as_path(path)
    try:
        if folder.exists() and not folder.is_dir():
            raise FilePathError(f"checkpoint: {str(folder)!r} is a file: name a folder.")
        folder.mkdir(exist_ok=True)
        there = list(folder.iterdir())
    except FilePathError:
        raise
    except OSError as error:
        raise FilePathError(
            f"checkpoint: {str(folder)!r} cannot be the folder of a checkpoint: "
            f"{error.strerror or error}."
        ) from error
    # Whoever wrote through a link, or waited for a pipe, would do what the folder's maker likes.
    odd = [one for one in there if _is_ours(one.name) and _is_no_file(one)]
    if odd:
        raise CheckpointError(
            f"checkpoint: {str(odd[0])!r} is a link, a pipe or a folder, which no fit puts there. "
            "Delete it, or name another folder."
        )
    foreign = [one.name for one in there if not _is_ours(one.name)]
    manifest = folder / MANIFEST
    if foreign and not manifest.exists():
        raise CheckpointError(
            f"checkpoint: the folder {str(folder)!r} holds other files, such as {foreign[0]!r}. "
            "Name an empty folder, or one that is not there yet."
        )
    with held(folder / LOCK, f"The checkpoint {str(folder)!r}"):
        sweep(folder)
        if manifest.exists():
            _check_identity(folder, _read_manifest(manifest), identity)
        else:
            content = {"cstonet": "checkpoint", "format": FORMAT, "of": identity}
            write_text(manifest, json.dumps(content, indent=1) + "\n")
        yield Checkpoint(folder)


def _is_ours(name: str) -> bool:
    return name in (MANIFEST, LOCK) or name.endswith(SUFFIX) or name.startswith(".")


def _is_no_file(path: Path) -> bool:
    """Whether something other than a plain file is there; it may be gone by now."""
    return path.is_symlink() or (path.exists() and not path.is_file())


def _read_manifest(path: Path) -> dict[str, Any]:
    """Whose results a folder holds."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MOST_MANIFEST).decode("utf-8"))
        if content["cstonet"] != "checkpoint":
            raise ValueError("it is of something else")
        number, of = content["format"], content["of"]
        if not all(isinstance(section, dict) for section in (of, *of.values())):
            raise TypeError("it says nothing of the fit")
    except OSError as error:
        raise FilePathError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"checkpoint: {str(path)!r} is damaged, or of another program. It stays as it is. "
            "Name another folder."
        ) from error
    if number != FORMAT:
        raise CheckpointError(
            f"checkpoint: {str(path.parent)!r} was made by a version of cstonet that writes them "
            "differently. Go on with that version, or name another folder."
        )
    found: dict[str, Any] = of
    return found


def _check_identity(folder: Path, found: Mapping[str, Any], identity: Identity) -> None:
    """Refuse a folder of another fit, and say in what they differ."""
    said = []
    for section, values in identity.items():
        kept = found.get(section, {})
        names = [name for name in {**values, **kept} if values.get(name) != kept.get(name)]
        if names:
            changes = (_change(name, kept.get(name), values.get(name)) for name in names)
            said.append(f"{section} differ ({listing(changes, form=str)})")
    if said:
        raise CheckpointError(
            f"checkpoint: {str(folder)!r} holds another fit: {', '.join(said)}. It stays as it is. "
            "Make the same call as before to go on with that fit, or name another folder."
        )


def _change(name: str, before: object, now: object) -> str:
    """What differs; of digests there is nothing to show."""
    plain = all(isinstance(value, str | int | float | None) for value in (before, now))
    if not plain or max(len(str(before)), len(str(now))) > 30:
        return name
    return f"{name} was {before!r} there and is {now!r} here"
