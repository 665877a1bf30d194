"""Folds side by side: tasks, threads, progress, interruption."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from cstonet.crossfit.keeping import Keeper, Keeping
from cstonet.crossfit.progress import Progress, Stage, Standing
from cstonet.crossfit.stopping import Heed, heed_others
from cstonet.crossfit.threads import Crew
from cstonet.errors import FilePathError, OptionError, StoppedError
from cstonet.memory import affordable_threads
from cstonet.settings.checks import as_whole
from cstonet.shown import shown

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# Beyond what any machine has; the kernel counts threads in 32 bits.
MOST_JOBS = 2**31 - 1
# How long the calling thread waits between looks at signals, in seconds.
POLL = 0.04
# Progress of a fold counts in these units; a search fills its part ever more slowly, because
# nobody knows how many refits it will take.
SEARCH_UNITS, TRAIN_UNITS = 50, 50
# What takes longer than this is kept as soon as it is done, not only with its fold, in seconds.
_LONG = 10.0


class Stopped(Exception):
    """Raised in a worker when the fit was interrupted elsewhere."""


class Monitor:
    """Progress of the folds, the sign for them to stop, and who may help with them.

    Parameters
    ----------
    folds
        How many there are.
    crew
        Threads that work on the folds, and are idle once no fold waits; None: nobody else.
    heed
        Raises if the work is to end.
    keeper
        Keeps parts of a fold that take long; None: nobody does.
    """

    def __init__(
        self,
        folds: int,
        crew: Crew | None = None,
        heed: Heed = heed_others,
        keeper: Keeper | None = None,
    ) -> None:
        self.stop = threading.Event()
        self._done = [0] * folds
        self._finished = [False] * folds
        self._crew = crew
        self._heed = heed
        self._keeper = keeper
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Monitor], tuple[int]]:
        # In another process it counts for itself: nobody there hears the sign to stop, or keeps
        # anything.
        return Monitor, (len(self._done),)

    def check(self, _: int = 0) -> None:
        """Raise in a worker if the fit was interrupted."""
        if self.stop.is_set():
            raise Stopped
        self._heed()

    def recall(self, key: str, take_back: Callable[[Any], T]) -> T | None:
        """A part of a fold that was kept, as somebody takes it back, or None."""
        return None if self._keeper is None else self._keeper.recall(key, take_back)

    def keep(self, key: str, part: object, seconds: float) -> None:
        """Keep a part of a fold, if it took so long that nobody wants to wait for it again."""
        if self._keeper is not None and seconds > _LONG:
            with suppress(FilePathError):  # whoever keeps the fold will tell of it
                self._keeper.keep(key, part)

    def advance(self, fold: int, units: int) -> None:
        """Set a fold's progress; it never goes back."""
        self.check()
        with self._lock:  # two starts of a fold may be at work
            self._done[fold] = max(self._done[fold], units)

    def finish(self, fold: int) -> None:
        """Count a fold as done, wherever it was trained."""
        self._done[fold] = SEARCH_UNITS + TRAIN_UNITS
        self._finished[fold] = True

    def spread(self, parts: Sequence[Callable[[], T]]) -> list[T]:
        """What the parts of a fold's work return.

        They are done one after the other, unless somebody is idle and takes one.
        """
        if self._crew is None or not parts:
            return [part() for part in parts]
        offered = [self._crew.submit(part) for part in parts[1:]]
        done = [parts[0]()]
        for part, offer in zip(parts[1:], offered, strict=True):
            done.append(part() if offer.cancel() else offer.result())
        return done

    def searching(self, fold: int) -> Callable[[int], None]:
        """What a search calls now and then: ever smaller steps towards the end of its part."""
        looks = 0

        def look(_: int) -> None:
            nonlocal looks
            looks += 1
            self.advance(fold, int(SEARCH_UNITS * (1 - 100 / (100 + looks))))

        return look

    @property
    def standing(self) -> Standing:
        """How far the folds are."""
        return Standing(
            stage=self._stage,
            done=sum(self._done),
            total=len(self._done) * (SEARCH_UNITS + TRAIN_UNITS),
            finished=sum(self._finished),
            parts=len(self._finished),
        )

    @property
    def _stage(self) -> Stage:
        """The stage of the first fold at work; folds elsewhere do not say theirs."""
        folds = zip(self._done, self._finished, strict=True)
        at_work = [units for units, finished in folds if units and not finished]
        return "searching" if at_work and at_work[0] < SEARCH_UNITS else "training"


class Task(Protocol[T_co]):
    """The work of one fold.

    Picklable, if it is to run in another process; a `Keepable`, if there is a keeper.
    """

    @property
    def shared(self) -> tuple[object, ...]:
        """Large parts that tasks have in common: sent to every worker once, not with each task."""

    def __call__(self, threads: int, monitor: Monitor) -> T_co:
        """Do it on so many threads, telling the monitor how far it is."""


class Engine(Protocol):
    """What runs tasks elsewhere than in the threads of this process."""

    def run(
        self,
        tasks: Sequence[Task[T]],
        progress: Progress | None,
        keeping: Keeping | None = None,
        heed: Heed = heed_others,
    ) -> list[T]:
        """Run the tasks, in any order, and return what they return, in theirs.

        Parameters
        ----------
        tasks
            What is to be done.
        progress
            Told how far it is.
        keeping
            Knows results of some of them, and is handed those of the others.
        heed
            Raises if the work is to end; asked at least whenever a task is done.
        """


@dataclass(frozen=True, slots=True)
class Workforce:
    """Who does the work of a fit, and who is told about it.

    Attributes
    ----------
    threads
        Threads to use in this process.
    progress
        Told now and then how far the work is, if anybody is.
    engine
        Runs the folds elsewhere; None: these threads do.
    keeper
        Keeps what folds return; None: nobody does.
    heed
        Raises if the work is to end.
    """

    threads: int
    progress: Progress | None = None
    engine: Engine | None = None
    keeper: Keeper | None = None
    heed: Heed = heed_others

    def part(self, number: int, parts: int) -> Workforce:
        """The same for one of several trainings of equal length."""
        tell = self.progress
        if tell is None:
            return self
        return replace(self, progress=lambda standing: tell(standing.share_of(number, parts)))

    def announce(self, stage: Stage) -> None:
        """Tell of a stage that has no steps of its own, unless the work is to end."""
        self.heed()
        if self.progress is not None:
            self.progress(Standing(stage))

    def run(self, tasks: Sequence[Task[T]]) -> list[T]:
        """Run tasks at the same time, each on its share of the threads; Ctrl-C stops them all.

        Those whose results are kept from an earlier time are not run again.
        """
        keeping = Keeping(self.keeper)
        try:
            if self.engine is not None:
                return self.engine.run(tasks, self.progress, keeping, self.heed)
            return self._run_here(tasks, keeping)
        except (KeyboardInterrupt, StoppedError) as error:
            advice = keeping.how_to_resume()
            if not advice:
                raise
            raise type(error)(" ".join([*map(str, error.args), advice])) from None

    def _run_here(self, tasks: Sequence[Task[T]], keeping: Keeping) -> list[T]:
        """Run tasks in threads, or in this one if the system has none for them."""
        done: dict[int, T] = keeping.recall(tasks)
        waiting = [number for number in range(len(tasks)) if number not in done]
        workers = min(self.threads, len(tasks))
        inner = max(1, self.threads // workers)
        with Crew(affordable_threads(min(workers, len(waiting)))) as crew:
            monitor = Monitor(len(tasks), crew if crew.size else None, self.heed, self.keeper)
            for number in done:
                monitor.finish(number)

            def finish(number: int, value: T) -> None:
                done[number] = value
                keeping.add(tasks[number], value)
                monitor.finish(number)

            if not crew.size:  # all is known, or there is no thread, or no memory for one
                self._tell(monitor)
                for number in waiting:
                    finish(number, tasks[number](inner, monitor))
                    self._tell(monitor)
                return [done[number] for number in range(len(tasks))]
            futures = {crew.submit(tasks[number], inner, monitor): number for number in waiting}
            try:
                while futures:
                    ready, _ = wait(futures, timeout=POLL, return_when=FIRST_EXCEPTION)
                    # What a fold raised is raised after the others of this moment are kept.
                    for future in sorted(ready, key=lambda one: one.exception() is not None):
                        finish(futures.pop(future), future.result())
                    self.heed()
                    self._tell(monitor)
            except BaseException:
                monitor.stop.set()
                for future in futures:
                    future.cancel()
                raise
        return [done[number] for number in range(len(tasks))]

    def _tell(self, monitor: Monitor) -> None:
        if self.progress is not None:
            self.progress(monitor.standing)


def thread_count(n_jobs: object) -> int:
    """Number of threads for ``n_jobs``: -1 is every core this process may use."""
    wanted = as_whole(n_jobs)
    if wanted is None or wanted == 0 or abs(wanted) > MOST_JOBS:
        raise OptionError(
            "n_jobs must be a whole number other than 0 (-1: every core), and not beyond "
            f"{MOST_JOBS}; got {shown(n_jobs)}."
        )
    if wanted > 0:
        return wanted
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, cores + 1 + wanted)
