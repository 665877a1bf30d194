"""Progress of a fit: a bar, a callback, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cstonet.errors import OptionError

Progress = Callable[[int, int], object]


@contextmanager
def progress_reporter(progress: object) -> Iterator[Progress | None]:
    """The function that training reports to, or None.

    Parameters
    ----------
    progress
        None or False for silence, True for a bar, or a function of (steps done, steps in all).
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        # In a notebook without widgets this import warns: only those who want the bar hear it.
        from tqdm.auto import tqdm

        with tqdm(unit="step", desc="training") as bar:

            def update(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            yield update
    elif callable(progress):
        yield progress
    else:
        raise OptionError(
            f"progress must be None, True or a function of (done, total); got {progress!r}."
        )


def part_of(progress: Progress | None, number: int, parts: int) -> Progress | None:
    """Progress of one of several trainings of equal length, counted as its share of all."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, parts * total)
