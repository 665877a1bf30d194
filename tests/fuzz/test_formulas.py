"""Hostile formulas, read with ``safe=True``: nothing runs, and nothing fills memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def python(*words, timeout):
    # One thread each: what is read is small, and other tests want the processors.
    alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=os.environ | alone,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_hostile_formulas_run_nothing():
    done = python("-m", "tests.fuzz.formulas", "--count", "10000", "--seed", "1", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["count"] == 10_000
    assert result["findings"] == 0
    assert result["memory_mb"] < 1000
    # They come far enough to be of use: some are models, others are refused in several ways.
    assert result["ends"]["read"] > 200
    assert result["ends"]["UnsafeFormulaError"] > 3000


@pytest.mark.slow
def test_a_million_hostile_formulas_run_nothing():
    jobs = str(os.cpu_count() or 1)
    done = python(
        "-m", "tests.fuzz.formulas", "--count", "1000000", "--jobs", jobs, timeout=6 * 3600
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_watch_would_notice():
    """The same formulas in the usual mode, where terms are code, are caught before they run."""
    script = """
        from tests.fuzz import formulas
        frame = formulas.small_frame()
        for text in formulas.WARM:
            formulas.read(text, frame)
        watch = formulas.Watch()
        for text in ("I(x1 + 0)", "I(__import__('os').getpid() * x1)", "x1.map(print)"):
            watch.on = True
            try:
                formulas.read(f"y ~ treat | {text}", frame, safe=False)
            except Exception:
                pass
            watch.on = False
            assert any("exec" in what or "compile" in what for what in watch.heard), text
            watch.heard.clear()
        print("caught")
    """
    done = python("-c", textwrap.dedent(script), timeout=300)
    assert done.stdout.strip() == "caught", done.stderr
