"""The model: a design that can be fitted. Thin: design, plan, training, estimation, results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from cstonet.analyses.arms.results import CausalResults
from cstonet.analyses.doses.estimation import estimate_doses
from cstonet.analyses.doses.results import DoseResults
from cstonet.analyses.mediation.estimation import estimate as estimate_repetition
from cstonet.analyses.mediation.estimation import (
    mediation_nuisances,
    mediation_selection,
    mediator_table,
)
from cstonet.analyses.mediation.models import averaged
from cstonet.analyses.mediation.networks import mediation_plan, train_mediation
from cstonet.analyses.mediation.results import MediationResults
from cstonet.crossfit.progress import progress_reporter
from cstonet.crossfit.splits import check_folds
from cstonet.crossfit.training import fold_numbers, thread_count, train_networks
from cstonet.data.design import Design, Family, Missing, TreatmentKind
from cstonet.errors import OptionError
from cstonet.estimators import (
    CrossFit,
    Effects,
    Imputations,
    Nuisances,
    effects_over_repetitions,
    estimate_effects,
    estimate_mediation,
)
from cstonet.imputation.held_out import impute
from cstonet.network.trained import OUTCOME, TREATMENT, FittedNetworks, Prediction, mean_prediction
from cstonet.search.selection import selection_table
from cstonet.settings.options import FitOptions, check_seed
from cstonet.settings.plan import Plan, make_plan
from cstonet.settings.presets import preset as preset_options

# Spread over seeds, in standard errors, above which the summary mentions it.
SPREAD_WORTH_NOTING = 0.1


class CausalStoNet:
    """Causal effects by a sparse stochastic neural network (Causal-StoNet).

    Parameters
    ----------
    y : array_like, (n,)
        Outcome.
    treat : array_like, (n,)
        Treatment with two or more levels, or a dose.
    X : array_like or DataFrame, (n, p)
        Covariates.
    names : sequence of str, optional
        Names of the covariates; by default the frame's columns, or x1, x2, ….
    family : {"gaussian", "binomial"}, optional
        Distribution of the outcome; inferred by default.
    treatment : {"binary", "multilevel", "continuous"}, optional
        Kind of treatment; inferred by default.
    reference : level of the treatment, optional
        What the other levels are compared with; by default the first.
    missing : {"raise", "drop", "mar", "mnar"}
        What to do with missing values: refuse them, leave out the rows, or impute covariates that
        are missing at random given everything observed ("mar") or not at random ("mnar").
    weights : array_like, (n,), optional
        Sampling weights of the rows.
    mediators : array_like (n,) or (n, J), or DataFrame, optional
        What lies between a binary treatment and the outcome, numbers or two levels each. The fit
        then estimates total, natural direct and natural indirect effects.

    See Also
    --------
    CausalStoNet.from_formula : the same from a formula and a data frame.

    Examples
    --------
    >>> import cstonet as cs
    >>> simulation = cs.datasets.simulation2(n=500, p=10, seed=1)
    >>> model = cs.CausalStoNet.from_formula("y ~ treat | .", simulation.data)
    >>> results = model.fit(seed=1)  # doctest: +SKIP
    """

    def __init__(
        self,
        y: ArrayLike,
        treat: ArrayLike,
        X: ArrayLike | pd.DataFrame,
        *,
        names: Sequence[str] | None = None,
        family: Family | None = None,
        treatment: TreatmentKind | None = None,
        reference: Any = None,
        missing: Missing = "raise",
        weights: ArrayLike | None = None,
        mediators: ArrayLike | pd.DataFrame | pd.Series | None = None,
    ) -> None:
        self.design = Design.from_arrays(
            y,
            treat,
            X,
            names=names,
            family=family,
            treatment=treatment,
            reference=reference,
            missing=missing,
            weights=weights,
            mediators=mediators,
        )

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: pd.DataFrame,
        *,
        family: Family | None = None,
        treatment: TreatmentKind | None = None,
        reference: Any = None,
        missing: Missing = "raise",
        weights: ArrayLike | str | None = None,
    ) -> CausalStoNet:
        """A model from ``outcome ~ treatment | covariates [| mediators]`` and a data frame.

        Parameters
        ----------
        formula
            ``.`` stands for every column not yet named; patsy terms such as ``C(g)``,
            ``np.log(x)`` or ``bs(x, 4)`` may be used in the covariates. Mediators, if any, make
            the fit a mediation analysis.
        data
            One row per unit.
        family, treatment, reference, missing, weights
            As for the class; ``weights`` may also name a column.
        """
        model = cls.__new__(cls)
        model.design = Design.from_formula(
            formula,
            data,
            family=family,
            treatment=treatment,
            reference=reference,
            missing=missing,
            weights=weights,
        )
        return model

    def plan(
        self,
        preset: str = "calibrated",
        *,
        options: FitOptions | None = None,
        seed: int = 0,
        **changes: Any,
    ) -> Plan:
        """What :meth:`fit` would do with the same arguments, in numbers."""
        base = preset_options(preset) if options is None else options
        if not isinstance(base, FitOptions):
            raise OptionError(f"options must be a FitOptions; got {base!r}.")
        # None leaves the preset's numbers alone; for an option such as search it is a value.
        given = {
            name: value
            for name, value in changes.items()
            if value is not None or name not in ("starts", "folds")
        }
        label = preset if options is None else "custom"
        make = make_plan if self.design.mediators is None else mediation_plan
        return make(self.design, base.replace(**given), preset=label, seed=check_seed(seed))

    def fit(
        self,
        preset: str = "calibrated",
        *,
        starts: int | None = None,
        folds: int | None = None,
        seed: int = 0,
        n_jobs: int = -1,
        progress: object = None,
        options: FitOptions | None = None,
        **changes: Any,
    ) -> CausalResults:
        """Train the networks and estimate the effects.

        Parameters
        ----------
        preset
            ``"calibrated"`` (default) or ``"paper"``; see :func:`cstonet.settings.presets.preset`.
        starts
            Random starts per fold.
        folds
            Folds of the cross-fitting; 1 trains and estimates on the same rows.
        seed
            Governs everything random. The same seed gives the same bits for any ``n_jobs``.
        n_jobs
            Threads; -1 is every core.
        progress
            ``True`` for a progress bar, or a function of (steps done, steps in all).
        options
            Complete options instead of a preset.
        **changes
            Single options of :class:`cstonet.settings.options.FitOptions` to change, such as
            ``hidden=(8, 6, 5)`` or ``clip=0.02``.

        Returns
        -------
        CausalResults
            :class:`~cstonet.analyses.mediation.results.MediationResults` if there are mediators.
        """
        began = time.perf_counter()
        plan = self.plan(preset, options=options, seed=seed, starts=starts, folds=folds, **changes)
        threads = thread_count(n_jobs)
        design = self.design
        check_folds(design.treatment, design.treatment_levels, plan.folds, design.weights)
        if design.mediators is not None:
            return self._fit_mediation(plan, threads, progress, began)
        with progress_reporter(progress) as report:
            networks, data = train_networks(design, plan, threads=threads, progress=report)
        if design.dose is not None:
            selection = selection_table(design.covariates, networks)
            doses = estimate_doses(design, design.dose, plan, networks, data.covariates, selection)
            return DoseResults(
                design=design,
                plan=plan,
                estimates=doses,
                selection=selection,
                networks=networks,
                notes=training_notes(networks) + spread_note(doses.effects, doses.repetitions),
                runtime=time.perf_counter() - began,
            )

        def nuisances_at(prediction: Prediction, repetition: int | None = None) -> Nuisances:
            columns = networks.linear_covariates(repetition)
            linear = data.covariates.gather(np.arange(len(design.y)), columns)
            return Nuisances(
                y=design.y,
                treatment=design.treatment,
                mu=prediction.mu,
                propensity=prediction.propensity,
                weights=design.weights,
                fold=fold_numbers(networks.splits, plan.folds, len(design.y), repetition or 0),
                linear=linear.astype(np.float64) if len(columns) else None,
            )

        def estimate(nuisances: Nuisances) -> Effects:
            return estimate_effects(
                nuisances,
                levels=design.treatment_levels,
                clip=plan.clip,
                variance=plan.variance,
                kind="binary" if design.treatment_kind == "binary" else "multilevel",
            )

        predictions = networks.predict_out_of_fold(data.covariates)
        imputed: Imputations | None = None
        alone: Sequence[Imputations | None] = [None] * len(predictions)
        if networks.gaps is not None:
            imputed, alone = impute(
                networks, networks.imputation, data, networks.gaps, plan.imputations
            )
        average = CrossFit(nuisances_at(mean_prediction(predictions)), imputed)
        repetitions = [
            CrossFit(nuisances_at(prediction, number), own)
            for number, (prediction, own) in enumerate(zip(predictions, alone, strict=True))
        ]
        singles = [repetition.effects(estimate) for repetition in repetitions]
        effects = effects_over_repetitions(average.effects(estimate), singles)
        return CausalResults(
            design=design,
            plan=plan,
            effects=effects,
            nuisances=average.mean,
            repetitions=repetitions,
            selection=selection_table(
                design.covariates,
                networks,
                design.treatment_levels if design.treatment_kind == "multilevel" else (),
            ),
            networks=networks,
            notes=training_notes(networks) + spread_note(effects, singles),
            runtime=time.perf_counter() - began,
            imputations=imputed,
        )

    def _fit_mediation(
        self, plan: Plan, threads: int, progress: object, began: float
    ) -> MediationResults:
        """The same steps with mediators between treatment and outcome."""
        design = self.design
        with progress_reporter(progress) as report:
            networks, repetitions = train_mediation(design, plan, threads=threads, progress=report)
        fold = fold_numbers(networks.outcome.splits, plan.folds, len(design.y))
        nuisances = mediation_nuisances(design, averaged(repetitions), fold)
        singles = [estimate_repetition(design, one, fold, plan.clip) for one in repetitions]
        estimated = estimate_mediation(nuisances, clip=plan.clip).over_repetitions(singles)
        return MediationResults(
            design=design,
            plan=plan,
            estimated=estimated,
            mediation=nuisances,
            mediators=mediator_table(design, networks, repetitions, fold, plan.clip),
            selection=mediation_selection(design, networks),
            networks=networks,
            notes=training_notes(networks.outcome)
            + training_notes(networks.mediator, (("mediator", OUTCOME),))
            + spread_note(estimated.effects, [single.effects for single in singles]),
            runtime=time.perf_counter() - began,
        )


def training_notes(
    networks: FittedNetworks,
    models: tuple[tuple[str, int], ...] = (("outcome", OUTCOME), ("treatment", TREATMENT)),
) -> tuple[str, ...]:
    """What a reader of the summary should know about the training."""
    notes = []
    if networks.failures:
        notes.append(
            f"{len(networks.failures)} of {len(networks.failures) + len(networks.networks)} starts "
            f"diverged and were left out (first: {networks.failures[0]})."
        )
    for model, block in models:
        empty = sum(not any(net.selects(block).any() for net in fold) for fold in networks.chosen)
        if empty:
            notes.append(
                f"In {empty} of {len(networks.chosen)} folds no covariate was found for the "
                f"{model} model."
            )
    return tuple(notes)


def spread_note(effects: Effects, repetitions: Sequence[Effects]) -> tuple[str, ...]:
    """Say how far another seed would move the contrasts, if that is worth knowing.

    Each repetition of the cross-fitting deals the rows, searches and starts anew, as another seed
    would; the estimate averages them.
    """
    if len(repetitions) < 2:
        return ()
    k = effects.n_contrasts
    singles = np.array([single.estimates for single in repetitions])[:, :k]
    moved = singles.var(axis=0, ddof=1) / len(singles)
    if effects.between is not None:  # (1 + 1/M) B; the mean of other imputations moves by B/M
        moved += np.diag(effects.between)[:k] / (effects.imputations + 1)
    # Not the effects' own standard errors: the spread is in them.
    variance = np.mean([single.standard_errors[:k] ** 2 for single in repetitions], axis=0)
    spreads = np.sqrt(moved / variance)
    spread, name = spreads.max(), effects.names[int(np.argmax(spreads))]
    if not spread > SPREAD_WORTH_NOTING:
        return ()
    return (
        f"Another seed would move the {name} by about {spread:.2f} standard errors, "
        f"judging by its {len(singles)} repetitions; more repeats= reduce this.",
    )


def fit(
    formula: str,
    data: pd.DataFrame,
    *,
    preset: str = "calibrated",
    family: Family | None = None,
    treatment: TreatmentKind | None = None,
    reference: Any = None,
    missing: Missing = "raise",
    weights: ArrayLike | str | None = None,
    seed: int = 0,
    n_jobs: int = -1,
    progress: object = None,
    **options: Any,
) -> CausalResults:
    """Fit a Causal-StoNet by formula: ``CausalStoNet.from_formula(...).fit(...)`` in one call.

    Parameters
    ----------
    formula
        ``"outcome ~ treatment | covariates"``, or with mediators
        ``"outcome ~ treatment | covariates | mediators"``.
    data
        One row per unit.
    preset, seed, n_jobs, progress, **options
        See :meth:`CausalStoNet.fit`.
    family, treatment, reference, missing, weights
        See :meth:`CausalStoNet.from_formula`.
    """
    model = CausalStoNet.from_formula(
        formula,
        data,
        family=family,
        treatment=treatment,
        reference=reference,
        missing=missing,
        weights=weights,
    )
    return model.fit(preset, seed=seed, n_jobs=n_jobs, progress=progress, **options)
