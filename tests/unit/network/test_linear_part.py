"""Penalised regressions against closed forms, and predictions that do not know their row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from cstonet.network.linear_part import PENALTIES, Terms, regress

M, PARTS = 200, 5
FREE = 1e-6  # the penalty of terms that are always there
# Sums of some hundred terms of order one, and a matrix of condition number about ten.
TWIN = {"rtol": 1e-9, "atol": 1e-11}


class Problem:
    """A constant, two strong covariates, three of noise, each group with its own penalty."""

    def __init__(self, link, strength=1.0, seed=0) -> None:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(M, 5))
        self.link = link
        self.terms = Terms(np.column_stack([np.ones(M), x]), np.array([-1, 0, 0, 1, 1, 1]))
        self.weights = rng.uniform(0.5, 2.0, M)
        self.parts = rng.permutation(np.arange(M) % PARTS)
        eta = 0.3 + strength * (x[:, 0] - 0.5 * x[:, 1])
        noise = 0.5 * rng.normal(size=M)
        binary = (rng.random(M) < expit(eta)).astype(float)
        counts = rng.poisson(2 * np.exp(eta)) / 2
        self.response = {"identity": eta + noise, "logit": binary, "log": counts / counts.mean()}[
            link
        ]

    def fit(self, response=None, terms=None, **options):
        return regress(
            terms or [self.terms] * (PARTS + 1),
            self.response if response is None else response,
            self.weights,
            self.parts,
            self.link,
            **options,
        )

    def ridge(self, penalties, rows=slice(None)):
        """Penalty of each term in a fit to some rows: they count by weight."""
        each = np.array([*penalties, FREE])[self.terms.group]
        return self.weights[rows].sum() * each


@pytest.fixture
def gaussian() -> Problem:
    return Problem("identity")


@pytest.fixture
def counts() -> Problem:
    return Problem("log")


@pytest.fixture
def logistic() -> Problem:
    return Problem("logit", strength=1.5)


def closed_form(problem, penalties, rows):
    """(X'WX + Λ)⁻¹ X'Wy among the terms whose penalty is finite, zero elsewhere."""
    ridge = problem.ridge(penalties, rows)
    kept = np.isfinite(ridge)
    x, w = problem.terms.values[rows][:, kept], problem.weights[rows]
    found = np.zeros(len(ridge))
    gram = x.T @ (w[:, None] * x) + np.diag(ridge[kept])
    found[kept] = np.linalg.inv(gram) @ (x.T @ (w * problem.response[rows]))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_coefficients_are_those_of_ridge_regression(seed):
    problem = Problem("identity", seed=seed)
    fitted = problem.fit()
    expected = closed_form(problem, fitted.penalties, np.arange(M))
    np.testing.assert_allclose(fitted.coefficients, expected, **TWIN)


def test_held_out_predictions_are_those_of_the_other_parts(gaussian):
    fitted = gaussian.fit()
    for part in range(PARTS):
        rows, others = (
            np.flatnonzero(gaussian.parts == part),
            np.flatnonzero(gaussian.parts != part),
        )
        expected = gaussian.terms.values[rows] @ closed_form(gaussian, fitted.penalties, others)
        np.testing.assert_allclose(fitted.held_out[rows], expected, **TWIN)


def test_penalties_have_the_least_error_on_held_out_rows(gaussian):
    """Twin: no single change of a group's penalty makes the error smaller."""

    def error(penalties):
        total = 0.0
        for part in range(PARTS):
            rows = np.flatnonzero(gaussian.parts == part)
            b = closed_form(gaussian, penalties, np.flatnonzero(gaussian.parts != part))
            left = gaussian.response[rows] - gaussian.terms.values[rows] @ b
            total += gaussian.weights[rows] @ left**2
        return total

    best = gaussian.fit().penalties
    for group in range(2):
        for penalty in PENALTIES:
            other = tuple(penalty if g == group else best[g] for g in range(2))
            assert error(best) <= error(other) * (1 + 1e-12)


def test_strong_groups_have_small_penalties_and_noise_large_ones():
    """In most of twenty data sets: the choice is random, too."""
    strong, noise = zip(
        *(Problem("identity", seed=s).fit().penalties for s in range(20)), strict=True
    )
    assert max(strong) <= 0.03
    assert np.median(noise) >= 0.3
    # Three coefficients of variance 0.25/200 are noise that a penalty below 0.01 would let in.
    assert np.mean(np.array(noise) < 0.01) <= 0.1
    strong, noise = zip(
        *(Problem("logit", 1.5, seed=s).fit(predict=False).penalties for s in range(20)),
        strict=True,
    )
    assert max(strong) <= 0.3
    assert np.median(noise) >= 0.3


def test_a_group_left_out_has_no_coefficient():
    fits = [Problem("identity", seed=s).fit() for s in range(20)]
    out = [fit for fit in fits if fit.penalties[1] == np.inf]
    assert out
    for fit in out:
        np.testing.assert_array_equal(fit.coefficients[3:], 0)
        assert (fit.coefficients[:3] != 0).all()


def test_without_groups_all_terms_are_free(gaussian):
    free = Terms(gaussian.terms.values, np.full(6, -1))
    fitted = gaussian.fit(terms=[free] * (PARTS + 1))
    assert free.n_groups == 0
    assert fitted.penalties == ()
    root = np.sqrt(gaussian.weights)
    ols = np.linalg.lstsq(free.values * root[:, None], gaussian.response * root, rcond=None)[0]
    # A penalty of one millionth of the information.
    np.testing.assert_allclose(fitted.coefficients, ols, rtol=1e-5, atol=1e-5)


def penalised_gradient(problem, terms, coefficients, penalties, rows):
    """Of the log-likelihood minus ½ Σ λ b², λ in units of the response's variance, per row."""
    w, y = problem.weights[rows], problem.response[rows]
    variance = np.average((y - np.average(y, weights=w)) ** 2, weights=w)
    ridge = variance * problem.ridge(penalties, rows)
    x, kept = terms.values[rows], np.isfinite(ridge)
    full = x.T @ (w * (y - expit(x @ coefficients)))
    return (full[kept] - ridge[kept] * coefficients[kept]) / w.sum(), kept


def test_a_logistic_ridge_is_at_its_optimum(logistic):
    fitted = logistic.fit()
    gradient, kept = penalised_gradient(
        logistic, logistic.terms, fitted.coefficients, fitted.penalties, np.arange(M)
    )
    # The last Newton step gained less than 1e-7 of the objective, of order 0.5 per row.
    np.testing.assert_allclose(gradient, 0, atol=1e-6)
    np.testing.assert_array_equal(fitted.coefficients[~kept], 0)
    assert np.abs(fitted.coefficients[1:3]).max() > 0.5


def test_nearly_separated_rows_have_finite_coefficients():
    """All rows but for one of hundred: halved steps and the penalty keep Newton's method in."""
    problem = Problem("logit")
    problem.response = (problem.terms.values[:, 1] > 0).astype(float)
    problem.response[0] = 1 - problem.response[0]
    fitted = problem.fit()
    gradient, _ = penalised_gradient(
        problem, problem.terms, fitted.coefficients, fitted.penalties, np.arange(M)
    )
    np.testing.assert_allclose(gradient, 0, atol=1e-5)
    assert np.isfinite(fitted.held_out).all()


def test_a_log_linear_ridge_is_at_its_optimum(counts):
    fitted = counts.fit()
    ridge = counts.ridge(fitted.penalties)
    x, kept = counts.terms.values, np.isfinite(ridge)
    left = counts.weights * (counts.response - np.exp(x @ fitted.coefficients))
    gradient = (x.T @ left)[kept] - ridge[kept] * fitted.coefficients[kept]
    # The last Newton step gained less than 1e-7 of the objective, of order one per row.
    np.testing.assert_allclose(gradient / counts.weights.sum(), 0, atol=1e-6)
    np.testing.assert_array_equal(fitted.coefficients[~kept], 0)
    # Their standard errors are about 0.06.
    assert np.abs(fitted.coefficients[1:3] - [1.0, -0.5]).max() < 4 * 0.06


def test_penalties_of_counts_find_the_groups_that_matter():
    fits = [Problem("log", seed=s).fit(predict=False) for s in range(20)]
    strong, noise = zip(*(fit.penalties for fit in fits), strict=True)
    assert max(strong) <= 0.03
    assert np.median(noise) >= 0.3


def test_a_huge_count_does_not_decide():
    """Least squares would follow it; the deviance gives it the weight of a count."""
    problem = Problem("log")
    problem.response[np.argmax(problem.terms.values[:, 3])] *= 100
    fitted = problem.fit()
    assert np.isfinite(fitted.held_out).all()
    assert np.abs(fitted.coefficients).max() < 3


@pytest.mark.parametrize("link", ["identity", "logit", "log"])
def test_held_out_predictions_do_not_know_their_row(link):
    """A row's response may change; its own prediction does not, those of other parts do."""
    problem = Problem(link, strength=1.5)
    before = problem.fit()
    unchanged = 0
    for i in range(0, M, 10):
        changed = problem.response.copy()
        changed[i] = 1 - changed[i] if link == "logit" else changed[i] + 0.3
        after = problem.fit(changed)
        if after.penalties != before.penalties:  # which all rows choose together
            continue
        unchanged += 1
        own = problem.parts == problem.parts[i]
        np.testing.assert_array_equal(after.held_out[own], before.held_out[own])
        assert np.abs(after.held_out - before.held_out)[~own].max() > 1e-6
    assert unchanged >= 5


def test_parts_may_have_other_terms(gaussian):
    """Which terms there are may be decided by the rows that a fit knows."""
    swapped = Terms(gaussian.terms.values[:, [0, 2, 1, 5, 4, 3]], gaussian.terms.group)
    terms = [swapped] * PARTS + [gaussian.terms]
    one, other = gaussian.fit(), gaussian.fit(terms=terms)
    np.testing.assert_allclose(other.held_out, one.held_out, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(other.coefficients, one.coefficients)


@pytest.mark.parametrize("link", ["identity", "logit", "log"])
def test_predictions_that_nobody_wants_are_not_made(link):
    problem = Problem(link)
    fitted = problem.fit(predict=False)
    assert fitted.held_out.shape == (0,)
    np.testing.assert_array_equal(fitted.coefficients, problem.fit().coefficients)


@pytest.mark.parametrize("link", ["identity", "logit", "log"])
def test_rows_without_weight_do_not_matter(link):
    problem = Problem(link)
    problem.weights[::7] = 0.0
    changed = problem.response.copy()
    changed[::7] = 1 - changed[::7]
    one, other = problem.fit(), problem.fit(changed)
    assert one.penalties == other.penalties
    np.testing.assert_array_equal(one.coefficients, other.coefficients)
    np.testing.assert_array_equal(one.held_out, other.held_out)


def test_a_regression_stops_when_it_is_told_to(gaussian):
    asked = []

    def stop(_):
        asked.append(True)
        if len(asked) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gaussian.fit(stop=stop)
    assert len(asked) == 3
