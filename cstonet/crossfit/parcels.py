"""Tasks on their way to another process and back.

What tasks have in common travels once, on a way of its own; a parcel holds the rest of one task,
with a number in place of each common part. Errors of a task come back as values, so that they are
never mistaken for errors of whatever carried it.
"""

from __future__ import annotations

import io
import pickle
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cstonet import _core
from cstonet.crossfit.keeping import Keeping
from cstonet.crossfit.progress import Progress
from cstonet.crossfit.stopping import Heed
from cstonet.crossfit.workforce import Monitor, Task
from cstonet.data.caller import caller_stacklevel
from cstonet.errors import KernelLevelWarning

T = TypeVar("T")


class RemoteTraceback(Exception):
    """Where in a worker an error arose, as text: the cause of the error in this process."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True, slots=True)
class Parcel:
    """A task without what it has in common with the others.

    Attributes
    ----------
    number
        Of the task.
    content
        The task, pickled; common parts are replaced by their positions.
    level
        Instruction-set level of the kernel in the process that sent it.
    """

    number: int
    content: bytes
    level: str


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """What came back of a parcel.

    Attributes
    ----------
    number
        Of the task.
    level
        Instruction-set level that the kernel worked at.
    value
        What the task returned; None if it raised an error.
    error, where
        The error, and the lines of code that it came from.
    """

    number: int
    level: str
    value: T | None = None
    error: BaseException | None = None
    where: str = ""

    @property
    def is_like_here(self) -> bool:
        """Whether this process would have computed the same bits."""
        return self.level == _core.level()

    def result(self) -> T:
        """What the task returned; raises what it raised."""
        if self.error is not None:
            raise self.error from RemoteTraceback(self.where)
        return self.value  # type: ignore[return-value]  # None may be what it returned


def in_common(tasks: Sequence[Task[Any]]) -> tuple[object, ...]:
    """Objects that all tasks share, each once."""
    everywhere = set.intersection(*({id(part) for part in task.shared} for task in tasks))
    first = {id(part): part for part in tasks[0].shared if part is not None}
    return tuple(part for key, part in first.items() if key in everywhere)


def pack(tasks: Sequence[Task[Any]], common: Sequence[object]) -> list[Parcel]:
    """A parcel for each of the tasks, without what they have in common."""
    places = {id(part): place for place, part in enumerate(common)}
    level = _core.level()
    parcels = []
    for number, task in enumerate(tasks):
        content = io.BytesIO()
        _Packer(content, places).dump(task)
        parcels.append(Parcel(number, content.getvalue(), level))
    return parcels


def run_parcel(common: Sequence[object], parcel: Parcel, monitor: Monitor) -> Returned[Any]:
    """Do a task, on one thread, in the process that it was sent to."""
    # The sender's level, where the processor has it: then the bits are the sender's too.
    if parcel.level != _core.level() and parcel.level in _core.levels():
        _core.use_level(parcel.level)
    try:
        task = _Unpacker(io.BytesIO(parcel.content), common).load()
        return Returned(parcel.number, _core.level(), value=task(1, monitor))
    except Exception as error:
        return Returned(parcel.number, _core.level(), error=error, where=traceback.format_exc())


class EngineRun(Generic[T]):
    """A run of tasks in other processes: what is sent to them, and what becomes of their answers.

    Parameters
    ----------
    tasks
        What is to be done.
    progress
        Told how far it is.
    keeping
        Knows results of some of them, and is handed those of the others.
    heed
        Raises if the work is to end.

    Attributes
    ----------
    common : tuple
        What the tasks share.
    parcels : list of Parcel
        Those whose results are not known, or have not come yet.
    monitor : Monitor
        How far they are.
    """

    def __init__(
        self,
        tasks: Sequence[Task[T]],
        progress: Progress | None,
        keeping: Keeping,
        heed: Heed,
    ) -> None:
        self._tasks, self._progress, self._keeping, self._heed = tasks, progress, keeping, heed
        self._returned: list[Returned[T]] = []
        self._done: dict[int, T] = keeping.recall(tasks)
        self.monitor = Monitor(len(tasks), heed=heed)
        for number in self._done:
            self.monitor.finish(number)
        self.common = in_common(tasks)
        self.parcels = [one for one in pack(tasks, self.common) if one.number not in self._done]

    def take(self, part: Returned[T], *, tell: bool = True) -> None:
        """Take what came back of a parcel; raises what its task raised, or what ends the work."""
        value = part.result()
        self._done[part.number] = value
        self._returned.append(part)
        # What other processors rounded differently is not what this machine would go on with.
        if part.is_like_here:
            self._keeping.add(self._tasks[part.number], value)
        self.monitor.finish(part.number)
        self._heed()
        if tell:
            self.tell()

    @property
    def is_kept(self) -> bool:
        """Whether somebody keeps what comes back."""
        return self._keeping.keeper is not None

    def waiting(self) -> list[Parcel]:
        """Parcels that have not come back."""
        return [parcel for parcel in self.parcels if parcel.number not in self._done]

    def tell(self) -> None:
        """Tell how far the work is."""
        if self._progress is not None:
            self._progress(self.monitor.standing)

    def results(self) -> list[T]:
        """What the tasks returned, in their order; warns if bits may differ from this process'."""
        _warn_of_other_levels(self._returned)
        return [self._done[number] for number in range(len(self._tasks))]


def _warn_of_other_levels(returned: Sequence[Returned[Any]]) -> None:
    """Warn if folds were computed at another instruction-set level than this process has."""
    here = _core.level()
    others = sorted({part.level for part in returned} - {here})
    if others:
        folds = [part.number + 1 for part in returned if part.level != here]
        warnings.warn(
            f"Folds {', '.join(map(str, folds))} ran on workers whose processors lack the "
            f"instruction-set level {here!r} of this process (they have {', '.join(others)}). "
            "Results agree with those of a single machine up to rounding, not to the last bit.",
            KernelLevelWarning,
            stacklevel=caller_stacklevel(),
        )


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, places: dict[int, int]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._places = places

    def persistent_id(self, obj: object) -> int | None:
        return self._places.get(id(obj))


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, common: Sequence[object]) -> None:
        super().__init__(file)
        self._common = common

    def persistent_load(self, pid: int) -> object:
        return self._common[pid]
