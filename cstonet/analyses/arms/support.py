"""The part of the population in which the arms can be compared, in readable conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.conditions import Mask, in_condition
from cstonet.data.matrix import dense_part
from cstonet.reporting.inference import Effect
from cstonet.reporting.numbers import exact

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix

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


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on a covariate, such as ``re75 < 7200``."""

    covariate: str
    operator: Operator
    value: float

    def __str__(self) -> str:
        # What is read from the text must hold for the same units.
        return f"{in_condition(self.covariate)} {self.operator} {exact(self.value)}"


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
