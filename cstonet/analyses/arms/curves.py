"""Effects along a covariate, with intervals."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from cstonet.analyses.arms.effects import ArmsEffects
from cstonet.data.columns import is_number
from cstonet.errors import (
    ColumnTypeError,
    InfiniteValuesError,
    NotAvailableError,
    OptionError,
)
from cstonet.estimators import Effects, Nuisances
from cstonet.estimators.effect_curve import knots_of, spline_basis
from cstonet.estimators.nuisances import FloatArray
from cstonet.estimators.projections import coefficient_weights, estimate_projection
from cstonet.estimators.support import hidden_bias_of_sums
from cstonet.reporting.inference import check_alpha, critical_values, half_widths
from cstonet.reporting.simultaneous import largest_quantile

# Points of a curve, between the values below and above which so many units lie.
_POINTS, _TRIM = 40, 0.01

_FARTHEST = 1e60


class EffectCurves(ArmsEffects):
    """Effects along a covariate, see :mod:`cstonet.estimators.effect_curve`."""

    def effect_along(
        self,
        by: str,
        *,
        at: ArrayLike | None = None,
        contrast: tuple[Any, Any] | None = None,
        alpha: float = 0.05,
    ) -> pd.DataFrame:
        """The average effect among units with a given value of a covariate, along its values.

        A projection of the effect (see `projection`) on a spline with four coefficients.
        ``plot.cate(by=)`` draws it.

        Parameters
        ----------
        by : str
            A numeric column of the data, in the formula or not.
        at : array-like (k,), optional
            Values; by default forty, without the outer hundredths of the units.
        contrast : (b, a), optional
            Two levels of a multilevel treatment.
        alpha : float
            One minus the level of the intervals.

        Returns
        -------
        DataFrame
            One row per value: `at`, `estimate`, `se`, pointwise limits `lower` and `upper`, and
            `lower_simultaneous`, `upper_simultaneous`, between which the whole curve lies with the
            level's probability.

        Raises
        ------
        ColumnTypeError, MissingValuesError, InfiniteValuesError
            If the column does not hold numbers, some are missing, or infinite.
        NotAvailableError
            If it is the outcome or the treatment, or the same for all units.
        """
        check_alpha(alpha)
        self._check_in_memory("effect_along()")
        values, weights = self._numbers_of(by), self.nuisances.unit_weights
        pair = self._one_contrast(contrast, "effect_along()")
        low, high = np.quantile(values, [_TRIM, 1 - _TRIM])
        points = np.linspace(low, high, _POINTS) if at is None else _points(at)
        knots, clip = knots_of(values, weights), self.effects.clip
        terms, ways = spline_basis(values, knots), spline_basis(points, knots)
        names = tuple(map(str, points))

        def estimate(nuisances: Nuisances) -> Effects:
            return estimate_projection(nuisances, terms, pair, clip=clip, names=names, at=ways)

        effects = self._effects_by(estimate)
        bias = hidden_bias_of_sums(
            self._cross_fits.overlap,
            self.nuisances,
            pair,
            coefficient_weights(self.nuisances, terms) @ ways.T,
        )
        if bias.any():
            effects = dataclasses.replace(effects, bias=bias)
        pointwise = half_widths(effects, critical_values(effects, alpha))
        joint = largest_quantile(effects.covariance, effects.freedom, alpha, self.plan.seed)
        uniform = half_widths(effects, np.full(len(points), joint))
        return pd.DataFrame(
            {
                "at": points,
                "estimate": effects.estimates,
                "se": effects.standard_errors,
                "lower": effects.estimates - pointwise,
                "upper": effects.estimates + pointwise,
                "lower_simultaneous": effects.estimates - uniform,
                "upper_simultaneous": effects.estimates + uniform,
            }
        )

    def _numbers_of(self, by: str) -> FloatArray:
        """A numeric column of the data, shape (n,)."""
        column = self._variables().values(by, "by")
        if not is_number(column.dtype):
            raise ColumnTypeError(
                f"by: column {by!r} does not hold numbers, along which an effect could change; "
                f"gate({by!r}) gives the effect in its groups"
            )
        values = column.to_numpy(dtype=np.float64)
        if not np.isfinite(values).all():
            raise InfiniteValuesError(
                f"by: column {by!r} holds infinite values. Correct these rows."
            )
        if np.ptp(values[self.nuisances.unit_weights > 0]) == 0:
            raise NotAvailableError(
                f"by: column {by!r} is {values[0]:g} for all units, so that there is no curve "
                "along it; effect() is the effect there"
            )
        return values


def _points(at: ArrayLike) -> FloatArray:
    try:
        points = np.atleast_1d(np.asarray(at, dtype=np.float64))
    except Exception:  # the code of the values' own classes
        points = np.empty(0)
    # Beyond the limit, no spline can be computed.
    if points.ndim != 1 or len(points) == 0 or not (np.abs(points) < _FARTHEST).all():
        raise OptionError("at must be a number, or a one-dimensional sequence of finite numbers")
    return points
