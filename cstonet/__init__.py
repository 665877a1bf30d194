"""Causal effects with many covariates by a sparse stochastic neural network.

>>> import cstonet as cs
>>> res = cs.fit("y ~ treat | x1 + x2 + C(region)", data=df, seed=1)  # doctest: +SKIP
>>> print(res.summary())  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cstonet import datasets, errors, options
    from cstonet.analyses.arms.results import ArmsResults
    from cstonet.analyses.doses.response import DoseResponse
    from cstonet.analyses.doses.results import DoseResults
    from cstonet.analyses.mediation.results import MediationResults
    from cstonet.analyses.results import CausalResults
    from cstonet.model import CausalStoNet, fit, load
    from cstonet.reporting.compare import compare
    from cstonet.reporting.inference import Effect

    __version__: str

__all__ = [
    "fit",
    "compare",
    "load",
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

# Loaded when first asked for: pandas and SciPy take longer than anything else of a small program.
_MODULES = ("datasets", "errors", "options")
_HOMES = {
    "fit": "cstonet.model",
    "load": "cstonet.model",
    "CausalStoNet": "cstonet.model",
    "CausalResults": "cstonet.analyses.results",
    "ArmsResults": "cstonet.analyses.arms.results",
    "DoseResults": "cstonet.analyses.doses.results",
    "MediationResults": "cstonet.analyses.mediation.results",
    "DoseResponse": "cstonet.analyses.doses.response",
    "Effect": "cstonet.reporting.inference",
    "compare": "cstonet.reporting.compare",
}


def _kernel() -> Any:
    """Import the compiled kernel; where it has not the level asked for, say so by name."""
    try:
        return import_module("cstonet._core")
    except ImportError as error:
        if not str(error).startswith("CSTONET_LEVEL"):
            raise
        from cstonet.errors import KernelLevelError

        raise KernelLevelError(
            f"{error}. Unset CSTONET_LEVEL: without it, every machine uses the best level it has."
        ) from None


def _load(name: str) -> Any:
    """Import what a name of `__all__` stands for, once."""
    value: Any
    if name in _MODULES:
        value = import_module(f"cstonet.{name}")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name == "_core":
        value = _kernel()
    elif name == "__version__":
        from cstonet.versions import version_of

        value = version_of("cstonet")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # a type checker would take any name for an attribute
    __getattr__ = _load


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
