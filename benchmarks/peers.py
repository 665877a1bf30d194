"""The methods that are compared with the package, and the names of all on the command line.

Peers have the settings that their documentation or common practice suggests. Each is optional:
where its library is missing the runner says so and goes on. What each does is written in
``peers_doubleml.py``, ``peers_trees.py`` and ``peers_linear.py``; peers that estimate another
effect than the ATE are in ``field_peers.py``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import peers_doubleml as dml
from baselines import BASELINES
from baselines.base import Baseline, Versioned
from common import Estimate
from own import Preset
from peers_linear import ols, ols_interacted, statsmodels_aipw
from peers_trees import bart, bcf, econml_forest, econml_forest_dr

import cstonet as cs


@dataclass(frozen=True, slots=True)
class Peer(Versioned):
    """A method of another library.

    Parameters
    ----------
    name : str
        Name of the method.
    modules : tuple of str
        What it needs; loaded before the clock starts.
    function : callable
        ``function(problem, threads, seed)`` gives the estimate.
    version : int
        Raised whenever its settings here change its estimates, see `version_recipe`.
    """

    name: str
    modules: tuple[str, ...]
    function: Callable[[Any, int, int], Estimate]
    version: int = 1

    def estimate(self, problem: Any, *, threads: int, seed: int) -> Estimate:
        """What the library says."""
        return self.function(problem, threads, seed)


@dataclass(frozen=True, slots=True)
class LearnerChoice:
    """What DoubleML is given.

    Parameters
    ----------
    learners : callable
        Makes its learners.
    modules : tuple of str
        What they need beside DoubleML.
    version : int
        That of the peers with these learners.
    """

    learners: dml.LearnersOf
    modules: tuple[str, ...]
    version: int = 1

    def peer(self, name: str, estimator: Callable[..., Estimate], *arguments: Any) -> Peer:
        """The peer of this name: ``estimator(learners, *arguments, problem, threads, seed)``."""
        function = partial(estimator, self.learners, *arguments)
        return Peer(name, ("doubleml", *self.modules), function, self.version)


# By the name of the peer.
DOUBLEML = {
    "doubleml-lightgbm": LearnerChoice(dml.lightgbm, ("lightgbm",)),
    "doubleml-lightgbm-small": LearnerChoice(dml.lightgbm_small, ("lightgbm",)),
    "doubleml-lightgbm-slow": LearnerChoice(dml.lightgbm_slow, ("lightgbm",)),
    "doubleml-lightgbm-stopped": LearnerChoice(
        dml.lightgbm_stopped, ("lightgbm", "sklearn.model_selection")
    ),
    "doubleml-lasso": LearnerChoice(
        dml.lasso, ("sklearn.linear_model", "sklearn.model_selection"), version=2
    ),
    "doubleml-forest": LearnerChoice(dml.forest, ("sklearn.ensemble",), version=2),
    "doubleml-lasso-forest": LearnerChoice(
        dml.lasso_forest,
        ("sklearn.ensemble", "sklearn.linear_model", "sklearn.model_selection"),
        version=2,
    ),
    "doubleml-linear": LearnerChoice(dml.linear, ("sklearn.linear_model",)),
}

PEERS = {
    peer.name: peer
    for peer in (
        *(
            choice.peer(name, dml.interactive_regression, "ATE")
            for name, choice in DOUBLEML.items()
        ),
        Peer("econml-forest", ("econml.dml",), econml_forest),
        Peer("econml-forest-dr", ("econml.dml",), econml_forest_dr),
        Peer("bart", ("stochtree",), bart),
        Peer("bcf", ("stochtree",), bcf),
        Peer("ols", (), ols),
        Peer("ols-interacted", (), ols_interacted),
        Peer(
            "statsmodels-aipw",
            ("statsmodels.api", "statsmodels.treatment.treatment_effects"),
            statsmodels_aipw,
        ),
    )
}

DEFAULT_METHODS = (
    "calibrated,doubleml-lightgbm,doubleml-lightgbm-stopped,doubleml-lasso,econml-forest,bart"
)


def parse_methods(text: str) -> list[Preset | Peer | Baseline]:
    """Methods of a comma-separated list: peers, baselines of the paper, presets of the package."""
    methods: list[Preset | Peer | Baseline] = []
    for name in text.split(","):
        method = PEERS.get(name) or BASELINES.get(name) or Preset(name)
        if isinstance(method, Preset):
            try:
                method.prepare()
            except (cs.errors.OptionError, ValueError) as unknown:
                others = ", ".join([*PEERS, *BASELINES])
                raise argparse.ArgumentTypeError(
                    f"{name!r} is no peer ({others}) and no preset: {unknown}"
                ) from None
        methods.append(method)
    return methods
