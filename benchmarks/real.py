"""Accuracy on real covariates with known effects: Twins, ACIC 2019, ACIC 2016 and IHDP.

For example, everything on two cores::

    python benchmarks/real.py --data path/to/data

Results are appended to ``real.jsonl`` in the output folder; ``benchmarks/report.py`` makes tables
and plots of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from accuracy import add_run_arguments, run_cases
from common import number_range
from loaders import FAMILIES, RealCase


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with one per family")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--sets", type=number_range, help="only these data sets of each family")
    add_run_arguments(parser)
    arguments = parser.parse_args()
    cases = []
    for name in arguments.families.split(","):
        if name not in FAMILIES:
            parser.error(f"no family {name!r}; there are {', '.join(FAMILIES)}")
        folder, numbers = FAMILIES[name].folder, FAMILIES[name].numbers
        if not (arguments.data / folder).is_dir():
            parser.error(f"no folder {folder!r} in {arguments.data}: give the right --data")
        cases += [
            RealCase(name, number, arguments.data.resolve())
            for number in numbers
            if arguments.sets is None or number in arguments.sets
        ]
    run_cases(cases, arguments, "real.jsonl")


if __name__ == "__main__":
    main()
