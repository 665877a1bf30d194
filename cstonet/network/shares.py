"""Linear parts and hidden units together: how much of what the latter add is worth having.

Where nothing is left for hidden units to learn, what they add to the linear backbone is noise, and
in the probabilities of a treatment it multiplies weights. So it counts with a share s between zero
and one, on the scale of the linear predictor: η = offset + s (η_network - offset). One share for the
treatment and one for the outcome are chosen by the likelihood of rows that the networks did not
train on; a single number from all of them overfits nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, logit, softmax

from cstonet.network.spec import NetworkSpec

FloatArray = NDArray[np.float64]

# Probabilities of networks are held this far from 0 and 1 before their log-odds are taken.
_TINY = 1e-7
_TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of what hidden units add to the predictors of treatment and outcome."""

    treatment: float = 1.0
    outcome: float = 1.0


def mixed_probabilities(
    offset: NDArray[np.floating], probabilities: FloatArray, share: float
) -> FloatArray:
    """Probabilities (m, L) of linear log-odds (m, L-1) and a share of what a network adds to them.

    Parameters
    ----------
    offset
        Log-odds of all levels but the first against it, of the linear parts alone.
    probabilities : (m, L)
        Of linear parts and network.
    share
        Between 0 and 1.
    """
    mixed: FloatArray = softmax(_mixed_log_odds(offset, probabilities, share), axis=1)
    return mixed


def treatment_share(
    offset: NDArray[np.floating],
    probabilities: FloatArray,
    codes: NDArray[np.integer],
    weights: FloatArray,
) -> float:
    """The share under which the treatments received (m,) are most likely."""

    def loss(share: float) -> float:
        log_p = log_softmax(_mixed_log_odds(offset, probabilities, share), axis=1)
        return -float(weights @ log_p[np.arange(len(codes)), codes])

    return _least(loss)


@dataclass(frozen=True, slots=True)
class OutcomeLink:
    """The scale on which linear parts and hidden units of an outcome add up."""

    binary: bool

    @classmethod
    def of(cls, spec: NetworkSpec) -> OutcomeLink:
        """That of a network's outcome."""
        return cls(spec.layers[-1][0].family == "bernoulli")

    def mixed(
        self, offset: NDArray[np.floating], means: FloatArray, share: float
    ) -> FloatArray:
        """Means of linear predictors and a share of what a network adds, of any shape.

        Parameters
        ----------
        offset
            Linear predictors.
        means
            Of linear parts and network, in network units.
        share
            Between 0 and 1.
        """
        if not self.binary:
            return np.asarray(offset + share * (means - offset), dtype=np.float64)
        eta = logit(np.clip(means, _TINY, 1 - _TINY))
        return np.asarray(expit(offset + share * (eta - offset)), dtype=np.float64)

    def share(
        self,
        offset: NDArray[np.floating],
        means: FloatArray,
        outcome: FloatArray,
        weights: FloatArray,
    ) -> float:
        """The share under which outcomes (m,), in network units, are most likely."""
        if not self.binary:
            added = means - offset
            size = float(weights @ added**2)
            gain = float(weights @ (added * (outcome - offset)))
            return float(np.clip(gain / size, 0.0, 1.0)) if size > 0 else 1.0
        eta = logit(np.clip(means, _TINY, 1 - _TINY))

        def loss(share: float) -> float:
            mixed = offset + share * (eta - offset)
            return float(weights @ (np.logaddexp(0.0, mixed) - outcome * mixed))

        return _least(loss)


def _mixed_log_odds(
    offset: NDArray[np.floating], probabilities: FloatArray, share: float
) -> FloatArray:
    """Log-odds (m, L) against the first level, which has zeros."""
    log_p = np.log(np.maximum(probabilities, _TINY))
    odds = log_p[:, 1:] - log_p[:, :1]
    mixed = offset + share * (odds - offset)
    return np.column_stack([np.zeros(len(mixed)), mixed])


def _least(loss: object) -> float:
    """Where a convex function on [0, 1] is smallest."""
    found = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": _TOLERANCE})
    return float(found.x)
