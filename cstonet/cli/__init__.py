"""The command line: ``cstonet fit``, ``predict``, ``report``, ``plan``, ``demo``, ``simulate``."""

import sys
from collections.abc import Sequence

from cstonet.cli.interrupts import INTERRUPTED, Interrupts, say_interrupted

__all__ = ["INTERRUPTED", "USAGE_ERROR", "main"]

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, see :func:`cstonet.cli.commands.run`; Ctrl-C ends it in one line at any time.

    Parameters
    ----------
    arguments
        Words of the command line; by default those of this process, which ends after them.

    Returns
    -------
    int
        The exit code of the process; 130 if it was interrupted.
    """
    interrupts = Interrupts()
    interrupts.end_at_once()
    code = INTERRUPTED
    try:
        # Not at the top: who interrupts while libraries load sees no traceback either.
        from cstonet.cli.commands import run

        interrupts.interrupt()
        code = run(arguments)
    except KeyboardInterrupt as error:
        code = say_interrupted(error)
    except Exception as error:
        if interrupts.seen:
            code = say_interrupted()
        else:
            from cstonet.errors import KernelLevelError

            if not isinstance(error, KernelLevelError):  # said as the kernel loads
                raise
            print(f"cstonet: error: {error}", file=sys.stderr)
            code = USAGE_ERROR
    finally:
        if arguments is None:
            interrupts.end_with(code)
        else:
            interrupts.restore()
    return code
