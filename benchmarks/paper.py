"""The paper's tables and its figure, each by one command, beside the published figures.

For example, everything on two cores, or everything in a few minutes::

    python benchmarks/paper.py --table all --data path/to/data
    python benchmarks/paper.py --table all --data path/to/data --quick

``--table`` takes names, split by commas: acic-ate, acic-cate, twins, twins-covariates, missing,
varying-n, tcga, tcga-covariates. Tables whose data are not there say what to get. Results are
appended to ``paper.jsonl`` in the output folder, and what is there already is not computed again;
``--quick`` keeps its own in ``build/paper-quick``. ``--report`` prints what the file holds;
``benchmarks/report.py`` puts the same into the page ``paper.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from common import RESULTS, ROOT, Method
from paper_methods import ONE_FIT, OnAllRows, OnSplit, OnThirds
from paper_report import table_text
from paper_tables import TABLES, Batch, Table
from peers import Baseline, Preset, parse_methods
from runner import read_records, run

FILE = "paper.jsonl"
QUICK = ROOT / "build" / "paper-quick"


def methods_of(batch: Batch, table: Table, chosen: Sequence[str] | None) -> list[Method]:
    """The methods of a batch under the protocol of its table, as far as they are asked for."""
    protocol = OnThirds if table.in_thirds else OnSplit
    whole = [name for name in batch.one_fit if chosen is None or name + ONE_FIT in chosen]
    parts = [name for name in batch.methods if chosen is None or name in chosen]
    return [*map(OnAllRows, learners(whole)), *map(protocol, learners(parts))]


def learners(names: Sequence[str]) -> list[Preset | Baseline]:
    """Presets and baselines by name: what can learn from some rows and be asked about others."""
    found = parse_methods(",".join(names)) if names else []
    return [method for method in found if isinstance(method, Preset | Baseline)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--table", default="all", help=f"all, or some of {', '.join(TABLES)}; several: a,b")
    add("--data", type=Path, help="folder of the real data; without it, what to get is said")
    add("--quick", action="store_true", help="few data sets and methods, in minutes")
    add("--methods", type=lambda text: text.split(","), help="only these of the tables' methods")
    add("--jobs", type=int, default=2, help="fits at a time, one thread each")
    add("--limit", type=float, default=3600, help="seconds until a fit is given up")
    add("--retry", action="store_true", help="compute failed results again")
    add("--out", type=Path, help="folder of the results")
    add("--report", action="store_true", help="only print what the file says")
    arguments = parser.parse_args()
    names = list(TABLES) if arguments.table == "all" else arguments.table.split(",")
    for name in names:
        if name not in TABLES:
            parser.error(f"no table {name!r}; there are {', '.join(TABLES)}")
    folder = arguments.data.resolve() if arguments.data else None
    out = arguments.out or (QUICK if arguments.quick else RESULTS)
    for name in names:
        table = TABLES[name]
        absent = [] if arguments.report else table.absent(folder)
        if absent:
            print(f"{name}: {'; '.join(absent)}")
            continue
        if not arguments.report:
            for batch in (table.quick if arguments.quick else table.batches)(folder or Path()):
                run(
                    batch.cases,
                    methods_of(batch, table, arguments.methods),
                    out / FILE,
                    jobs=arguments.jobs,
                    threads=1,
                    limit=arguments.limit,
                    retry=arguments.retry,
                )
        print(table_text(name, read_records(out / FILE)))


if __name__ == "__main__":
    main()
