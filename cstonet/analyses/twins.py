"""Twins of the data: the same units, with treatments and outcomes drawn from the fitted models.

In the world of the twins the nuisances of the fit are the truth, so every effect is known. What
an analysis draws is its own business (`twins` in its folder); here is what all have in common.

Units keep their covariates, gaps and weights. A sample of fresh data would have other units, and
with them another average effect than the population's. That part of the error comes back from the
other side: for every twin, the population is drawn by resampling the units' known effects, so that
it differs from the sample as a sample differs from its population. The distribution of
estimate - truth is then that of fresh data, and no unit is in two folds at once, as duplicates of
a bootstrap would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cstonet.data.design import AnyDesign
from cstonet.data.variables import Family
from cstonet.estimators.dispersion import fit_dispersion
from cstonet.estimators.nuisances import FloatArray, IntArray

# Counts whose variance exceeds their mean by less than this share are Poisson's.
_POISSON = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """Data drawn from fitted models.

    Attributes
    ----------
    design
        The data: those of the fit with other treatments and outcomes.
    truths : (k,) float64
        The effects in the population that they stand for, in the order of the fit's.
    """

    design: AnyDesign
    truths: FloatArray


class World(Protocol):
    """Where twins come from."""

    def twin(self, rng: np.random.Generator) -> Twin:
        """One twin."""


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """What is left of a variable by the models, to be drawn anew.

    Residuals out of fold, which hold the misfit of the models too, are studentised by a variance
    that may depend on what is expected, and drawn within the arm. Units of a cluster take those of
    another cluster together.

    Attributes
    ----------
    spread : (n, L) float64
        Standard deviation of every unit in every arm.
    studentised : (n,) float64
        Residuals of mean zero and variance one in each arm.
    members, chances
        Units of each arm whose residuals can be drawn, and the chance of each: by their weights.
    clusters : (n,) int or None
        Codes of the clusters; None: units are independent.
    """

    spread: FloatArray
    studentised: FloatArray
    members: tuple[IntArray, ...]
    chances: tuple[FloatArray, ...]
    clusters: IntArray | None = None

    @classmethod
    def of(
        cls,
        residual: FloatArray,
        expected: FloatArray,
        arms: IntArray,
        weights: FloatArray,
        *,
        variance: FloatArray | None = None,
        clusters: IntArray | None = None,
    ) -> Noise:
        """The noise that residuals tell of.

        Parameters
        ----------
        residual : (n,) float64
            Values less what was expected of them out of fold.
        expected : (n, L) float64
            Expectations in every arm.
        arms : (n,) int
            Codes of the arms received.
        weights : (n,) float64
            Weights of the units.
        variance : (n, L) float64, optional
            Variances in every arm but for a factor; by default a log-linear function of the
            expectations, where a test finds that they matter.
        clusters : (n,) int, optional
            Codes of the clusters.
        """
        n, levels = expected.shape
        spread, studentised = np.empty((n, levels)), np.zeros(n)
        members, chances = [], []
        for arm in range(levels):
            own = np.where(arms == arm, weights, 0.0)
            here = np.flatnonzero(own)
            chance = own[here] / own[here].sum()
            if variance is None:
                own_variance = _variance(residual, expected[:, arm], own / own.mean())
            else:
                own_variance = variance[:, arm]
            drawn = residual[here] / np.sqrt(own_variance[here])
            drawn = drawn - chance @ drawn
            studentised[here] = drawn / np.sqrt(chance @ drawn**2)
            # The arm's units get noise of the mean square of their residuals.
            factor = (chance @ residual[here] ** 2) / (chance @ own_variance[here])
            spread[:, arm] = np.sqrt(factor * own_variance)
            members.append(here)
            chances.append(chance)
        return cls(spread, studentised, tuple(members), tuple(chances), clusters)

    def draw(self, arms: IntArray, rng: np.random.Generator) -> FloatArray:
        """Noise of units in these arms, shape (n,)."""
        own = np.take_along_axis(self.spread, arms[:, None], axis=1)[:, 0]
        donors: IntArray = np.empty(len(arms), dtype=np.int64)
        if self.clusters is None:
            for arm, (members, chance) in enumerate(zip(self.members, self.chances, strict=True)):
                here = np.flatnonzero(arms == arm)
                donors[here] = rng.choice(members, size=len(here), p=chance)
        else:
            members, chances = np.concatenate(self.members), np.concatenate(self.chances)
            donors = _donors(self.clusters, members, chances, rng)
        noise: FloatArray = own * self.studentised[donors]
        return noise


def _variance(residual: FloatArray, expected: FloatArray, weights: FloatArray) -> FloatArray:
    """Variance of residuals given what is expected, shape (n,), by units of positive weight."""
    features = np.column_stack([expected, (expected - np.mean(weights * expected)) ** 2])
    together = np.zeros(len(residual), dtype=np.int64)  # one fold
    return fit_dispersion(residual, features, weights, together).values


def _donors(
    clusters: IntArray, members: IntArray, chances: FloatArray, rng: np.random.Generator
) -> IntArray:
    """For every unit, one among `members` of a cluster that its own cluster has drawn; (n,).

    Clusters are drawn by the chances of their members, and these by their own: each member gives
    with its chance, whatever the sizes of the clusters, so that noise has mean zero.
    """
    _, own = np.unique(clusters, return_inverse=True)
    order = np.argsort(own[members], kind="stable")
    members, ends = members[order], np.cumsum(chances[order])
    last = np.append(np.flatnonzero(np.diff(own[members])), len(members) - 1)
    upper = ends[last]
    lower = np.append(0.0, upper[:-1])
    drawn = np.searchsorted(upper, rng.random(int(own.max()) + 1) * upper[-1], side="right")[own]
    place = lower[drawn] + rng.random(len(own)) * (upper - lower)[drawn]
    first = np.append(0, last[:-1] + 1)
    # Rounding must not lead into the next cluster.
    places = np.clip(np.searchsorted(ends, place, side="right"), first[drawn], last[drawn])
    donors: IntArray = members[places]
    return donors


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeLaw:
    """How outcomes vary around what is expected of them, family by family.

    Gaussian ones are expectation plus noise; binary ones are drawn by their expectations alone;
    counts and amounts have a variance proportional to their mean, as the residuals say: those of
    whole numbers are mixtures of Poisson laws over gamma laws, others gamma laws.

    Attributes
    ----------
    family
        Family of the outcome.
    noise
        Of a gaussian outcome.
    dispersion : (L,) float64
        Variance over mean in every arm, of counts and amounts.
    whole : bool
        Whether outcomes are whole numbers.
    """

    family: Family
    noise: Noise | None
    dispersion: FloatArray
    whole: bool

    @classmethod
    def of(
        cls,
        family: Family,
        y: FloatArray,
        expected: FloatArray,
        arms: IntArray,
        weights: FloatArray,
        clusters: IntArray | None = None,
    ) -> OutcomeLaw:
        """The law of outcomes (n,), given what was expected of them out of fold in every arm.

        Parameters
        ----------
        family, y
            Family and outcomes.
        expected, arms, weights, clusters
            See `Noise.of`.
        """
        received = np.take_along_axis(expected, arms[:, None], axis=1)[:, 0]
        levels, residual = expected.shape[1], y - received
        noise, dispersion = None, np.ones(levels)
        if family == "gaussian":
            noise = Noise.of(residual, expected, arms, weights, clusters=clusters)
        elif family == "poisson":
            squares = np.bincount(arms, weights * residual**2, levels)
            dispersion = squares / np.bincount(arms, weights * received, levels)
        return cls(family, noise, dispersion, bool((y == np.round(y)).all()))

    def draw(self, mean: FloatArray, arms: IntArray, rng: np.random.Generator) -> FloatArray:
        """Outcomes (n,) of units with these expectations (n,) in these arms (n,)."""
        if self.family == "binomial":
            return (rng.random(len(mean)) < mean).astype(np.float64)
        if self.noise is not None:
            return mean + self.noise.draw(arms, rng)
        dispersion = self.dispersion[arms]
        if not self.whole:
            return rng.gamma(mean / dispersion, dispersion)
        extra = np.maximum(dispersion - 1, _POISSON)
        return rng.poisson(rng.gamma(mean / extra, extra)).astype(np.float64)


def resampled(
    weights: FloatArray, clusters: IntArray | None, rng: np.random.Generator
) -> FloatArray:
    """Weights of the units in a population that they are a sample of, shape (n,).

    As often as a unit, or its cluster, is drawn in as many draws with replacement.
    """
    own = (
        np.arange(len(weights)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    )
    count = int(own.max()) + 1
    times = np.bincount(rng.integers(count, size=count), minlength=count)
    drawn: FloatArray = times[own] * weights
    # Few clusters, of which those drawn may all have weight zero.
    return drawn if drawn.any() else weights
