"""Finished draws of repeated work on disk: who is interrupted goes on where he was.

The file holds JSON, line by line: first whose draws these are, then a line per draw. It is written
anew with every draw and put in place at once, so that it is whole at any time.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cstonet.errors import FilePathError, ForeignFileError
from cstonet.places import as_path, check_place, held, sweep, write_text

Draw = Mapping[str, Any]

_SHOWN = 12  # characters of a digest in a file's name


class Ledger:
    """The finished draws of some work, by their numbers; in a file, if there is a path.

    Parameters
    ----------
    work : str
        What is repeated, such as "certify".
    digest : str
        Tells this work from any other, see `fit_digest`.
    path : path of a file or folder, or None
        Where draws are kept. In a folder, the file has a name of its own for every fit.
    whole : callable
        Whether what a file holds as a draw is one.

    Raises
    ------
    ForeignFileError
        If the file holds something else.
    FilePathError
        If no file can be there.
    """

    def __init__(
        self,
        work: str,
        digest: str,
        path: str | os.PathLike[str] | None,
        *,
        whole: Callable[[Any], bool],
    ) -> None:
        self.work, self._whole = work, whole
        self._head = {"cstonet": work, "digest": digest}
        self._lock = threading.Lock()
        self.draws: dict[int, Draw] = {}
        self.path = None if path is None else _file(path, work, digest)
        if self.path is not None:
            check_place(self.path)
            if self.path.exists():
                self.draws = self._read(self.path)
            # Written at once: a place that refuses it says so before the work, not after.
            self._write(self.path)

    def add(self, number: int, draw: Draw) -> None:
        """Keep a finished draw. Safe from several threads."""
        with self._lock:
            self.draws[number] = draw
            if self.path is not None:
                self._write(self.path)

    def _read(self, path: Path) -> dict[int, Draw]:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise FilePathError(f"path: {str(path)!r} cannot be read: {error}.") from error
        except UnicodeDecodeError:
            text = ""
        try:
            head, *lines = map(json.loads, text.splitlines())
            draws = {int(line["draw"]): line["result"] for line in lines}
            other = head["digest"] if head["cstonet"] == self.work else None
        except (ValueError, TypeError, KeyError) as error:
            raise ForeignFileError(
                f"path: {str(path)!r} is no file of {self.work}() and stays as it is. "
                "Name another file, or a folder."
            ) from error
        if other != self._head["digest"]:
            raise ForeignFileError(
                f"path: {str(path)!r} holds draws of another fit: its data, its options, or a seed "
                "differ. It stays as it is. Name another file, or a folder, in which every fit has "
                "its own."
            )
        if not all(map(self._whole, draws.values())):
            raise ForeignFileError(
                f"path: {str(path)!r} is damaged, and some of its draws are none. It stays as it "
                "is. Delete it, or name another file or a folder."
            )
        return draws

    def _write(self, path: Path) -> None:
        lines = [
            self._head,
            *({"draw": number, "result": self.draws[number]} for number in sorted(self.draws)),
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write_text(path, text)


@contextmanager
def opened(
    work: str, digest: str, path: str | os.PathLike[str] | None, *, whole: Callable[[Any], bool]
) -> Iterator[Ledger]:
    """A ledger whose file nobody else may use meanwhile; see `Ledger`.

    Raises
    ------
    InUseError
        If another process, or another thread, uses it.
    """
    if path is None:
        yield Ledger(work, digest, None, whole=whole)
        return
    file = _file(path, work, digest)
    check_place(file)
    with held(file.with_name(f".{file.name}.lock"), f"path: {str(file)!r}"):
        sweep(file.parent, file.name)
        yield Ledger(work, digest, file, whole=whole)


def _file(path: str | os.PathLike[str], work: str, digest: str) -> Path:
    """The file that a path means: itself, or one with a name of its own in the folder it is."""
    place = as_path(path)
    return place / f"{work}-{digest[:_SHOWN]}.jsonl" if place.is_dir() else place
