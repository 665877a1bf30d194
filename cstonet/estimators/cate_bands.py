"""How far the effect that networks predict for a unit may be from its true one.

No regression of doubly robust scores can tell how well a network has found an effect of many
covariates: what it misses lies in no small set of terms. But the folds of the cross-fitting say how
much the prediction moves if a part of the units is left out, search for covariates and all, and
that is a jackknife: K predictions τ̂_k(x), each without one fold of K, have the variance

    V(x) = (K - 1)/K Σ_k (τ̂_k(x) - τ̄(x))²

(Quenouille; Shao and Wu 1989 for blocks), here averaged over repetitions of the cross-fitting. So
few folds know the variance of one unit badly: half of what a unit is given is that of all units.

What all folds miss alike they do not show. Scores do, as far as covariates that a model found tell:
the regression of score minus prediction on these finds coefficients c with variances v. Where
predictions follow the scores by a share λ of what these say (which the jackknife tells, λ² v being
what it finds of them), c has the variance (1 - λ)² v, and what is more than that is bias.

Intervals of this kind cover on average over the units, as Bayesian intervals of smoothers do
(Nychka 1988), not for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cstonet.blocks import row_blocks
from cstonet.estimators.nuisances import FloatArray
from cstonet.streams import Stream

# Draws behind the critical value of all rows together.
_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class CateSpread:
    """What all units have in common of the errors of their predicted effects.

    Attributes
    ----------
    typical : float
        Mean of the jackknife variances.
    alone : float
        What a prediction out of fold adds, which averages the repetitions, but not the folds.
    missed : float
        Mean square of what all folds miss alike.
    freedom : float
        Degrees of freedom of a jackknife variance.
    """

    typical: float
    alone: float
    missed: float
    freedom: float

    @classmethod
    def of(
        cls, predictions: FloatArray, residual: FloatArray, terms: FloatArray, weights: FloatArray
    ) -> CateSpread:
        """Look at the units of the fit.

        Parameters
        ----------
        predictions : (R, K, n) float64
            Effects that each fold of each repetition predicts for every unit.
        residual : (n,) float64
            Doubly robust scores minus predictions out of fold.
        terms : (n, k) float64
            What bias may depend on, linearly independent.
        weights : (n,) float64
            Weights of the units, of mean one.
        """
        repetitions, folds, _ = predictions.shape
        jackknife = jackknife_variances(predictions)
        typical = float(np.average(jackknife, weights=weights))
        return cls(
            typical=typical,
            # The variance between folds, from that of their mean.
            alone=typical * folds / (folds - 1) ** 2 / repetitions,
            missed=_missed(predictions, residual, terms, weights),
            freedom=float(repetitions * (folds - 1)),
        )

    def variances(self, jackknife: FloatArray, *, out_of_fold: bool) -> FloatArray:
        """Mean squared errors of predicted effects, shape (m,).

        Parameters
        ----------
        jackknife : (m,) float64
            Jackknife variances of the units.
        out_of_fold : bool
            Whether each was predicted by folds that did not train on it.
        """
        variances: FloatArray = (jackknife + self.typical) / 2 + self.missed
        return variances + self.alone if out_of_fold else variances


def jackknife_variances(predictions: FloatArray) -> FloatArray:
    """Variances (m,) of means over folds, from the predictions (R, K, m) of the folds."""
    folds = predictions.shape[1]
    between = predictions.var(axis=1)  # over K, not K - 1
    variances: FloatArray = (folds - 1) * between.mean(axis=0)
    return variances


def _missed(
    predictions: FloatArray, residual: FloatArray, terms: FloatArray, weights: FloatArray
) -> float:
    """Mean square of what all folds miss, as far as it is linear in the terms; at least zero."""
    n, root = len(residual), np.sqrt(weights)
    basis = np.linalg.qr(terms * root[:, None])[0]
    weighted = residual * root
    coefficients = basis.T @ weighted
    leverage = np.sum(basis**2, axis=1)
    rest = (weighted - basis @ coefficients) ** 2 / np.maximum(1 - leverage, 0.05)
    noise = float(leverage @ rest)
    followed = float(jackknife_variances((predictions * root) @ basis).sum())
    share = min(1.0, np.sqrt(followed / noise)) if noise > 0 else 1.0
    return max(0.0, float(coefficients @ coefficients) - (1 - share) ** 2 * noise) / n


def largest_of_rows(
    predictions: FloatArray, variances: FloatArray, freedom: float, alpha: float, seed: int
) -> float:
    """Critical value that all rows share: with probability 1 - alpha none has a larger |t|.

    The part of the variances that folds differ by is drawn as they differ, alike for rows that they
    see alike; the rest independently, and both over the root of a chi-squared, as a multivariate t.

    Parameters
    ----------
    predictions : (R, K, m) float64
        Effects that the folds predict.
    variances : (m,) float64
        Mean squared errors, see `CateSpread.variances`.
    freedom : float
        Degrees of freedom.
    alpha : float
        One minus the joint level.
    seed : int
        Seed of the draws.
    """
    repetitions, folds, m = predictions.shape
    rng = Stream.CATE_BANDS.generator(seed)
    shared = rng.standard_normal((_DRAWS, repetitions * folds))
    largest = np.zeros(_DRAWS)
    # Half of a jackknife variance is in that of a unit.
    factor = np.sqrt((folds - 1) / folds / repetitions / 2)
    for rows in row_blocks(m, _DRAWS):
        part = predictions[:, :, rows]
        apart = (part - part.mean(axis=1, keepdims=True)).reshape(repetitions * folds, -1)
        loading = factor * apart / np.sqrt(variances[rows])
        own = np.sqrt(np.maximum(1 - np.sum(loading**2, axis=0), 0.0))
        drawn = shared @ loading + own * rng.standard_normal((_DRAWS, loading.shape[1]))
        np.maximum(largest, np.abs(drawn).max(axis=1), out=largest)
    student = largest / np.sqrt(rng.chisquare(freedom, _DRAWS) / freedom)
    return float(np.quantile(student, 1 - alpha))
