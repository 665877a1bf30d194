"""A user's value in a message: short, on one line, whatever it is."""

from __future__ import annotations

_LONGEST = 200


def shown(value: object) -> str:
    """What a message says of a value that is not what it should be.

    Parameters
    ----------
    value
        Anything, even what cannot be written: a number of thousands of digits, a broken object.

    Returns
    -------
    str
        Its ``repr``, shortened; or its type, if it has none.
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # the code of the value's own class
        return f"an object of type {type(value).__name__}"
    # A lone surrogate could not be printed.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
