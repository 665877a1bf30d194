"""Folds on a Dask cluster of two processes: bits, lost workers, schedulers that are not there."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import dask
import joblib
import numpy as np
import pytest
from remote_tasks import Dies, Fails, Returns, Sums, Waits

import cstonet as cs
from cstonet import errors

distributed = pytest.importorskip("distributed", reason="needs the extra dask")

from cstonet import cluster_client  # noqa: E402
from cstonet.crossfit.dask_cluster import DaskEngine  # noqa: E402


def fit(simulation, options, **more):
    return cs.fit(simulation.formula, simulation.data, options=options, seed=3, **more)


def test_a_cluster_gives_the_bits_of_threads(client, simulation, short, in_threads):
    told = []
    results = fit(simulation, short, backend="dask", progress=lambda *call: told.append(call))
    np.testing.assert_array_equal(results.effects.influence, in_threads.effects.influence)
    assert results.selection.equals(in_threads.selection)
    assert len(told) == 6
    assert told[-1][0] == told[-1][1]


def test_joblibs_configuration_of_a_cluster_counts(client, simulation, short, in_threads):
    with joblib.parallel_config("dask"):
        results = fit(simulation, short)
    np.testing.assert_array_equal(results.effects.influence, in_threads.effects.influence)


def test_data_travel_once_per_worker(client, monkeypatch):
    sent = []
    scatter, submit = client.scatter, client.submit
    monkeypatch.setattr(client, "scatter", lambda *a, **k: sent.append(a) or scatter(*a, **k))

    def submitted(*given, **options):
        assert len(given[2].content) < 1000  # the parcel has a number in the place of the data
        return submit(*given, **options)

    monkeypatch.setattr(client, "submit", submitted)
    tasks = [Sums(np.ones(1_000_000))] * 8
    assert DaskEngine(client).run(tasks, None) == [1e6] * 8
    assert len(sent) == 1


def test_fits_share_a_connection(cluster, monkeypatch):
    monkeypatch.setattr(cluster_client, "get_client", lambda: int("no client here"))
    with dask.config.set({"scheduler-address": cluster.scheduler_address}):
        one, other = cluster_client.connected_client(), cluster_client.connected_client()
        assert one is other
        one.close()
        again = cluster_client.connected_client()
        assert again is not one
        assert again.status == "running"
        again.close()


def test_errors_of_folds_arrive_as_themselves(client):
    for error in (errors.NumericalError("this fold"), OSError("its disk")):
        with pytest.raises(type(error), match=str(error)):
            DaskEngine(client).run([Returns(1), Fails(error)], None)


def test_a_worker_killed_midway(mortal, simulation, short, in_threads):
    pids = list(mortal.run(os.getpid).values())
    killed = []

    def kill_once(done, total):
        if not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    results = fit(simulation, short, backend="dask", progress=kill_once)
    assert killed
    np.testing.assert_array_equal(results.effects.influence, in_threads.effects.influence)
    assert results.selection.equals(in_threads.selection)


def test_data_lost_with_the_only_worker_are_sent_again(local_cluster, tmp_path):
    array = np.ones(1000)
    with local_cluster(1) as cluster, distributed.Client(cluster) as client:
        tasks = [Sums(array), Dies(tmp_path / "once", shared=(array,)), Sums(array)]
        assert DaskEngine(client).run(tasks, None) == [1000.0, "survived", 1000.0]


def test_a_worker_lost_for_good_is_named(mortal):
    with pytest.raises(errors.WorkerLostError, match="lost for good"):
        DaskEngine(mortal).run([Dies(), Returns(1)], None)


def test_an_interruption_cancels_what_is_queued_and_stops_what_runs(client, tmp_path):
    begun = [tmp_path / str(k) for k in range(6)]

    def interrupt(standing):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DaskEngine(client).run([Returns(0), *map(Waits, begun)], interrupt)
    # Tasks that went on sleeping would keep the workers for a minute.
    assert DaskEngine(client).run([Returns(1), Returns(2)], None) == [(1, 1), (2, 1)]
    running = [path for path in begun if path.exists()]
    assert len(running) <= 3
    assert not any(path.with_suffix(".slept").exists() for path in begun)


def test_no_client_is_named(simulation, monkeypatch):
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    with pytest.raises(errors.SchedulerError, match="A Dask client is needed"):
        fit(simulation, None, backend="dask")


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_scheduler_that_is_not_there_is_named(simulation, monkeypatch):
    import dask

    address = f"tcp://127.0.0.1:{unused_port()}"
    monkeypatch.setattr(cluster_client, "_PATIENCE", 0.5)
    with (
        dask.config.set({"scheduler-address": address}),
        pytest.raises(errors.SchedulerError, match=f"{address} cannot be reached"),
    ):
        fit(simulation, None, backend="dask")


def test_a_cluster_without_workers_is_named(local_cluster, monkeypatch):
    monkeypatch.setattr(cluster_client, "_PATIENCE", 0.5)
    with (
        local_cluster(0) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(errors.SchedulerError, match="no worker"),
    ):
        DaskEngine(client).run([Returns(1)], None)


def test_a_scheduler_lost_midway_is_named(local_cluster, tmp_path):
    begun = tmp_path / "begun"
    with local_cluster(1) as cluster, distributed.Client(cluster) as client:

        def close_when_begun():
            while not begun.exists():
                time.sleep(0.05)
            cluster.close()

        closer = threading.Thread(target=close_when_begun)
        closer.start()
        with pytest.raises(errors.SchedulerError, match="lost during the fit"):
            DaskEngine(client).run([Waits(begun), Returns(1)], None)
        closer.join()
