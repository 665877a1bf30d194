"""Folds by Ray: the bits of threads, and a worker that is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

import pytest
from test_joblib_backends import same_fit

import cstonet as cs
from cstonet import errors

pytestmark = pytest.mark.slow  # Ray takes seconds to start


@pytest.fixture(scope="module")
def workers():
    """Two workers of this machine."""
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'cstonet[ray]'")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("workers")
def test_ray_gives_the_bits_of_threads(simulation, short, in_threads):
    told = []
    results = cs.fit(
        simulation.formula,
        simulation.data,
        options=short,
        seed=3,
        backend="ray",
        n_jobs=2,
        progress=lambda *call: told.append(call),
    )
    same_fit(results, in_threads)
    assert told[-1][0] == told[-1][1]


@pytest.mark.usefixtures("workers")
def test_a_worker_of_ray_that_is_lost_is_named(simulation):
    def kill_one():
        end = time.monotonic() + 60
        while time.monotonic() < end:
            at_work = subprocess.run(
                ["pgrep", "-f", "ray::PoolActor.run_batch"], capture_output=True, text=True
            ).stdout.split()
            if at_work:
                os.kill(int(at_work[0]), signal.SIGKILL)
                return
            time.sleep(0.02)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(errors.WorkerLostError, match="Nothing of the fit is kept"):
        cs.fit(simulation.formula, simulation.data, seed=3, backend="ray", n_jobs=2, updates=50_000)
    killer.join()
