"""What a fit with a continuous treatment returns: marginal effect, dose-response curve, summary."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from cstonet.analyses.doses import diagnostics
from cstonet.analyses.doses.estimation import DoseModels
from cstonet.analyses.doses.facts import DoseFacts
from cstonet.analyses.doses.methods import dose_methods
from cstonet.analyses.doses.prediction import predict_doses
from cstonet.analyses.doses.response import (
    CurveSource,
    DoseResponse,
    dose_response,
    read_doses,
)
from cstonet.analyses.doses.sensitivity import SensitivityOfDoses
from cstonet.analyses.placebo import PlaceboChecks
from cstonet.analyses.results import CausalResults, Data, FitRecord
from cstonet.crossfit.fitted import FittedNetworks
from cstonet.data.design import Design
from cstonet.data.frames import answers_in_kind
from cstonet.data.treatment import Dose
from cstonet.errors import (
    DoseRangeError,
    LengthMismatchError,
    NotAvailableError,
    NotOfThisFitError,
    OptionError,
)
from cstonet.estimators import Effects
from cstonet.estimators.dose_curve import TRIM
from cstonet.estimators.marginal_effect import NAME
from cstonet.estimators.nuisances import FloatArray
from cstonet.network.forward import DosePrediction
from cstonet.reporting.balance_note import LargestImbalance
from cstonet.reporting.inference import Effect
from cstonet.settings.checks import check_truth, is_choice
from cstonet.shown import shown

if TYPE_CHECKING:
    from cstonet.analyses.doses.plots import DosePlots
    from cstonet.analyses.twins import World
    from cstonet.reporting.summary import SummaryParts


class DoseResults(SensitivityOfDoses, PlaceboChecks):
    """A fitted Causal-StoNet of a continuous treatment.

    Parameters
    ----------
    record : FitRecord
        What the fit leaves behind.
    effects : Effects
        "AME", the average marginal effect.
    models : DoseModels
        (Out-of-fold) nuisances of the training rows.

    Attributes
    ----------
    dose_nuisances : DoseNuisances
        Nuisances averaged over the repetitions of the cross-fitting.
    dispersion : Dispersion
        How the variance of the dose given the covariates was found.
    """

    design: Design[Dose]
    networks: FittedNetworks
    facts: ClassVar[tuple[str, ...]] = (*CausalResults.facts, "dose_facts", "largest_imbalance")
    _elsewhere: ClassVar[Mapping[str, str]] = {
        "propensity": (
            "a continuous treatment has a density instead of propensities. See overlap(); in "
            "dose_nuisances, mean and variance are those of the dose given the covariates, and "
            "density() is the density of the dose received"
        ),
        "test_equal_arms": (
            'a continuous treatment has no arms; t_test("AME = 0") tests the average slope, and '
            "the uniform band of dose_response() shows whether a flat curve is possible"
        ),
        "heterogeneity": (
            "a continuous treatment has no two levels whose effects could differ between units; "
            "compare two groups of doses, as a treatment with levels"
        ),
        "policy": (
            "a rule assigns one of several levels, and a continuous treatment has none; compare "
            "groups of doses, as a treatment with levels"
        ),
        **dict.fromkeys(
            ("gate", "projection", "effect_along"),
            "this is for treatments with levels; of the dose {design.treatment.name!r}, cate() has "
            "the slope of each unit, and a fit to the rows of a group its mean slope",
        ),
        **dict.fromkeys(
            ("proportion_mediated", "mediators"),
            "a continuous treatment has no mediation analysis; compare two groups of doses",
        ),
        **dict.fromkeys(
            ("support", "estimable", "lost_share"),
            "the region where effects are estimable is that of a treatment with levels; overlap() "
            "says which doses units could have received",
        ),
    }

    def __init__(self, record: FitRecord, effects: Effects, models: DoseModels) -> None:
        super().__init__(record, effects)
        self.dose_nuisances = models.average
        self.dispersion = models.dispersion
        self._alone = models.repetitions
        self._models = models

    def ingredients(self) -> dict[str, Any]:
        """What it was made of, by the names that its class has for them."""
        return {**super().ingredients(), "models": self._models}

    @cached_property
    def dose_facts(self) -> DoseFacts:
        """The doses, and how they are distributed given the covariates."""
        return DoseFacts.of(self.dose_nuisances, self.effects.single_clip)

    @cached_property
    def largest_imbalance(self) -> LargestImbalance | None:
        """The largest correlation of a covariate with the dose after weighting.

        None if the covariates are not in memory.
        """
        if not self.in_memory:
            return None
        return LargestImbalance.of(self.balance())

    @property
    def plot(self) -> DosePlots:
        """Pictures of the fit, see :class:`cstonet.analyses.doses.plots.DosePlots`."""
        from cstonet.analyses.doses.plots import DosePlots

        return DosePlots(self)

    def summary_parts(self, alpha: float) -> SummaryParts:
        """Header rows, tables and notes of the summary."""
        from cstonet.analyses.doses.summary import dose_summary

        return dose_summary(self, alpha)

    def _twin_world(self) -> World:
        """Where twins of the data come from."""
        from cstonet.analyses.doses.twins import DoseWorld

        return DoseWorld.of(self)

    def methods(self) -> str:
        """How the effects were estimated, in full: text for a paper's methods section."""
        return dose_methods(self)

    def effect(
        self, name: str | None = None, *, where: object = None, alpha: float = 0.05
    ) -> Effect:
        """The average marginal effect: mean slope of the outcome in the dose.

        Parameters
        ----------
        name : str, optional
            "AME".
        where
            For treatments with levels only.
        alpha : float
            One minus the confidence level.
        """
        if where is not None:
            raise NotOfThisFitError(
                "effect(where=...) is for treatments with levels; of a dose, fit the rows of the "
                "group for its mean slope"
            )
        if name is not None and not is_choice(name, self.effects.names):
            raise NotAvailableError(
                f"this fit has no effect {shown(name)}: its treatment is continuous and has no "
                f"arms to compare. Available: {', '.join(self.effects.names)}; for the mean "
                "outcome at given doses use dose_response, for ratios of means a treatment of "
                "groups of doses"
            )
        return super().effect(name, alpha=alpha)

    def dose_response(
        self,
        grid: ArrayLike | None = None,
        *,
        alpha: float = 0.05,
        bandwidth: float | None = None,
        trim: float = TRIM,
    ) -> DoseResponse:
        """The mean outcome had every unit received dose a, as a function of a.

        A doubly robust local linear estimate (Kennedy et al. 2017), right if either the outcome
        model or the density of the dose is.

        Parameters
        ----------
        grid : array-like (k,), optional
            Doses; by default 50 from one end of the support to the other. Doses outside it are
            left out with a warning.
        alpha : float
            One minus the level of intervals and band.
        bandwidth : float, optional
            Standard deviation of the kernel, in units of the dose; by default that of smallest
            leave-one-out error.
        trim : float
            The support ends where this share of the units (by weight) lies beyond, at either end.

        Returns
        -------
        DoseResponse
            `.table` and `.plot()`.

        Raises
        ------
        DoseRangeError
            If no dose of the grid is within the support.
        OptionError
            If the grid does not hold finite numbers, or an option is out of range.

        Warns
        -----
        ThinSupportWarning
            If very few units decide about some of the doses.
        """
        source = CurveSource(
            nuisances=self.dose_nuisances,
            repetitions=self._alone,
            clip=self.effects.single_clip,
            seed=self.plan.seed,
            outcome_name=self.design.outcome_name,
            dose_name=self.design.treatment_name,
        )
        return dose_response(source, grid, alpha=alpha, bandwidth=bandwidth, trim=trim)

    @answers_in_kind
    def potential_outcomes(
        self, data: Data | None = None, *, dose: ArrayLike | None = None
    ) -> pd.DataFrame:
        """Expected outcome of each unit at given doses.

        Parameters
        ----------
        data : DataFrame, array or None
            New units. None: the training rows, predicted out of fold if the fit is cross-fitted.
        dose : number or array-like (k,)
            Doses, within the range of the data.

        Returns
        -------
        DataFrame
            One column per dose.
        """
        if dose is None:
            raise OptionError(
                "potential_outcomes: name the doses, e.g. dose=[1, 2]; predict gives the expected "
                "outcome at the dose received"
            )
        doses = self._in_range(read_doses(dose, "dose"))
        if data is None:
            mu, index = self.dose_nuisances.mu_at(doses), self.design.index
        else:
            data = self.design.new_units(data)
            index = self._index(data)
            prediction = self._at(data, np.broadcast_to(doses, (len(index), len(doses))))
            mu = prediction.mu
        return pd.DataFrame(
            mu, index=index, columns=pd.Index(doses, name=self.design.treatment_name)
        )

    @answers_in_kind
    def cate(
        self,
        data: Data | None = None,
        *,
        contrast: tuple[Any, Any] | None = None,
        dose: ArrayLike | None = None,
        intervals: float | None = None,
        simultaneous: bool = False,
    ) -> pd.Series[float]:
        """Marginal effect of each unit: the slope of its expected outcome in the dose.

        Parameters
        ----------
        data : DataFrame, array or None
            New units. None: the training rows, see `potential_outcomes`.
        contrast : (b, a), optional
            Two doses: the effect is then μ̂(b, x) - μ̂(a, x), not a slope.
        dose : number or array-like, one per unit, optional
            Dose at which the slope is taken; by default the one received, which new units must
            have in a column.
        intervals, simultaneous
            For treatments with levels only.
        """
        check_truth(simultaneous, "simultaneous")
        if intervals is not None or simultaneous:
            raise NotOfThisFitError(
                "cate(intervals=...) is for treatments with levels; the slopes of units in a dose "
                "have no limits, the curve of dose_response() has"
            )
        if contrast is not None:
            if dose is not None or not isinstance(contrast, tuple) or len(contrast) != 2:
                raise OptionError(
                    f"contrast must be a pair of doses (b, a), without dose=; got {shown(contrast)}"
                )
            pair = read_doses(list(contrast), "contrast")
            outcomes = self.potential_outcomes(data, dose=pair)
            difference = outcomes.iloc[:, 0] - outcomes.iloc[:, 1]
            return difference.rename("CATE")
        if data is None:
            if dose is None:
                slope = self.dose_nuisances.slope.copy()
            else:
                at = self._in_range(read_doses(dose, "dose"))
                if len(at) > 1:
                    raise OptionError(
                        "dose: the training rows take one dose for all, or none for their own"
                    )
                slope = self.dose_nuisances.mu_at(at, derivative=1)[:, 0]
            return pd.Series(slope, index=self.design.index, name="CATE")
        data = self.design.new_units(data)
        index = self._index(data)
        doses = self._received(data) if dose is None else read_doses(dose, "dose")
        if len(doses) not in (1, len(index)):
            raise LengthMismatchError(
                f"dose has {len(doses)} values but there are {len(index)} units. Pass one dose, or "
                "one per unit."
            )
        doses = np.broadcast_to(self._in_range(doses), (len(index),))
        prediction = self._at(data, doses[:, None])
        return pd.Series(prediction.slope[:, 0], index=index, name="CATE")

    @answers_in_kind
    def predict(self, data: pd.DataFrame | None = None) -> pd.Series[float]:
        """Expected outcome of each unit at the dose it received.

        Parameters
        ----------
        data : DataFrame or None
            New units with their dose, within the range of the data. None: the training rows, see
            `potential_outcomes`.
        """
        name = self.design.outcome_name
        if data is None:
            return pd.Series(self.dose_nuisances.mu, index=self.design.index, name=name, copy=True)
        data = self.design.new_units(data)
        index = self._index(data)
        prediction = self._at(data, self._in_range(self._received(data))[:, None])
        return pd.Series(prediction.mu[:, 0], index=index, name=name)

    @answers_in_kind
    def predictions(
        self, data: Data | None = None, *, intervals: float | None = None
    ) -> pd.DataFrame:
        """Expected outcome and slope of each unit at the dose it received, in one frame.

        Parameters
        ----------
        data : DataFrame or None
            New units with their dose. None: the training rows.
        intervals : None
            Slopes of single units have no limits.
        """
        if intervals is not None:
            raise NotAvailableError(
                "slopes of single units have no limits; dose_response() has a band for the curve"
            )
        data = self.design.new_units(data)
        return pd.concat([self.predict(data), self.cate(data)], axis=1)

    def overlap(self) -> pd.DataFrame:
        """Could others have had these doses? See `cstonet.analyses.doses.diagnostics.overlap`."""
        return diagnostics.overlap(self.dose_nuisances, clip=self.effects.single_clip)

    def balance(self) -> pd.DataFrame:
        """Correlation of covariates and dose, see `cstonet.analyses.doses.diagnostics.balance`."""
        self._check_in_memory("balance()")
        return diagnostics.balance(
            self.dose_nuisances,
            self.design.X,
            covariates=self.design.covariates,
            clip=self.effects.single_clip,
        )

    def _identity(self) -> str:
        return f"The one effect is {NAME}"

    def _at(self, data: Data, doses: FloatArray) -> DosePrediction:
        """Networks at new units and doses (m, k)."""
        X = self.design.spec.transform(data)
        units = self.design.treatment.units
        return predict_doses(self.networks, units, X, doses)

    def _received(self, data: Data) -> FloatArray:
        """Doses that new units received, shape (m,)."""
        received = self.design.received.read(
            data,
            "for given doses use potential_outcomes(data, dose=...) or cate(data, dose=...)",
        )
        if received.empty:
            return np.empty(0)
        return read_doses(received, f"data: column {self.design.treatment_name!r}")

    def _in_range(self, doses: FloatArray) -> FloatArray:
        """The doses, which must be within those of the data."""
        low, high = self.dose_facts.range
        outside = int(((doses < low) | (doses > high)).sum())
        if outside:
            raise DoseRangeError(
                f"dose: {doses.min():.6g} to {doses.max():.6g} is not within the doses of the "
                f"data, {low:.6g} to {high:.6g}, so the networks would extrapolate. Choose doses "
                f"from this range, or leave out the {outside} of {len(doses)} that are not."
            )
        return doses
