"""Fits that are stopped from elsewhere: an event, the main thread, the interpreter's end."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import cstonet as cs
from cstonet import errors
from cstonet.crossfit import stopping
from cstonet.crossfit.workforce import Workforce

ENDLESS = """
import sys, threading, time
from dataclasses import replace
import cstonet as cs
from cstonet.settings.options import StageOptions
from cstonet.settings.presets import preset

options = preset("calibrated")
options = options.replace(
    training=replace(options.training, stages=(StageOptions(epochs=1_000_000),))
)
data = cs.datasets.simulation2(n=300, p=5).data
begun = threading.Event()

def fit(n_jobs=2):
    try:
        cs.fit("y ~ treat | .", data, options=options, n_jobs=n_jobs,
               progress=lambda done, total: done > 0 and begun.set())
    except BaseException as error:
        print(type(error).__name__, flush=True)
        raise
"""


def run(script, **options):
    return subprocess.run(
        [sys.executable, "-c", ENDLESS + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_event_stops_a_fit_in_another_thread(frame, quick_options, n_jobs):
    stop, begun, caught = threading.Event(), threading.Event(), []
    before = set(threading.enumerate())

    def work():
        try:
            cs.fit(
                "y ~ treat | .",
                frame,
                options=quick_options(epochs=1_000_000),
                n_jobs=n_jobs,
                progress=lambda done, total: begun.set(),
                stop=stop,
            )
        except errors.StoppedError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    stop.set()
    thread.join(60)
    assert caught == ["The fit was stopped, because its stop event was set."]
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("backend", ["threads", "loky"])
def test_an_event_that_is_set_stops_a_fit_at_once(frame, options, backend, tmp_path):
    stop = threading.Event()
    stop.set()
    for folder in (None, tmp_path):
        with pytest.raises(errors.StoppedError, match="stop event was set") as caught:
            cs.fit(
                "y ~ treat | .", frame, options=options, backend=backend, stop=stop,
                checkpoint=folder,
            )  # fmt: skip
        assert ("the same call goes on" in str(caught.value)) == (folder is not None)


def test_an_event_that_is_not_set_changes_nothing(frame, options, fitted):
    again = cs.fit("y ~ treat | .", frame, options=options, seed=3, stop=threading.Event())
    np.testing.assert_array_equal(again.effects.influence, fitted.effects.influence)


@pytest.mark.parametrize("stop", [True, "now", lambda: True])
def test_what_is_no_event_is_refused(frame, options, stop):
    with pytest.raises(errors.OptionError, match=r"stop must be a threading\.Event"):
        cs.fit("y ~ treat | .", frame, options=options, stop=stop)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_in_the_main_thread_reaches_others():
    """The training would take days: that the child ends at all is what is tested."""
    done = run("""
        import os, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        thread = threading.Thread(target=fit)
        thread.start()
        assert begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)
        thread.join()
    """)
    assert done.stdout == "KeyboardInterrupt\n", done.stderr
    assert done.returncode in (1, 130, -signal.SIGINT)


def test_a_main_thread_that_ends_waits_for_fits():
    """A thread that is no daemon has its fit done."""
    done = run("""
        short = replace(options.training, stages=(StageOptions(epochs=5),))
        options = options.replace(training=short)
        def finish():
            time.sleep(0.5)
            fit()
            print("done", flush=True)
        threading.Thread(target=finish).start()
        print("end of main", flush=True)
    """)
    assert done.stdout == "end of main\ndone\n", done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_daemon_thread_does_not_hold_up_the_end(n_jobs):
    done = run(f"""
        threading.Thread(target=fit, args=({n_jobs},), daemon=True).start()
        assert begun.wait(60)
        print("end of main", flush=True)
    """)
    assert done.stdout.startswith("end of main\n"), done.stderr
    assert done.returncode == 0, done.stderr
    assert "Fatal" not in done.stderr


def test_stages_without_folds_heed_it_too():
    def heed():
        raise errors.StoppedError("now")

    with pytest.raises(errors.StoppedError):
        Workforce(1, heed=heed).announce("estimating")


def test_the_end_waits_for_what_is_under_way(monkeypatch):
    under_way = stopping._UnderWay()
    monkeypatch.setattr(stopping, "_under_way", under_way)
    entered, left = threading.Event(), []

    def work():
        with stopping.under_way():
            entered.set()
            with pytest.raises(errors.StoppedError, match="interpreter ends"):
                wait_for_the_end()
            left.append(True)

    def wait_for_the_end():
        while True:
            stopping.heed_others()

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(30)
    under_way.end()
    assert left
    thread.join()
