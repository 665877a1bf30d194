"""Formulas: the splitter, which only reads, and terms of others, which are never run as Python."""

from __future__ import annotations

import inspect
import random

import numpy as np
import pandas as pd

from cstonet import CausalStoNet
from cstonet.data.formula import parse_formula, summands
from cstonet.errors import CStoNetError

from .chance import TEXTS, often, several
from .formulas import hostile
from .watch import only_reading

PIECES = (
    "y", "treat", "x1", "x2", "g", ".", "~", "|", "+", "-", ":", "*", "/", "**", ",", "(", ")", "[",
    "]", "{", "}", "'", '"', "\\", " ", "0", "1", "Q(", 'Q("x 1")', "C(g)", "I(x1 + x2)",
    "bs(x1, 4)", "np.log(x1)", "center(x1)", "lambda: 0", "%in%", "\t", "\n", "é", "\0", "#", "@",
    "=", "`", "$",
)  # fmt: skip
GOOD = (
    "y ~ treat | .",
    "y ~ treat | x1 + x2 - 1",
    'y ~ treat | Q("x 1") + C(g)',
    "np.log(y + 9) ~ treat | bs(x1, 4) + x1:x2 | x2",
    "y ~ np.exp(treat) | standardize(x1) * g + I(x1**2)",
)


def formula_text(chance: random.Random) -> str:
    """Text that is a formula, was one, or is made of pieces of formulas."""
    if often(chance, 0.3):
        return "".join(several(chance, lambda: chance.choice(PIECES + TEXTS), 12))
    text = chance.choice(GOOD)
    for _ in range(chance.randint(0, 4)):
        at = chance.randint(0, len(text))
        to = min(len(text), at + chance.choice((0, 0, 1, 3)))
        text = text[:at] + chance.choice(PIECES) + text[to:]
    return text


def encoded(text: str) -> bytes:
    """A text, halves of surrogate pairs included."""
    return text.encode("utf-8", "surrogatepass")


def decoded(content: bytes) -> str:
    """The text of an input; what is no text becomes one."""
    return content.decode("utf-8", "surrogatepass" if _is_text(content) else "replace")


def _is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


class Splitter:
    """`parse_formula` and `summands`: every text is split, or refused by name."""

    def draw(self, chance: random.Random) -> bytes:
        return encoded(formula_text(chance))

    def run(self, content: bytes) -> str:
        text = decoded(content)
        with only_reading():
            try:
                summands(text)
                formula = parse_formula(text)
            except CStoNetError as error:
                return type(error).__name__
        # Nothing is lost and nothing is made up: what was split can be put together again.
        covariates, mediators = (
            " ".join(f"{'-' if term.removed else '+'} {term.text}" for term in terms)
            for terms in (formula.covariates, formula.mediators)
        )
        whole = f"{formula.outcome} ~ {formula.treatment} | {covariates}"
        again = parse_formula(f"{whole} | {mediators}" if mediators else whole)
        parts = ("outcome", "treatment", "covariates", "mediators")
        assert all(getattr(again, part) == getattr(formula, part) for part in parts)
        return "split"

    def close(self) -> None:
        pass


class Terms:
    """Formulas of others, ``safe=True``: a design or a named error, and nothing is run."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._frame = pd.DataFrame(rng.normal(size=(12, 3)), columns=["x1", "x2", "x 1"])
        self._frame["g"] = list("uvw") * 4
        self._frame["treat"] = [0, 1] * 6
        self._frame["y"] = rng.normal(size=12)
        if "safe" not in inspect.signature(CausalStoNet.from_formula).parameters:
            raise NotImplementedError("this version has no safe formulas")
        # What is imported for terms, for splines too, is imported before anything is watched.
        import scipy.interpolate  # noqa: F401

        for formula in GOOD:
            self._read(formula)

    def draw(self, chance: random.Random) -> bytes:
        return encoded(hostile(chance) if often(chance, 0.8) else formula_text(chance))

    def run(self, content: bytes) -> str:
        with only_reading(terms=True):
            return self._read(decoded(content))

    def _read(self, formula: str) -> str:
        try:
            CausalStoNet.from_formula(formula, self._frame, safe=True)
        except CStoNetError as error:
            return type(error).__name__
        return "read"

    def close(self) -> None:
        pass
