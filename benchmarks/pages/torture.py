"""The page of torture.py: what the package survives, beside what it is to survive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import Record
from tables import DASH, markdown_table, number

from pages.provenance import count_table
from pages.shared import groups_of

INTRODUCTION = """\
# Torture

What happens to fits that are killed, interrupted, starved and fed with nonsense. Everything is made
again by `make torture`; the parts are described in the heads of `torture_*.py`. Times are those of
a machine that did other things as well; nothing here rests on them but the latencies.
"""
NOT_RUN = "Not run.\n"
# Seconds that may pass from Ctrl-C to KeyboardInterrupt.
_LATENCY = 0.150


def page(records: Sequence[Record], folder: Path) -> str:
    """All parts.

    Parameters
    ----------
    records : sequence of dict
        Results of torture.py.
    folder : Path
        Where pictures would go; there are none.
    """
    del folder
    parts = groups_of(records)
    text = [INTRODUCTION, "## At a glance\n", _overview(parts)]
    for name, (title, body, _) in PARTS.items():
        found = parts.get(name, [])
        text += [f"## {title}\n", body(found) if found else NOT_RUN]
    text += ["## Provenance\n", count_table("commit", [r["commit"] for r in records])]
    text.append(count_table("machine", [_machine(r["machine"]) for r in records]))
    return "\n".join(text)


def _machine(about: Record) -> str:
    return ", ".join(f"{name} {value}" for name, value in about.items())


def _overview(parts: dict[str, list[Record]]) -> str:
    rows = []
    for name, (title, _, verdict) in PARTS.items():
        found = parts.get(name, [])
        rows.append([title, *(verdict(found) if found else ("not run", DASH))])
    return markdown_table(["part", "found", "as it should be"], rows)


def _yes(right: bool) -> str:
    return "yes" if right else "**no**"


def _errors(found: Sequence[Record]) -> str:
    """What went wrong, word by word."""
    said = [f"* {r['method']} #{r['seed']}: `{r['error']}`" for r in found if "error" in r]
    return "\n".join(said) + "\n" if said else ""


# Kills -------------------------------------------------------------------------------------------


def _killed(found: Sequence[Record]) -> str:
    rows = []
    for method, trials in _by_method(found).items():
        survived = sum(r["kills"] for r in trials if r["same"])
        rows.append(
            [
                method,
                str(len(trials)),
                str(sum(r["kills"] for r in trials)),
                str(survived),
                str(sum(r["orphans"] for r in trials)),
                number(float(np.median([r["usual"] for r in trials]))),
                number(float(np.median([r["resumed"] for r in trials]))),
            ]
        )
    header = ["fit", "fits", "kills", "same bits", "orphans", "undisturbed, s", "resumed, s"]
    moments = [moment for r in found for moment in r["moments"]]
    spread = ", ".join(f"{q:.2f}" for q in np.quantile(moments, (0, 0.25, 0.5, 0.75, 1)))
    return (
        "A fit is killed once to three times, at moments uniform over the duration of an "
        'undisturbed one, and then run to its end. "Same bits" counts kills after which '
        "estimates, covariances, influence functions, propensities and effects of all units were "
        "those of a fit without a checkpoint. Orphans are processes of a cluster that outlived "
        "their client.\n\n"
        + markdown_table(header, rows)
        + f"\nQuartiles of the moments: {spread}.\n"
        + _errors(found)
    )


def _survived(found: Sequence[Record]) -> tuple[str, str]:
    kills = sum(r["kills"] for r in found)
    same = sum(r["kills"] for r in found if r["same"])
    right = same == kills and not any(r["orphans"] for r in found)
    return f"{same} of {kills} kills ended in the same bits", _yes(right)


# Interrupts --------------------------------------------------------------------------------------


def _interrupted(found: Sequence[Record]) -> str:
    rows = []
    done = [r for r in found if "latency" in r]
    for method, trials in _by_method(done).items():
        latencies = 1000 * np.array([r["latency"] for r in trials])
        rows.append(
            [
                method,
                str(len(trials)),
                *(f"{value:.0f}" for value in (np.median(latencies), latencies.max())),
                str(sum(r["swallowed"] for r in trials)),
                str(sum(r["threads_left"] for r in trials)),
                str(sum(r["same"] for r in trials)),
            ]
        )
    header = ["fit/threads", "interrupts", "median, ms", "most, ms", "unheard", "threads left"]
    return (
        "SIGINT from another process at a random moment of a fit; the latency ends where "
        'KeyboardInterrupt leaves it. "Large" is a fit of 20 000 rows, whose calls of the kernel '
        f"take long. Load of the machine meanwhile: {_load(done)}.\n\n"
        + markdown_table([*header, "same bits after"], rows)
        + _errors(found)
    )


def _load(found: Sequence[Record]) -> str:
    loads = [r["load"] for r in found]
    return f"{min(loads):.1f} to {max(loads):.1f}" if loads else DASH


def _heard(found: Sequence[Record]) -> tuple[str, str]:
    done = [r for r in found if "latency" in r]
    most = max((r["latency"] for r in done), default=0.0)
    right = len(done) == len(found) and most <= _LATENCY
    right &= all(r["same"] and not r["swallowed"] and not r["threads_left"] for r in done)
    slow = sum(r["latency"] > _LATENCY for r in done)
    text = f"{len(done)} interrupts, at most {1000 * most:.0f} ms, {slow} above 150 ms"
    return text, _yes(right)


# Limits ------------------------------------------------------------------------------------------


def _is_right(record: Record) -> bool:
    return bool(record.get("same") if record["outcome"] == "answer" else record.get("named"))


def _limited(found: Sequence[Record]) -> str:
    kinds: dict[str, Counter[str]] = {}
    for record in found:
        _, limit, threads = record["method"].split("/")
        kinds.setdefault(f"{limit}, n_jobs={threads}", Counter())[record["outcome"]] += 1
    outcomes = sorted({outcome for counts in kinds.values() for outcome in counts})
    rows = [[kind, *(str(counts[o]) for o in outcomes)] for kind, counts in sorted(kinds.items())]
    wrong = [
        f"* {r['method']} #{r['seed']}, {r['allowed']:.3g} allowed: {r['outcome']}, "
        f"`{' '.join(r.get('message', '').split())[-200:]}`"
        for r in found
        if not _is_right(r)
    ]
    return (
        "RLIMIT_AS from a quarter of a megabyte to 1.5 GB above what the process has, RLIMIT_NPROC "
        "from a single thread upwards. An answer counts if it has the bits of a fit without "
        "limits.\n\n" + markdown_table(["limit", *outcomes], rows) + "\n".join(["", *wrong, ""])
    )


def _outcomes(found: Sequence[Record]) -> tuple[str, str]:
    counts = Counter(record["outcome"] for record in found)
    text = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    return f"{len(found)} settings: {text}", _yes(all(map(_is_right, found)))


# Leaks -------------------------------------------------------------------------------------------

_UNITS = {"resident": ("MB", 1e6), "allocated": ("MB", 1e6)}


def _leaked(found: Sequence[Record]) -> str:
    rows = []
    for run in found:
        if "error" in run:
            continue
        for name in ("resident", "allocated", "objects", "files", "threads"):
            unit, size = _UNITS.get(name, ("", 1.0))
            about = run[name]
            rows.append(
                [
                    f"{run['fits']} {run['method']}",
                    f"{name}{', ' + unit if unit else ''}",
                    f"{number(about['growth'] / size)}",
                    f"{about['drift'] * 1000 / size:.3g} ± {about['error'] * 1000 / size:.2g}",
                    _yes(_flat(about)),
                ]
            )
    header = ["run", "of", "growth, second block to last", "drift in 1000 samples", "flat"]
    return (
        "All kinds of fits in turn in one process, a sample after each turn. Drift is the mean of "
        "the differences between neighbouring blocks of a twentieth of the run, ± its standard "
        "error; flat is what is not above two of these.\n\n"
        + markdown_table(header, rows)
        + _errors(found)
    )


def _flat(about: Record) -> bool:
    return bool(about["drift"] <= 2 * about["error"])


def _is_flat(found: Sequence[Record]) -> tuple[str, str]:
    runs = [
        f"{r['fits']} {r['method']}: {r['resident']['growth'] / 1e6:+.1f} MB"
        for r in found
        if "error" not in r
    ]
    told = ("allocated", "files", "threads")
    right = all("error" not in r and r["same"] and all(_flat(r[n]) for n in told) for r in found)
    return "; ".join(runs) or DASH, _yes(right)


# What lives elsewhere ----------------------------------------------------------------------------


def _fuzzed(found: Sequence[Record]) -> str:
    rows = []
    for run in found:
        said = ", ".join(f"{count} {outcome}" for outcome, count in run.get("outcomes", {}).items())
        said = run.get("skipped", said)
        memory = number(run["megabytes"]) if "megabytes" in run else DASH
        findings = str(len(run.get("findings", {})))
        rows.append([run["method"], str(run.get("executions", 0)), findings, memory, said or DASH])
    header = ["target", "executions", "findings", "most memory, MB", "outcomes"]
    engines = sorted({run.get("engine", "none") for run in found})
    return f"Engine: {', '.join(engines)}.\n\n" + markdown_table(header, rows)


def _fuzz_verdict(found: Sequence[Record]) -> tuple[str, str]:
    executions = sum(run.get("executions", 0) for run in found)
    findings = sum(len(run.get("findings", {})) for run in found)
    right = not findings and not any("error" in run for run in found)
    return f"{executions} executions, {findings} findings", _yes(right)


def _bad_inputs(found: Sequence[Record]) -> str:
    (run,) = found
    rows = [[name, *map(str, counts)] for name, counts in run["table"].items()]
    wrong = "\n".join(f"* `{one}`" for one in run["defects"])
    return markdown_table(["class", *map(str, run["columns"])], rows) + f"\n{wrong}\n"


def _input_verdict(found: Sequence[Record]) -> tuple[str, str]:
    (run,) = found
    return f"{run['cases']} inputs, {len(run['defects'])} defects", _yes(not run["defects"])


def _sanitized(found: Sequence[Record]) -> str:
    (run,) = found
    return "The last lines of `make sanitize`:\n\n```\n" + "\n".join(run["said"]) + "\n```\n"


def _sanitize_verdict(found: Sequence[Record]) -> tuple[str, str]:
    (run,) = found
    return f"{run['seconds']:.0f} s", _yes(run["passed"])


def _by_method(found: Sequence[Record]) -> dict[str, list[Record]]:
    methods: dict[str, list[Record]] = {}
    for record in found:
        methods.setdefault(record["method"], []).append(record)
    return methods


# Name of the group: title, text, and what the overview says of it.
PARTS: dict[str, tuple[str, Callable[[Any], str], Callable[[Any], tuple[str, str]]]] = {
    "kills": ("Kills", _killed, _survived),
    "interrupts": ("Interrupts", _interrupted, _heard),
    "limits": ("Limits of memory and processes", _limited, _outcomes),
    "inputs": ("Bad inputs", _bad_inputs, _input_verdict),
    "fuzz": ("Fuzzing", _fuzzed, _fuzz_verdict),
    "sanitize": ("Sanitizers", _sanitized, _sanitize_verdict),
    "leaks": ("Leaks", _leaked, _is_flat),
}
