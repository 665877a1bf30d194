"""Progress of a fit: a bar, a function of the user's, or silence."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from cstonet.errors import OptionError
from cstonet.shown import shown

Stage = Literal["reading", "searching", "training", "estimating", "repeating"]

# Seconds after which a fit about whose progress nothing was said shows a bar.
PATIENCE = 5.0

_LENGTH = 1000  # steps of a bar, whatever those of the work: widgets cannot change theirs
_INTERVAL = 0.1  # seconds between two looks of a bar
_FORMAT = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far some work is.

    Attributes
    ----------
    stage
        What is being done.
    done, total
        Steps done, and steps in all; 0 in all where a stage has no steps of its own.
    finished, parts
        Parts that are finished, and how many there are.
    part
        What a part is.
    """

    stage: Stage
    done: int = 0
    total: int = 0
    finished: int = 0
    parts: int = 0
    part: str = "fold"

    def __str__(self) -> str:
        if self.parts == 0:
            return self.stage
        counted = f"{self.part} {self.finished}/{self.parts}"
        return counted if self.stage == "repeating" else f"{self.stage}, {counted}"

    def share_of(self, number: int, parts: int) -> Standing:
        """The standing of one of several works of equal length, as that of all of them."""
        return replace(
            self,
            done=number * self.total + self.done,
            total=parts * self.total,
            finished=number * self.parts + self.finished,
            parts=parts * self.parts,
        )


Progress = Callable[[Standing], object]


class Reporter(ABC):
    """What is told how far a fit is."""

    @abstractmethod
    def __call__(self, standing: Standing) -> None:
        """Hear of the work's standing."""

    def close(self) -> None:
        """Nothing more will be told."""
        return


class _Silence(Reporter):
    """Tells nobody."""

    def __call__(self, standing: Standing) -> None:
        """Say nothing."""


class _Function(Reporter):
    """Calls a function of the user's with (steps done, steps in all)."""

    def __init__(self, function: Callable[[int, int], object]) -> None:
        self._function = function

    def __call__(self, standing: Standing) -> None:
        """Call it, if the stage has steps."""
        if standing.total:
            self._function(standing.done, standing.total)


class _Bar(Reporter):
    """A bar with stage, fold and time left, which goes when the work is done.

    Parameters
    ----------
    make
        Makes the bar: a class of tqdm's.
    patience
        Seconds that the work may take without one.
    """

    def __init__(self, make: Callable[..., Any], patience: float) -> None:
        self._make = make
        self._began = time.time()
        self._standing: Standing | None = None
        self._bar: Any = None
        self._shown = 0.0
        self._due = patience == 0
        # A bar that is due while nothing is told, as in reading a large file, is opened by the
        # timer's thread.
        self._lock = threading.Lock()
        self._timer = threading.Timer(patience, self._late)
        self._timer.daemon = True
        if not self._due:
            with suppress(RuntimeError):  # the system has no thread to give: no bar, then
                self._timer.start()

    def __call__(self, standing: Standing) -> None:
        """Show the standing, if a bar is due."""
        with self._lock:
            self._standing = standing
            if self._due:
                self._show(standing)

    def close(self) -> None:
        """Remove the bar."""
        self._timer.cancel()
        with self._lock:
            self._standing = None
            if self._bar is not None:
                self._bar.close()

    def _late(self) -> None:
        with self._lock:
            self._due = True
            if self._standing is not None:
                self._show(self._standing)

    def _show(self, standing: Standing) -> None:
        if self._bar is None:
            self._bar = self._make(
                desc=str(standing),
                total=_LENGTH,
                bar_format=_FORMAT,
                smoothing=0,  # time left is that at the average pace
                leave=False,
                dynamic_ncols=True,
            )
            self._bar.start_t = self._began
        bar, now = self._bar, time.time()
        if standing.total:
            bar.n = _LENGTH * standing.done // standing.total
        # The time goes on where steps do not.
        if str(standing) != bar.desc or now - self._shown >= _INTERVAL:
            bar.desc, self._shown = str(standing), now
            bar.refresh()


@contextmanager
def progress_reporter(progress: object) -> Iterator[Reporter]:
    """What work reports its standing to.

    Parameters
    ----------
    progress
        None for a bar in a terminal or notebook if the work takes more than five seconds; True for
        a bar at once, anywhere; False for silence; or a function of (steps done, steps in all). A
        reporter that somebody else has opened stays open.
    """
    if isinstance(progress, Reporter):
        yield progress
        return
    reporter = _reporter(progress)
    try:
        yield reporter
    finally:
        reporter.close()


def _reporter(progress: object) -> Reporter:
    if progress is True:
        return _Bar(_bar_class(), 0.0)
    if progress is None:
        return _Bar(_bar_class(), PATIENCE) if _somebody_watches() else _Silence()
    if progress is False:
        return _Silence()
    if callable(progress):
        return _Function(progress)
    raise OptionError(
        f"progress must be None, True, False or a function of (done, total); got {shown(progress)}."
    )


def _somebody_watches() -> bool:
    """Whether this is the one fit of somebody at a terminal or in a notebook."""
    # Fits side by side, in threads or processes of the user's, would write over each other.
    if threading.current_thread() is not threading.main_thread():
        return False
    if multiprocessing.parent_process() is not None:
        return False
    return _in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    # Who never imported IPython is in no notebook, and need not wait for its import.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def _bar_class() -> Any:
    """The bar of tqdm that suits the place."""
    # tqdm.auto would choose alike, but warn in a notebook that has no widgets.
    if _in_notebook() and find_spec("ipywidgets") is not None:
        return import_module("tqdm.notebook").tqdm
    return import_module("tqdm").tqdm
