"""Accuracy on the paper's simulations: the package's presets, the peers and the oracle.

What the report shows of the package's default, two fits at a time::

    run="python benchmarks/accuracy.py --methods calibrated --simulation"
    $run 1 --n 1000 --p 1000 --seeds 4001:4040
    $run 1 --n 2000,5000 --p 1000 --seeds 4001:4020
    $run 1 --n 1000 --p 20000 --seeds 4001:4005
    $run 1 --n 1000 --p 100 --seeds 4001:4040
    $run 2 --n 2000 --p 100 --seeds 4001:4040
    $run 2 --n 12000 --p 100 --seeds 4001:4020
    $run 2-null --n 1000 --p 100 --seeds 4001:4040
    $run 2-binomial --n 4000 --p 100 --seeds 6001:6040

Other presets and peers, which take minutes a fit, on fewer data sets::

    run="python benchmarks/accuracy.py --simulation"
    $run 1 --n 1000 --seeds 4001:4010 --methods paper:simulation1
    $run 1 --n 2000 --seeds 4001:4010 --methods stonet/screen=100
    $run 2 --n 12000 --p 100 --seeds 4001:4010 --methods stonet
    $run 2 --n 12000 --p 100 --seeds 4001:4003 --methods paper:simulation2
    $run 1 --n 1000 --seeds 4001:4005 --methods bart,doubleml-lightgbm-stopped
    $run 1 --n 1000 --seeds 4001:4004 --methods doubleml-lightgbm
    $run 1 --n 2000,5000 --seeds 4001:4002 --methods doubleml-lightgbm-stopped
    $run 1 --n 2000 --seeds 4001:4002 --methods bart
    $run 1 --n 5000 --seeds 4001:4004 --methods bart
    $run 1 --n 1000 --seeds 4001:4002 --methods calibrated,doubleml-lightgbm --time

``calibrated/folds=1`` is the default with another number of folds. Data sets with seeds up to 4000
served to choose the options of the preset, those above did not; the binary outcomes of 4001 to 4100
did, too.

Results are appended to ``accuracy.jsonl`` in the output folder; ``benchmarks/report.py`` makes
tables and plots of them. With ``--time``, methods run one after the other with every core, and
the results go to ``timing.jsonl``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from common import RESULTS, Case, number_range
from loaders import SIMULATIONS, SimulationCase
from peers import DEFAULT_METHODS, parse_methods
from runner import run


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that every benchmark of accuracy has."""
    parser.add_argument("--methods", type=parse_methods, default=DEFAULT_METHODS)
    parser.add_argument("--jobs", type=int, default=2, help="fits at a time, one thread each")
    parser.add_argument("--time", action="store_true", help="one fit at a time with every core")
    parser.add_argument("--limit", type=float, default=3600, help="seconds until a fit is given up")
    parser.add_argument("--retry", action="store_true", help="compute failed results again")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")


def run_cases(cases: Sequence[Case], arguments: argparse.Namespace, name: str) -> None:
    """Run what the options ask for; results go to the file of this name, or to timing.jsonl."""
    run(
        cases,
        arguments.methods,
        arguments.out / ("timing.jsonl" if arguments.time else name),
        jobs=1 if arguments.time else arguments.jobs,
        threads=(os.cpu_count() or 1) if arguments.time else 1,
        limit=arguments.limit,
        retry=arguments.retry,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulation", choices=list(SIMULATIONS), required=True)
    parser.add_argument("--n", type=number_range, default="1000", help="sizes, such as 1000,2000")
    parser.add_argument("--p", type=int, default=1000, help="number of covariates")
    parser.add_argument("--seeds", type=number_range, default="101:120", help="101:120 or 1,2,5")
    add_run_arguments(parser)
    arguments = parser.parse_args()
    cases = [
        SimulationCase(arguments.simulation, n, arguments.p, seed)
        for n in arguments.n
        for seed in arguments.seeds
    ]
    run_cases(cases, arguments, "accuracy.jsonl")


if __name__ == "__main__":
    main()
