"""What tasks have returned, kept where an interruption does not reach it, and not done again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from cstonet.data.caller import caller_stacklevel
from cstonet.errors import CheckpointWarning, FilePathError

T = TypeVar("T")


class Keeper(Protocol):
    """Keeps values under names, each of them whole or not at all."""

    @property
    def where(self) -> str:
        """The place, for messages."""

    def recall(self, key: str, take_back: Callable[[Any], T]) -> T | None:
        """What was kept under a name, as somebody takes it back; None if nothing was.

        Raises
        ------
        CheckpointError
            If it cannot be read or taken back, whatever the reason.
        """

    def keep(self, key: str, value: object) -> None:
        """Keep a value; raises FilePathError if the place refuses it."""

    def forget(self, prefix: str) -> None:
        """Drop what was kept under names that begin so."""


class Keepable(Protocol):
    """A task whose result can be kept."""

    @property
    def key(self) -> str:
        """Tells its result from those of the fit's other tasks."""

    def take_back(self, kept: Any) -> Any:
        """What it would have returned, from what was kept of that; any error if that cannot be."""


class Keeping:
    """The results of a run's tasks, of which the keeper knows some and is handed the others.

    Parameters
    ----------
    keeper
        None: nothing is known, and nothing is kept.
    """

    def __init__(self, keeper: Keeper | None = None) -> None:
        self.keeper = keeper
        self._waiting: dict[str, object] = {}  # for which there was no room
        self._told = False
        self._done = 0
        self._tasks = 0

    def recall(self, tasks: Sequence[Keepable | Any]) -> dict[int, Any]:
        """Results that are known, by the numbers of their tasks."""
        self._tasks = len(tasks)
        if self.keeper is None:
            return {}
        known = {}
        for number, task in enumerate(tasks):
            kept = self.keeper.recall(task.key, task.take_back)
            if kept is not None:
                known[number] = kept
        self._done = len(known)
        return known

    def add(self, task: Keepable | Any, value: object) -> None:
        """Keep the result of a task; called by the thread that the user waits in.

        Who has no room for it is told, and the fit goes on: hours of work are not thrown away
        because of a full disk.
        """
        self._done += 1
        if self.keeper is None:
            return
        self._waiting[task.key] = value
        try:
            for key in list(self._waiting):
                self.keeper.keep(key, self._waiting[key])
                self.keeper.forget(f"{key}-")
                del self._waiting[key]
        except FilePathError as error:
            if not self._told:
                self._told = True
                warnings.warn(
                    f"checkpoint={self.keeper.where!r} misses folds that are finished: {error} The "
                    "fit goes on, and tries again with every further fold; if it is interrupted, "
                    "what is missing there is done anew.",
                    CheckpointWarning,
                    stacklevel=caller_stacklevel(),
                )

    def how_to_resume(self) -> str:
        """What to do after an interruption; nothing to say where nothing is kept."""
        if self.keeper is None:
            return ""
        kept = self._done - len(self._waiting)
        return (
            f"Interrupted after {self._done} of {self._tasks} folds; {kept} are in "
            f"{self.keeper.where!r}, and the same call goes on from there."
        )
