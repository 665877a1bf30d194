"""Progress of a fit: a bar, a callback, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cstonet.crossfit.training import Progress
from cstonet.errors import OptionError


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
