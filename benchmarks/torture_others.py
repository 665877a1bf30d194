"""Parts of the torture that live elsewhere, one command each: bad inputs, fuzzing, sanitizers."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT, Record


def bad_inputs() -> Record:
    """Bad inputs by class and outcome, as ``tests/bad_inputs`` counts them."""
    sys.path.insert(0, str(ROOT))
    run = importlib.import_module("tests.bad_inputs.run")
    found = run.judged()
    table = run.table(found)
    return {
        "cases": len(found),
        "defects": [str(one)[:300] for one in run.defects(found)],
        "columns": list(table.columns),
        "table": {str(name): row.tolist() for name, row in table.iterrows()},
    }


def fuzz(seconds: float, seed: int, targets: tuple[str, ...] = ()) -> dict[str, Record]:
    """Executions, outcomes and findings of every target, see ``python -m tests.fuzz``."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.json"
        command = [sys.executable, "-m", "tests.fuzz", f"--seconds={seconds}", f"--seed={seed}"]
        command += ["--json", str(counts), "--output", str(Path(folder) / "found")]
        said = subprocess.run(
            [*command, *(["--targets", *targets] if targets else [])],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if not counts.exists():
            return {"all": {"error": said.stdout[-500:]}}
        found: dict[str, Record] = json.loads(counts.read_text(encoding="utf-8"))
    return found


def sanitizers() -> Record:
    """``make sanitize``: whether it passed, and the last that it said."""
    began = time.monotonic()
    said = subprocess.run(
        ["make", "--no-print-directory", "sanitize"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [line for line in said.stdout.splitlines() if line.strip()]
    return {
        "passed": said.returncode == 0,
        "seconds": time.monotonic() - began,
        "said": lines[-12:],
    }
