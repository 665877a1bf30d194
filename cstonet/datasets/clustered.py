"""Villages: units in clusters, which share their neighbours' covariates, treatment and luck."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cstonet.datasets.simulation import (
    FORMULA,
    FloatArray,
    Simulation,
    assemble_frame,
    check_options,
    frozen,
)
from cstonet.errors import OptionError
from cstonet.estimators import Nuisances
from cstonet.streams import DataStream

CLUSTER = "village"
OUTCOME_SUPPORT = ("x1", "x2", "x3", "x4")
TREATMENT_SUPPORT = ("x1", "x3", "x5")
POPULATION_ATE = 1.0

# What the treatment of a village depends on: z1, z3 and z5, each with one of these signs.
_PULL = {0: 1.0, 2: -1.0, 4: 1.0}
# Units that receive what their village does; the others toss a coin.
_FOLLOWERS = 0.95
# Intra-class correlation of what the covariates leave, over that of the covariates: squares and
# bent curves of these have less, so that outcomes of an arm have about as much as the covariates.
_LUCK = 1.5


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClusteredSimulation(Simulation):
    """A simulated data set of units in clusters, with all its truths.

    Parameters
    ----------
    cluster_name : str
        The column of the data that says which units belong together.
    """

    cluster_name: str = field(kw_only=True)

    @property
    def clusters(self) -> NDArray[np.int64]:
        """Numbers of the clusters, shape (n,)."""
        return self.data[self.cluster_name].to_numpy(np.int64)

    def nuisances(self) -> Nuisances:
        """The true nuisances, for estimators that are told everything, clusters included."""
        return replace(Simulation.nuisances(self), clusters=self.clusters)


def clustered(
    n_clusters: int = 120,
    size: int = 10,
    p: int = 20,
    *,
    seed: int = 0,
    correlation: float = 0.2,
    noise: float = 1.0,
) -> ClusteredSimulation:
    """Villages of which most are treated as a whole; neighbours are alike in everything.

    With intra-class correlation ρ, covariate j of unit i in village g is √ρ z_gj + √(1-ρ) w_ij,
    all standard normal. A village is treated if z_g1 - z_g3 + z_g5 + e_g > 0, and 95 % of its units
    receive what it does, the others toss a coin. The outcome is

        y = x1 + ½ (x2² - 1) + tanh(2 x3) + (1 + ½ x4) A + σ (√κ u_g + √(1-κ) ε),   κ = 1.5 ρ,

    so that the average effect is 1; κ makes the correlation of outcomes within an arm about ρ. What
    a village has in common beside the covariates, u_g, has nothing to do with its treatment: given
    the covariates of the unit alone there is no confounding, but standard errors that take units
    for independent are much too small.

    Parameters
    ----------
    n_clusters, size : int
        Number of villages, and of units in each.
    p : int
        Number of covariates, at least 5.
    seed : int
        Same seed, same data.
    correlation : float
        ρ, from 0 to below 2/3.
    noise : float
        σ, the standard deviation of what the covariates leave of the outcome.

    Returns
    -------
    ClusteredSimulation
        Data with the column ``village``, and truths.

    Examples
    --------
    >>> from cstonet.datasets import clustered
    >>> sim = clustered(n_clusters=30, seed=1)
    >>> sim
    <clustered: n=300, p=20, seed=1, ate=1.0000>
    >>> sim.cluster_name
    'village'
    """
    check_options(n_clusters, p, seed, noise=noise, correlation=correlation)
    check_options(size + 1 if isinstance(size, int) else size, p, seed)
    if not 0 <= correlation < 1 / _LUCK:
        raise OptionError(f"correlation must be at least 0 and below 2/3, not {correlation!r}")
    rng = DataStream.CLUSTERED.generator(seed)
    village = np.repeat(np.arange(n_clusters), size)
    n, shared, own = len(village), np.sqrt(correlation), np.sqrt(1 - correlation)
    common = rng.standard_normal((p, n_clusters))
    covariates = shared * common[:, village] + own * rng.standard_normal((p, n))
    pull = np.array([_PULL.get(j, 0.0) for j in range(p)])
    treated = pull @ common + rng.standard_normal(n_clusters) > 0
    follows = rng.random(n) < _FOLLOWERS
    treatment = np.where(follows, treated[village], rng.random(n) < 0.5).astype(np.int64)
    mu0, tau = outcome_model(covariates.T)
    fate = _LUCK * correlation
    luck = np.sqrt(fate) * rng.standard_normal(n_clusters)[village]
    luck += np.sqrt(1 - fate) * rng.standard_normal(n)
    data = assemble_frame(mu0 + tau * treatment + noise * luck, treatment, covariates)
    data.insert(0, CLUSTER, village)
    return ClusteredSimulation(
        data=data,
        formula=FORMULA,
        name="clustered",
        seed=int(seed),
        mu0=frozen(mu0),
        mu1=frozen(mu0 + tau),
        tau=frozen(tau),
        propensity=frozen(treatment_probability(covariates.T, correlation)),
        outcome_support=OUTCOME_SUPPORT,
        treatment_support=TREATMENT_SUPPORT,
        ate=POPULATION_ATE,
        # E tanh(2 x3) = 0, and so are the means of x1 and x2² - 1.
        mean0=0.0,
        cluster_name=CLUSTER,
    )


def treatment_probability(x: FloatArray, correlation: float) -> FloatArray:
    """P(A = 1 | x), shape (n,), of units x (n, p).

    Given its own covariates, a unit's z_g are normal with means √ρ x and variances 1 - ρ, so that
    z_g1 - z_g3 + z_g5 + e_g is normal, too.
    """
    pull = sum(sign * x[:, j] for j, sign in _PULL.items())
    spread = np.sqrt(1 + (1 - correlation) * len(_PULL))
    village = ndtr(np.sqrt(correlation) * pull / spread)
    probability: FloatArray = _FOLLOWERS * village + (1 - _FOLLOWERS) / 2
    return probability


def outcome_model(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """μ_0(x) and τ(x), shape (n,) each, of units x (n, p)."""
    without = x[:, 0] + 0.5 * (x[:, 1] ** 2 - 1) + np.tanh(2 * x[:, 2])
    return without, POPULATION_ATE + 0.5 * x[:, 3]
