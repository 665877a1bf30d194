"""The command line: its commands, and what becomes of their errors."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from cstonet import __version__
from cstonet.cli import USAGE_ERROR
from cstonet.cli.demo import add_demo
from cstonet.cli.fitting import add_fit, add_plan
from cstonet.cli.flags import Help
from cstonet.cli.saved import add_predict, add_report
from cstonet.cli.simulating import add_simulate
from cstonet.cli.streams import drop_output, flush_output, open_streams, say
from cstonet.errors import CStoNetError

_NO_VALUE = re.compile(r"--[a-z-]+=--")
_ENDLESS = re.compile(r"(\S{200})\S+")

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


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the words, and where to read more."""
        _say_error(f"{message}. See {self.prog} --help.")
        self.exit(USAGE_ERROR)


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
    open_streams()
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        try:
            parser = build_parser()
            for word in words:
                if _NO_VALUE.fullmatch(word):  # argparse would make a list of it
                    parser.error(f"{word[:-3]} needs a value")
            chosen = parser.parse_args(words)
            chosen.command(chosen)
        finally:
            flush_output()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        drop_output()
        return 0
    except CStoNetError as error:
        _say_error(str(error))
    except MemoryError:
        _say_error("there is not enough memory. Use fewer rows or columns, or --n-jobs 1.")
    except OSError as error:
        _say_error(_sentence(error))
        drop_output()
    else:
        return 0
    return USAGE_ERROR


def _say_error(text: str) -> None:
    """One line, in which no word is endless and every character can be printed."""
    line = _ENDLESS.sub(r"\1…", " ".join(text.split()))
    say(f"cstonet: error: {line.encode('utf-8', 'backslashreplace').decode('utf-8')}")


def _sentence(error: OSError) -> str:
    """What went wrong with which file; some errors name none, some give no reason."""
    reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
    where = "input or output failed" if error.filename is None else str(error.filename)
    return f"{where}: {reason}"


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(
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
