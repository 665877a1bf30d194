"""Where the arms can be compared, and what extrapolation beyond could hide.

A unit has a counterpart in an arm if its probability of being there, given all covariates that the
analyst named, is not far below the arm's share. The effect of units without a counterpart is seen
nowhere in the data. The index ℓ, the log-odds of the two arms given all covariates, tells how far
they are from where both arms exist. A bias-aware interval takes the effect to change along ℓ beyond
that boundary by at most M per unit of ℓ, M being the steepest change that the data allow where both
arms exist: the absolute slope of the doubly robust scores in ℓ there, plus two standard errors. An
estimate that rests on units at distances d_i may then be off by M times the mean of d_i.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.estimators.aipw import aipw_scores
from cstonet.estimators.nuisances import FloatArray, Nuisances, clip_propensity
from cstonet.estimators.targets import Target

# A unit whose probability of an arm is below this part of the arm's share has no counterpart there.
COUNTERPART = 0.05
# Share of units without counterpart beyond which an effect counts as not estimable, and below which
# of units with one the arms count as separated.
MOST_LOST, LEAST_SHARED = 0.1, 0.05
# Standard errors by which the slope of the effect may be steeper than it looks.
_STEEPER = 2.0
_TINY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """Who has a counterpart where.

    Attributes
    ----------
    probabilities : (n, L) float64
        Of every arm, given all covariates.
    treatment : (n,) int
        Treatments as codes.
    least : (L,) float64
        Probability that makes a counterpart.
    unit_weights : (n,) float64
        Of mean one.
    """

    probabilities: FloatArray
    treatment: NDArray[np.integer]
    least: FloatArray
    unit_weights: FloatArray

    @classmethod
    def of(cls, probabilities: FloatArray, nuisances: Nuisances) -> Overlap:
        """From probabilities (n, L) and who received what."""
        least = COUNTERPART * nuisances.shares
        return cls(probabilities, nuisances.treatment, least, nuisances.unit_weights)

    def among(self, chosen: NDArray[np.bool_]) -> Overlap:
        """The same of some units, chosen by a mask (n,)."""
        weights = self.unit_weights[chosen]
        return Overlap(
            self.probabilities[chosen], self.treatment[chosen], self.least, weights / weights.mean()
        )

    @property
    def counterparts(self) -> NDArray[np.bool_]:
        """Whether a unit has a counterpart in an arm, shape (n, L); its own is always one."""
        there: NDArray[np.bool_] = self.probabilities >= self.least
        there[np.arange(len(there)), self.treatment] = True
        return there

    @property
    def without(self) -> NDArray[np.bool_]:
        """Units that lack a counterpart in some arm, shape (n,)."""
        return np.asarray((~self.counterparts).any(axis=1))

    def lost(self, target: Target, contrast: tuple[int, int]) -> NDArray[np.bool_]:
        """Units that an effect of b against a asks about and that lack a counterpart, shape (n,).

        For ATE and ATO both arms are needed, for the ATT those who received b need a counterpart
        in a, for the ATC the reverse. The ATO asks about units in proportion to their overlap, and
        loses none.
        """
        if target == "ATO":
            return np.zeros(len(self.treatment), dtype=bool)
        lacking = np.asarray(~self.counterparts[:, list(contrast)]).any(axis=1)
        return np.asarray(lacking & self.asked(target, contrast))

    def asked(self, target: Target, contrast: tuple[int, int]) -> NDArray[np.bool_]:
        """Units that an effect of b against a asks about, shape (n,)."""
        if target not in ("ATT", "ATC"):
            return np.ones(len(self.treatment), dtype=bool)
        return np.asarray(self.treatment == contrast[0 if target == "ATT" else 1])

    def lost_share(self, target: Target, contrast: tuple[int, int]) -> float:
        """Share of the units asked about that are lost."""
        lost, asked = self.lost(target, contrast), self.asked(target, contrast)
        return float(self.unit_weights[lost].sum() / self.unit_weights[asked].sum())

    def largest_lost_share(self, target: Target) -> float:
        """That of the level whose contrast with the first loses most."""
        levels = range(1, len(self.least))
        return max(self.lost_share(target, (level, 0)) for level in levels)

    def index(self, contrast: tuple[int, int]) -> FloatArray:
        """ℓ of b against a, shape (n,)."""
        b, a = contrast
        logs = np.log(np.maximum(self.probabilities, _TINY))
        odds: FloatArray = logs[:, b] - logs[:, a]
        return odds

    def distance(
        self, contrast: tuple[int, int], probabilities: FloatArray | None = None
    ) -> FloatArray:
        """How far units are from where b and a both exist, shape (n,).

        By how much the log-odds of the arm that is farther fall short; with two arms, along ℓ.

        Parameters
        ----------
        contrast : (b, a)
            Codes of the two levels.
        probabilities : (m, L) float64, optional
            Those of other units, by default of these.
        """
        pair = list(contrast)
        everyone = self.probabilities if probabilities is None else probabilities
        p = np.clip(everyone[:, pair], _TINY, 1 - _TINY)
        least = self.least[pair]
        short = np.log(least) - np.log1p(-least) - (np.log(p) - np.log1p(-p))
        far: FloatArray = np.maximum(short.max(axis=1), 0.0)
        return far


def hidden_bias(
    overlap: Overlap, nuisances: Nuisances, target: Target, contrast: tuple[int, int]
) -> float:
    """What extrapolation could hide of an effect of b against a; zero if nobody is lost.

    Parameters
    ----------
    overlap : Overlap
        Who has a counterpart where.
    nuisances : Nuisances
        Data and nuisances of n units.
    target, contrast
        The effect.
    """
    lost = overlap.lost(target, contrast)
    if not lost.any():
        return 0.0
    asked, weights = overlap.asked(target, contrast), overlap.unit_weights
    far = overlap.distance(contrast) * lost
    mean = float(weights[asked] @ far[asked] / weights[asked].sum())
    return steepest(overlap, nuisances, contrast) * mean if mean > 0 else 0.0


def hidden_bias_of_mean(overlap: Overlap, nuisances: Nuisances, arm: int, other: int) -> float:
    """What extrapolation could hide of the mean outcome in an arm, judged beside another arm.

    Only units without a counterpart in the arm itself count.
    """
    lacks = ~overlap.counterparts[:, arm]
    if not lacks.any():
        return 0.0
    far = np.average(overlap.distance((arm, other)) * lacks, weights=overlap.unit_weights)
    return steepest(overlap, nuisances, (arm, other)) * float(far) if far > 0 else 0.0


def hidden_bias_of_sums(
    overlap: Overlap, nuisances: Nuisances, contrast: tuple[int, int], weights: FloatArray
) -> FloatArray:
    """What extrapolation could hide of means of c_i τ(x_i) over all units, shape (k,).

    Parameters
    ----------
    overlap, nuisances, contrast
        See `hidden_bias`.
    weights : (n, k) float64
        c, which may be negative: no part makes up for another.
    """
    far = overlap.distance(contrast) * overlap.lost("ATE", contrast)
    mean: FloatArray = np.abs(weights).T @ far / len(far)
    if not mean.any():
        return np.zeros(weights.shape[1])
    hidden: FloatArray = steepest(overlap, nuisances, contrast) * mean
    return hidden


def steepest(overlap: Overlap, nuisances: Nuisances, contrast: tuple[int, int]) -> float:
    """M: by how much the effect may change per unit of ℓ, judging by units with counterparts."""
    b, a = contrast
    shared = ~overlap.lost("ATE", contrast)
    if np.count_nonzero(shared) < 3:
        return float("inf")
    clip = tuple(float(least) for least in overlap.least)
    inside = dataclasses.replace(nuisances, linear=None).among(shared)
    scores = aipw_scores(inside, clip_propensity(inside.propensity, clip).values)
    effect = scores[:, b] - scores[:, a]
    weights, odds = inside.unit_weights, overlap.index(contrast)[shared]
    centred = odds - np.average(odds, weights=weights)
    size = float(weights @ centred**2)
    if size <= _TINY * len(odds):
        return float("inf")
    slope = float(weights @ (centred * effect)) / size
    error = effect - np.average(effect, weights=weights) - slope * centred
    spread = float(np.sqrt(np.sum((weights * centred * error) ** 2))) / size
    return abs(slope) + _STEEPER * spread
