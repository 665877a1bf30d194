"""The part of the population in which the arms can be compared, in readable conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.matrix import dense_part
from cstonet.errors import OptionError
from cstonet.reporting.inference import Effect
from cstonet.reporting.numbers import plain
from cstonet.suggestions import did_you_mean

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix

Mask: TypeAlias = NDArray[np.bool_]
Operator = Literal["<", ">=", "<=", ">", "=", "!="]

# Conditions of a description, and how many descriptions are pursued side by side.
MOST_CONDITIONS, _BEAM = 3, 25
# Covariates that conditions are made of: those that tell lost units from others best.
_MOST_COVARIATES = 30
# Places to cut a number, and values up to which every one is a place.
_CUTS, _FEW_VALUES = 24, 10
# Share of lost units that a description may hold.
_TOLERATED = 0.05
# Units that every arm must keep.
_FEWEST = 20

_COMPARE: dict[Operator, Callable[[NDArray[np.float64], float], Mask]] = {
    "<": np.less,
    ">=": np.greater_equal,
    "<=": np.less_equal,
    ">": np.greater,
    "=": np.equal,
    "!=": np.not_equal,
}
_PART = re.compile(r"^(?P<name>.+?)\s*(?P<operator><=|>=|!=|==|=|<|>)\s*(?P<value>[^<>=!]+)$")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on a covariate, such as ``re75 < 7200``."""

    covariate: str
    operator: Operator
    value: float

    def __str__(self) -> str:
        text = plain(self.value)
        # What is read from the text must hold for the same units.
        exact = text if float(text) == self.value else repr(self.value)
        return f"{self.covariate} {self.operator} {exact}"

    def holds(self, values: NDArray[np.float64]) -> Mask:
        """For which values (n,) it holds."""
        return _COMPARE[self.operator](values, self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """The largest describable part of the population in which an effect is estimable.

    Attributes
    ----------
    conditions : tuple of Condition
        At most three, all of which hold; none if the whole population is it.
    mask : (n,) bool
        The units.
    effect : Effect
        The average effect among them, with its interval.
    lost : float
        Share of them that has no counterpart all the same.
    """

    conditions: tuple[Condition, ...]
    mask: Mask
    effect: Effect
    lost: float

    @property
    def condition(self) -> str:
        """The conditions as text, which `effect(where=...)` takes."""
        return " and ".join(map(str, self.conditions))

    @property
    def share(self) -> float:
        """Share of the units."""
        return float(self.mask.mean())

    def __str__(self) -> str:
        who = self.condition or "all units"
        text = f"{who}: {self.share:.0%} of units ({self.mask.sum()}); {self.effect}"
        if self.lost > _TOLERATED:
            text += (
                f". No description is better: {self.lost:.0%} of them have no counterpart, and "
                "the effect rests on extrapolation there"
            )
        return text


def describe(
    X: Matrix, covariates: Sequence[str], lost: Mask, treatment: NDArray[np.integer]
) -> tuple[tuple[Condition, ...], Mask]:
    """Conditions that hold for as many units as possible, hardly one of them lost.

    A beam search: descriptions grow by one condition at a time, and the best few go on: those that
    hold for a larger share of the others than of the lost. A count of either would prefer few units
    of any kind to one side of a band, which holds half of the lost.

    Parameters
    ----------
    X : (n, p)
        Covariates.
    covariates
        Their names.
    lost : (n,) bool
        Units without a counterpart.
    treatment : (n,)
        Codes of the arms, each of which must remain.

    Returns
    -------
    conditions, mask
        No condition and everyone, if few are lost. If no description is good enough, the one with
        the smallest share of lost units.
    """
    everyone = np.ones(len(lost), dtype=bool)
    best: tuple[tuple[Condition, ...], Mask] = ((), everyone)
    if lost.mean() <= _TOLERATED:
        return best
    candidates, levels = list(_candidates(X, covariates, lost)), int(treatment.max()) + 1
    beam, purest, most = [best], 1.0, 0
    all_bad = int(lost.sum())
    all_good = max(len(lost) - all_bad, 1)
    for _ in range(MOST_CONDITIONS):
        grown: dict[bytes, tuple[float, tuple[Condition, ...], Mask]] = {}
        for conditions, mask in beam:
            for condition, holds in candidates:
                inside = mask & holds
                size, bad = int(inside.sum()), int((inside & lost).sum())
                if size == mask.sum() or _smallest(treatment[inside], levels) < _FEWEST:
                    continue
                share = bad / size
                found = ((*conditions, condition), inside)
                if share <= _TOLERATED and size > most:
                    best, most = found, size
                elif most == 0 and share < purest:
                    best, purest = found, share
                ahead = (size - bad) / all_good - bad / all_bad
                grown.setdefault(np.packbits(inside).tobytes(), (ahead, *found))
        leaders = sorted(grown.values(), key=lambda one: -one[0])[:_BEAM]
        beam = [(conditions, mask) for _, conditions, mask in leaders]
    return best


def _smallest(codes: NDArray[np.integer], levels: int) -> int:
    return int(np.bincount(codes, minlength=levels).min())


def _candidates(
    X: Matrix, covariates: Sequence[str], lost: Mask
) -> Iterable[tuple[Condition, Mask]]:
    """Single conditions on the covariates that differ most between lost units and others."""
    p = X.shape[1]
    differences = np.zeros(p)
    for j in range(p):
        x = _column(X, j)
        ranks = pd.Series(x).rank().to_numpy()
        spread = ranks.std()
        if spread > 0:
            differences[j] = abs(ranks[lost].mean() - ranks[~lost].mean()) / spread
    for j in np.argsort(-differences, kind="stable")[:_MOST_COVARIATES]:
        if differences[j] == 0:
            continue
        x, name = _column(X, int(j)), covariates[j]
        values = np.unique(x)
        if len(values) == 2:
            for value in values:
                yield Condition(name, "=", float(value)), x == value
            continue
        for cut in _cuts(x, values):
            yield Condition(name, "<", cut), x < cut
            yield Condition(name, ">=", cut), x >= cut


def _cuts(x: NDArray[np.float64], values: NDArray[np.float64]) -> list[float]:
    """Readable numbers at which to cut: values if they are few, else quantiles of two digits."""
    if len(values) <= _FEW_VALUES:
        return [float(value) for value in values[1:]]
    quantiles = np.quantile(x, np.linspace(0, 1, _CUTS + 2)[1:-1])
    return sorted({float(f"{value:.2g}") for value in quantiles})


def _column(X: Matrix, j: int) -> NDArray[np.float64]:
    return np.asarray(dense_part(X, slice(None), slice(j, j + 1))[:, 0], dtype=np.float64)


def chosen(where: object, X: Matrix, covariates: Sequence[str]) -> Mask:
    """The units that a user names: a mask, the conditions of a support, or these as text.

    Parameters
    ----------
    where
        Booleans (n,), a :class:`Support`, or text such as ``"age < 30 and married = 0"``.
    X, covariates
        The covariates and their names.

    Raises
    ------
    OptionError
        If it says nothing that can be understood, or nobody is chosen.
    """
    n = X.shape[0]
    if isinstance(where, Support):
        where = where.mask
    if isinstance(where, str):
        mask = np.ones(n, dtype=bool)
        for condition in parse(where, covariates):
            mask &= condition.holds(_column(X, list(covariates).index(condition.covariate)))
    else:
        mask = np.asarray(where)
        if mask.dtype != bool or mask.shape != (n,):
            raise OptionError(
                f"where must be conditions on covariates as text, such as 'age < 30 and married = "
                f"0', or {n} truth values, one for each unit; got {type(where).__name__}"
                f"{f' of shape {mask.shape}' if mask.ndim else ''}."
            )
    if not mask.any():
        raise OptionError(f"where={where!r} holds for none of the {n} units.")
    return mask


def parse(text: str, covariates: Sequence[str]) -> tuple[Condition, ...]:
    """Conditions from text: a name, an operator and a number each, joined by "and".

    Blank text is the condition of a support that is everyone: none.
    """
    if not text.strip():
        return ()
    conditions = []
    for part in re.split(r"\s+and\s+|\s*&\s*", text.strip()):
        match = _PART.match(part.strip().strip("()"))
        if match is None:
            raise OptionError(
                f"where: cannot read {part!r}; conditions are a covariate, one of < <= > >= = !=, "
                "and a number, joined by 'and': 'age < 30 and married = 0'."
            )
        name, operator = match["name"].strip().strip("`"), match["operator"].replace("==", "=")
        if name not in covariates:
            raise OptionError(
                f"where: {name!r} is no covariate of this fit.{did_you_mean(name, covariates)}"
            )
        try:
            value = float(match["value"].replace(" ", "").replace(",", ""))
        except ValueError:
            raise OptionError(
                f"where: {match['value'].strip()!r} is no number. Categories are columns of zeros "
                "and ones here, as in res.selection."
            ) from None
        conditions.append(Condition(name, operator, value))  # type: ignore[arg-type]
    return tuple(conditions)
