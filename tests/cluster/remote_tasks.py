"""Tasks for other processes, which import this module by its name."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Returns:
    value: Any
    shared: tuple[object, ...] = ()

    def __call__(self, threads, monitor):
        return self.value, threads


@dataclass(frozen=True)
class Sums:
    """What the common array adds up to, and whether it came with the task."""

    array: np.ndarray

    @property
    def shared(self):
        return (self.array,)

    def __call__(self, threads, monitor):
        return float(self.array.sum())


@dataclass(frozen=True)
class Fails:
    error: BaseException
    shared: tuple[object, ...] = ()

    def __call__(self, threads, monitor):
        raise self.error


@dataclass(frozen=True)
class Dies:
    """Kills its process, and if there is a marker then only where that does not exist yet."""

    marker: Path | None = None
    shared: tuple[object, ...] = ()

    def __call__(self, threads, monitor):
        if self.marker is None or not self.marker.exists():
            if self.marker is not None:
                self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "survived"


@dataclass(frozen=True)
class Waits:
    """Says that it has begun and sleeps until it is told to stop, for a minute at most."""

    begun: Path
    shared: tuple[object, ...] = ()

    def __call__(self, threads, monitor):
        self.begun.touch()
        for _ in range(600):
            monitor.check()
            time.sleep(0.1)
        self.begun.with_suffix(".slept").touch()
        return "slept"
