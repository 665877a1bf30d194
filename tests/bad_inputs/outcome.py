"""What becomes of a bad input: a named error, the right answer, or one of the defects."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

from cstonet.errors import CStoNetError

Outcome = Literal["named", "right", "foreign", "nonsense", "unhelpful"]

# In the order of the table; those after the second are defects.
OUTCOMES: dict[Outcome, str] = {
    "named": "an error of the package that names what was wrong",
    "right": "the answer of the clean input",
    "foreign": "an exception or warning of another library, or no end",
    "nonsense": "an answer although the input was misread",
    "unhelpful": "an error that does not name what was wrong, or refuses what is right",
}
DEFECTS: tuple[Outcome, ...] = ("foreign", "nonsense", "unhelpful")

_SECONDS = 60  # far beyond any case: who needs longer has no end
_LONGEST_MESSAGE = 2500


@dataclass(frozen=True)
class Case:
    """One input, and what may become of it.

    Attributes
    ----------
    kind : str
        Its class in the table.
    name : str
        What is bad about it.
    run : callable
        Gives it to the package.
    says : tuple of str
        One of these must be in the message of an error; none: it must not be refused.
    right : callable or None
        Whether an answer is right; None: it must be refused.
    """

    kind: str
    name: str
    run: Callable[[], Any]
    says: tuple[str, ...] = ()
    right: Callable[[Any], bool] | None = None


@dataclass(frozen=True)
class Judged:
    """A case with its outcome, and what was seen."""

    case: Case
    outcome: Outcome
    detail: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.case.kind}, {self.case.name}: {self.detail}"


class _NoEnd(BaseException):
    """Raised by the clock."""


def judge(case: Case) -> Judged:
    """Run a case and say what became of it."""
    with warnings.catch_warnings(record=True) as said, _clock():
        warnings.simplefilter("always")
        try:
            outcome, detail = _judged_answer(case, case.run())
        except CStoNetError as error:
            outcome, detail = _judged_error(case, error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            outcome, detail = "foreign", f"{type(error).__name__}: {error!s:.200}"
    # The package's own warnings and those of UserWarning are for users; all others come from below.
    for warning in said:
        if not issubclass(warning.category, UserWarning):
            where = f"{warning.filename}:{warning.lineno}"
            text = f"{warning.category.__name__}: {warning.message!s:.120} ({where})"
            return Judged(case, "foreign", text)
    return Judged(case, outcome, detail)


def _judged_answer(case: Case, answer: Any) -> tuple[Outcome, str]:
    if case.right is None:
        return "nonsense", f"accepted: {answer!r:.200}"
    if not case.right(answer):
        return "nonsense", f"another answer: {answer!r:.200}"
    return "right", ""


def _judged_error(case: Case, error: CStoNetError) -> tuple[Outcome, str]:
    text = str(error)
    detail = f"{type(error).__name__}: {text:.300}"
    if not case.says:
        return "unhelpful", f"refused what is right: {detail}"
    if not any(word in text for word in case.says):
        return "unhelpful", f"names none of {case.says}: {detail}"
    if len(text) > _LONGEST_MESSAGE:
        return "unhelpful", f"{len(text)} characters long: {detail}"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "unhelpful", f"cannot be printed: {detail!a}"
    return "named", detail


@contextmanager
def _clock() -> Iterator[None]:
    """End in `_NoEnd` what takes too long, where signals can be had."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise _NoEnd(f"no end after {_SECONDS} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
