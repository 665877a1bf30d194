"""Whether effects differ between units, and whether the fit knows between which."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cstonet.analyses.arms.effects import ArmsEffects
from cstonet.errors import NotAvailableError
from cstonet.estimators import CrossFit, Effects, Nuisances, effects_over_repetitions

if TYPE_CHECKING:
    from cstonet.reporting.heterogeneity import Heterogeneity

# Points of the TOC curve.
SHARES = tuple(step / 20 for step in range(1, 21))


class HeterogeneousEffects(ArmsEffects):
    """Questions about how effects differ between units."""

    def heterogeneity(
        self, *, contrast: tuple[Any, Any] | None = None, alpha: float = 0.05
    ) -> Heterogeneity:
        """Test whether effects differ between units as the fit predicts.

        Predictions are those of `cate()`, of networks that have not seen the unit; effects are
        stood for by doubly robust scores. A calibration regresses these on predictions
        (Chernozhukov, Demirer, Duflo and Fernández-Val 2018), and the TOC curve shows the average
        effect among the units ranked first (Yadlowsky and others 2021).

        Parameters
        ----------
        contrast : (b, a), optional
            Two levels of the treatment. By default the second against the first.
        alpha : float
            One minus the confidence level.

        Returns
        -------
        Heterogeneity
            `pvalue`, `calibration`, `autoc`, `toc`; print it.

        Raises
        ------
        NotAvailableError
            If the fit is not cross-fitted: predictions of units that trained the networks agree
            with their outcomes whether or not effects differ.
        """
        from cstonet.estimators.calibration import estimate_calibration
        from cstonet.estimators.heterogeneity_test import (
            autoc_statistics,
            calibration_statistics,
            combined_test,
        )
        from cstonet.estimators.ranking import estimate_toc
        from cstonet.reporting.heterogeneity import Heterogeneity

        self._check_out_of_fold("heterogeneity()")
        pair = (1, 0) if contrast is None else self._contrast_codes(contrast)
        clip = self.effects.clip
        calibration = self._by_repetition(lambda one: estimate_calibration(one, pair, clip=clip))
        ranking = self._by_repetition(lambda one: estimate_toc(one, pair, clip=clip, shares=SHARES))
        alone = [one.mean for one in self._single_fits()]
        return Heterogeneity.of(
            " - ".join(str(self.arms.levels[code]) for code in pair),
            (calibration, ranking),
            (
                combined_test([calibration_statistics(one, pair, clip) for one in alone]),
                combined_test([autoc_statistics(one, pair, clip) for one in alone]),
            ),
            SHARES,
            alpha,
        )

    def _check_out_of_fold(self, wish: str) -> None:
        """Raise NotAvailableError if units were predicted by networks that they trained."""
        if len(np.unique(self.nuisances.fold)) < 2:
            raise NotAvailableError(
                f"{wish} needs predictions of units that trained none of the networks, and this "
                "fit is not cross-fitted. Fit again with folds=5."
            )

    def _single_fits(self) -> tuple[CrossFit, ...]:
        """What each repetition of the cross-fitting gives, if there is only one, that."""
        return self._cross_fits.repetitions or (self._cross_fits.average,)

    def _by_repetition(self, estimate: Callable[[Nuisances], Effects]) -> Effects:
        """Means over the repetitions, for estimates that compare units within their folds.

        Averaged nuisances, as in `_effects_by`, would compare units across folds: those of another
        repetition are not the same.
        """
        singles = [one.effects(estimate) for one in self._single_fits()]
        between = [one.between for one in singles if one.between is not None]
        mean = dataclasses.replace(
            singles[0],
            estimates=np.mean([one.estimates for one in singles], axis=0),
            influence=np.mean([one.influence for one in singles], axis=0),
            between=np.mean(between, axis=0) if between else None,
        )
        return effects_over_repetitions(mean, singles)
