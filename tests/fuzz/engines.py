"""Running a target again and again: by a seeded loop, or by atheris, which watches what is reached.

Both run in a process of their own, which leaves what it did in a folder: `COUNTS`, a JSON file that
is renewed every second, the input at hand (`SCENE`) in case the process dies of it, and an input
for every finding.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .chance import Tape
from .targets import Target, kept, make
from .watch import Finding

COUNTS, SCENE, FINDINGS = "counts.json", "scene", "findings"
# Bytes of the longest tape that atheris makes up, and seconds between two notes of the counts.
_TAPE, _RENEWED = 4096, 1.0


class Log:
    """What a process found, on the disk.

    Parameters
    ----------
    folder : Path
        Where it is kept.
    engine : str
        What makes the inputs.
    target : Target
        What takes them.
    """

    def __init__(self, folder: Path, engine: str, target: Target) -> None:
        self.executions = 0
        self._target = target
        self._outcomes: Counter[str] = Counter()
        self._found: dict[str, int] = {}
        self.folder, self._engine = folder, engine
        self._began = self._noted = time.monotonic()
        (folder / FINDINGS).mkdir(parents=True, exist_ok=True)
        self._scene = (folder / SCENE).open("wb", buffering=0)

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    def run(self, content: bytes) -> None:
        """Run one input and count what came of it."""
        self._scene.seek(0)
        self._scene.truncate()
        self._scene.write(content)
        try:
            self._outcomes[self._target.run(content)] += 1
        except Exception as error:
            self.keep(content, error)
        self.executions += 1
        if time.monotonic() - self._noted > _RENEWED:
            self.note()

    def keep(self, content: bytes, error: BaseException) -> None:
        """Keep an input once for every place where it went wrong."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__} in {Path(where.filename).name}, {where.name}"
        if isinstance(error, Finding):  # all of them are raised at one place
            what = f"{error}"[:80]
        self._found[what] = self._found.get(what, 0) + 1
        if self._found[what] == 1:
            name = hashlib.sha256(content).hexdigest()[:12]
            (self.folder / FINDINGS / name).write_bytes(content)
            text = "".join(traceback.format_exception(error))
            (self.folder / FINDINGS / f"{name}.txt").write_text(text, errors="replace")

    def note(self, *, done: bool = False) -> None:
        """Renew the counts on the disk; done, if the process is about to end by itself."""
        self._noted = time.monotonic()
        report = {
            "engine": self._engine,
            "executions": self.executions,
            "seconds": self.seconds,
            "outcomes": dict(self._outcomes.most_common()),
            "findings": self._found,
            "done": done,
        }
        if hasattr(self._target, "largest_memory"):
            report["megabytes"] = self._target.largest_memory / 1e6
        beside = self.folder / f"{COUNTS}.new"
        beside.write_text(json.dumps(report, indent=1))
        beside.replace(self.folder / COUNTS)


def work(name: str, folder: Path, seconds: float, executions: int, seed: int) -> None:
    """Fuzz one target until the time or the number of executions is used up.

    Parameters
    ----------
    name
        The target.
    folder
        Where to leave what was found.
    seconds, executions
        When to stop.
    seed
        Of the choices.
    """
    guided = _guided()
    target = make(name)
    log = Log(folder, "atheris" if guided else "seeded loop", target)

    def over() -> bool:
        return log.executions >= executions or log.seconds >= seconds

    for path in kept(name):
        log.run(path.read_bytes())
    if guided:
        _evolve(guided, target, log, over, seed)
    chance = random.Random(seed)
    while not over():
        log.run(target.draw(chance))
    _end(target, log)


def _guided() -> Any:
    """Atheris, with the package imported so that it sees what is reached; None if not installed."""
    try:
        import atheris
    except ImportError:
        return None
    with atheris.instrument_imports(include=["cstonet", "patsy"]):
        import cstonet.files.saved
        import cstonet.model  # noqa: F401
    return atheris


def _evolve(atheris: Any, target: Target, log: Log, over: Callable[[], bool], seed: int) -> None:
    """Let atheris make up tapes; never returns."""

    def one(tape: bytes) -> None:
        if over():
            _end(target, log)
        log.run(target.draw(Tape(tape)))

    options = [f"-seed={seed % 2**31 or 1}", f"-max_len={_TAPE}", "-len_control=0", "-verbosity=0"]
    # Hangs and crashes are the parent's business, see `__main__`.
    own = ["-timeout=86400", "-rss_limit_mb=0", "-handle_segv=0", "-handle_abrt=0"]
    own.append(f"-artifact_prefix={log.folder}/")
    atheris.Setup([sys.argv[0], *options, *own], one)
    atheris.Fuzz()


def _end(target: Target, log: Log) -> None:
    """Note everything and leave. LibFuzzer has its own opinion of that, and of the exit code."""
    try:
        target.close()
    except Exception as error:
        log.keep(b"", error)
    log.note(done=True)
    sys.stdout.flush()
    os._exit(0)
