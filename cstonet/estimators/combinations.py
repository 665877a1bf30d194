"""Linear combinations of estimated effects, with the inference that the effects have."""

from __future__ import annotations

import dataclasses

import numpy as np

from cstonet.estimators.aipw import Effects
from cstonet.estimators.imputations import contrast_freedom
from cstonet.estimators.nuisances import FloatArray


def combined(effects: Effects, name: str, weights: FloatArray) -> Effects:
    """One linear combination of effects as an effect of its own.

    Parameters
    ----------
    effects : Effects
        k effects with their joint covariance.
    name : str
        What to call the combination.
    weights : (k,) float64
        The weight of each; the combination must have a variance above zero.
    """
    matrix = weights[None, :]
    between = effects.between
    return dataclasses.replace(
        effects,
        names=(name,),
        n_contrasts=1,
        estimates=matrix @ effects.estimates,
        covariance=matrix @ effects.covariance @ matrix.T,
        influence=effects.influence @ matrix.T,
        freedom=contrast_freedom(effects, matrix),
        between=None if between is None else matrix @ between @ matrix.T,
        # A share of its own information, of which nobody has asked yet.
        missing_information=None,
        bias=None if effects.bias is None else np.abs(matrix) @ effects.bias,
    )
