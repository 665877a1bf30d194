"""The networks of all folds: which rows they predict, what they say of their training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cstonet as cs
from cstonet.analyses.arms.prediction import predict


@pytest.mark.parametrize("ensemble", [1, 2])
def test_nuisances_are_out_of_fold(frame, options, ensemble):
    """Each row is predicted by the networks of the fold that left it out, and by no others."""
    results = cs.fit("y ~ treat | .", frame, options=options, ensemble=ensemble)
    fitted = results.networks
    for number, fold in enumerate(fitted.folds):
        split = fold.split
        assert [network.fold for network in fold.networks] == [number] * ensemble
        assert not set(split.test) & {*split.fit, *split.validation}
        part = predict(replace(fitted, folds=(fold,)), results.design.X[split.test])
        np.testing.assert_allclose(part.mu, results.nuisances.mu[split.test], rtol=1e-6)
        np.testing.assert_allclose(
            part.propensity, results.nuisances.propensity[split.test], rtol=1e-6
        )


def test_trace_and_criterion_cover_every_start(frame, options):
    results = cs.fit("y ~ treat | .", frame, options=options, starts=3, ensemble=2, folds=3)
    epochs = sum(stage.epochs for stage in results.plan.training.stages)
    assert len(results.trace) == 3 * 3 * epochs
    bic = results.networks.bic
    assert len(bic) == 9
    worst = bic.loc[bic.groupby("fold")["bic"].idxmax(), "chosen"]
    assert not worst.any()
    assert bic["chosen"].sum() == 3 * 2
