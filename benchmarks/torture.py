"""What the package survives: ``python benchmarks/torture.py`` runs all parts and writes the page.

* ``--kills 200``: kill -9 at random moments of fits with a checkpoint, then the same call again;
* ``--interrupts 300``: Ctrl-C at random moments of all kinds of fits;
* ``--limits 100``: limits of memory and of processes, with one thread to 64;
* ``--leaks 1000 --aborted 300``: fits again and again in one process;
* ``--fuzz 300``: seconds of fuzzing; ``--inputs``: bad inputs by class; ``--sanitize``.

Without any of them all are run, with these counts; ``--quick`` runs all with a few of each. Every
trial is a line of ``results/torture.jsonl``; those that this commit has there already are not run
again. ``--page`` writes ``results/torture.md`` alone. The parts fork from this process, which
imports everything once and has no thread; Linux only. Limits of processes are for root to try.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torture_interrupts
import torture_kills
import torture_leaks
import torture_limits
import torture_others
from common import RESULTS, Record
from pages import torture as torture_page
from runner import THREAD_VARIABLES, commit, key_of, machine, open_for_append, read_records
from torture_child import tasks
from torture_fits import warm

# What is run by default, and under --quick.
COUNTS = {
    "kills": 200,
    "interrupts": 300,
    "limits": 100,
    "leaks": 1000,
    "aborted": 300,
    "fuzz": 300,
}
QUICK = {"kills": 4, "interrupts": 14, "limits": 6, "leaks": 200, "aborted": 100, "fuzz": 30}


class Results:
    """The results file: what this commit has there already, and what is added.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._done = {key_of(record): record for record in read_records(path)}
        self._about = {"recipe": commit(), "commit": commit(), "machine": machine()}

    def known(self, part: str, method: str, seed: int) -> Record | None:
        """The result of a trial, if this commit has it."""
        return self._done.get((part, seed, method, commit()))

    def add(self, part: str, method: str, seed: int, found: Record) -> Record:
        """Append a result."""
        record = {"group": part, "seed": seed, "method": method} | self._about | found
        self._done[key_of(record)] = record
        with open_for_append(self.path) as file:
            file.write(json.dumps(record) + "\n")
        return record

    def get(self, part: str, method: str, seed: int, trial: Callable[[], Record]) -> Record:
        """The result of a trial, which is run if this commit has none."""
        found = self.known(part, method, seed)
        return self.add(part, method, seed, trial()) if found is None else found


def kills(results: Results, count: int) -> Iterator[Record]:
    """Trials until so many processes have been killed."""
    killed = 0
    for seed, method in enumerate(torture_kills.methods_of(4 * count)):
        if killed >= count:
            return
        record = results.get(
            "kills", method, seed, lambda m=method, s=seed: torture_kills.trial(m, s)
        )
        killed += record["kills"]
        yield record


def interrupts(results: Results, count: int) -> Iterator[Record]:
    """So many interrupts, a few in each process."""
    done = process = 0
    while done < count:
        method = torture_interrupts.METHODS[process % len(torture_interrupts.METHODS)]
        wanted = min(torture_interrupts.ROUNDS, count - done)
        seeds = [torture_interrupts.ROUNDS * process + k for k in range(wanted)]
        known = [results.known("interrupts", method, seed) for seed in seeds]
        if None in known:
            found = torture_interrupts.rounds(method, process, wanted)
            known = [
                results.add("interrupts", method, seed, one)
                for seed, one in zip(seeds, found, strict=False)
            ]
        yield from (record for record in known if record is not None)
        done, process = done + wanted, process + 1


def limits(results: Results, count: int) -> Iterator[Record]:
    """So many fits under limits."""
    for method, seed in torture_limits.settings_of(count):
        yield results.get(
            "limits", method, seed, lambda m=method, s=seed: torture_limits.trial(m, s)
        )


def leaks(results: Results, count: int) -> Iterator[Record]:
    """So many fits in one process."""
    yield results.get("leaks", "fits", count, lambda: torture_leaks.many(count, aborted=False))


def aborted(results: Results, count: int) -> Iterator[Record]:
    """So many fits in one process that are interrupted."""
    yield results.get("leaks", "aborted", count, lambda: torture_leaks.many(count, aborted=True))


def fuzz(results: Results, seconds: int) -> Iterator[Record]:
    """So many seconds of fuzzing, shared by its targets."""
    for name, found in torture_others.fuzz(seconds, seed=1).items():
        yield results.add("fuzz", name, 1, found)


def inputs(results: Results) -> Iterator[Record]:
    """All bad inputs."""
    yield results.get("inputs", "all", 0, torture_others.bad_inputs)


def sanitize(results: Results) -> Iterator[Record]:
    """The sanitizers."""
    yield results.get("sanitize", "all", 0, torture_others.sanitizers)


COUNTED: dict[str, Callable[[Results, int], Iterator[Record]]] = {
    "kills": kills,
    "interrupts": interrupts,
    "limits": limits,
    "leaks": leaks,
    "aborted": aborted,
    "fuzz": fuzz,
}
WHOLE: dict[str, Callable[[Results], Iterator[Record]]] = {"inputs": inputs, "sanitize": sanitize}


def wanted(given: argparse.Namespace) -> tuple[dict[str, int], list[str]]:
    """Counts of the parts that are counted, and the other parts, by the command line."""
    counts = {name: getattr(given, name) for name in COUNTED if getattr(given, name) is not None}
    whole = [name for name in WHOLE if getattr(given, name)]
    if counts or whole or given.page:
        return counts, whole
    return (QUICK, list(WHOLE)[:1]) if given.quick else (COUNTS, list(WHOLE))


def report(part: str, records: Iterable[Record]) -> None:
    """One line for each result, as it comes."""
    for number, record in enumerate(records, start=1):
        kept = {k: v for k, v in record.items() if k not in ("group", "recipe", "machine", "table")}
        print(f"{part} {number}: {json.dumps(kept)[:400]}", flush=True)


def write_page(path: Path) -> Path:
    """Write the page beside the results file."""
    page = path.with_suffix(".md")
    text = torture_page.page(read_records(path), path.parent)
    page.write_text(text.rstrip() + "\n", encoding="utf-8")
    return page


def be_alone() -> None:
    """Begin again without the threads that libraries have started: forks would lose them."""
    if tasks() == 1:
        return
    if all(os.environ.get(name) == "1" for name in THREAD_VARIABLES):
        raise RuntimeError("a library has started threads, whatever it was told: nothing can fork")
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    os.execv(sys.executable, [sys.executable, *sys.argv])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in COUNTED:
        parser.add_argument(f"--{name}", type=int, metavar="N")
    for name in (*WHOLE, "quick", "page"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS / "torture.jsonl")
    given = parser.parse_args(arguments)
    results = Results(given.results)
    counts, whole = wanted(given)
    if set(counts) - {"fuzz"}:
        be_alone()
        warm(("arms", "mar", "dose", "certify"))
    parts: list[tuple[str, Any]] = [(n, COUNTED[n](results, count)) for n, count in counts.items()]
    for name, records in [*parts, *((name, WHOLE[name](results)) for name in whole)]:
        report(name, records)
    print(write_page(given.results))


if __name__ == "__main__":
    main()
