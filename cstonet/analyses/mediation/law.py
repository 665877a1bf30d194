"""Joint law of several mediators given treatment and covariates, from their fitted means.

A network says what each mediator is on average, given a and x. What is left over is not
independent between mediators, and the density ratio of the estimator needs the joint law. It is
written as a product of conditionals, binary mediators first, in each of which the residuals of the
mediators before it shift the predictor linearly:

    f(m | a, x) = Π_j f_j(m_j | predictor_j(a, x) + Σ_k<j c_jk (m_k - mean_k(a, x))).

For gaussian mediators that is a residual covariance matrix, by its Cholesky factor. All units are
those of the networks: gaussian mediators are standardised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from cstonet.estimators.nuisances import FloatArray

# Draws of the residuals over which the outcome regression is averaged.
DRAWS = 64
# Least distance of a probability from 0 and 1 where its log-odds are taken.
_LEAST = 1e-6
# Newton steps of a logistic regression, which converge in a handful.
_STEPS = 25
# Largest logarithm of a ratio of densities: beyond it there is no overlap to speak of.
_LARGEST = 30.0
# A residual variance below this, for a standardised mediator, is rounding error.
_SMALLEST_VARIANCE = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class MediatorLaw:
    """The law of J mediators around given means.

    Attributes
    ----------
    binary : (J,) bool
        Which of them are binary.
    shifts : (J, J) float64
        c_jk: effect of mediator k's residual on mediator j's predictor; zero unless k precedes j.
    variance : (J,) float64
        Variance of each gaussian mediator given those before it; 1 for binary ones.
    marginal : (J,) float64
        Residual variance of each mediator by itself.
    noise : (K, J) float64
        Draws: innovations of gaussian mediators with variance one, uniform numbers for binary ones.
    """

    binary: NDArray[np.bool_]
    shifts: FloatArray
    variance: FloatArray
    marginal: FloatArray
    noise: FloatArray

    @classmethod
    def fit(
        cls,
        values: FloatArray,
        means: FloatArray,
        weights: FloatArray,
        binary: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> MediatorLaw:
        """Estimate the law from rows (m, J) of mediators and their means given a and x.

        Parameters
        ----------
        values, means : (m, J)
            Mediators, and what the network says of them under the treatment received.
        weights : (m,)
            Row weights.
        binary : (J,)
            Which are binary.
        rng
            Decides which innovations are drawn.
        """
        residuals = values - means
        shifts, variance = np.zeros((len(binary), len(binary))), np.ones(len(binary))
        innovations = np.zeros_like(residuals)
        before: list[int] = []
        for j in _order(binary):
            earlier = residuals[:, before]
            if binary[j]:
                shifts[j, before] = _logistic(
                    values[:, j], _log_odds(means[:, j]), earlier, weights
                )
            else:
                root = np.sqrt(weights)[:, None]
                solution = np.linalg.lstsq(root * earlier, root[:, 0] * residuals[:, j], rcond=None)
                shifts[j, before] = solution[0]
                left = residuals[:, j] - earlier @ shifts[j, before]
                variance[j] = max(float(np.average(left**2, weights=weights)), _SMALLEST_VARIANCE)
                innovations[:, j] = left
            before.append(j)
        marginal = np.maximum(np.average(residuals**2, axis=0, weights=weights), variance * ~binary)
        return cls(binary, shifts, variance, marginal, _draws(innovations, binary, rng))

    def log_density(self, values: FloatArray, means: FloatArray) -> FloatArray:
        """Log f(m | a, x) of rows (m, J), up to a constant; shape (m,)."""
        residuals = values - means
        shifts = residuals @ self.shifts.T
        total = np.zeros(len(values))
        for j, binary in enumerate(self.binary):
            if binary:
                predictor = _log_odds(means[:, j]) + shifts[:, j]
                total += values[:, j] * predictor - np.logaddexp(0.0, predictor)
            else:
                total -= 0.5 * (residuals[:, j] - shifts[:, j]) ** 2 / self.variance[j]
        return total

    def draw(self, means: FloatArray) -> FloatArray:
        """Mediators drawn around means (m, J), the same noise for every row; shape (m, K, J)."""
        drawn = np.empty((len(means), *self.noise.shape))
        residuals = np.zeros_like(drawn)
        for j in _order(self.binary):
            shift = residuals @ self.shifts[j]
            mean = means[:, j, None]
            if self.binary[j]:
                drawn[:, :, j] = self.noise[:, j] < expit(_log_odds(mean) + shift)
            else:
                drawn[:, :, j] = mean + shift + np.sqrt(self.variance[j]) * self.noise[:, j]
            residuals[:, :, j] = drawn[:, :, j] - mean
        return drawn

    def own_over_conditional(
        self, j: int, values: FloatArray, own: FloatArray, means: FloatArray
    ) -> FloatArray:
        """f_j(m_j | own mean) / f(m_j | other mediators), the latter around `means`; shape (m,).

        Parameters
        ----------
        j
            Which mediator.
        values, means : (m, J)
            Mediators, and their means under the treatment that the others are taken from.
        own : (m,)
            Mean of mediator j under the treatment that it is taken from.
        """
        if self.binary[j]:
            marginal = np.where(values[:, j] == 1, own, 1 - own)
            either = [self.log_density(_with(values, j, v), means) for v in (0.0, 1.0)]
            chosen = np.where(values[:, j] == 1, either[1], either[0])
            conditional: FloatArray = np.exp(chosen - np.logaddexp(either[0], either[1]))
            return np.asarray(marginal / conditional)
        gaussian = np.flatnonzero(~self.binary)
        position = int(np.flatnonzero(gaussian == j)[0])
        factor = np.eye(len(gaussian)) - self.shifts[np.ix_(gaussian, gaussian)]
        precision = factor.T @ (factor / self.variance[gaussian, None])
        # What is left of the gaussian residuals once the binary ones have shifted them.
        residuals = values - means
        shifted = residuals[:, self.binary] @ self.shifts[np.ix_(gaussian, self.binary)].T
        left = residuals[:, gaussian] - np.linalg.solve(factor, shifted.T).T
        spread = 1 / precision[position, position]
        distance = left @ precision[position] * spread
        total = self.marginal[j]
        log_ratio = 0.5 * distance**2 / spread - 0.5 * (values[:, j] - own) ** 2 / total
        return np.asarray(np.exp(np.minimum(log_ratio, _LARGEST)) * np.sqrt(spread / total))


def _order(binary: NDArray[np.bool_]) -> list[int]:
    """Binary mediators first: the gaussian ones may depend on them, linearly."""
    return [*np.flatnonzero(binary).tolist(), *np.flatnonzero(~binary).tolist()]


def _with(values: FloatArray, j: int, value: float) -> FloatArray:
    changed = values.copy()
    changed[:, j] = value
    return changed


def _log_odds(probability: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(probability, _LEAST, 1 - _LEAST)))


def _draws(
    innovations: FloatArray, binary: NDArray[np.bool_], rng: np.random.Generator
) -> FloatArray:
    """K rows of noise, shape (K, J).

    Whole rows of innovations are taken, which keeps what dependence is left, and scaled to mean
    zero and variance one, so that averages of linear and quadratic functions are exact. Uniform
    numbers are evenly spaced, in random order.
    """
    rows = rng.choice(len(innovations), DRAWS, replace=len(innovations) < DRAWS)
    noise = innovations[rows]
    spread = noise.std(axis=0)
    noise = np.asarray((noise - noise.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    for j in np.flatnonzero(binary):
        noise[:, j] = (rng.permutation(DRAWS) + 0.5) / DRAWS
    return noise


def _logistic(y: FloatArray, offset: FloatArray, x: FloatArray, weights: FloatArray) -> FloatArray:
    """Coefficients (k,) of a logistic regression with an offset and no intercept.

    A standard normal prior on each keeps them finite where the classes are separated.
    """
    coefficients = np.zeros(x.shape[1])
    for _ in range(_STEPS if x.shape[1] else 0):
        p = expit(offset + x @ coefficients)
        gradient = x.T @ (weights * (y - p)) - coefficients
        curvature = (x * (weights * p * (1 - p))[:, None]).T @ x + np.eye(x.shape[1])
        step = np.linalg.solve(curvature, gradient)
        coefficients = coefficients + step
        if np.max(np.abs(step)) < 1e-10:
            break
    return coefficients
