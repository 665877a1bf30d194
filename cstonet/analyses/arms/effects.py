"""Effects of a treatment with levels: in everyone, in parts, and what else is made of nuisances."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.analyses.arms.comparisons import ComparedArms
from cstonet.analyses.arms.estimation import ArmsNuisances
from cstonet.analyses.arms.prediction import Prediction, predict, predict_incomplete
from cstonet.analyses.arms.support import Support, describe
from cstonet.analyses.results import Data, FitRecord
from cstonet.blas import one_thread
from cstonet.crossfit.fitted import FittedNetworks
from cstonet.data.conditions import Mask, Variables, chosen
from cstonet.data.matrix import dense_part
from cstonet.errors import FormulaError, NotAvailableError, OptionError
from cstonet.estimators import (
    TARGETS,
    Effects,
    Imputations,
    Nuisances,
    Target,
    effects_over_repetitions,
    estimate_target,
)
from cstonet.estimators.combinations import combined
from cstonet.estimators.nuisances import Clip
from cstonet.estimators.support import MOST_LOST, Overlap, hidden_bias
from cstonet.imputation.gap_data import with_imputed_means
from cstonet.reporting.inference import Effect
from cstonet.settings.checks import is_choice
from cstonet.settings.estimator_plan import SHARE_CLIP
from cstonet.shown import shown

_LISTED = 6  # effects named in an error
FEWEST_UNITS = 5  # units of an arm for an effect among some


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Some units of a fit: mask (n,), nuisances, counterparts and least propensities of theirs."""

    mask: NDArray[np.bool_]
    nuisances: Nuisances
    overlap: Overlap
    clip: Clip


class ArmsEffects(ComparedArms):
    """Effects and predictions of a treatment with two or more levels.

    Questions of other kinds (groups, ratios, sensitivity, ...) have a child of this class each, in
    a file of its own; :class:`~cstonet.analyses.arms.results.ArmsResults` is all of them.

    Parameters
    ----------
    record : FitRecord
        What the fit leaves behind.
    effects : Effects
        "ATE" or "ATE[b-a]", and "POM[level]"; before them, such as "ATT" or "ATT[b-a]", what
        `estimand=` asked for.
    nuisances : ArmsNuisances
        (Out-of-fold) nuisances of the training rows: averaged, for further effects, and of each
        repetition of the cross-fitting, for their errors.

    """

    networks: FittedNetworks
    facts: ClassVar[tuple[str, ...]] = (*ComparedArms.facts, "lost_share")

    def __init__(self, record: FitRecord, effects: Effects, nuisances: ArmsNuisances) -> None:
        super().__init__(record, effects)
        self._cross_fits = nuisances

    @cached_property
    def nuisances(self) -> Nuisances:
        """Nuisances of the training rows, averaged over repetitions and imputations."""
        return self._cross_fits.average.mean

    @property
    def imputations(self) -> Imputations | None:
        """Nuisances of rows with missing covariates at each imputation."""
        return self._cross_fits.average.imputations

    def ingredients(self) -> dict[str, Any]:
        """What it was made of, by the names that its class has for them."""
        return {**super().ingredients(), "nuisances": self._cross_fits}

    @property
    def leading(self) -> tuple[str, ...]:
        """Names of the effects that the fit was asked for (``estimand=``): the first ones."""
        return self.effects.names[: len(self.arms.levels) - 1]

    @property
    def estimable(self) -> bool:
        """Whether enough units have counterparts for the estimand that leads the table."""
        return self.lost_share <= MOST_LOST

    @cached_property
    def lost_share(self) -> float:
        """Share of the units asked about that have no counterpart in an arm they are compared with.

        For a multilevel treatment, that of the contrast where it is largest.
        """
        return self._cross_fits.overlap.largest_lost_share(self.plan.estimand)

    def support(self, *, alpha: float = 0.05) -> Support:
        """The largest part of the population in which the average effect is estimable.

        Described by at most three conditions on covariates, which are chosen by who has
        counterparts in all arms, without a look at the outcome; hence its interval is that of any
        subpopulation. Print it, or hand it to ``effect("ATE", where=...)``.

        Parameters
        ----------
        alpha : float
            One minus the confidence level of the effect's interval.

        Returns
        -------
        Support
            `condition` as text, `share`, `mask` of the units, `effect`. Of a multilevel treatment,
            the effect is that of its second level against the first.
        """
        self._check_in_memory("support()")
        lost = self._cross_fits.overlap.without
        conditions, mask = describe(
            self._complete_covariates(), self.design.covariates, lost, self.nuisances.treatment
        )
        name = self.effects.names[self._ates][0]
        return Support(
            conditions, mask, self.effect(name, where=mask, alpha=alpha), float(lost[mask].mean())
        )

    def effect(
        self, name: str | None = None, *, where: object = None, alpha: float = 0.05
    ) -> Effect:
        """One effect by name, in everyone or in a part of the population.

        Parameters
        ----------
        name : str, optional
            One of `params`, by default the one that leads them; or "ATT", "ATC", "ATO": the effect
            among those who received the treatment, among those who did not, and among those who
            could have received either (overlap weights p(1 - p)). A multilevel treatment has them,
            and the ATE, for any two of its levels: "ATT[b-a]" is the effect of b against a among
            those who received b, "ATC[b-a]" among those who received a, "ATO[b-a]" with weights
            p_a p_b / (p_a + p_b).
        where : optional
            Only among some units: conditions as text, ``"age < 30 and region == 'north'"``, on
            covariates (as in `selection`) and columns of the data, see
            :mod:`cstonet.data.conditions`; the answer of `support()`; or truth values, one for each
            unit. Weights, slopes, and what extrapolation could hide are then those of these units
            alone. Neither outcome nor treatment may choose units.
        alpha : float
            One minus the confidence level.

        Returns
        -------
        Effect
            Estimate, standard error, confidence limits and p-value. The variance of effects that
            are not in `params` is that of their influence function, in each repetition.
        """
        if name is None and len(self.leading) > 1:
            raise NotAvailableError(
                f"this fit has several leading effects; name one of {', '.join(self.leading)}"
            )
        if where is not None:
            return self._effect_among(name or self.leading[0], where, alpha)
        if name is None or is_choice(name, self.effects.names):
            return super().effect(name, alpha=alpha)
        target, contrast = self._target(name)
        if target == "ATE":
            # As t_test of the same difference of means gives it.
            weights = np.zeros(len(self.effects.names))
            weights[self.effects.n_contrasts + np.array(contrast)] = 1.0, -1.0
            return Effect.of(combined(self.effects, name, weights), name, alpha)

        def estimate(nuisances: Nuisances) -> Effects:
            clip = self.effects.clip
            return estimate_target(nuisances, target, contrast, clip=clip, name=name)

        bias = hidden_bias(self._cross_fits.overlap, self.nuisances, target, contrast)
        return self._with_bias(self._effects_by(estimate), bias, alpha)

    def _effect_among(self, name: str, where: object, alpha: float) -> Effect:
        """An effect among some units, with weights and slopes of their own."""
        target, contrast = self._target(name)
        part = self._part(name, contrast, where)
        bias = hidden_bias(part.overlap, part.nuisances, target, contrast)
        return self._with_bias(self._effects_among(name, target, contrast, part), bias, alpha)

    def _effects_among(
        self, name: str, target: Target, contrast: tuple[int, int], part: _Part
    ) -> Effects:
        """An effect among the units of a part, without what extrapolation could hide."""

        def estimate(nuisances: Nuisances) -> Effects:
            some = nuisances.among(part.mask)
            return estimate_target(some, target, contrast, clip=part.clip, name=name)

        return self._effects_by(estimate)

    def _part(self, name: str, contrast: tuple[int, int], where: object) -> _Part:
        """The units that an effect is asked of, if both arms have enough of them."""
        mask = self._chosen(where)
        counts = mask & (self.nuisances.unit_weights > 0)
        if not counts.any():
            raise OptionError("where= chooses only units of weight zero.")
        codes = self.nuisances.treatment[counts]
        sizes = np.bincount(codes, minlength=len(self.arms.levels))
        if min(sizes[list(contrast)]) < FEWEST_UNITS:
            raise NotAvailableError(
                f"only {min(sizes[list(contrast)])} of the {counts.sum()} units that where= "
                f"chooses are in one of the arms of {name}: at least {FEWEST_UNITS} are needed in "
                "each."
            )
        clip, some = self.effects.clip, self.nuisances.among(mask)
        if self.plan.clip_by_share:
            clip = tuple(float(SHARE_CLIP * share) for share in some.shares)
        return _Part(mask, some, self._cross_fits.overlap.among(mask), clip)

    def _chosen(self, where: object) -> Mask:
        """The units that a user chooses, shape (n,)."""
        self._check_in_memory("where=...")
        return chosen(where.mask if isinstance(where, Support) else where, self._variables())

    def _variables(self) -> Variables:
        """What can be said of the units after the fit: covariates, and columns of the data.

        Outcome and treatment are what an effect is about. Among units chosen by either, the arms
        are no longer comparable given the covariates.
        """
        design = self.design
        beside = () if design.lookup is None else design.lookup.names
        about = {design.outcome_name: "outcome", self.arms.name: "treatment"}
        if beside and design.outcome_name not in beside:
            from cstonet.data.patsy_terms import columns_in  # plain formulas never load patsy

            # An outcome that was given apart from the frame may have any name.
            with contextlib.suppress(FormulaError):
                about |= dict.fromkeys(columns_in(design.outcome_name, beside), "outcome")
        about |= dict.fromkeys(design.received.inputs, "treatment")
        advice = {
            "outcome": "effects among units with such outcomes cannot be estimated",
            "treatment": "the effects among those who received it or did not are 'ATT' and 'ATC'",
        }
        return Variables(
            names=tuple(dict.fromkeys((*design.covariates, *beside))),
            column=self._column,
            n=self.nobs,
            kept=None if design.lookup is None else design.lookup.kept,
            forbidden={
                name: f"{shown(name)} is the {what}, by which units cannot be told apart here: "
                f"{advice[what]}."
                for name, what in about.items()
            },
            index=design.index,
        )

    def _column(self, name: str) -> pd.Series:
        """A column of the data, or a covariate, gaps filled by the means of their imputations."""
        design = self.design
        known = () if design.lookup is None else design.lookup.names
        if name in known:
            values = design.variables([name])[name]
            if name not in design.covariates or not values.isna().any():
                return values
        j = design.covariates.index(name)
        complete = dense_part(self._complete_covariates(), slice(None), slice(j, j + 1))[:, 0]
        return pd.Series(complete, index=design.index, name=name)

    def _with_bias(self, effects: Effects, bias: float, alpha: float) -> Effect:
        """A single effect, whose interval includes what extrapolation could hide."""
        if bias > 0:
            effects = dataclasses.replace(effects, bias=np.array([bias]))
        return Effect.of(effects, effects.names[0], alpha)

    def _target(self, name: str) -> tuple[Target, tuple[int, int]]:
        """Population and levels of an effect, by its name."""
        levels = self.arms.levels
        if self._multilevel:
            pairs = itertools.permutations(range(len(levels)), 2)
            known = {
                f"{target}[{levels[b]}-{levels[a]}]": (target, (b, a))
                for target, (b, a) in itertools.product(TARGETS, pairs)
            }
        else:
            known = {target: (target, (1, 0)) for target in TARGETS}
        if not is_choice(name, known):
            more = [other for other in known if other not in self.effects.names]
            raise NotAvailableError(
                f"this fit has no effect {shown(name)}; available: "
                f"{', '.join(self.effects.names)}; also {', '.join(more[:_LISTED])}"
                f"{', ...' if len(more) > _LISTED else ''}"
            )
        return known[name]

    def _effects_by(self, estimate: Callable[[Nuisances], Effects]) -> Effects:
        """What an estimator makes of the fit: over its imputations, with errors of a repetition.

        Parameters
        ----------
        estimate : callable
            Gives the effects of nuisances, such as `cstonet.estimators.estimate_target`.
        """
        self.design.check_unchanged()
        with one_thread():
            return effects_over_repetitions(
                self._cross_fits.average.effects(estimate),
                [repetition.effects(estimate) for repetition in self._cross_fits.repetitions],
            )

    def test_equal_arms(self) -> Any:
        """Test jointly that all arms have the same potential-outcome mean, see `wald_test`.

        Returns
        -------
        statsmodels.stats.contrast.ContrastResults
        """
        return self.wald_test(np.eye(len(self.effects.names))[self._ates])

    @property
    def _ates(self) -> slice:
        """Where the contrasts of means are: the last ones before these."""
        first_mean = self.effects.n_contrasts
        return slice(first_mean - len(self.leading), first_mean)

    def _identity(self) -> str:
        names, means = self.effects.names, self.effects.n_contrasts
        return f"{names[self._ates][0]} is {names[means + 1]} - {names[means]} by definition"

    def _shown(self) -> tuple[str, ...]:
        return self.leading

    def _complete_covariates(self) -> NDArray[np.floating]:
        """Covariates of the training rows, the means of their imputations in the gaps."""
        networks = self.networks
        if self.imputations is None or networks.gaps is None:
            return self.design.X
        values = self.imputations.values
        return with_imputed_means(self.design.X, values, networks.gaps, networks.x_scaling)

    def _predict(self, data: Data) -> Prediction:
        """Nuisances of new units; a fit that imputed its own gaps draws those of new units too."""
        if self.design.gaps is None:
            return predict(self.networks, self.design.spec.transform(data))
        X, missing = self.design.gaps.transform(self.design.spec, data)
        if missing is None:
            return predict(self.networks, X)
        return predict_incomplete(self.networks, X, missing)
