"""Links between linear predictors and means: what is made of a predictor outside training.

Means are in network units: probabilities of binary outcomes, counts over their mean.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from cstonet.data.variables import BlockFamily

FloatArray: TypeAlias = NDArray[np.float64]
Link: TypeAlias = Literal["identity", "logit", "log"]

# Means are held this far from where they have no predictor.
_TINY = 1e-7
# As in the kernel: beyond, the exponential of a predictor is no mean that anybody believes in.
_FARTHEST_LOG = 30.0


def link_of(family: BlockFamily) -> Link:
    """The canonical link of a single unit of a family."""
    return "logit" if family == "bernoulli" else "log" if family == "poisson" else "identity"


def mean_of(link: Link, predictor: FloatArray) -> FloatArray:
    """Means of linear predictors, of any shape."""
    if link == "logit":
        return np.asarray(expit(predictor), dtype=np.float64)
    if link == "log":
        return np.asarray(np.exp(np.clip(predictor, -_FARTHEST_LOG, _FARTHEST_LOG)))
    return predictor


def predictor_of(link: Link, mean: FloatArray) -> FloatArray:
    """Linear predictors of means, of any shape: the inverse of `mean_of`."""
    if link == "logit":
        return np.asarray(logit(np.clip(mean, _TINY, 1 - _TINY)))
    if link == "log":
        return np.asarray(np.log(np.maximum(mean, _TINY)))
    return mean


def slope_of(link: Link, mean: FloatArray) -> FloatArray:
    """Derivatives of means in their predictors, given the means; of any shape.

    They are also the information of a row about its predictor, in units of the dispersion.
    """
    if link == "logit":
        return mean * (1 - mean)
    return mean if link == "log" else np.ones_like(mean)


def losses(link: Link, predictor: FloatArray, outcome: FloatArray) -> FloatArray:
    """Minus the log-likelihoods of outcomes, but for constants, of any shape.

    Their derivative in the predictor is the mean minus the outcome.
    """
    if link == "logit":
        return np.asarray(np.logaddexp(0.0, predictor) - outcome * predictor)
    if link == "log":
        return mean_of(link, predictor) - outcome * predictor
    return np.asarray(0.5 * (predictor - outcome) ** 2)
