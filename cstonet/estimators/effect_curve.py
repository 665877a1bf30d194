"""The effect along a covariate v: E[τ(X) | v], its best natural cubic spline.

A spline is linear in its coefficients, so that the curve is a projection of the effect on them
(:mod:`cstonet.estimators.projections`), and the effect at a value is one of their combinations.
Beyond its outer knots the spline is a line; it has as many coefficients as knots.
"""

from __future__ import annotations

import numpy as np

from cstonet.estimators.nuisances import FloatArray

# Shares of the units below the knots.
_KNOTS = (0.05, 0.35, 0.65, 0.95)


def knots_of(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Knots of a curve along values (n,), those of units that count: two to four, shape (K,).

    The values must not all be the same. Knots are among them: between values that are few, there
    would be more coefficients than values to tell them from.
    """
    counted = values[weights > 0]
    knots: FloatArray = np.unique(np.quantile(counted, _KNOTS, method="inverted_cdf"))
    # Where nearly all values are one, a line is all that can be told.
    ends: FloatArray = np.array([counted.min(), counted.max()], dtype=np.float64)
    return knots if len(knots) > 1 else ends


def spline_basis(values: FloatArray, knots: FloatArray) -> FloatArray:
    """Natural cubic splines that are one at their own of K knots, zero at the others; (n, K).

    The coefficients of a curve are so its values at the knots. The functions are combinations of
    1, v, and d_j - d_{K-1} for the first K - 2 knots t_j, with
    d_j(v) = ((v - t_j)³₊ - (v - t_K)³₊) / (t_K - t_j).
    """
    length = knots[-1] - knots[0]

    def powers(x: FloatArray) -> FloatArray:
        v, t = (x - knots[0]) / length, (knots - knots[0]) / length
        end = np.maximum(v - t[-1], 0.0) ** 3
        bent = [(np.maximum(v - start, 0.0) ** 3 - end) / (t[-1] - start) for start in t[:-1]]
        return np.column_stack([np.ones(len(v)), v, *(one - bent[-1] for one in bent[:-1])])

    return np.asarray(np.linalg.solve(powers(knots).T, powers(values).T).T, dtype=np.float64)


def smooth(
    values: FloatArray, response: FloatArray, weights: FloatArray, at: FloatArray
) -> FloatArray:
    """Mean of a response along values, by the same spline; shape (k,) at k points."""
    knots, root = knots_of(values, weights), np.sqrt(weights)
    basis = spline_basis(values, knots) * root[:, None]
    slopes = np.linalg.lstsq(basis, root * response, rcond=None)[0]
    curve: FloatArray = spline_basis(at, knots) @ slopes
    return curve
