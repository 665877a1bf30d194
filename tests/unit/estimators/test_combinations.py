"""Linear combinations of effects: those that `t_test` has always given."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cstonet.estimators import Imputations, estimate_effects, pooled_effects
from cstonet.estimators.combinations import combined
from cstonet.reporting.inference import Effect, EffectInference

# Of (ATE, POM[0], POM[1]).
WEIGHTS = [[0.0, -1.0, 1.0], [0.0, 0.3, 0.7], [1.0, 2.0, 0.0]]


@pytest.fixture(params=["complete", "imputed"])
def effects(request, draw_nuisances):
    rng = np.random.default_rng(4)
    _, nuisances = draw_nuisances(300, rng)

    def estimate(one):
        return estimate_effects(one, levels=(0, 1), clip=0.01, variance="influence")

    if request.param == "complete":
        return estimate(nuisances)
    rows, times = np.arange(0, 300, 3), 5
    mu = nuisances.mu[rows] + rng.normal(scale=2.0, size=(times, 100, 2))
    shares = rng.uniform(0.2, 0.8, size=(times, 100))
    imputations = Imputations(
        rows=rows,
        mu=mu,
        propensity=np.stack([shares, 1 - shares], axis=-1),
        values=np.zeros((100, times), dtype=np.float32),
    )
    return pooled_effects(estimate, nuisances, imputations)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_inference_is_that_of_the_t_test(effects, weights, alpha):
    tested = EffectInference(effects, "y").t_test(np.array([weights]))
    effect = Effect.of(combined(effects, "both", np.array(weights)), "both", alpha)
    assert effect.name == "both"
    assert effect.estimate == pytest.approx(tested.effect.item(), rel=1e-12)
    assert effect.se == pytest.approx(tested.sd.item(), rel=1e-12)
    assert effect.pvalue == pytest.approx(np.asarray(tested.pvalue).item(), rel=1e-9)
    limits = tested.conf_int(alpha).ravel()
    assert [effect.lower, effect.upper] == pytest.approx(limits.tolist(), rel=1e-9)


def test_degrees_of_freedom_and_what_imputations_leave(effects):
    single = combined(effects, "difference", np.array(WEIGHTS[0]))
    if effects.between is None:
        # Few units decide: nobody counts those of a combination, it has the fewest of its parts.
        assert single.freedom.item() == effects.freedom[1:].min() < effects.freedom[0]
        assert single.between is None
        plain = combined(dataclasses.replace(effects, freedom=None), "difference", np.ones(3))
        assert plain.freedom is None
    else:
        # The difference of the means is the ATE, whatever it was made of.
        assert single.freedom.item() == pytest.approx(effects.freedom[0], rel=1e-9)
        assert single.between.item() == pytest.approx(effects.between[0, 0], rel=1e-9)
        assert np.isfinite(single.freedom).all()
    assert single.missing_information is None


def test_a_single_effect_is_itself_and_one_contrast(effects):
    single = combined(effects, "POM[1]", np.array([0.0, 0.0, 1.0]))
    assert (single.names, single.n_contrasts) == (("POM[1]",), 1)
    np.testing.assert_array_equal(single.estimates, effects.estimates[2:])
    np.testing.assert_array_equal(single.covariance, effects.covariance[2:, 2:])
    np.testing.assert_array_equal(single.influence[:, 0], effects.influence[:, 2])
    assert (single.clip, single.n_clipped) == (effects.clip, effects.n_clipped)


def test_influence_is_combined_as_the_estimates_are(effects):
    weights = np.array(WEIGHTS[1])
    single = combined(effects, "mix", weights)
    np.testing.assert_allclose(single.influence[:, 0], effects.influence @ weights, rtol=1e-12)
