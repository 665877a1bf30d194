"""The torture report: its pieces, a few trials of each part, and its page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(ROOT / "benchmarks"))

import torture_kills  # noqa: E402
import torture_leaks  # noqa: E402
import torture_limits  # noqa: E402
from pages import torture as torture_page  # noqa: E402

linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
ABOUT = {"recipe": "aaa", "commit": "aaa", "machine": {"cpu": "one"}}
FLAT = {"drift": 0.0, "error": 0.0, "growth": 0.0}
LEAKS = dict.fromkeys(torture_leaks.MEASURES, FLAT)


def record(part, method="arms/threads", seed=1, **found):
    return {"group": part, "method": method, "seed": seed} | ABOUT | found


KILLED = {"kills": 2, "same": True, "moments": [0.1, 0.9], "orphans": 0, "usual": 1, "resumed": 2}
HEARD = {"latency": 0.05, "swallowed": False, "threads_left": 0, "same": True, "load": 1.0}


def page(*records):
    return torture_page.page(list(records), Path())


def row(text, title):
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {title} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_parts_that_were_not_run_are_named():
    text = page(record("kills", **KILLED))
    assert row(text, "Kills") == ["2 of 2 kills ended in the same bits", "yes"]
    for title, _, _ in list(torture_page.PARTS.values())[1:]:
        assert row(text, title) == ["not run", "–"]
        assert f"## {title}\n\nNot run.\n" in text
    assert "| aaa | 1 |" in text


@pytest.mark.parametrize(
    ("part", "title", "good", "bad"),
    [
        ("kills", "Kills", KILLED, {"same": False}),
        ("kills", "Kills", KILLED, {"orphans": 1}),
        ("interrupts", "Interrupts", HEARD, {"latency": 0.2}),
        ("interrupts", "Interrupts", HEARD, {"swallowed": True}),
        ("interrupts", "Interrupts", HEARD, {"threads_left": 1}),
        ("interrupts", "Interrupts", HEARD, {"same": False}),
        (
            "leaks",
            "Leaks",
            {"fits": 9, "same": True} | LEAKS,
            {"files": {"drift": 1.0, "error": 0.1, "growth": 9.0}},
        ),
        ("fuzz", "Fuzzing", {"executions": 9, "findings": {}}, {"findings": {"IndexError": 1}}),
        ("sanitize", "Sanitizers", {"passed": True, "seconds": 1, "said": []}, {"passed": False}),
        (
            "inputs",
            "Bad inputs",
            {"cases": 3, "defects": [], "columns": ["named"], "table": {"y": [3]}},
            {"defects": ["a foreign exception"]},
        ),
    ],
)
def test_what_is_not_as_it_should_be_shows(part, title, good, bad):
    assert row(page(record(part, **good)), title)[1] == "yes"
    assert row(page(record(part, **(good | bad))), title)[1] == "**no**"


@pytest.mark.parametrize(
    ("found", "right"),
    [
        ({"outcome": "answer", "same": True}, True),
        ({"outcome": "answer", "same": False}, False),
        ({"outcome": "NotEnoughMemoryError", "named": True}, True),
        ({"outcome": "RuntimeError", "named": False, "message": "can't start"}, False),
        ({"outcome": "ended with -6", "message": "terminate called"}, False),
        ({"outcome": "hang", "message": "in wait"}, False),
    ],
)
def test_outcomes_under_limits(found, right):
    text = page(record("limits", "arms/memory/64", allowed=3.5, **found))
    assert row(text, "Limits of memory and processes")[1] == ("yes" if right else "**no**")
    assert ("3.5 allowed" in text) is not right


def test_errors_of_processes_are_told():
    gone = record("interrupts", error="ended with -11: Segmentation fault")
    text = page(record("interrupts", seed=2, **HEARD), gone)
    assert row(text, "Interrupts")[1] == "**no**"
    assert "Segmentation fault" in text


# What is counted ---------------------------------------------------------------------------------


def test_a_leak_is_told_from_what_wanders():
    rng = np.random.default_rng(1)
    wanders = np.cumsum(rng.normal(size=1000))
    found = dict(zip(("drift", "error", "growth"), torture_leaks.drift(wanders), strict=True))
    assert torture_leaks.is_flat(found)
    leaks = torture_leaks.drift(wanders + np.arange(1000))
    assert leaks[0] == pytest.approx(found["drift"] + 1)
    assert leaks[1] == pytest.approx(found["error"])
    assert not torture_leaks.is_flat({"drift": leaks[0], "error": leaks[1]})
    # A step at the beginning, where caches fill, is none.
    steps = np.r_[np.zeros(40), np.ones(960)]
    assert torture_leaks.drift(steps) == (0, 0, 0)


@linux
def test_memory_files_and_threads_are_counted():
    before = dict(zip(torture_leaks.MEASURES, torture_leaks.measures(), strict=True))
    # A mapping of its own: what was freed before is not used again for it.
    held = np.ones(2**23), [object() for _ in range(10_000)]
    with open(os.devnull):
        after = dict(zip(torture_leaks.MEASURES, torture_leaks.measures(), strict=True))
    assert after["resident"] - before["resident"] > 0.9 * held[0].nbytes
    assert after["objects"] - before["objects"] >= 10_000
    assert after["files"] == before["files"] + 1
    assert not after["allocated"] - before["allocated"] < held[0].nbytes  # NaN: nobody says


def test_methods_take_turns():
    methods = torture_kills.methods_of(80)
    assert set(methods) == set(torture_kills.METHODS)
    assert sum(name.endswith("dask") for name in methods) == 20
    settings = torture_limits.settings_of(100)
    assert {method.split("/")[1] for method, _ in settings} == {"memory", "processes"}
    assert {int(method.split("/")[2]) for method, _ in settings} == set(torture_limits.THREADS)


# Children: forked by a process that has no thread, as the script does -----------------------------

SCRIPT = """
import os, signal, sys, time
sys.path.insert(0, "benchmarks")
from scale_watch import status_fields
from torture_child import Child

def ends(pipe):
    pipe.send("begins")
    return 7

def sleeps(pipe):
    if os.fork() == 0:
        time.sleep(600)
    pipe.send("begins")
    time.sleep(600)

with Child(ends) as child:
    print(child.receive(), child.receive(), child.wait())
with Child(sleeps) as child:
    child.receive()
    print(child.heard(0.01))
    child.kill()
    print(len(child.survivors(0.1)), child.wait())
    left = child.survivors(0)
until = time.monotonic() + 60
while any(status_fields(pid)[:1] not in ([], ["Z"]) for pid in left) and time.monotonic() < until:
    time.sleep(0.01)
print(len(left), time.monotonic() < until)
with Child(lambda pipe: os.abort()) as child:
    try:
        child.receive()
    except EOFError:
        print(child.wait(), "Fatal Python error: Aborted" in child.said())
"""


@linux
def test_children_can_be_killed_with_all_theirs():
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert said.stdout.splitlines() == ["begins 7 0", "False", "1 -9", "1 True", "-6 True"]


def run_torture(folder, *flags):
    path = folder / "torture.jsonl"
    command = [sys.executable, "benchmarks/torture.py", *flags, "--results", path]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert said.returncode == 0, said.stderr[-2000:]
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return records, path.with_suffix(".md").read_text()


@linux
@pytest.mark.slow
def test_a_few_of_every_part(tmp_path):
    limits = ["--limits", "4"] if os.getuid() == 0 else []
    records, text = run_torture(tmp_path, "--kills", "3", "--interrupts", "7", *limits)
    assert row(text, "Kills")[1] == "yes"
    heard = [record for record in records if record["group"] == "interrupts"]
    assert len(heard) == 7
    # How soon is for a quiet machine to say.
    assert all(r["same"] and not r["swallowed"] and not r["threads_left"] for r in heard)
    assert not limits or row(text, "Limits of memory and processes")[1] == "yes"
    began = time.monotonic()
    again, _ = run_torture(tmp_path, "--kills", "3")
    assert len(again) == len(records)  # what is there is not run again
    assert time.monotonic() - began < 60


@linux
@pytest.mark.slow
def test_fits_leave_nothing_behind(tmp_path):
    """Flat, by test: fits of all kinds, and some that are interrupted."""
    records, text = run_torture(tmp_path, "--leaks", "200", "--aborted", "100")
    assert {(r["method"], r["fits"]) for r in records} == {("fits", 200), ("aborted", 100)}
    assert row(text, "Leaks")[1] == "yes", text
