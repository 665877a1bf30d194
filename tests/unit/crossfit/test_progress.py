"""Progress: who sees a bar, when, what it says, and that nothing of it stays."""

from __future__ import annotations

import io
import sys
import threading
import types

import pytest

import cstonet as cs
from cstonet import errors
from cstonet.crossfit import progress
from cstonet.crossfit.progress import Standing, progress_reporter


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    @property
    def line(self) -> str:
        """What is left on the last line once everything was written over."""
        screen = ""
        for text in self.getvalue().rsplit("\n", maxsplit=1)[-1].split("\r"):
            screen = text + screen[len(text) :]
        return screen.rstrip()


class FakeTimer:
    """A timer that goes off when it is told to."""

    made: list[FakeTimer]

    def __init__(self, interval, function):
        self.interval, self.function, self.cancelled = interval, function, False
        FakeTimer.made.append(self)

    def start(self):
        pass

    def cancel(self):
        self.cancelled = True


class Clock:
    """The time, as far as bars know."""

    def __init__(self):
        self.now = 1000.0

    def time(self):
        return self.now


def watch(monkeypatch) -> Terminal:
    """Put a terminal in place; pytest would put its own over that of a fixture."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


@pytest.fixture
def timers(monkeypatch):
    FakeTimer.made = []
    monkeypatch.setattr(threading, "Timer", FakeTimer)
    return FakeTimer.made


@pytest.fixture
def clock(monkeypatch):
    from tqdm import tqdm

    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)

    class OnClock(tqdm):
        def __init__(self, **options):
            super().__init__(**(options | {"dynamic_ncols": False, "ncols": 70}))
            self._time = clock.time

    monkeypatch.setattr(progress, "_bar_class", lambda: OnClock)
    return clock


def test_a_bar_comes_after_five_seconds_and_goes_by_itself(monkeypatch, timers, clock):
    terminal = watch(monkeypatch)
    with progress_reporter(None) as report:
        (timer,) = timers
        assert timer.interval == 5
        report(Standing("searching", 10, 200, 0, 2))
        assert terminal.getvalue() == ""
        clock.now += 50.25
        timer.function()
        # 10 of 200 steps took 50.25 seconds.
        assert terminal.line.startswith("searching, fold 0/2   5%|")
        assert terminal.line.endswith("| 00:50<15:54")
        report(Standing("training", 100, 200, 1, 2))
        assert terminal.line.startswith("training, fold 1/2  50%|")
        assert terminal.line.endswith("| 00:50<00:50")
        clock.now += 10.25  # nothing was done, but time went by
        report(Standing("training", 100, 200, 1, 2))
        assert terminal.line.endswith("| 01:00<01:00")
        report(Standing("estimating"))
        assert terminal.line.startswith("estimating  50%|")
    assert timer.cancelled
    assert terminal.line == ""
    assert "\n" not in terminal.getvalue()


def test_a_short_fit_shows_nothing(monkeypatch, timers):
    terminal = watch(monkeypatch)
    with progress_reporter(None) as report:
        report(Standing("training", 1, 2, 1, 2))
    timers[0].function()  # went off while the fit was closing
    assert terminal.getvalue() == ""


def test_the_timer_is_real(monkeypatch):
    watch(monkeypatch)
    opened = threading.Event()
    monkeypatch.setattr(progress, "PATIENCE", 1e-3)
    monkeypatch.setattr(progress._Bar, "_show", lambda *_: opened.set())
    with progress_reporter(None) as report:
        report(Standing("reading"))
        assert opened.wait(20)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_stays_after_an_error(monkeypatch, timers, error):
    terminal = watch(monkeypatch)

    def fails():
        with progress_reporter(None) as report:
            timers[0].function()
            report(Standing("training", 1, 2, 0, 2))
            assert "training" in terminal.line
            raise error

    with pytest.raises(error):
        fails()
    assert terminal.line == ""


def test_nobody_is_told_where_nobody_watches(capsys, timers, monkeypatch):
    with progress_reporter(None) as report:
        report(Standing("training", 1, 2, 0, 2))
    monkeypatch.setattr(sys, "stderr", None)  # as without a console on Windows
    with progress_reporter(None) as report:
        report(Standing("training", 1, 2, 0, 2))
    assert timers == []


def test_fits_beside_others_are_silent(monkeypatch, timers):
    watch(monkeypatch)

    def fit():
        with progress_reporter(None):
            pass

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert timers == []


def test_false_is_silent_in_a_terminal(monkeypatch, timers):
    terminal = watch(monkeypatch)
    with progress_reporter(False) as report:
        report(Standing("training", 1, 2, 0, 2))
    assert timers == []
    assert terminal.getvalue() == ""


def test_a_notebook_has_a_bar(monkeypatch, timers, recwarn):
    """Without widgets it is one of text, and tqdm has nothing to warn about."""
    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    fake = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    notebook = io.StringIO()
    monkeypatch.setattr(sys, "stderr", notebook)
    with progress_reporter(None) as report:
        timers[0].function()
        report(Standing("training", 1, 2, 0, 2))
    assert "training, fold 0/2" in notebook.getvalue()
    assert not recwarn.list
    shell.config.clear()  # IPython in a pipe
    with progress_reporter(None):
        assert len(timers) == 1


def test_repeated_work_counts_its_draws(monkeypatch, clock):
    terminal = watch(monkeypatch)
    with progress_reporter(True) as report:
        report(Standing("repeating", 12, 100, 12, 100, "draw"))
        assert terminal.line.startswith("draw 12/100  12%|")


def test_functions_hear_of_steps_alone():
    calls = []
    with progress_reporter(lambda *call: calls.append(call)) as report:
        report(Standing("reading"))
        report(Standing("training", 1, 2, 0, 2))
    assert calls == [(1, 2)]


def test_an_open_reporter_stays_open(monkeypatch, clock):
    terminal = watch(monkeypatch)
    with progress_reporter(True) as report:
        report(Standing("reading"))
        with progress_reporter(report) as same:
            assert same is report
        assert "reading" in terminal.line
    assert terminal.line == ""


def test_progress_changes_no_bit(monkeypatch, frame, options, fitted):
    terminal = watch(monkeypatch)
    other = cs.fit("y ~ treat | .", frame, options=options, seed=3, n_jobs=2, progress=True)
    assert other.params.equals(fitted.params)
    assert terminal.line == ""


def test_anything_else_is_refused():
    with (
        pytest.raises(errors.OptionError, match="progress must be None, True, False or a function"),
        progress_reporter("bar"),
    ):
        pass
