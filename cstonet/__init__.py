"""Causal effects with many covariates by a sparse stochastic neural network.

>>> import cstonet as cs
>>> res = cs.fit("y ~ treat | x1 + x2 + C(region)", data=df, seed=1)  # doctest: +SKIP
>>> print(res.summary())  # doctest: +SKIP
"""

from __future__ import annotations

from importlib.metadata import version

from cstonet import datasets, errors, options
from cstonet.analyses.arms.results import ArmsResults
from cstonet.analyses.doses.response import DoseResponse
from cstonet.analyses.doses.results import DoseResults
from cstonet.analyses.mediation.results import MediationResults
from cstonet.analyses.results import CausalResults
from cstonet.model import CausalStoNet, fit
from cstonet.reporting.inference import Effect

__version__ = version("cstonet")

__all__ = [
    "fit",
    "CausalStoNet",
    "CausalResults",
    "ArmsResults",
    "DoseResults",
    "MediationResults",
    "DoseResponse",
    "Effect",
    "datasets",
    "errors",
    "options",
    "__version__",
]
