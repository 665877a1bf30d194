"""One source of choices for every engine: a seed, hypothesis, or the bytes that a fuzzer evolves.

A target draws its inputs by the methods of `random.Random`. A plain loop gives it a seeded one,
hypothesis its own (``st.randoms``), and a guided fuzzer a `Tape` of the bytes it has made up: what
it learns about bytes is then about choices, and every input is of the right kind.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Tape(random.Random):
    """Choices read from bytes; once these are used up, always the first one.

    Parameters
    ----------
    content : bytes
        What to read.
    """

    def __new__(cls, content: bytes) -> Tape:
        return super().__new__(cls)

    def __init__(self, content: bytes) -> None:
        super().__init__(0)
        self._content, self._at = content, 0

    def getrandbits(self, k: int) -> int:
        """The next k bits; what is left of their last byte is not used."""
        size = (k + 7) // 8
        taken = self._content[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "little") & (2**k - 1)

    def random(self) -> float:
        """A number from 0 to 1 of the next 32 bits: fewer bytes than 53 would be."""
        return self.getrandbits(32) / 2**32


def often(chance: random.Random, share: float) -> bool:
    """True in this share of cases."""
    return chance.random() < share


def several(chance: random.Random, draw: Callable[[], T], most: int, *, least: int = 0) -> list[T]:
    """A list of so many draws."""
    return [draw() for _ in range(chance.randint(least, most))]


# Numbers at which conversions, sums and indices go wrong.
NUMBERS: Sequence[Any] = (
    0, -1, 1, 2, 7, 255, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64,
    10**400, -0.0, 0.5, 1e-320, -1e308, 1e308, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
# Texts that something might take for a path, a name, code, a number or a format.
TEXTS: Sequence[str] = (
    "", " ", "\0", "\n", "é", "\u202e", "\ud800", "x" * 300, "auto", "None", "nan", "1e5",
    "%s{0}{}", "../../escaped", "/tmp/escaped", "C:\\escaped", "file:///etc/passwd", "os.system",
    "builtins", "eval",
    "__import__('os').system('touch escaped')", "np.load(x1)", "x1.__class__.__mro__[1]",
    "(lambda: 0)()", "9**9**9", "'a' * 10**12", "[0] * 10**12", "open('escaped', 'w')",
    "$(touch escaped)", "x1", "y ~ treat | .",
)  # fmt: skip


def plain_value(chance: random.Random, depth: int = 2) -> Any:
    """Any value that JSON has, and numbers that only Python's does."""
    kind = chance.randrange(8 if depth else 6)
    if kind == 0:
        return chance.choice((None, True, False))
    if kind <= 2:
        return chance.choice(NUMBERS)
    if kind == 3:
        return chance.choice((1.0, -1.0)) * 10 ** chance.uniform(-12, 12)
    if kind <= 5:
        return chance.choice(TEXTS)
    if kind == 6:
        return several(chance, lambda: plain_value(chance, depth - 1), 3)
    keys = ("at", "array", "scalar", "dict", "list", "float", "withheld", "type", "order", "x1")
    return {
        chance.choice(keys): plain_value(chance, depth - 1) for _ in range(chance.randint(0, 2))
    }
