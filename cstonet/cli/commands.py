"""The command line: its commands, and what becomes of their errors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from cstonet import __version__
from cstonet.cli.demo import add_demo
from cstonet.cli.fitting import add_fit, add_plan
from cstonet.cli.flags import Help
from cstonet.cli.saved import add_predict, add_report
from cstonet.cli.simulating import add_simulate
from cstonet.errors import CStoNetError

USAGE_ERROR = 2

# Name, what it does in a line, and what adds its flags.
COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "fit": ("fit the data of a file, print the summary", add_fit),
    "predict": ("predict new units by a saved fit", add_predict),
    "report": ("write the page of a saved fit", add_report),
    "plan": ("say what a fit would do", add_plan),
    "demo": ("fit simulated data, print summary and truth", add_demo),
    "simulate": ("write simulated data to a CSV file", add_simulate),
}
_EPILOG = """\
Begin with: cstonet demo
Then:       cstonet fit data.csv "outcome ~ treatment | ." --report page.html
Each command has a --help of its own, with examples.
"""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the return value is the exit code of the process.

    Parameters
    ----------
    arguments
        Words of the command line; by default those of this process.

    Returns
    -------
    int
        0: done; 2: wrong words or data. A fault of the program itself ends with a traceback and 1.
    """
    chosen = build_parser().parse_args(arguments)
    try:
        chosen.command(chosen)
        sys.stdout.flush()
    except CStoNetError as error:
        print(f"cstonet: error: {' '.join(str(error).split())}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"cstonet: error: {error.filename}: {error.strerror}", file=sys.stderr)
        return USAGE_ERROR
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="cstonet",
        description="Causal effects with many covariates by a sparse stochastic neural network.",
        epilog=_EPILOG,
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"cstonet {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, (about, add) in COMMANDS.items():
        add(commands.add_parser(name, help=about, formatter_class=Help))
    return parser
