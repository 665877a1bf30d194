"""Folds on a Dask cluster. Imported only where one is asked for.

joblib has a backend for Dask. It never hears of a task that was lost with its worker, and would
wait for it for ever, so folds are handed to Dask's own client.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Any, TypeVar

from distributed import Client, Future, get_worker

from cstonet.cluster_client import ATTEMPTS, check_workers, lost_for_good, named_errors
from cstonet.crossfit.keeping import Keeping
from cstonet.crossfit.parcels import EngineRun, Parcel, Returned, run_parcel
from cstonet.crossfit.progress import Progress
from cstonet.crossfit.stopping import Heed, heed_others
from cstonet.crossfit.workforce import POLL, Monitor, Stopped, Task

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DaskEngine:
    """Runs folds on the workers of a Dask cluster.

    Attributes
    ----------
    client
        The connection to its scheduler.
    """

    client: Client

    def run(
        self,
        tasks: Sequence[Task[T]],
        progress: Progress | None,
        keeping: Keeping | None = None,
        heed: Heed = heed_others,
    ) -> list[T]:
        """Run the tasks, in any order, and return what they return, in theirs."""
        run = EngineRun(tasks, progress, keeping or Keeping(), heed)
        for _ in range(ATTEMPTS):
            if not run.waiting():
                return run.results()
            # Closed here and now: an error's traceback would keep the iterator, and folds, alive.
            with closing(self._each(run.common, run.waiting(), heed)) as parts:
                for part in parts:
                    run.take(part)
        if not run.waiting():
            return run.results()
        raise lost_for_good(f"the data were lost with the last worker {ATTEMPTS} times")

    def _each(
        self, common: tuple[object, ...], parcels: list[Parcel], heed: Heed
    ) -> Generator[Returned[Any], None, None]:
        """What comes back of parcels, as it comes; those whose data were lost are left out."""
        futures: list[Future] = []
        with named_errors(self.client):
            check_workers(self.client)
            try:
                # Every worker gets the data once and keeps them for all its folds.
                data = self.client.scatter(common, broadcast=True, hash=False) if common else ()
                for parcel in parcels:
                    futures.append(self.client.submit(_on_worker, data, parcel, pure=False))
                for future in _as_finished(futures, heed):
                    try:
                        part = future.result()
                    except CancelledError:
                        # Its data were lost, unless the connection is gone as well.
                        if self.client.status != "running":
                            raise
                        continue
                    yield part
            finally:
                if self.client.status == "running":
                    self.client.cancel(futures, force=True)


def _as_finished(futures: list[Future], heed: Heed) -> Iterator[Future]:
    """Futures as they are finished, or given up; between them, who wants the work to end is asked.

    Dask's own `as_completed` waits for the next one, however long that takes.
    """
    finished: Queue[Future] = Queue()
    for future in futures:
        future.add_done_callback(finished.put)
    for _ in futures:
        while True:
            try:
                yield finished.get(timeout=POLL)
                break
            except Empty:
                heed()


class _WorkerMonitor(Monitor):
    """The monitor of a task on a worker, which is to stop when the client cancels it."""

    def __init__(self, folds: int) -> None:
        super().__init__(folds)
        self._worker = get_worker()
        self._key = self._worker.get_current_task()

    def check(self, _: int = 0) -> None:
        """Raise if the fit was interrupted."""
        task = self._worker.state.tasks.get(self._key)
        if task is None or task.state == "cancelled":
            raise Stopped
        super().check()


def _on_worker(common: Sequence[object], parcel: Parcel) -> Returned[Any]:
    return run_parcel(common, parcel, _WorkerMonitor(parcel.number + 1))
