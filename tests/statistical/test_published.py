"""The paper's presets on data of the kind that each was published for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import cstonet as cs
from cstonet.network.trained import TrainedNetwork
from cstonet.settings.options import FitOptions
from cstonet.settings.presets import EXPERIMENTS, preset

EPOCHS = 10


def draw(p: int, outcome: str, n: int = 500) -> pd.DataFrame:
    """x1 and x2 matter to the outcome, x1 and x3 to the treatment; a sixth of binary y are ones."""
    rng = np.random.default_rng(p)
    X = rng.normal(size=(n, p))
    treat = rng.random(n) < expit(X[:, 0] - X[:, 2])
    signal = X[:, 0] + X[:, 1] - 0.5 * treat
    y = signal + rng.normal(size=n) if outcome == "gaussian" else rng.random(n) < expit(signal - 2)
    columns = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(p)])
    return pd.concat([pd.DataFrame({"y": 1.0 * y, "treat": 1 * treat}), columns], axis=1)


DATA: dict[str, Callable[[], pd.DataFrame]] = {
    "simulation1": lambda: cs.datasets.simulation1(n=500, p=50, seed=1).data,
    "simulation2": lambda: cs.datasets.simulation2(n=500, p=100, seed=1).data,
    "acic": lambda: draw(200, "gaussian"),
    "twins": lambda: draw(46, "binomial"),
    "tcga": lambda: draw(110, "binomial"),
}


def shortened(options: FitOptions, epochs: int) -> FitOptions:
    """One start on all rows, every stage for few epochs.

    Nothing is pruned: after so few the threshold would take what has had no time to grow.
    """
    stages = tuple(replace(stage, epochs=epochs, prune=False) for stage in options.training.stages)
    training = replace(options.training, stages=stages)
    return options.replace(training=training, starts=1, folds=1)


def trained(experiment: str, epochs: int) -> tuple[TrainedNetwork, pd.DataFrame]:
    options = shortened(preset(f"paper:{experiment}"), epochs)
    results = cs.fit("y ~ treat | .", DATA[experiment](), options=options, seed=1, n_jobs=1)
    ((network,),) = (fold.starts for fold in results.networks.folds)
    return network, results.networks.trace


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_loss_falls_and_every_layer_learns(experiment):
    """At the published rates, steps and sizes, for a few epochs of every stage."""
    before, _ = trained(experiment, 0)
    after, trace = trained(experiment, EPOCHS)
    # Log-likelihoods of treatment and outcome under the network without noise.
    assert (after.log_likelihood > before.log_likelihood).all()
    # The outcome's in training, with its variance or temperature, over the noisy network.
    tempered = trace.filter(like="log_likelihood_").iloc[:, -1]
    assert tempered.iloc[-1] > tempered.iloc[0]
    for start, end in zip(before.weights, after.weights, strict=True):
        # Rounding of θ could move it by a relative 1e-7 per step, some 1e-6 in all.
        assert np.linalg.norm(end - start) > 1e-3 * np.linalg.norm(start)


def test_mortality_is_predicted_as_it_is():
    """The whole schedule of the twins, one start: a tempered outcome keeps its mean."""
    data = DATA["twins"]()
    results = cs.fit("y ~ treat | .", data, preset="paper:twins", starts=1, seed=1, n_jobs=1)
    arm = data["treat"].to_numpy()
    predicted = results.potential_outcomes(data).to_numpy()[np.arange(len(arm)), arm]
    assert data["y"].mean() == pytest.approx(0.17, abs=0.02)
    # Two standard errors of the share of ones among so many rows.
    assert predicted.mean() == pytest.approx(data["y"].mean(), abs=2 * np.sqrt(0.17 * 0.83 / 500))
