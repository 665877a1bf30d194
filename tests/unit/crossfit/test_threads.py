"""Threads of one run: as many as the system gives, and none of them outlives it."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import cstonet as cs
from cstonet import errors, memory
from cstonet.crossfit.threads import Crew
from cstonet.crossfit.workforce import Workforce


@pytest.fixture
def refuse(monkeypatch):
    """A system that gives so many threads, and no more."""

    def allow(number, error):
        start, given = threading.Thread.start, []

        def limited(self):
            if len(given) >= number:
                raise error
            given.append(self)
            start(self)

        monkeypatch.setattr(threading.Thread, "start", limited)
        return given

    return allow


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_fit_goes_on_with_the_threads_there_are(frame, options, fitted, refuse, number, error):
    given = refuse(number, error)
    again = cs.fit("y ~ treat | .", frame, options=options, seed=3, n_jobs=64, progress=False)
    assert len(given) == number
    np.testing.assert_array_equal(again.effects.influence, fitted.effects.influence)


def test_a_fit_without_memory_for_threads_starts_none(frame, options, fitted, monkeypatch):
    started, start = [], threading.Thread.start
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**26)
    monkeypatch.setattr(threading.Thread, "start", lambda self: (started.append(self), start(self)))
    again = cs.fit("y ~ treat | .", frame, options=options, seed=3, n_jobs=64, progress=False)
    assert not started
    np.testing.assert_array_equal(again.effects.influence, fitted.effects.influence)


def test_without_threads_the_calling_one_works_and_tells(refuse):
    refuse(0, RuntimeError("can't start new thread"))
    told = []
    done = Workforce(4, told.append).run(
        [lambda threads, monitor: threading.get_ident() for _ in range(3)]
    )
    assert done == [threading.get_ident()] * 3
    assert [standing.finished for standing in told] == [0, 1, 2, 3]


def test_without_threads_an_error_ends_it(refuse):
    refuse(0, RuntimeError("can't start new thread"))

    def fails(threads, monitor):
        raise errors.NumericalError("this fold")

    with pytest.raises(errors.NumericalError, match="this fold"):
        Workforce(2).run([fails, fails])


def test_a_crew_ends_with_its_run():
    before = set(threading.enumerate())
    with Crew(3) as crew:
        assert crew.size == 3
        futures = [crew.submit(pow, 2, k) for k in range(10)]
        assert [future.result(30) for future in futures] == [2**k for k in range(10)]
        failed = crew.submit(int, "no number")
        with pytest.raises(ValueError, match="no number"):
            failed.result(30)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("when", ["while threads start", "before the run begins"])
def test_a_crew_that_never_worked_ends_as_well(monkeypatch, when):
    before, start = set(threading.enumerate()), threading.Thread.start

    def interrupted(self):
        start(self)
        if len(threading.enumerate()) == len(before) + 2:
            raise KeyboardInterrupt

    if when == "while threads start":
        monkeypatch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            Crew(3)
        del caught
        monkeypatch.undo()
    else:
        Crew(3)
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
    assert set(threading.enumerate()) <= before


def test_calls_that_are_cancelled_are_not_made():
    made, wait = [], threading.Event()
    with Crew(1) as crew:
        first = crew.submit(wait.wait, 30)
        second = crew.submit(made.append, 2)
        assert second.cancel()
        wait.set()
        assert first.result(30)
    assert made == []
