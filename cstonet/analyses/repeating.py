"""Work that is repeated, draw by draw: side by side, resumable, with its progress told."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from cstonet.analyses.ledger import Draw, Ledger
from cstonet.crossfit.progress import Standing
from cstonet.crossfit.workforce import SEARCH_UNITS, TRAIN_UNITS, Monitor, Workforce
from cstonet.errors import CStoNetWarning

# Does the draw of a number with the help of a workforce, which it must hand to its fits.
Work: TypeAlias = Callable[[int, Workforce], Draw]

_UNITS = SEARCH_UNITS + TRAIN_UNITS


def repeat(work: Work, draws: int, ledger: Ledger, workforce: Workforce) -> None:
    """Do the draws that the ledger does not hold yet, and put them there.

    Parameters
    ----------
    work
        What is done for a draw, as a function of its number alone.
    draws
        How many there are to be, of numbers 0, 1, ….
    ledger
        Holds those that are finished.
    workforce
        Threads, each of which does draws of its own, and who is told about the progress.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C, saying how to go on.
    """
    waiting = [number for number in range(draws) if number not in ledger.draws]
    before, report = draws - len(waiting), workforce.progress
    if not waiting:
        return

    def tell(standing: Standing) -> None:
        if report is not None:
            report(_of_all(standing, before, draws))

    tasks = [_Task(work, ledger, number, place) for place, number in enumerate(waiting)]
    try:
        # Draws have the cautions of the data, which the user has heard.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CStoNetWarning)
            replace(workforce, progress=tell).run(tasks)
    except KeyboardInterrupt:
        kept = sum(number in ledger.draws for number in range(draws))
        how = "Nothing of them is kept; with path=, finished draws are."
        if ledger.path is not None:
            how = f"They are in {str(ledger.path)!r}: the same call goes on from there."
        raise KeyboardInterrupt(
            f"{ledger.work}() was interrupted after {kept} of {draws} draws. {how}"
        ) from None


def _of_all(standing: Standing, before: int, draws: int) -> Standing:
    """The standing of some draws, as that of all of them."""
    return Standing(
        stage="repeating",
        done=standing.done + before * _UNITS,
        total=draws * _UNITS,
        finished=standing.finished + before,
        parts=draws,
        part="draw",
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """A draw, as one of the tasks of a workforce.

    Attributes
    ----------
    work, ledger
        What is done, and where it is kept.
    number, place
        Of the draw, and among those of this run.
    """

    work: Work
    ledger: Ledger
    number: int
    place: int

    @property
    def shared(self) -> tuple[object, ...]:
        """Nothing: threads do the draws."""
        return ()

    def __call__(self, threads: int, monitor: Monitor) -> None:
        """Do the draw on one thread; a fit that tells its progress hears the sign to stop."""
        del threads  # draws side by side need no more

        def tell(standing: Standing) -> None:
            share = standing.done / standing.total if standing.total else 0.0
            monitor.advance(self.place, int(share * _UNITS))

        self.ledger.add(self.number, self.work(self.number, Workforce(1, tell)))
