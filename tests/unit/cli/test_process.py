"""The command line as a process: streams that are closed, full or gone, and Ctrl-C at any time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cstonet as cs
from cstonet.cli import INTERRUPTED
from cstonet.cli.interrupts import Interrupts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX is needed")


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("process") / "data.csv"
    cs.datasets.simulation2(n=120, p=5, seed=3).data.to_csv(path, index=False)
    return path


def shell(command: str, csv: Path) -> subprocess.CompletedProcess[str]:
    words = f"{sys.executable} -m cstonet plan {csv} 'y ~ treat | .'"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace("PLAN", words)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("PLAN >&-", 2, "cstonet: error: Standard output is closed"),
        ("PLAN > /dev/full", 2, "cstonet: error: input or output failed: No space left"),
        pytest.param("PLAN | true", 0, "", marks=pytest.mark.slow),
        pytest.param("PLAN 2>&- >/dev/null", 0, "", marks=pytest.mark.slow),
        pytest.param("PLAN --seed x 2>&-", 2, "", marks=pytest.mark.slow),
        pytest.param(
            "PYTHONIOENCODING=ascii PLAN --cluster=\u03c3",
            2,
            "cstonet: error: There is no column",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_streams_that_are_closed_full_or_gone(command, code, says, csv):
    done = shell(command, csv)
    assert done.returncode == code
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == bool(says)


@pytest.mark.slow
def test_closed_input_is_named():
    words = [sys.executable, "-m", "cstonet", "plan", "-", "y ~ treat | ."]
    done = subprocess.run(
        ["bash", "-c", '"$@" <&-', "_", *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "cstonet: error: Standard input is closed. Name a file, or send the data.\n"
    )


@pytest.mark.parametrize("delay", [0.1, 0.5, 1.0])
def test_ctrl_c_is_one_line_from_the_first_moment_on(delay):
    # The delay counts from when the program begins, however long the interpreter takes to start.
    run = (
        "import sys; from cstonet.cli import main; print('begun', flush=True); "
        "sys.argv = ['cstonet', 'demo', '--n', '3000']; sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", run],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (INTERRUPTED, "", "cstonet: interrupted\n")


def test_an_interrupt_that_a_library_swallowed_is_one_nevertheless(monkeypatch, capsys):
    from cstonet.cli import commands, main

    def swallowing(_words):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            raise ImportError("numpy failed to load") from None

    monkeypatch.setattr(commands, "run", swallowing)
    # A shell that runs the tests in the background has it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert main(["demo"]) == INTERRUPTED
    assert capsys.readouterr().err == "cstonet: interrupted\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_level_that_is_not_there_is_one_line():
    environment = os.environ | {"CSTONET_LEVEL": "v9"}
    run = [sys.executable, "-m", "cstonet", "demo"]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("cstonet: error: CSTONET_LEVEL")
    assert done.stderr.count("\n") == 1


def test_who_ignores_interrupts_keeps_ignoring_them():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupts = Interrupts()
        interrupts.end_at_once()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        interrupts.restore()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
