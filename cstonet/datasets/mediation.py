"""Mediation with every truth: one mediator, three of them, and a linear case in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.special import expit

from cstonet.datasets.mediation_models import MODELS, gauss_hermite
from cstonet.datasets.simulation import (
    FloatArray,
    assemble_frame,
    check_options,
    frozen,
)
from cstonet.datasets.truths import as_text, dependencies, several_effects
from cstonet.estimators import Effects, MediationNuisances, estimate_mediation
from cstonet.streams import DataStream


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MediationSimulation:
    """A simulated data set of n units with mediators, and all its truths.

    Parameters
    ----------
    data : DataFrame, n rows
        Outcome ``y``, treatment ``treat`` (0 or 1), mediators ``m1``, …, covariates ``x1``, ….
    formula : str
        The formula to fit.
    name : str
        Name of the function that made it.
    seed : int
        Seed it was made with.
    mu : (n, 2) float64
        μ_a(m_i, x_i): expected outcome at the unit's mediators under each treatment.
    eta : (n, 2, 2) float64
        η_aa'(x_i) = E[μ_a(M, x_i) | A = a', x_i], entry [i, a, a'].
    propensity : (n,) float64
        P(A = 1 | x_i).
    posterior : (n,) float64
        P(A = 1 | m_i, x_i).
    treatment_support, mediator_support, outcome_support : tuple of str
        Covariates that the treatment, any mediator and the outcome depend on.
    outcome_mediators : tuple of str
        Mediators that the outcome depends on.
    effects : dict of str to float
        Population "TE", "NDE" and "NIE": what intervals should cover.
    """

    data: pd.DataFrame
    formula: str
    name: str
    seed: int
    mu: FloatArray
    eta: FloatArray
    propensity: FloatArray
    posterior: FloatArray
    treatment_support: tuple[str, ...]
    mediator_support: tuple[str, ...]
    outcome_support: tuple[str, ...]
    outcome_mediators: tuple[str, ...]
    effects: dict[str, float]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value:.4f}" for name, value in self.effects.items())
        return f"<{self.name}: n={len(self.data)}, seed={self.seed}, {shown}>"

    @property
    def sample_effects(self) -> dict[str, float]:
        """Mean effects over the rows, given their covariates."""
        return _contrasts(self.eta.mean(axis=0))

    def row_truths(self) -> pd.DataFrame:
        """The true nuisances of every row: mu0, mu1, eta00 to eta11, propensity, posterior."""
        eta = {f"eta{a}{b}": self.eta[:, a, b] for a in (0, 1) for b in (0, 1)}
        return pd.DataFrame(
            {
                "mu0": self.mu[:, 0],
                "mu1": self.mu[:, 1],
                **eta,
                "propensity": self.propensity,
                "posterior": self.posterior,
            }
        )

    def describe(self) -> str:
        """Formula, true effects, and what the variables depend on: one per line."""
        outcome = self.outcome_support + self.outcome_mediators
        treatment_line, outcome_line = dependencies(self.treatment_support, outcome)
        return as_text(
            [
                ("formula", self.formula),
                *several_effects(self.sample_effects, self.effects, self.oracle()),
                treatment_line,
                ("mediators depend on", " ".join(self.mediator_support)),
                outcome_line,
            ]
        )

    def nuisances(self) -> MediationNuisances:
        """The true nuisances, for estimators that are told everything."""
        return MediationNuisances(
            y=self.data["y"].to_numpy(np.float64),
            treatment=self.data["treat"].to_numpy(np.int64),
            mu=self.mu,
            eta=self.eta,
            propensity=np.column_stack([1 - self.propensity, self.propensity]),
            posterior=np.column_stack([1 - self.posterior, self.posterior]),
            weights=None,
            fold=np.zeros(len(self.data), np.int64),
        )

    def oracle(self) -> Effects:
        """Estimates with the true nuisances: the best that any fit can hope for."""
        return estimate_mediation(self.nuisances(), clip=0.0).effects


def one_mediator(
    n: int = 2000, p: int = 50, *, seed: int = 0, noise: float = 1.0
) -> MediationSimulation:
    """Confounded treatment with one mediator, nonlinear in all three models.

    The covariates are independent standard normals; with ψ(z) = tanh(z),

        logit P(A=1) = 0.6 x1 - 0.5 x2 + 0.3 (x3² - 1),
        m1 = 0.8 A + 0.6 x1 + 0.6 ψ(2 x4) + 0.3 A x2 + e,
        y  = 0.5 A + 0.5 m1 + 0.5 ψ(m1) + 0.3 A m1 + 0.7 x1 + 0.5 (x3² - 1) + 0.5 ψ(2 x5) + σ ε.

    Parameters
    ----------
    n : int
        Number of units.
    p : int
        Number of covariates, at least 5.
    seed : int
        Same seed, same data.
    noise : float
        σ, the standard deviation of the outcome's noise.

    Returns
    -------
    MediationSimulation
        Data and truths.
    """
    check_options(n, p, seed, noise=noise)
    return _simulate("one_mediator", n, p, seed=seed, noise=noise, stream=DataStream.ONE_MEDIATOR)


def three_mediators(
    n: int = 2000, p: int = 50, *, seed: int = 0, noise: float = 1.0
) -> MediationSimulation:
    """Three mediators with correlated residuals, of which the third does nothing to the outcome.

    Covariates and treatment are those of `one_mediator`; with ψ(z) = tanh(z) and residuals of
    variance one and correlations 0.4, 0.3, 0.3,

        m1 = 0.7 A + 0.6 x1 + 0.6 ψ(2 x4) + 0.3 A x2 + e1,
        m2 = 0.5 A - 0.5 x2 + 0.4 (x4² - 1) + e2,
        m3 = 0.6 A + 0.5 x1 + e3,
        y  = 0.5 A + 0.4 m1 + 0.5 ψ(m1) + 0.5 m2 + 0.3 A m2 + 0.7 x1 + 0.5 (x3² - 1)
             + 0.5 ψ(2 x5) + σ ε.

    Parameters
    ----------
    n : int
        Number of units.
    p : int
        Number of covariates, at least 5.
    seed : int
        Same seed, same data.
    noise : float
        σ, the standard deviation of the outcome's noise.

    Returns
    -------
    MediationSimulation
        Data and truths.
    """
    check_options(n, p, seed, noise=noise)
    return _simulate(
        "three_mediators", n, p, seed=seed, noise=noise, stream=DataStream.THREE_MEDIATORS
    )


def linear_mediation(
    n: int = 1000, p: int = 10, *, seed: int = 0, noise: float = 1.0
) -> MediationSimulation:
    """Linear and gaussian: TE = 1.0, NDE = 0.6 and NIE = 0.8 · 0.5 = 0.4 in closed form.

        logit P(A=1) = 0.5 x1 - 0.5 x2,
        m1 = 0.8 A + 0.5 x1 + e,
        y  = 0.6 A + 0.5 m1 + 0.5 x1 + 0.5 x2 + σ ε.

    Parameters
    ----------
    n : int
        Number of units.
    p : int
        Number of covariates, at least 5.
    seed : int
        Same seed, same data.
    noise : float
        σ, the standard deviation of the outcome's noise.

    Returns
    -------
    MediationSimulation
        Data and truths.
    """
    check_options(n, p, seed, noise=noise)
    return _simulate(
        "linear_mediation", n, p, seed=seed, noise=noise, stream=DataStream.LINEAR_MEDIATION
    )


def _simulate(
    name: str, n: int, p: int, *, seed: int, noise: float, stream: DataStream
) -> MediationSimulation:
    model = MODELS[name]
    rng = stream.generator(seed)
    covariates = rng.standard_normal((p, n))
    x = covariates.T
    propensity = expit(model.predictor(x))
    treatment = (rng.random(n) < propensity).astype(np.int64)
    means = np.stack([model.means(a, x) for a in (0, 1)], axis=1)
    residuals = rng.standard_normal((n, len(model.covariance)))
    residuals = residuals @ np.linalg.cholesky(model.covariance).T
    m = means[np.arange(n), treatment] + residuals
    mu = np.column_stack([model.outcome(a, m, x) for a in (0, 1)])
    y = mu[np.arange(n), treatment] + noise * rng.standard_normal(n)
    data = assemble_frame(y, treatment, covariates)
    names = [f"m{j + 1}" for j in range(m.shape[1])]
    for position, mediator in enumerate(names):
        data.insert(2 + position, mediator, m[:, position])
    return MediationSimulation(
        data=data,
        formula=f"y ~ treat | . | {' + '.join(names)}",
        name=name,
        seed=int(seed),
        mu=frozen(mu),
        eta=frozen(model.eta(x)),
        propensity=frozen(propensity),
        posterior=frozen(_posterior(m, means, model.covariance, propensity)),
        treatment_support=model.treatment_support,
        mediator_support=model.mediator_support,
        outcome_support=model.outcome_support,
        outcome_mediators=model.outcome_mediators,
        effects=dict(_population(name)),
    )


def _posterior(
    m: FloatArray, means: FloatArray, covariance: FloatArray, propensity: FloatArray
) -> FloatArray:
    """P(A = 1 | m, x) by Bayes' rule, shape (n,); `means` is (n, 2, J)."""
    residuals = m[:, None, :] - means
    precision = np.linalg.inv(covariance)
    log_density = -0.5 * np.einsum("naj,jk,nak->na", residuals, precision, residuals)
    log_odds = np.log(propensity) - np.log1p(-propensity)
    posterior: FloatArray = expit(log_odds + log_density[:, 1] - log_density[:, 0])
    return posterior


def _contrasts(eta: FloatArray) -> dict[str, float]:
    """Effects from means ψ_aa', shape (2, 2)."""
    return {
        "TE": float(eta[1, 1] - eta[0, 0]),
        "NDE": float(eta[1, 0] - eta[0, 0]),
        "NIE": float(eta[1, 1] - eta[1, 0]),
    }


@lru_cache
def _population(name: str) -> tuple[tuple[str, float], ...]:
    """Population effects by Gauss-Hermite quadrature.

    The terms in x3 and x5 do not depend on the treatment and cancel, so the rule runs over x1, x2
    and x4, the covariates of the mediators.
    """
    nodes, weights = gauss_hermite()
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    weight = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
    x = np.zeros((len(grid), 5))
    x[:, [0, 1, 3]] = grid
    means = np.einsum("n,nab->ab", weight, MODELS[name].eta(x))
    return tuple(_contrasts(means).items())
