"""Figures with their Monte-Carlo errors, and two methods on the same data sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from common import FloatArray, Record
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure over data sets and its Monte-Carlo standard error; NaN where not defined."""

    value: float = math.nan
    error: float = math.nan

    @classmethod
    def mean_of(cls, values: Sequence[float] | FloatArray) -> Figure:
        """Mean of independent values, with sd / √m."""
        if not len(values):
            return cls()
        error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return cls(float(np.mean(values)), float(error))


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """A figure of two methods on the same data sets of one group.

    Parameters
    ----------
    seeds : (m,) int64
        Numbers of the data sets.
    own, other : (m,) float64
        The figure of the one and of the other method.
    """

    seeds: NDArray[np.int64]
    own: FloatArray
    other: FloatArray


def paired(
    own: Iterable[Record], other: Iterable[Record], figure: Callable[[Record], float | None]
) -> list[Pairs]:
    """Figures of two methods on the data sets where both have one, by group."""

    def figures(records: Iterable[Record]) -> dict[str, dict[int, float]]:
        found: dict[str, dict[int, float]] = {}
        for record in records:
            value = None if "error" in record else figure(record)
            if value is not None and math.isfinite(value):
                found.setdefault(record["group"], {})[record["seed"]] = value
        return found

    mine, theirs = figures(own), figures(other)
    pairs = []
    for group in mine:
        seeds = sorted(set(mine[group]) & set(theirs.get(group, {})))
        if seeds:
            columns = ([of[group][seed] for seed in seeds] for of in (mine, theirs))
            pairs.append(Pairs(np.array(seeds), *(np.array(values) for values in columns)))
    return pairs


def ratio_of_means(pairs: Sequence[Pairs]) -> Figure:
    """Ratio of two methods' means on the same data sets; of several groups the geometric mean.

    The error is by the delta method, and what data sets of the same number have in common over
    groups counts: their parts are added before they are squared.
    """
    if not pairs or any(min(p.own.mean(), p.other.mean()) <= 0 for p in pairs):
        return Figure()
    logs = [math.log(p.own.mean() / p.other.mean()) for p in pairs]
    seeds = np.concatenate([p.seeds for p in pairs])
    parts = np.concatenate(
        [
            (p.own / p.own.mean() - p.other / p.other.mean()) / (len(p.seeds) * len(pairs))
            for p in pairs
        ]
    )
    sums = np.bincount(np.unique(seeds, return_inverse=True)[1], weights=parts)
    ratio = math.exp(float(np.mean(logs)))
    if len(sums) < 2:
        return Figure(ratio)
    return Figure(ratio, ratio * math.sqrt(float(np.sum(sums**2)) * len(sums) / (len(sums) - 1)))


def mean_difference(pairs: Sequence[Pairs]) -> Figure:
    """Mean of own - other over data sets."""
    if not pairs:
        return Figure()
    return Figure.mean_of(np.concatenate([p.own - p.other for p in pairs]))
