"""Weights of linear parts and networks: on the simplex, at the optimum, by their likelihood."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, gammaln

from cstonet.network import mixture
from cstonet.network.mixture import (
    EVEN_MIXTURE,
    N_PREDICTORS,
    OutcomeLink,
    log_odds,
    mixed_probabilities,
    treatment_weights,
)

M = 500


class Problem:
    """Three predictors and what they predict; the truth may be one of them or a mixture."""

    def __init__(self, truth=(0.0, 1.0, 0.0), scale=1.0, seed=0) -> None:
        self.rng = np.random.default_rng(seed)
        self.truth = np.array(truth)
        self.counts = self.rng.uniform(0.5, 2.0, M)
        self.scale = scale


class Treatment(Problem):
    levels = 2

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.odds = self.rng.normal(size=(N_PREDICTORS, M, self.levels - 1)) * 2 * self.scale
        p = mixed_probabilities(self.odds, tuple(self.truth))
        uniform = self.rng.random((M, 1))
        self.codes = (uniform > np.cumsum(p, axis=1)).sum(axis=1).clip(0, self.levels - 1)

    def weights(self):
        return treatment_weights(self.odds, self.codes, self.counts)

    def loss(self, weights):
        """Twin: minus the mean log-probability of what was received, unit by unit."""
        eta = np.column_stack([np.zeros(M), np.einsum("k,kml->ml", weights, self.odds)])
        p = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
        return -np.average(np.log(p[np.arange(M), self.codes]), weights=self.counts)


class ThreeLevels(Treatment):
    levels = 3


class Outcome(Problem):
    link = "identity"

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.predictors = self.rng.normal(size=(N_PREDICTORS, M)) * 2 * self.scale
        eta = self.truth @ self.predictors
        noise = self.rng.normal(size=M)
        self.y = {
            "identity": eta + noise,
            "logit": (self.rng.random(M) < expit(eta)).astype(float),
            "log": self.rng.poisson(np.exp(eta)).astype(float),
        }[self.link]

    def weights(self):
        return OutcomeLink(self.link).weights(self.predictors, self.y, self.counts)

    def loss(self, weights):
        eta = np.asarray(weights) @ self.predictors
        if self.link == "logit":
            p = expit(eta)
            each = -self.y * np.log(p) - (1 - self.y) * np.log(1 - p)
        elif self.link == "log":
            each = -stats.poisson.logpmf(self.y, np.exp(eta)) - gammaln(self.y + 1)
        else:
            each = 0.5 * (self.y - eta) ** 2
        return np.average(each, weights=self.counts)


class BinaryOutcome(Outcome):
    link = "logit"


class Counts(Outcome):
    link = "log"


every_problem = pytest.mark.parametrize(
    "kind", [Treatment, ThreeLevels, Outcome, BinaryOutcome, Counts]
)
TRUTHS = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.5, 0.3, 0.2), (1 / 3, 1 / 3, 1 / 3)]


def simplex(step):
    """A grid of weights that are not negative and sum to one."""
    n = round(1 / step)
    for i, j in itertools.product(range(n + 1), repeat=2):
        if i + j <= n:
            yield np.array([i, j, n - i - j]) / n


@every_problem
@pytest.mark.parametrize("truth", TRUTHS)
def test_weights_are_on_the_simplex_and_no_others_are_better(kind, truth):
    problem = kind(truth)
    weights = problem.weights()
    assert len(weights) == N_PREDICTORS
    assert min(weights) >= 0
    assert sum(weights) == pytest.approx(1, abs=1e-12)
    least = min(problem.loss(other) for other in simplex(0.05))
    # The solver stops where the loss, of order one, changes by less than 1e-9.
    assert problem.loss(weights) <= least + 1e-7


@every_problem
@pytest.mark.parametrize("pure", range(N_PREDICTORS))
def test_a_pure_predictor_is_found(kind, pure):
    """Errors of weights are some hundredths with 500 rows of predictors with spread two."""
    weights = kind(np.eye(N_PREDICTORS)[pure]).weights()
    assert weights[pure] > 0.85


@every_problem
def test_mixtures_are_found(kind):
    """The mean over ten data sets; the error of each is below 0.1."""
    found = np.mean([kind((0.5, 0.3, 0.2), seed=s).weights() for s in range(10)], axis=0)
    np.testing.assert_allclose(found, [0.5, 0.3, 0.2], atol=0.1)


@every_problem
def test_gradients_are_those_of_the_losses(kind, monkeypatch):
    """What the solver is handed, by central differences; and it is the likelihood."""
    handed = []

    def look(loss, predictors, total):
        handed.append((loss, total))
        return (1.0,) + (0.0,) * (predictors - 1)

    monkeypatch.setattr(mixture, "_least", look)
    problem = kind((0.5, 0.3, 0.2))
    problem.weights()
    ((loss, total),) = handed
    assert total == pytest.approx(problem.counts.sum())
    for point in ((0.2, 0.3, 0.5), (1.0, 0.0, 0.0), (0.1, -0.2, 0.7)):
        at = np.array(point)
        value, gradient = loss(at)
        assert value / total == pytest.approx(problem.loss(at), rel=1e-10)
        for k, direction in enumerate(1e-5 * np.eye(N_PREDICTORS)):
            slope = (problem.loss(at + direction) - problem.loss(at - direction)) / 2e-5
            # Rounding of 1e-16 / 1e-5, and the third derivative times 1e-10.
            assert gradient[k] / total == pytest.approx(slope, rel=1e-6, abs=1e-8)


@every_problem
def test_rows_count_as_often_as_their_counts_say(kind):
    problem = kind((0.5, 0.3, 0.2))
    problem.counts = np.where(np.arange(M) % 2, 2.0, 0.0)
    once = problem.weights()
    problem.counts = 7 * problem.counts
    np.testing.assert_allclose(problem.weights(), once, atol=1e-4)
    ignored = np.arange(M) % 2 == 0
    if isinstance(problem, Treatment):
        problem.codes = np.where(ignored, problem.levels - 1 - problem.codes, problem.codes)
    else:
        problem.y = np.where(ignored, 1 - problem.y, problem.y)
    np.testing.assert_allclose(problem.weights(), once, atol=1e-4)


@every_problem
def test_predictors_that_agree_share_their_weight(kind):
    """Any division has the same loss: nothing breaks, and what is left out stays out."""
    problem = kind((0.0, 1.0, 0.0))
    values = problem.odds if isinstance(problem, Treatment) else problem.predictors
    values[2] = values[1]
    weights = problem.weights()
    assert sum(weights) == pytest.approx(1, abs=1e-12)
    assert weights[0] < 0.15
    assert problem.loss(weights) <= problem.loss((0.0, 1.0, 0.0)) + 1e-7


# Scales -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [2, 3])
def test_log_odds_and_probabilities_are_inverses(levels):
    p = np.random.default_rng(0).dirichlet(np.ones(levels), size=50)
    odds = log_odds(p)
    np.testing.assert_allclose(odds, np.log(p[:, 1:] / p[:, :1]), rtol=1e-12)
    three = np.stack([odds, odds + 1, odds - 5])
    np.testing.assert_allclose(mixed_probabilities(three, (1.0, 0.0, 0.0)), p, rtol=1e-12)
    halved = mixed_probabilities(three, (0.5, 0.5, 0.0))
    np.testing.assert_allclose(log_odds(halved), odds + 0.5, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(halved.sum(axis=1), 1, rtol=1e-14)


def test_certainty_has_finite_log_odds():
    odds = log_odds(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert np.isfinite(odds).all()
    assert odds[1, 0] == -odds[0, 0] > 15


def test_outcomes_are_mixed_on_their_scale():
    means = np.random.default_rng(1).uniform(0.05, 0.95, size=(3, 40, 2))
    weights = (0.2, 0.3, 0.5)
    plain, binary = OutcomeLink("identity"), OutcomeLink("logit")
    np.testing.assert_array_equal(plain.predictor(means), means)
    np.testing.assert_allclose(
        plain.mixed(means, weights), 0.2 * means[0] + 0.3 * means[1] + 0.5 * means[2], rtol=1e-12
    )
    odds = np.log(means / (1 - means))
    np.testing.assert_allclose(binary.predictor(means), odds, rtol=1e-9, atol=1e-12)
    expected = expit(0.2 * odds[0] + 0.3 * odds[1] + 0.5 * odds[2])
    np.testing.assert_allclose(binary.mixed(odds, weights), expected, rtol=1e-12)
    assert np.isfinite(binary.predictor(np.array([0.0, 1.0]))).all()


def test_the_link_is_that_of_the_network(small_network):
    assert OutcomeLink.of(small_network(3, (4,), 1)).link == "identity"
    assert OutcomeLink.of(small_network(3, (4,), 1, outcome="bernoulli")).link == "logit"
    assert OutcomeLink.of(small_network(3, (4,), 1, outcome="poisson")).link == "log"


def test_without_a_choice_all_count_the_same():
    for weights in (EVEN_MIXTURE.treatment, EVEN_MIXTURE.outcome):
        assert len(weights) == N_PREDICTORS
        assert set(weights) == {1 / N_PREDICTORS}
