"""Intervals of conditional effects, of training and of new units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from cstonet.analyses.arms.effects import ArmsEffects
from cstonet.analyses.arms.prediction import outcomes_by_fold
from cstonet.analyses.results import Data
from cstonet.errors import NotAvailableError, OptionError
from cstonet.estimators.cate_bands import CateSpread, jackknife_variances, largest_of_rows
from cstonet.estimators.nuisances import FloatArray
from cstonet.estimators.pseudo_outcomes import effect_scores
from cstonet.estimators.support import steepest
from cstonet.settings.checks import check_truth, is_real
from cstonet.shown import shown

# Units for each term that is asked about bias.
_ROWS_PER_TERM = 10


class CateIntervals(ArmsEffects):
    """Conditional effects with their intervals, see :mod:`cstonet.estimators.cate_bands`."""

    def _cate_intervals(
        self, data: Data | None, contrast: tuple[int, int], level: float, simultaneous: bool
    ) -> pd.DataFrame:
        if not is_real(level) or not 0 < level < 1:
            raise OptionError(
                f"intervals must lie between 0 and 1, such as 0.95, not {shown(level)}"
            )
        check_truth(simultaneous, "simultaneous")
        if self.plan.folds < 2:
            raise NotAvailableError(
                "cate(intervals=...) compares the folds of the cross-fitting, and this fit has "
                "none: fit again with folds=5."
            )
        self._check_in_memory("cate(intervals=...)")
        data = None if data is None else self.design.new_units(data)
        mu, propensity, index = self._nuisances_of(data)
        b, a = contrast
        estimate = mu[:, b] - mu[:, a]
        by_fold = self._effects_by_fold(self._complete_rows(data), contrast)
        spread = self._cate_spread(contrast)
        variances = spread.variances(jackknife_variances(by_fold), out_of_fold=data is None)
        critical = float(ndtri((1 + level) / 2))
        if simultaneous:
            seed = self.plan.seed
            critical = largest_of_rows(by_fold, variances, spread.freedom, 1 - level, seed)
        probabilities = self._cross_fits.overlap.probabilities if data is None else propensity
        half = critical * np.sqrt(variances) + self._beyond(probabilities, contrast)
        columns = {"estimate": estimate, "lower": estimate - half, "upper": estimate + half}
        return pd.DataFrame(columns, index=index)

    def _cate_spread(self, contrast: tuple[int, int]) -> CateSpread:
        """What the units of the fit tell of the errors of predicted effects."""
        known: dict[tuple[int, int], CateSpread] = vars(self).setdefault("_cate_spreads", {})
        if contrast not in known:
            nuisances, (b, a) = self.nuisances, contrast
            scores = effect_scores(nuisances, contrast, self.effects.clip)
            known[contrast] = CateSpread.of(
                self._effects_by_fold(self._complete_covariates(), contrast),
                scores - (nuisances.mu[:, b] - nuisances.mu[:, a]),
                self._found_terms(),
                nuisances.unit_weights,
            )
        return known[contrast]

    def _found_terms(self) -> FloatArray:
        """A constant, and covariates that a model found if there are rows enough, (n, k)."""
        nuisances = self.nuisances
        constant = np.ones((nuisances.n, 1))
        found = nuisances.found
        if nuisances.linear is None or len(found) > nuisances.n / _ROWS_PER_TERM:
            return constant
        return np.column_stack([constant, nuisances.linear[slice(0, nuisances.n)][:, found]])

    def _effects_by_fold(self, X: Any, contrast: tuple[int, int]) -> FloatArray:
        """Effects that each fold predicts at rows (m, p), shape (R, K, m)."""
        b, a = contrast
        outcomes = outcomes_by_fold(self.networks, X)
        return np.asarray(outcomes[..., b] - outcomes[..., a])

    def _complete_rows(self, data: Data | None) -> NDArray[np.floating]:
        """Covariates of new units, or of the training rows, shape (m, p)."""
        if data is None:
            return self._complete_covariates()
        if self.design.gaps is None:
            return self.design.spec.transform(data)
        X, missing = self.design.gaps.transform(self.design.spec, data)
        if missing is not None and missing.any():
            raise NotAvailableError(
                f"cate(intervals=...): {int(missing.any(axis=1).sum())} of the new units have "
                "missing covariates, and intervals do not know what these could be. Leave them "
                "out; cate(data) averages over what they could be."
            )
        return X

    def _beyond(self, probabilities: FloatArray, contrast: tuple[int, int]) -> FloatArray | float:
        """What extrapolation could hide of the effects of units without counterparts, (m,)."""
        overlap = self._cross_fits.overlap
        far = overlap.distance(contrast, probabilities)
        if not far.any():
            return 0.0
        hidden: FloatArray = steepest(overlap, self.nuisances, contrast) * far
        return np.where(far > 0, hidden, 0.0)
