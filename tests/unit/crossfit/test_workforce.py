"""Folds side by side: progress, interruption, processes, threads."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest

import cstonet as cs
from cstonet import errors
from cstonet.crossfit.progress import Standing
from cstonet.crossfit.workforce import (
    SEARCH_UNITS,
    TRAIN_UNITS,
    Monitor,
    Workforce,
    thread_count,
)


def test_progress_is_reported(frame, options, capsys):
    calls = []
    cs.fit("y ~ treat | .", frame, options=options, progress=lambda *call: calls.append(call))
    total = calls[0][1]
    assert calls[-1] == (total, total)
    assert calls == sorted(calls)
    assert {of for _, of in calls} == {total}
    cs.fit("y ~ treat | .", frame, options=options, progress=True)
    shown = capsys.readouterr().err
    for part in ("reading", "training, fold 2/2 ", "estimating 100%"):
        assert part in shown


def test_exceptions_of_the_callback_reach_the_caller(frame, quick_options):
    class Enough(Exception):
        pass

    def stop(done, total):
        raise Enough(f"{done} of {total}")

    # So many epochs that the callback is called long before the end.
    with pytest.raises(Enough, match=r"\d+ of \d+"):
        cs.fit("y ~ treat | .", frame, options=quick_options(epochs=100_000), progress=stop)


INTERRUPTED_FIT = """
import signal, cstonet as cs
# A shell that runs the tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
from cstonet.settings.options import StageOptions
from cstonet.settings.presets import preset
from dataclasses import replace

options = preset("calibrated")
options = options.replace(
    training=replace(options.training, stages=(StageOptions(epochs=1_000_000),))
)
data = cs.datasets.simulation2(n=500, p=5).data
told = []
def report(done, total):
    if not told:
        told.append(True)
        print("training", flush=True)
try:
    cs.fit("y ~ treat | .", data, options=options, progress=report)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    quick = options.replace(training=replace(options.training, stages=(StageOptions(epochs=2),)))
    cs.fit("y ~ treat | .", data, options=quick)
    print("fitted again", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_interrupts_a_fit():
    """The training would take hours: that the child ends at all is what is tested."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED_FIT], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "training\n"
            child.send_signal(signal.SIGINT)
            rest, _ = child.communicate(timeout=60)
        finally:
            child.kill()
    assert rest == "interrupted\nfitted again\n"
    assert child.returncode == 0


def fit_in_child(frame, options, pipe):
    pipe.send(cs.fit("y ~ treat | .", frame, options=options, seed=3, n_jobs=2).params.to_numpy())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_fork_after_a_fit(frame, options, fitted):
    """Threads that outlive a call would hang a forked child at its first fit."""
    cs.fit("y ~ treat | .", frame, options=options, n_jobs=2)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=fit_in_child, args=(frame, options, sender))
    child.start()
    try:
        assert receiver.poll(60), "the child hangs"
        np.testing.assert_array_equal(receiver.recv(), fitted.params.to_numpy())
        child.join(60)
    finally:
        child.kill()


# Threads -----------------------------------------------------------------------------------------


def test_threads_count_from_the_last_core():
    cores = thread_count(-1)
    assert cores >= 1
    assert thread_count(3) == 3
    assert thread_count(np.int64(2)) == 2
    assert thread_count(-2) == max(1, cores - 1)
    assert thread_count(-10_000) == 1


@pytest.mark.parametrize("n_jobs", [0, True, 1.0, "all", None, 2**31, -(2**40), np.array([1, 2])])
def test_threads_are_whole_numbers(n_jobs):
    with pytest.raises(errors.OptionError, match="n_jobs must be a whole number other than 0"):
        thread_count(n_jobs)


@pytest.mark.parametrize(("threads", "inner"), [(1, 1), (2, 1), (3, 1), (6, 2), (7, 2)])
def test_folds_share_the_threads(threads, inner):
    tasks = [lambda given, monitor, k=k: (k, given) for k in range(3)]
    assert Workforce(threads).run(tasks) == [(k, inner) for k in range(3)]


def test_parts_of_a_fold_go_to_whoever_is_idle():
    together = threading.Barrier(2, timeout=60)

    def part(number):
        together.wait()  # broken unless both are at work at the same time
        return number, threading.get_ident()

    def spreads(threads, monitor):
        return monitor.spread([partial(part, 0), partial(part, 1)])

    ((first, second), nothing) = Workforce(2).run([spreads, lambda threads, monitor: None])
    assert (first[0], second[0], nothing) == (0, 1, None)
    assert first[1] != second[1]


def test_parts_of_a_fold_are_its_own_where_nobody_is_idle():
    def spreads(threads, monitor):
        return threading.get_ident(), monitor.spread([threading.get_ident] * 3)

    for own, parts in [*Workforce(1).run([spreads] * 2), spreads(1, Monitor(1))]:
        assert parts == [own] * 3
    assert Monitor(1).spread([]) == []


def test_a_part_that_fails_elsewhere_fails_the_fold():
    together = threading.Barrier(2, timeout=60)

    def fails():
        together.wait()
        raise errors.NumericalError("a part")

    with pytest.raises(errors.NumericalError, match="a part"):
        Workforce(2).run(
            [lambda threads, monitor: monitor.spread([together.wait, fails]), lambda *_: None]
        )


def test_an_error_in_one_fold_stops_the_others():
    begun, stopped = threading.Event(), threading.Event()

    def fails(threads, monitor):
        assert begun.wait(30)
        raise errors.NumericalError("this fold")

    def waits(threads, monitor):
        begun.set()
        assert monitor.stop.wait(30)
        try:
            monitor.check()
        finally:
            stopped.set()

    with pytest.raises(errors.NumericalError, match="this fold"):
        Workforce(2).run([fails, waits])
    assert stopped.is_set()


def test_parts_of_a_fit_report_their_share():
    standings = []
    whole = Workforce(2, standings.append)
    whole.part(1, 3).run([lambda threads, monitor: None])
    last = standings[-1]
    assert last.done == 2 * last.total // 3
    assert (last.finished, last.parts) == (2, 3)
    assert Workforce(2).part(1, 3) == Workforce(2)


def test_a_monitor_knows_stage_and_folds():
    monitor = Monitor(3)
    total = 3 * (SEARCH_UNITS + TRAIN_UNITS)
    assert monitor.standing == Standing("training", 0, total, 0, 3)  # nobody says what he does
    monitor.finish(0)
    monitor.advance(1, SEARCH_UNITS - 1)
    assert monitor.standing.stage == "searching"
    monitor.advance(1, SEARCH_UNITS)
    assert monitor.standing.stage == "training"
    monitor.advance(1, SEARCH_UNITS + TRAIN_UNITS)  # trained, but not finished
    assert monitor.standing == Standing("training", 2 * total // 3, total, 1, 3)
    monitor.finish(1)
    monitor.finish(2)
    assert monitor.standing == Standing("training", total, total, 3, 3)
