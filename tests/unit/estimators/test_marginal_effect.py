"""The average marginal effect of a dose on data whose nuisances are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.estimators.marginal_effect import estimate_marginal_effect, riesz_representer

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


@pytest.mark.parametrize(
    "wrong", [(), ("outcome",), ("treatment",)], ids=["neither", "outcome", "treatment"]
)
def test_marginal_effect_is_doubly_robust(wrong, linear, misspecify):
    effects = estimate_marginal_effect(misspecify(linear(), *wrong), clip=0.01)
    assert effects.names == ("AME",)
    assert abs(effects.estimates[0] - 2) < FOUR * effects.standard_errors[0]
    assert effects.standard_errors[0] < 0.2
    np.testing.assert_allclose(effects.influence.mean(axis=0), 0, atol=1e-12)


def test_marginal_effect_is_biased_if_both_models_are_wrong(linear, misspecify):
    wrong = misspecify(linear(), "outcome", "treatment")
    effects = estimate_marginal_effect(wrong, clip=0.01)
    assert abs(effects.estimates[0] - 2) > FOUR * effects.standard_errors[0]


def test_a_line_needs_no_gaussian_dose(linear, misspecify):
    """With a normalised representer the estimate is the regression on the dose's residual."""
    rng = np.random.default_rng(1)
    nuisances = linear(500)
    dose = nuisances.mean + rng.exponential(size=500) - 1
    nuisances = replace(
        nuisances, dose=dose, y=2 * dose + 3 * nuisances.mean, variance=np.full(500, 7.0)
    )
    estimate = estimate_marginal_effect(misspecify(nuisances, "outcome"), clip=0.01).estimates[0]
    residual = dose - nuisances.mean
    np.testing.assert_allclose(estimate, residual @ nuisances.y / (residual @ residual))
    moment = np.mean(riesz_representer(nuisances) * residual)
    np.testing.assert_allclose(moment, 1, rtol=1e-12)
