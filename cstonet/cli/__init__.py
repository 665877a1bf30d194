"""The command line: ``cstonet fit``, ``predict``, ``report``, ``plan``, ``demo``, ``simulate``."""

import sys
from collections.abc import Sequence

__all__ = ["main"]

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, see :func:`cstonet.cli.commands.run`; Ctrl-C ends it in one line at any time.

    Parameters
    ----------
    arguments
        Words of the command line; by default those of this process.

    Returns
    -------
    int
        The exit code of the process; 130 if it was interrupted.
    """
    try:
        # Not at the top: who interrupts while libraries load sees no traceback either.
        from cstonet.cli.commands import run

        return run(arguments)
    except KeyboardInterrupt:
        print("cstonet: interrupted", file=sys.stderr)
        return INTERRUPTED
