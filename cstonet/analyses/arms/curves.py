"""Effects along a covariate, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from cstonet.analyses.arms.effects import ArmsEffects
from cstonet.errors import ColumnTypeError, MissingValuesError, OptionError
from cstonet.estimators import Effects, Nuisances
from cstonet.estimators.effect_curve import effect_curve
from cstonet.estimators.nuisances import FloatArray
from cstonet.reporting.inference import (
    check_alpha,
    critical_values,
    half_widths,
    largest_quantile,
)

# Points of a curve, between the values below and above which so many units lie.
_POINTS, _TRIM = 50, 0.01


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

        A regression of doubly robust scores on a spline with four coefficients. ``plot.cate(by=)``
        draws it.

        Parameters
        ----------
        by : str
            A numeric column of the data, in the formula or not.
        at : array-like (k,), optional
            Values; by default fifty, without the outer hundredths of the units.
        contrast : (b, a), optional
            Two levels of the treatment; by default the second against the first.
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
        ColumnTypeError
            If the column does not hold numbers.
        MissingValuesError
            If some are missing.
        """
        check_alpha(alpha)
        values = self._numbers_of(by)
        pair = (1, 0) if contrast is None else self._contrast_codes(contrast)
        low, high = np.quantile(values, [_TRIM, 1 - _TRIM])
        points = np.linspace(low, high, _POINTS) if at is None else _points(at)

        def estimate(nuisances: Nuisances) -> Effects:
            return effect_curve(nuisances, values, points, pair, clip=self.effects.clip)

        effects = self._effects_by(estimate)
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
        column = self.design.variables([by])[by]
        if not pd.api.types.is_numeric_dtype(column):
            raise ColumnTypeError(
                f"by: column {by!r} does not hold numbers, along which an effect could change; "
                "plot.effects(groups=res.gate(by)) shows the effect in its groups"
            )
        if column.isna().any():
            raise MissingValuesError(
                f"by: column {by!r} misses {int(column.isna().sum())} of {len(column)} values. Fit "
                "to the rows that have one, or choose another column."
            )
        return column.to_numpy(dtype=np.float64)


def _points(at: ArrayLike) -> FloatArray:
    try:
        points = np.atleast_1d(np.asarray(at, dtype=np.float64))
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.ndim != 1 or len(points) == 0 or not np.isfinite(points).all():
        raise OptionError("at must be a number, or a one-dimensional sequence of finite numbers")
    return points
