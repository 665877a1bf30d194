"""Folds by joblib: the bits of threads, errors by their names, progress, interruption."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys

import joblib
import numpy as np
import pytest
from remote_tasks import Dies, Fails, Returns, Sums

import cstonet as cs
from cstonet import _core, errors
from cstonet.crossfit import backends, parcels
from cstonet.crossfit.backends import JoblibEngine, choose_engine
from cstonet.crossfit.keeping import Keeping
from cstonet.crossfit.stopping import heed_others
from cstonet.crossfit.workforce import Monitor
from cstonet.data import storage

LOKY = JoblibEngine("loky", 2)


def same_fit(one, other):
    np.testing.assert_array_equal(one.effects.influence, other.effects.influence)
    np.testing.assert_array_equal(one.bse, other.bse)
    assert one.selection.equals(other.selection)
    assert one.trace.equals(other.trace)


# Bits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading", "sequential"])
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_backends_give_the_bits_of_threads(simulation, short, in_threads, backend, n_jobs):
    told = []
    results = cs.fit(
        simulation.formula,
        simulation.data,
        options=short,
        seed=3,
        backend=backend,
        n_jobs=n_jobs,
        progress=lambda *call: told.append(call),
    )
    same_fit(results, in_threads)
    total = told[-1][1]
    assert told == sorted(told)
    assert told[-1] == (total, total)
    assert len(told) >= 6  # one per fold


def test_a_configuration_of_joblib_counts(simulation, short, in_threads):
    with joblib.parallel_config("loky", n_jobs=2):
        assert choose_engine(None, -1).n_jobs == 2
        assert choose_engine(None, 3).n_jobs == 3
        assert choose_engine("threads", -1) is None
        same_fit(cs.fit(simulation.formula, simulation.data, options=short, seed=3), in_threads)


def test_without_a_configuration_threads_do_the_work():
    assert choose_engine(None, -1) is None
    with joblib.parallel_config(n_jobs=2):  # no backend was chosen
        assert choose_engine(None, -1) is None


def test_inside_of_a_worker_threads_do_the_work():
    inside = joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(choose_engine)(None, -1) for _ in range(2)
    )
    assert inside == [None, None]


@pytest.mark.parametrize("missing", ["mar", "mnar"])
def test_imputations_travel(simulation, quick_options, missing):
    frame = simulation.data.copy()
    frame.loc[frame.index % 7 == 0, "x1"] = np.nan
    options = quick_options(starts=1, epochs=4)
    here, there = (
        cs.fit(simulation.formula, frame, missing=missing, options=options, seed=1, backend=backend)
        for backend in ("threads", "loky")
    )
    same_fit(there, here)


def test_a_matrix_in_a_temporary_file_travels(simulation, short, in_threads, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    simulation.data.to_parquet(tmp_path / "x.parquet")
    monkeypatch.setattr(storage, "available_bytes", lambda: 0)
    results = cs.fit(
        simulation.formula, tmp_path / "x.parquet", options=short, seed=3, backend="loky", n_jobs=2
    )
    same_fit(results, in_threads)


def test_mediators_and_doses_travel(quick_options):
    for simulation, options in (
        (cs.datasets.one_mediator(n=200, p=6, seed=1), quick_options(starts=1, epochs=4)),
        (cs.datasets.dose_curve(n=200, p=6, seed=1), quick_options(starts=1, epochs=4)),
    ):
        here, there = (
            cs.fit(simulation.formula, simulation.data, options=options, seed=1, backend=backend)
            for backend in ("threads", "loky")
        )
        same_fit(there, here)


def test_covariates_are_the_same_after_a_journey():
    x = np.asfortranarray(np.random.default_rng(1).normal(size=(50, 3)))
    for pack_bytes in (0, 1 << 20):
        data = _core.Dataset(x, x.mean(axis=0), 1 / x.std(axis=0), 2.0, pack_bytes)
        again = pickle.loads(pickle.dumps(data))
        rows, columns = np.arange(50), np.arange(3)
        assert again.is_packed == data.is_packed
        np.testing.assert_array_equal(again.gather(rows, columns), data.gather(rows, columns))


def test_a_large_copy_is_not_made_again_elsewhere():
    """Several processes may share a machine."""
    x = np.zeros((4200, 4096), dtype=np.float32)  # more than 64 MB
    x[-1] = np.arange(4096)
    data = _core.Dataset(x, np.zeros(4096), np.ones(4096), 1e6, 2**30)
    again = pickle.loads(pickle.dumps(data))
    assert (data.is_packed, again.is_packed) == (True, False)
    last, columns = np.array([4199]), np.arange(4096)
    np.testing.assert_array_equal(again.gather(last, columns), data.gather(last, columns))


# Parcels -----------------------------------------------------------------------------------------


def test_what_tasks_share_travels_once():
    array = np.ones(100_000)
    tasks = [Sums(array) for _ in range(3)]
    common = parcels.in_common(tasks)
    assert len(common) == 1
    assert common[0] is array
    assert all(len(parcel.content) < 1000 for parcel in parcels.pack(tasks, common))
    assert LOKY.run(tasks, None) == [100_000.0] * 3


def test_parts_of_single_tasks_are_no_common_ones():
    assert parcels.in_common([Sums(np.ones(3)), Sums(np.ones(3))]) == ()


def test_workers_use_one_thread_each():
    assert LOKY.run([Returns(k) for k in range(4)], None) == [(k, 1) for k in range(4)]


def test_workers_take_the_level_of_the_sender():
    own = _core.level()
    for level in _core.levels():
        try:
            parcel = parcels.pack([Returns(1)], ())[0]
            parcel = parcels.Parcel(parcel.number, parcel.content, level)
            assert parcels.run_parcel((), parcel, Monitor(1)).level == level
        finally:
            _core.use_level(own)


def test_another_level_is_warned_of():
    parcel = parcels.pack([Returns(1)], ())[0]
    foreign = parcels.Parcel(0, parcel.content, "level of another machine")
    assert parcels.run_parcel((), foreign, Monitor(1)).level == _core.level()
    run = parcels.EngineRun([Returns(5), Returns(6)], None, Keeping(), heed_others)
    for part in (parcels.Returned(0, _core.level(), 5), parcels.Returned(1, "v0", 6)):
        run.take(part)
    with pytest.warns(errors.KernelLevelWarning, match=r"Folds 2 ran .* up to rounding"):
        assert run.results() == [5, 6]


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_errors_of_folds_arrive_as_themselves(backend):
    tasks = [Returns(1), Fails(errors.NumericalError("this fold"))]
    with pytest.raises(errors.NumericalError, match="this fold") as raised:
        JoblibEngine(backend, 2).run(tasks, None)
    assert "raise self.error" in str(raised.value.__cause__)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_errors_of_the_callback_reach_the_caller(backend):
    class Enough(Exception):
        pass

    def stop(standing):
        raise Enough

    with pytest.raises(Enough):
        JoblibEngine(backend, 2).run([Returns(k) for k in range(4)], stop)


def test_a_lost_process_is_named():
    with pytest.raises(errors.WorkerLostError, match="ended before its fold was done"):
        LOKY.run([Dies(), Returns(1)], None)
    assert LOKY.run([Returns(1)], None) == [(1, 1)]  # the next fit has new workers


def test_unknown_backends_are_refused(simulation):
    with pytest.raises(errors.OptionError, match="Did you mean 'loky'"):
        cs.fit(simulation.formula, simulation.data, backend="lokey")
    with pytest.raises(errors.OptionError, match="must be the name of a joblib backend; got 3"):
        cs.fit(simulation.formula, simulation.data, backend=3)


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_missing_packages_are_named(backend, simulation, monkeypatch):
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    with pytest.raises(errors.MissingPackageError, match=rf"pip install 'cstonet\[{backend}\]'"):
        cs.fit(simulation.formula, simulation.data, backend=backend)


# Interruption ------------------------------------------------------------------------------------

INTERRUPTED = """
import signal, sys
from pathlib import Path
from remote_tasks import Waits
from cstonet.crossfit.backends import JoblibEngine

if __name__ == "__main__":
    # A shell that runs the tests in the background has it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tasks = [Waits(Path(name)) for name in sys.argv[2:]]
    try:
        JoblibEngine(sys.argv[1], 2).run(tasks, None)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_ctrl_c_interrupts(backend, tmp_path):
    """The tasks would sleep for a minute each, two at a time."""
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    begun = [tmp_path / str(k) for k in range(6)]
    path = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, str(script), backend, *map(str, begun)],
        stdout=subprocess.PIPE,
        text=True,
        env=path,
    ) as child:
        try:
            while child.poll() is None and not any(file.exists() for file in begun):
                pass
            child.send_signal(signal.SIGINT)
            rest, _ = child.communicate(timeout=30)
        finally:
            child.kill()
    assert rest == "interrupted\n"
    assert sum(file.exists() for file in begun) <= 2  # what was queued never began
