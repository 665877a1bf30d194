"""Tests and simultaneous intervals after imputation: one inference, whichever way one asks."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from cstonet.estimators import Imputations, Nuisances, estimate_effects, pooled_effects
from cstonet.estimators.imputations import contrast_freedom
from cstonet.reporting.inference import EffectInference

LEVELS = ("a", "b", "c")


@pytest.fixture(scope="module")
def inference():
    """Three arms; each of five imputations moves the nuisances of the rows with gaps."""
    rng = np.random.default_rng(4)
    n, imputed = 120, 5
    treatment = rng.integers(3, size=n)
    mu = rng.normal(size=(n, 3)) + np.array([0.0, 0.1, 0.3])
    nuisances = Nuisances(
        y=mu[np.arange(n), treatment] + rng.normal(size=n),
        treatment=treatment,
        mu=mu,
        propensity=np.full((n, 3), 1 / 3),
        weights=None,
        fold=np.zeros(n, dtype=np.int64),
    )
    rows = np.arange(0, n, 2)
    moved = mu[rows] + rng.normal(size=(imputed, len(rows), 3)) * np.array([1.0, 4.0, 2.0])
    imputations = Imputations(
        rows, moved, np.full((imputed, len(rows), 3), 1 / 3), np.zeros((0, imputed), np.float32)
    )

    def estimate(nuisances):
        return estimate_effects(
            nuisances, levels=LEVELS, clip=0.01, variance="influence", kind="multilevel"
        )

    effects = pooled_effects(estimate, nuisances, imputations)
    assert effects.freedom.max() < 100  # far enough from normal for the tests to notice
    return EffectInference(effects, "y", seed=1)


def test_t_tests_agree_with_the_table(inference):
    tests = inference.t_test(np.eye(5))
    np.testing.assert_allclose(tests.pvalue, inference.pvalues, rtol=1e-8)
    np.testing.assert_allclose(tests.conf_int(0.1), inference.conf_int(0.1), rtol=1e-8)
    assert "P>|t|" in str(tests)
    assert inference.use_t


def test_other_combinations_have_freedom_of_their_own(inference):
    """POM[b] - POM[a] is ATE[b-a], whose freedom is not that of either mean."""
    by_means = inference.t_test("POM[b] - POM[a] = 0")
    np.testing.assert_allclose(by_means.pvalue, inference.pvalues["ATE[b-a]"], rtol=1e-8)
    np.testing.assert_allclose(
        by_means.conf_int().ravel(), inference.conf_int().loc["ATE[b-a]"], rtol=1e-8
    )


def test_a_joint_test_of_one_hypothesis_is_its_t_test(inference):
    joint = inference.wald_test("ATE[c-a] = 0.2")
    single = inference.t_test("ATE[c-a] = 0.2")
    np.testing.assert_allclose(joint.pvalue, single.pvalue, rtol=1e-8)
    np.testing.assert_allclose(joint.statistic, single.statistic.item() ** 2)


def test_joint_tests_use_the_fewest_degrees_of_freedom(inference):
    effects = inference.effects
    ates = np.eye(5)[:2]
    joint = inference.wald_test(ates)
    difference = effects.estimates[:2]
    chi2 = difference @ np.linalg.solve(effects.covariance[:2, :2], difference)
    np.testing.assert_allclose(joint.statistic, chi2 / 2)
    assert joint.df_num == 2
    assert joint.pvalue > stats.chi2.sf(chi2, 2)
    angles = np.linspace(0, np.pi, 1000)
    combinations = np.column_stack([np.cos(angles), np.sin(angles)]) @ ates
    fewest = inference.t_test(combinations).df_denom.min()
    np.testing.assert_allclose(joint.df_denom, fewest, rtol=1e-4)
    # Written in other words the hypothesis is the same.
    other = inference.wald_test(np.array([[1.0, -1.0], [0.5, 3.0]]) @ ates)
    np.testing.assert_allclose(other.pvalue, joint.pvalue, rtol=1e-8)


def test_simultaneous_intervals_are_wider_than_single_ones(inference):
    single, simultaneous = inference.conf_int(), inference.conf_int(simultaneous=True)
    assert (simultaneous[0] < single[0]).all()
    assert (simultaneous[1] > single[1]).all()
    # Bonferroni's are wider still.
    effects = inference.effects
    means = slice(effects.n_contrasts, None)
    bonferroni = stats.t.ppf(1 - 0.05 / 6, effects.freedom[means].min())
    half = (simultaneous[1] - simultaneous[0]).to_numpy()[means] / 2
    assert (half < bonferroni * effects.standard_errors[means]).all()


def test_rows_of_weight_zero_add_no_freedom(inference):
    effects = inference.effects
    assert effects.n_counted < 120
    more = replace(effects, influence=np.vstack([effects.influence] * 2))
    np.testing.assert_array_equal(
        contrast_freedom(more, np.eye(5)), contrast_freedom(effects, np.eye(5))
    )
