"""Fuzz what takes input from others, for some minutes: ``python -m tests.fuzz --seconds 300``.

Every target runs in a process of its own, guided by atheris where it is installed (``pip install
'cstonet[fuzz]'``), else by a seeded loop. Inputs that found something are left in the folder of
``--output``: mend the cause, then copy the input into ``tests/fuzz/corpus/<target>``, where
``make test`` runs it from then on. Ends with 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .engines import COUNTS, FINDINGS, SCENE, work
from .targets import TARGETS

ROOT = Path(__file__).parents[2]
# Seconds without a new count after which an input is taken to hang; a start counts, too.
PATIENCE = 120.0
# Bytes of address space above what a worker begins with.
ROOM = 4 * 2**30
_NOT_THERE = 3


def fuzz(name: str, output: Path, seconds: float, executions: int, seed: int) -> dict[str, Any]:
    """Run one target in a process of its own.

    Returns
    -------
    dict
        Engine, executions, seconds, outcomes and findings by where they were; ``skipped`` if this
        version has nothing to fuzz there.
    """
    folder = output / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / COUNTS).unlink(missing_ok=True)
    limits = [str(seconds), str(executions), str(seed)]
    command = [sys.executable, "-X", "faulthandler", "-m", __package__, "--work", name, folder]
    with (folder / "log").open("w") as log:
        worker = subprocess.Popen([*command, *limits], cwd=ROOT, stdout=log, stderr=log)
        ended = _watch(worker, folder)
    counts: dict[str, Any] = {"engine": "none", "executions": 0, "outcomes": {}, "findings": {}}
    if (folder / COUNTS).exists():
        counts = json.loads((folder / COUNTS).read_text())
    said = (folder / "log").read_text().strip().splitlines()
    if worker.returncode == _NOT_THERE:
        counts["skipped"] = said[-1]
    elif not counts.pop("done", False):
        counts["findings"][ended] = 1
        if (folder / SCENE).exists():
            (folder / FINDINGS / "last").write_bytes((folder / SCENE).read_bytes())
        (folder / FINDINGS / "last.txt").write_text("\n".join(said))
    return counts


def _watch(worker: subprocess.Popen[bytes], folder: Path) -> str:
    """Wait for a worker; how it ended, if it did not end by itself."""
    counts, since, seen = folder / COUNTS, time.monotonic(), 0.0
    while worker.poll() is None:
        time.sleep(0.1)
        noted = counts.stat().st_mtime if counts.exists() else 0.0
        if noted != seen:
            since, seen = time.monotonic(), noted
        if time.monotonic() - since > PATIENCE:
            worker.send_signal(signal.SIGABRT)  # faulthandler says where it hangs
            worker.wait()
            return f"no end within {PATIENCE:g} s"
    code = worker.returncode
    return "" if code == 0 else f"ended with {signal.Signals(-code).name if code < 0 else code}"


def _work(name: str, folder: str, seconds: str, executions: str, seed: str) -> None:
    """What the process of a target does."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, hard))
    try:
        work(name, Path(folder), float(seconds), int(executions), int(seed))
    except NotImplementedError as missing:
        print(missing)
        sys.exit(_NOT_THERE)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="for all targets together")
    parser.add_argument("--executions", type=int, default=10**9, help="most, of each target")
    parser.add_argument("--targets", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="folder of findings; by default a new one")
    parser.add_argument("--json", type=Path, help="file to write all counts to")
    parser.add_argument("--work", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        _work(*given.work)
    output = given.output or Path(tempfile.mkdtemp(prefix="fuzz"))
    found, share = {}, given.seconds / len(given.targets)
    for name in given.targets:
        counts = found[name] = fuzz(name, output, share, given.executions, given.seed)
        if "skipped" in counts:
            print(f"{name:12} skipped: {counts['skipped']}", flush=True)
            continue
        memory = f", at most {counts['megabytes']:.1f} MB" if "megabytes" in counts else ""
        print(f"{name:12} {counts['executions']:>9} by {counts['engine']}{memory}", flush=True)
        for outcome, count in counts["outcomes"].items():
            print(f"{'':12} {count:>9} {outcome}", flush=True)
        for what, count in counts["findings"].items():
            print(f"{'':12} {count:>9} FOUND: {what}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    findings = sum(len(counts["findings"]) for counts in found.values())
    executions = sum(counts["executions"] for counts in found.values())
    print(f"{executions} executions, {findings} findings" + (f" in {output}" if findings else ""))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
