"""``cstonet simulate``: data sets with known truths, as CSV files."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

from cstonet import datasets
from cstonet.cli.flags import add_flag, parameter_docs
from cstonet.places import check_place, write_text

SIMULATIONS: dict[str, Callable[..., datasets.Simulated]] = {
    "simulation1": datasets.simulation1,
    "simulation2": datasets.simulation2,
    "three_arms": datasets.three_arms,
    "clustered": datasets.clustered,
    "counts": datasets.counts,
    "dose_curve": datasets.dose_curve,
    "one_mediator": datasets.one_mediator,
    "three_mediators": datasets.three_mediators,
    "linear_mediation": datasets.linear_mediation,
}


def add_simulate(parser: argparse.ArgumentParser) -> None:
    """The flags of the command, a further command for each data set."""
    parser.description = "Writes a simulated data set to a CSV file and prints its truths."
    simulations = parser.add_subparsers(required=True, metavar="simulation", dest="simulation")
    for name, function in SIMULATIONS.items():
        first_line = inspect.cleandoc(function.__doc__ or "").splitlines()[0]
        sub = simulations.add_parser(name, help=first_line, description=first_line)
        sub.add_argument("file", type=Path, help="CSV file to write")
        sub.add_argument(
            "--truth", type=Path, metavar="FILE", help="write the true nuisances of every row"
        )
        docs, hints = parameter_docs(function), get_type_hints(function)
        for option, parameter in inspect.signature(function).parameters.items():
            add_flag(sub, option, hints[option], docs[option], default=parameter.default)
    parser.set_defaults(command=simulate)


def simulate(chosen: argparse.Namespace) -> None:
    """Write a simulated data set, and on request the truths of its rows, to CSV files."""
    function = SIMULATIONS[chosen.simulation]
    given = {name: getattr(chosen, name) for name in inspect.signature(function).parameters}
    for place in filter(None, (chosen.file, chosen.truth)):
        check_place(place)
    simulation = function(**{name: value for name, value in given.items() if value is not None})
    write_text(chosen.file, simulation.data.to_csv(index=False))
    if chosen.truth is not None:
        write_text(chosen.truth, simulation.row_truths().to_csv(index=False))
    print(simulation.describe())
