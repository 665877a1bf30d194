"""Which engine runs the folds: the threads of this process, a joblib backend, a Dask cluster."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from cstonet.crossfit.keeping import Keeping
from cstonet.crossfit.parcels import EngineRun, Parcel, Returned, run_parcel
from cstonet.crossfit.progress import Progress
from cstonet.crossfit.stopping import Heed, heed_others
from cstonet.crossfit.workforce import Engine, Monitor, Task
from cstonet.data.columns import listing
from cstonet.errors import MissingPackageError, OptionError, WorkerLostError
from cstonet.shown import shown
from cstonet.suggestions import did_you_mean

T = TypeVar("T")

THREADS, DASK, RAY = "threads", "dask", "ray"
# What a backend imports, and the extra of this package that installs it.
_PACKAGES = {DASK: "distributed", RAY: "ray"}


def choose_engine(backend: object, n_jobs: int) -> Engine | None:
    """The engine that a fit asks for; None: the threads of this process.

    Parameters
    ----------
    backend
        ``"threads"``, ``"dask"``, ``"ray"`` or the name of a joblib backend. None: that of a
        ``joblib.parallel_config`` around the fit, and threads without one.
    n_jobs
        As the user gave it.

    Raises
    ------
    OptionError
        If there is no such backend.
    MissingPackageError
        If its package is not installed.
    SchedulerError
        If the scheduler of a cluster is not there.
    """
    if backend is None:
        return _configured(n_jobs)
    if not isinstance(backend, str):
        raise OptionError(f"backend must be the name of a joblib backend; got {shown(backend)}.")
    if backend == THREADS:
        return None
    package = _PACKAGES.get(backend)
    if package is not None and find_spec(package) is None:
        raise MissingPackageError(
            f"backend={backend!r} needs the package {package}, which is not installed. Install it "
            f"with: pip install 'cstonet[{backend}]'."
        )
    if backend == DASK:
        from cstonet.cluster_client import connected_client
        from cstonet.crossfit.dask_cluster import DaskEngine

        return DaskEngine(connected_client())
    _check_registered(backend)
    return JoblibEngine(backend, n_jobs)


def _configured(n_jobs: int) -> Engine | None:
    """The engine of a ``joblib.parallel_config`` around the fit, if there is one."""
    # Who never imported joblib has configured nothing, and need not wait for its import.
    if "joblib" not in sys.modules:
        return None
    from joblib.parallel import get_active_backend

    # Of two calls outside of a configuration, each gets a new backend.
    active, wanted = get_active_backend()
    if active is not get_active_backend()[0] or active.nesting_level:
        return None
    if type(active).__name__ == "DaskDistributedBackend":
        from cstonet.crossfit.dask_cluster import DaskEngine

        return DaskEngine(active.client)
    return JoblibEngine(active, n_jobs if wanted is None or n_jobs != -1 else wanted)


def _check_registered(name: str) -> None:
    from joblib.parallel import BACKENDS

    if name == RAY and name not in BACKENDS:
        import_module("ray.util.joblib").register_ray()
    if name not in BACKENDS:
        known = sorted({*BACKENDS, *_PACKAGES, THREADS})
        raise OptionError(
            f"backend={shown(name)} is not available; choose from {listing(known)}, or register it "
            f"with joblib.register_parallel_backend.{did_you_mean(name, known)}"
        )


@dataclass(frozen=True, slots=True)
class JoblibEngine:
    """Runs folds by joblib.

    Attributes
    ----------
    backend
        Name of a backend, or one that was configured.
    n_jobs
        Workers, as joblib counts them.
    """

    backend: Any
    n_jobs: int

    def run(
        self,
        tasks: Sequence[Task[T]],
        progress: Progress | None,
        keeping: Keeping | None = None,
        heed: Heed = heed_others,
    ) -> list[T]:
        """Run the tasks, in any order, and return what they return, in theirs."""
        from joblib.parallel import BACKENDS

        run = EngineRun(tasks, progress, keeping or Keeping(), heed)
        named = isinstance(self.backend, str)
        backend = BACKENDS[self.backend]() if named else self.backend
        with _named_errors(), _stopping(run.monitor):
            if run.parcels and backend.supports_return_generator:
                self._one_by_one(run)
            elif run.parcels:
                # What is to be kept comes back before all is done.
                most = max(1, backend.effective_n_jobs(self.n_jobs)) if run.is_kept else None
                self._together(run, most)
        return run.results()

    def _parallel(self, **options: Any) -> Any:
        from joblib import Parallel

        return Parallel(
            n_jobs=self.n_jobs, backend=self.backend, batch_size=1, pre_dispatch="all", **options
        )

    def _one_by_one(self, run: EngineRun[Any]) -> None:
        """Results as they come: progress is told in this thread, the first error stops the rest."""
        from joblib import delayed

        calls = (delayed(run_parcel)(run.common, parcel, run.monitor) for parcel in run.parcels)
        stream = self._parallel(return_as="generator_unordered")(calls)
        try:
            for part in stream:
                run.take(part)
        finally:
            stream.close()

    def _together(self, run: EngineRun[Any], most: int | None) -> None:
        """Results of so many parcels at a time, from a backend that cannot give them singly."""
        from joblib import delayed

        while run.waiting():
            parcels = run.waiting()[:most]
            parallel = self._parallel()
            teller = parallel.print_progress = _Teller(run, parcels, parallel)
            calls = (delayed(run_parcel)(run.common, parcel, run.monitor) for parcel in parcels)
            returned: list[Returned[Any]] = parallel(calls)
            for part in returned:
                run.take(part, tell=False)
            if teller.error is not None:
                raise teller.error


class _Teller:
    """Tells about progress where joblib would print it, which is in a thread of its own.

    Nobody would hear an error there: it is kept.
    """

    def __init__(self, run: EngineRun[Any], parcels: list[Parcel], parallel: Any) -> None:
        self._run, self._parcels, self._parallel = run, parcels, parallel
        self._lock = threading.Lock()
        self._told = 0
        self.error: BaseException | None = None

    def __call__(self) -> None:
        if self.error is not None:
            return
        with self._lock:
            while self._told < self._parallel.n_completed_tasks:
                self._run.monitor.finish(self._parcels[self._told].number)
                self._told += 1
            try:
                self._run.tell()
            except BaseException as error:  # of any kind: the thread is not ours to end
                self.error = error


@contextmanager
def _stopping(monitor: Monitor) -> Iterator[None]:
    """Stop folds in threads of this process when something goes wrong, or Ctrl-C was pressed."""
    try:
        yield
    except BaseException:
        monitor.stop.set()
        raise


@contextmanager
def _named_errors() -> Iterator[None]:
    """Errors of joblib's backends under this package's names."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    lost: tuple[type[Exception], ...] = (BrokenProcessPool,)
    if "ray" in sys.modules:
        of_ray = import_module("ray.exceptions")
        lost += of_ray.RayActorError, of_ray.WorkerCrashedError
    try:
        yield
    except lost as error:
        raise WorkerLostError(
            "A worker process ended before its fold was done; it may have run out of memory, or "
            f"was killed. Nothing of the fit is kept. Fit again, with fewer workers (n_jobs) if "
            f"memory was short. The backend says: {error}"
        ) from error
