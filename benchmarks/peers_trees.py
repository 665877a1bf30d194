"""Forests and sums of trees: EconML's causal forest, stochtree's BART and BCF."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from common import Z95, Estimate, FloatArray, Variables
from numpy.typing import NDArray

# ``sample(problem, threads, seed)`` gives posterior draws of the rows' effects, (n, draws).
Sampler: TypeAlias = Callable[[Variables, int, int], FloatArray]
# Grow-from-root sweeps, burn-in and kept draws, of BART and BCF alike.
_SWEEPS = {"num_gfr": 10, "num_burnin": 200, "num_mcmc": 1000}


def econml_forest(problem: Variables, threads: int, seed: int) -> Estimate:
    """EconML's causal forest: mean of its effects over the rows, with its own interval."""
    forest, X = _causal_forest(problem, threads, seed)
    inference = forest.ate_inference(X)
    lower, upper = inference.conf_int_mean(alpha=0.05)
    return Estimate(
        ate=float(np.squeeze(inference.mean_point)),
        se=float(np.squeeze(inference.stderr_mean)),
        lower=float(np.squeeze(lower)),
        upper=float(np.squeeze(upper)),
        cate=forest.effect(X).reshape(-1),
    )


def econml_forest_dr(problem: Variables, threads: int, seed: int) -> Estimate:
    """EconML's causal forest: the doubly robust mean effect on the training rows, as grf's."""
    forest, X = _causal_forest(problem, threads, seed)
    ate, se = float(np.squeeze(forest.ate_)), float(np.squeeze(forest.ate_stderr_))
    return Estimate(ate, se, ate - Z95 * se, ate + Z95 * se, forest.effect(X).reshape(-1))


def econml_forest_dr_treated(problem: Variables, threads: int, seed: int) -> Estimate:
    """The same among the treated."""
    forest, X = _causal_forest(problem, threads, seed)
    att, se = (float(np.squeeze(value)) for value in (forest.att_(T=1), forest.att_stderr_(T=1)))
    return Estimate(att, se, att - Z95 * se, att + Z95 * se, forest.effect(X).reshape(-1))


def _causal_forest(problem: Variables, threads: int, seed: int) -> tuple[Any, Any]:
    """The fitted forest and the covariates it was fitted to."""
    from econml.dml import CausalForestDML

    X = problem.X
    forest = CausalForestDML(
        discrete_treatment=True,
        discrete_outcome=problem.binary,
        n_jobs=threads,
        random_state=seed,
    )
    outcome = problem.y.astype(np.int64) if problem.binary else problem.y
    forest.fit(outcome, problem.treat, X=X)
    return forest, X


def bart(problem: Variables, threads: int, seed: int) -> Estimate:
    """BART with the treatment as a covariate: posterior of the mean effect over the rows."""
    return mean_over(problem, sample_bart(problem, threads, seed))


def bcf(problem: Variables, threads: int, seed: int) -> Estimate:
    """Bayesian causal forest: posterior of the mean effect over the rows.

    One forest for the outcome without treatment, which gets an estimated propensity as a covariate,
    and a more strongly shrunk one for the effect, with the library's priors.
    """
    return mean_over(problem, sample_bcf(problem, threads, seed))


def mean_among_treated(sample: Sampler, problem: Variables, threads: int, seed: int) -> Estimate:
    """Posterior of the mean effect over the treated rows."""
    return mean_over(problem, sample(problem, threads, seed), problem.treat == 1)


def mean_over(
    problem: Variables, effects: FloatArray, rows: NDArray[np.bool_] | None = None
) -> Estimate:
    """Posterior mean, standard deviation and 95 % limits of the mean effect over rows.

    Parameters
    ----------
    problem : Variables, n rows
        The data.
    effects : (n, draws) float64
        Posterior draws of the rows' effects.
    rows : (n,) bool or None
        The rows that are asked about; all of them without.
    """
    chosen = np.ones(len(problem.y), bool) if rows is None else rows
    draws = effects[chosen].mean(axis=0)
    lower, upper = np.quantile(draws, [0.025, 0.975])
    return Estimate(
        ate=float(draws.mean()),
        se=float(draws.std(ddof=1)),
        lower=float(lower),
        upper=float(upper),
        cate=effects.mean(axis=1),
    )


def sample_bart(problem: Variables, threads: int, seed: int) -> FloatArray:
    """Draws (n, draws) of the rows' effects: what BART predicts with treatment less without."""
    from stochtree import BARTModel

    X = problem.X
    model = BARTModel()
    model.sample(
        X_train=np.column_stack([X, problem.treat]),
        y_train=problem.y,
        general_params=sampler_settings(problem.binary, threads, seed),
        **_SWEEPS,
    )
    scale = prediction_scale(problem.binary)
    mu0, mu1 = (
        model.predict(np.column_stack([X, np.full(len(X), a)]), terms="y_hat", scale=scale)
        for a in (0.0, 1.0)
    )
    effects: FloatArray = mu1 - mu0
    return effects


def sample_bcf(problem: Variables, threads: int, seed: int) -> FloatArray:
    """Draws (n, draws) of the rows' effects from a Bayesian causal forest."""
    from stochtree import BCFModel

    X = problem.X
    model = BCFModel()
    model.sample(
        X_train=X,
        Z_train=problem.treat.astype(np.float64),
        y_train=problem.y,
        general_params=sampler_settings(problem.binary, threads, seed),
        **_SWEEPS,
    )
    scale = prediction_scale(problem.binary)
    mu0, mu1 = (
        model.predict(X, np.full(len(X), a), terms="y_hat", scale=scale) for a in (0.0, 1.0)
    )
    effects: FloatArray = mu1 - mu0
    return effects


def sampler_settings(binary: bool, threads: int, seed: int) -> dict[str, Any]:
    """Seed, threads and the kind of response (probit if it is 0 or 1), as stochtree takes them."""
    from stochtree import OutcomeModel

    settings: dict[str, Any] = {"random_seed": seed, "num_threads": threads}
    if binary:
        settings["outcome_model"] = OutcomeModel(outcome="binary", link="probit")
    return settings


def prediction_scale(binary: bool) -> str:
    """What stochtree calls the scale on which means of such a response are predicted."""
    return "probability" if binary else "linear"
