"""Total, natural direct and natural indirect effects from the efficient influence function.

With a the treatment that acts on the outcome directly and a' the one that sets the mediators M,

    ψ_aa' = E Y(a, M(a')),   TE = ψ_11 - ψ_00,   NDE = ψ_10 - ψ_00,   NIE = ψ_11 - ψ_10,

so that TE = NDE + NIE. The score of ψ_aa' (Tchetgen Tchetgen and Shpitser 2012) is

    1(A=a)/p_a(x) · f(M|a',x)/f(M|a,x) · (y - μ_a(M,x)) + 1(A=a')/p_a'(x) · (μ_a(M,x) - η_aa'(x))
    + η_aa'(x),

μ_a(m,x) being the outcome regression and η_aa'(x) = E[μ_a(M,x) | A=a', x]. Its mean is right if
either the outcome regression and the treatment model are, or the outcome regression and the
mediators' law, or the mediators' law and the treatment model. By Bayes' rule the density ratio is
[P(a'|M,x)/P(a|M,x)] · [p_a(x)/p_a'(x)], so the estimator asks for the probabilities P(a|M,x) of the
treatment given the mediators, and keeps them from 0 and 1 as it does the propensities.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cstonet.errors import NumericalError
from cstonet.estimators.aipw import Effects
from cstonet.estimators.clusters import cluster_freedom, influence_covariance
from cstonet.estimators.nuisances import (
    FloatArray,
    IntArray,
    Nuisances,
    clip_propensity,
    mean_one,
)
from cstonet.estimators.repetitions import effects_over_repetitions

EFFECTS = ("TE", "NDE", "NIE")
PROPORTION = "NIE/TE"
# Below this ratio of |TE| to its standard error the share that is mediated means little.
_UNCERTAIN_TOTAL = 3.0


@dataclass(frozen=True, slots=True)
class MediationNuisances:
    """Observed data and fitted nuisance functions of n units with a binary treatment.

    Parameters
    ----------
    y : (n,) float64
        Outcomes, in the units of the data.
    treatment : (n,) int64
        Treatments, 0 or 1.
    mu : (n, 2) float64
        μ̂_a(M_i, x_i), the outcome regression at the unit's own mediators under each treatment.
    eta : (n, 2, 2) float64
        η̂_aa'(x_i): entry [i, a, a'] has the outcome under a, the mediators' law under a'.
    propensity : (n, 2) float64
        p̂_a(x_i), not clipped; rows sum to one.
    posterior : (n, 2) float64
        P̂(A=a | M_i, x_i), not clipped; rows sum to one.
    weights : (n,) float64 or None
        Sampling weights; their scale is irrelevant.
    fold : (n,) int64
        Fold in which the unit was held out; 0 for all without cross-fitting.
    clusters : (n,) int or None
        Codes of the clusters that units belong to; None: units are independent.
    """

    y: FloatArray
    treatment: IntArray
    mu: FloatArray
    eta: FloatArray
    propensity: FloatArray
    posterior: FloatArray
    weights: FloatArray | None
    fold: IntArray
    clusters: IntArray | None = None

    def __post_init__(self) -> None:
        if self.eta.shape != (len(self.y), 2, 2) or self.posterior.shape != (len(self.y), 2):
            raise ValueError("eta must have shape (n, 2, 2), posterior (n, 2)")
        for name in ("mu", "eta", "posterior"):
            values = getattr(self, name)
            broken = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
            if broken.any():
                raise NumericalError(
                    f"the mediation models predict values that are not finite ({name}, "
                    f"{broken.sum()} of {len(values)} units): their training diverged. Try more "
                    "starts, another seed, or smaller learning rates."
                )

    def total(self) -> Nuisances:
        """The nuisances of the total effect: E[Y | A=a, x] is η̂_aa(x)."""
        return Nuisances(
            y=self.y,
            treatment=self.treatment,
            mu=np.column_stack([self.eta[:, 0, 0], self.eta[:, 1, 1]]),
            propensity=self.propensity,
            weights=self.weights,
            fold=self.fold,
            clusters=self.clusters,
        )


@dataclass(frozen=True, slots=True)
class MediationEffects:
    """What the estimator returns.

    Parameters
    ----------
    effects : Effects
        "TE", "NDE", "NIE" with their joint covariance.
    n_bounded : int
        Units whose probability of treatment given the mediators was moved to a bound, which bounds
        the density ratio.
    """

    effects: Effects
    n_bounded: int

    @property
    def uncertain_total(self) -> bool:
        """Whether the total effect is too close to zero for a share of it to mean anything."""
        total, error = self.effects.estimates[0], self.effects.standard_errors[0]
        return bool(abs(total) < _UNCERTAIN_TOTAL * error)

    def proportion(self) -> Effects:
        """Share of the total effect that is mediated, NIE / TE, by the delta method."""
        total, _, indirect = self.effects.estimates
        share = indirect / total if total != 0 else np.nan
        gradient = np.array([-share, 0.0, 1.0]) / (total if total != 0 else np.nan)
        freedom = self.effects.freedom
        return dataclasses.replace(
            self.effects,
            names=(PROPORTION,),
            n_contrasts=1,
            estimates=np.array([share]),
            covariance=np.atleast_2d(gradient @ self.effects.covariance @ gradient),
            influence=self.effects.influence @ gradient[:, None],
            freedom=None if freedom is None else freedom.min(keepdims=True),
        )

    def over_repetitions(self, singles: Sequence[MediationEffects]) -> MediationEffects:
        """The same estimates, with the covariance of a single repetition of the cross-fitting.

        Parameters
        ----------
        singles : sequence of MediationEffects
            Estimates from each repetition by itself.
        """
        effects = effects_over_repetitions(self.effects, [single.effects for single in singles])
        return dataclasses.replace(self, effects=effects)


def mediation_scores(
    nuisances: MediationNuisances, propensity: FloatArray, posterior: FloatArray
) -> FloatArray:
    """Score of every unit for every mean ψ_aa'.

    Parameters
    ----------
    nuisances : MediationNuisances
        Data and nuisances of n units.
    propensity, posterior : (n, 2) float64
        Clipped probabilities of the treatment given x, and given x and the mediators.

    Returns
    -------
    (n, 2, 2) float64
        Entry [i, a, a'] averages to ψ̂_aa'.
    """
    received = np.equal(nuisances.treatment[:, None], np.arange(2))
    if (received & ((propensity <= 0) | (posterior <= 0))).any():
        raise NumericalError(
            "some units received a treatment whose estimated probability is zero; set clip above 0 "
            "(0.01 is usual)"
        )
    # Axis 1 is a, axis 2 is a'. Units outside the arm contribute zero, whatever their odds.
    inverse = np.divide(1.0, propensity, out=np.zeros_like(propensity), where=propensity > 0)
    own = np.divide(1.0, posterior, out=np.zeros_like(posterior), where=received)
    odds = own[:, :, None] * posterior[:, None, :]
    noise = odds * inverse[:, None, :] * (nuisances.y[:, None] - nuisances.mu)[:, :, None]
    spread = (received * inverse)[:, None, :] * (nuisances.mu[:, :, None] - nuisances.eta)
    scores: FloatArray = noise + spread + nuisances.eta
    return scores


def freedom_by_arms(
    nuisances: MediationNuisances, propensity: FloatArray, estimates: int
) -> FloatArray | None:
    """Degrees of freedom of comparisons of the arms, shape (estimates,), if clusters are few.

    They are those of inverse probability weights, given clipped probabilities (n, 2).
    """
    received = np.take_along_axis(propensity, nuisances.treatment[:, None], axis=1)
    weights = mean_one(nuisances.weights, len(received))[:, None] / received
    return cluster_freedom(np.repeat(weights, estimates, axis=1), nuisances.clusters)


def estimate_mediation(nuisances: MediationNuisances, *, clip: float) -> MediationEffects:
    """Total, natural direct and natural indirect effects.

    Parameters
    ----------
    nuisances : MediationNuisances
        Data and (out-of-fold) nuisances.
    clip : float
        Distance that both kinds of treatment probabilities keep from 0 and 1.

    Returns
    -------
    MediationEffects
    """
    propensity = clip_propensity(nuisances.propensity, clip)
    posterior = clip_propensity(nuisances.posterior, clip)
    scores = mediation_scores(nuisances, propensity.values, posterior.values)
    n = len(scores)
    weights = mean_one(nuisances.weights, n)
    # NDE and NIE as columns; TE is their sum, exactly.
    direct, indirect = scores[:, 1, 0] - scores[:, 0, 0], scores[:, 1, 1] - scores[:, 1, 0]
    parts = np.column_stack([direct, indirect])
    means = weights @ parts / n
    influence = weights[:, None] * (parts - means)
    to_effects = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    covariance = influence_covariance(influence, nuisances.clusters)
    return MediationEffects(
        effects=Effects(
            names=EFFECTS,
            n_contrasts=len(EFFECTS),
            estimates=to_effects @ means,
            covariance=to_effects @ covariance @ to_effects.T,
            influence=influence @ to_effects.T,
            n_clipped=propensity.n_clipped,
            clip=clip,
            variance_kind="influence",
            freedom=freedom_by_arms(nuisances, propensity.values, len(EFFECTS)),
        ),
        n_bounded=posterior.n_clipped,
    )
