"""The command line: ``cstonet fit``, ``predict``, ``report``, ``plan``, ``demo``, ``simulate``."""

from collections.abc import Sequence

from cstonet.cli.interrupts import INTERRUPTED, Interrupts, say_interrupted

__all__ = ["INTERRUPTED", "main"]


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
    except Exception:
        if not interrupts.seen:
            raise
        code = say_interrupted()
    finally:
        if arguments is None:
            interrupts.end_with(code)
        else:
            interrupts.restore()
    return code
