"""A Dask cluster of two worker processes, small data, and what a fit of them gives in threads."""

from __future__ import annotations

from contextlib import suppress

import pytest

import cstonet as cs


@pytest.fixture(scope="package")
def simulation():
    return cs.datasets.simulation2(n=240, p=6, seed=2)


@pytest.fixture(scope="package")
def short(quick_options):
    """Three folds in two repetitions: six tasks."""
    return quick_options(folds=3, repeats=2, starts=1, epochs=6)


@pytest.fixture(scope="package")
def in_threads(simulation, short):
    return cs.fit(simulation.formula, simulation.data, options=short, seed=3, backend="threads")


@pytest.fixture(scope="package")
def local_cluster():
    dask = pytest.importorskip("dask", reason="needs the extra dask")
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")

    def start(workers: int):
        # A task may take one worker with it, not Dask's three: each has to be started anew.
        with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
            return distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            )

    return start


@pytest.fixture(scope="package")
def cluster(local_cluster):
    with local_cluster(2) as both:
        yield both


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster) as connected:
        connected.wait_for_workers(2, timeout=60)
        yield connected


@pytest.fixture
def mortal(local_cluster):
    """A client of two workers that no other test needs any more."""
    from distributed import Client

    both = local_cluster(2)
    try:
        with Client(both) as connected:
            connected.wait_for_workers(2, timeout=60)
            yield connected
    finally:
        # Of a worker that was killed Dask's own list may know nothing any more when it is closed.
        with suppress(KeyError):
            both.close()
