"""The command line: ``cstonet demo``, ``cstonet fit``, ``cstonet simulate``."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

import pandas as pd

from cstonet import __version__, datasets
from cstonet.analyses.registry import treatment_kinds
from cstonet.cli.flags import add_flag, is_flag, parameter_docs
from cstonet.data.raw import Missing
from cstonet.data.variables import Family
from cstonet.errors import CStoNetError, DataError
from cstonet.model import CausalStoNet, fit
from cstonet.reporting.inference import check_alpha
from cstonet.settings.options import FitOptions
from cstonet.settings.presets import PRESETS

if TYPE_CHECKING:
    from cstonet.analyses.results import CausalResults

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
FORMATS = ("text", "csv", "latex", "html")

USAGE_ERROR, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the return value is the exit code of the process.

    Parameters
    ----------
    arguments
        Words of the command line; by default those of this process.
    """
    chosen = build_parser().parse_args(arguments)
    try:
        chosen.command(chosen)
        sys.stdout.flush()
    except CStoNetError as error:
        print(f"cstonet: error: {error}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"cstonet: error: {error.filename}: {error.strerror}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("cstonet: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="cstonet",
        description="Causal effects with many covariates by a sparse stochastic neural network.",
    )
    parser.add_argument("--version", action="version", version=f"cstonet {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_demo(commands.add_parser("demo", help="fit simulated data, print summary and truth"))
    _add_fit(commands.add_parser("fit", help="fit the data of a CSV file, print the summary"))
    _add_simulate(commands.add_parser("simulate", help="write simulated data to a CSV file"))
    return parser


# demo --------------------------------------------------------------------------------------------


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Fits the paper's second simulation and prints the truth below the summary."
    )
    parser.add_argument("--n", type=int, default=2000, help="units (default: %(default)s)")
    parser.add_argument("--p", type=int, default=50, help="covariates (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=1, help="of data and fit (default: %(default)s)"
    )
    parser.set_defaults(command=demo)


def demo(chosen: argparse.Namespace) -> None:
    """Fit simulation 2 and print the summary and, below it, the truth."""
    simulation = datasets.simulation2(n=chosen.n, p=chosen.p, seed=chosen.seed)
    results = fit(simulation.formula, simulation.data, seed=chosen.seed)
    print(results.summary())
    print()
    print(truth_table(simulation, results))
    print(f"\nFitted in {results.runtime:.1f} s.")


def truth_table(simulation: datasets.Simulation, results: CausalResults) -> str:
    """What the fit says beside what is true, as text of 78 columns."""
    from cstonet.reporting.tables import table_with_headers

    ate, error = float(results.params["ATE"]), float(results.bse["ATE"])
    oracle, oracle_error = simulation.oracle_ate()
    rows = [
        ("this fit", ate, error),
        ("oracle: AIPW with the true nuisances", oracle, oracle_error),
        ("true mean effect over these rows", simulation.sample_ate, None),
        ("true mean effect in the population", simulation.ate, None),
    ]
    effects = table_with_headers(
        [
            [
                name,
                f"{value:.4f}",
                "" if se is None else f"{se:.3f}",
                f"{value - simulation.sample_ate:+.4f}",
            ]
            for name, value, se in rows
        ],
        ["Truth: ATE", "value", "std err", "minus truth"],
        (40, 11, 11, 13),
    )
    supports = {"treatment": simulation.treatment_support, "outcome": simulation.outcome_support}
    cells = []
    for model, support in supports.items():
        selected = results.selection.index[results.selection[model]]
        found = [name for name in support if name in selected]
        others = str(len(selected) - len(found))
        cells.append([model, " ".join(support), f"{len(found)} of {len(support)}", others])
    selection = table_with_headers(
        cells, ["Truth: covariates", "true ones", "found", "others kept"], (20, 31, 11, 13)
    )
    # As in the summary, the tables share the rule between them.
    return "\n".join([effects.as_text().rsplit("\n", 1)[0], selection.as_text()])


# fit ---------------------------------------------------------------------------------------------


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.description = "Fits a Causal-StoNet to the data of a CSV file and prints the summary."
    parser.add_argument("file", type=Path, help="CSV file with a header line")
    parser.add_argument("formula", help='such as "y ~ treat | ." or "y ~ treat | x1 + C(region)"')
    model, how = parameter_docs(CausalStoNet), parameter_docs(CausalStoNet.fit)

    data = parser.add_argument_group("data")
    add_flag(data, "family", Family, model["family"])
    data.add_argument("--treatment", choices=treatment_kinds(), help=model["treatment"])
    data.add_argument("--reference", metavar="LEVEL", help=model["reference"])
    add_flag(data, "missing", Missing, model["missing"], default="raise")
    data.add_argument("--weights", metavar="COLUMN", help=model["weights"])
    data.add_argument("--cluster", metavar="COLUMN", help=model["cluster"])

    fitting = parser.add_argument_group("fit", "Options not given are those of the preset.")
    fitting.add_argument("--preset", choices=PRESETS, default=PRESETS[0], help="named settings")
    fitting.add_argument("--seed", type=int, default=0, help=how["seed"])
    fitting.add_argument("--n-jobs", type=int, default=-1, help=how["n_jobs"])
    fitting.add_argument("--backend", metavar="NAME", help=how["backend"])
    fitting.add_argument(
        "--progress", action="store_true", help="show a progress bar at once, and in a pipe"
    )
    docs, hints = parameter_docs(FitOptions), get_type_hints(FitOptions)
    for name in _fit_flags():
        add_flag(fitting, name, hints[name], docs[name])

    output = parser.add_argument_group("output")
    output.add_argument("--alpha", type=float, default=0.05, help="one minus the confidence level")
    for kind in FORMATS:
        output.add_argument(
            f"--{kind}", type=Path, metavar="FILE", help=f"write the summary as {kind}"
        )
    output.add_argument(
        "--selection", type=Path, metavar="FILE", help="write the full selection table as csv"
    )
    parser.set_defaults(command=fit_file)


def _fit_flags() -> list[str]:
    """The options of a fit that one word can express: training and search have options inside."""
    hints = get_type_hints(FitOptions)
    return [field.name for field in dataclasses.fields(FitOptions) if is_flag(hints[field.name])]


def fit_file(chosen: argparse.Namespace) -> None:
    """Fit the data of a file, print the summary, write what was asked for."""
    # What would fail after the fit is found before it.
    check_alpha(chosen.alpha)
    paths = {kind: getattr(chosen, kind) for kind in (*FORMATS, "selection")}
    for path in filter(None, paths.values()):
        check_writable(path)
    given = {name: getattr(chosen, name) for name in _fit_flags()}
    results = fit(
        chosen.formula,
        read_data(chosen.file),
        preset=chosen.preset,
        family=chosen.family,
        treatment=chosen.treatment,
        reference=as_level(chosen.reference),
        missing=chosen.missing or "raise",
        weights=chosen.weights,
        cluster=chosen.cluster,
        seed=chosen.seed,
        n_jobs=chosen.n_jobs,
        backend=chosen.backend,
        progress=chosen.progress or None,
        **{name: value for name, value in given.items() if value is not None},
    )
    summary = results.summary(alpha=chosen.alpha)
    print(summary)
    for kind in FORMATS:
        if paths[kind] is not None:
            paths[kind].write_text(getattr(summary, f"as_{kind}")() + "\n", encoding="utf-8")
    if chosen.selection is not None:
        results.selection.to_csv(chosen.selection)


def as_level(word: str | None) -> object:
    """A level of the treatment from a word, read as from a CSV file: number, boolean or text."""
    if word is None or word in ("True", "False"):
        return {None: None, "True": True, "False": False}[word]
    for read in (int, float):
        try:
            return read(word)
        except ValueError:
            pass
    return word


def check_writable(path: Path) -> None:
    """Raise OSError unless a file can be written there."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder to write to", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file", str(path))


def read_data(path: Path) -> pd.DataFrame:
    """The frame in a CSV file, or a DataError that says why there is none."""
    try:
        return pd.read_csv(path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} cannot be read as comma-separated values: {str(error).strip()}. Check that it "
            "has a header line, commas between the columns, and is encoded in UTF-8."
        ) from None


# simulate ----------------------------------------------------------------------------------------


def _add_simulate(parser: argparse.ArgumentParser) -> None:
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
    simulation = function(**{name: value for name, value in given.items() if value is not None})
    simulation.data.to_csv(chosen.file, index=False)
    if chosen.truth is not None:
        simulation.row_truths().to_csv(chosen.truth, index=False)
    print(simulation.describe())
