"""Placebo checks: the same fit where there is no effect, and without the strongest confounder.

A treatment that was dealt anew has no effect; neither has any treatment on what was there before
it. A fit that finds one there would have found one anywhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cstonet.analyses.recipe import Recipe
from cstonet.analyses.refits import recipe_of, without
from cstonet.analyses.results import CausalResults
from cstonet.crossfit.progress import progress_reporter
from cstonet.crossfit.workforce import Workforce, thread_count
from cstonet.data.columns import listing
from cstonet.data.design import AnyDesign
from cstonet.data.matrix import Rows
from cstonet.data.omission import named_covariates, terms_of
from cstonet.data.other_units import copies_of
from cstonet.data.treatment import Arms, Treatment
from cstonet.data.variables import Vector, counted, may_be_counts, outcome_values
from cstonet.errors import OptionError, OutcomeLeakError
from cstonet.reporting.inference import check_alpha
from cstonet.reporting.placebo import Checked, CheckKind, Placebo
from cstonet.settings.options import check_seed
from cstonet.streams import Stream

_MOST_DRAWS = 10_000


class PlaceboChecks(CausalResults):
    """Results that can be checked by fits where there is no effect."""

    def placebo(
        self,
        name: str | None = None,
        *,
        permute: bool = True,
        outcome: str | ArrayLike | None = None,
        drop: bool | str | Sequence[str] = True,
        draws: int = 5,
        alpha: float = 0.05,
        seed: int | None = None,
        n_jobs: int = -1,
        progress: object = None,
    ) -> Placebo:
        """Fit again where there is no effect, and without the strongest confounder.

        Parameters
        ----------
        name : str, optional
            The effect; by default those that lead.
        permute : bool
            Whether to deal the treatment anew: among all units; where units come in clusters, whole
            clusters if each has one treatment, else within clusters.
        outcome : str or array_like (n,), optional
            What the treatment cannot move, such as a measurement before it: a column of the data,
            in the formula or not, or values. Covariates made of that column are left out. It should
            not be what the treatment was given for: that is associated with it whatever the fit.
        drop : bool, str or sequence of str
            What to leave out: the covariate that is strongest in treatment and outcome model
            (True), covariates, terms or columns by name, or nothing (False). Indicators of a column
            go together.
        draws : int
            How often to permute.
        alpha : float
            One minus the confidence level.
        seed : int, optional
            Governs the permutations; by default that of the fit, which governs the training.
        n_jobs, progress
            See :meth:`cstonet.CausalStoNet.fit`. Fits run one after the other; Ctrl-C stops them.

        Returns
        -------
        Placebo
            `table`, with a verdict for each check; print it.

        Raises
        ------
        NotAvailableError
            If the results do not know how they were made, as after loading them from a file.
        UnknownColumnError, ConstantOutcomeError, MissingValuesError, LengthMismatchError
            If `outcome` or `drop` names what is not there, or the outcome cannot be one.
        OutcomeLeakError
            If a covariate that is not made of the outcome's column holds the outcome.
        """
        check_alpha(alpha)
        if not isinstance(permute, bool):
            raise OptionError(f"permute must be True or False, not {permute!r}; see draws=")
        recipe = recipe_of(self, "placebo()")
        self._check_in_memory("placebo()")
        seed = self.plan.seed if seed is None else check_seed(seed)
        trials = _Trials(recipe, self.design, self.selection)
        planned = [*trials.permuted(_draws(draws) if permute else 0, seed)]
        if outcome is not None:
            planned.append(trials.on_outcome(outcome))
        dropped, places = trials.confounder(drop)
        if places:
            planned.append(_Trial("dropped", f"without {dropped}", *trials.smaller(places)))
        if not planned:
            raise OptionError("placebo: there is nothing to check; permute, name outcome= or drop=")
        names = self._shown() if name is None else (name,)
        checks = [Checked("fitted", "as fitted", self.effect(own, alpha=alpha)) for own in names]
        threads = thread_count(n_jobs)
        with progress_reporter(progress) as report:
            for number, trial in enumerate(planned):
                workforce = Workforce(threads, report).part(number, len(planned))
                refit = trial.recipe.fit(trial.design, self.plan.seed, workforce)
                for own in names:
                    effect = refit.effect(own, alpha=alpha)
                    checks.append(Checked(trial.kind, trial.label, effect))
        skipped = "" if places or drop is False else _NONE_TO_DROP
        return Placebo(tuple(checks), dropped, skipped)


_NONE_TO_DROP = "No confounder was left out: none was selected, or it is the only covariate."


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """A fit to be done."""

    kind: CheckKind
    label: str
    recipe: Recipe
    design: AnyDesign


@dataclass(frozen=True, slots=True, eq=False)
class _Trials:
    """Fits like one fit, with something replaced.

    Attributes
    ----------
    recipe, design, selection
        Those of the fit.
    """

    recipe: Recipe
    design: AnyDesign
    selection: pd.DataFrame

    def permuted(self, draws: int, seed: int) -> Iterator[_Trial]:
        """Fits with treatments dealt anew."""
        design = self.design
        for draw in range(draws):
            rng = Stream.PLACEBO.generator(seed, draw)
            order = permutation(_values(design.treatment), design.clusters, design.weights, rng)
            treatment = _reordered(design.treatment, order)
            replaced = dataclasses.replace(design, treatment=treatment)
            yield _Trial("permuted", f"permuted {draw + 1}", self.recipe, replaced)

    def on_outcome(self, outcome: Any) -> _Trial:
        """A fit to another outcome."""
        recipe, design = self.recipe, self.design
        if isinstance(outcome, str):
            if outcome in (design.outcome_name, design.treatment_name):
                role = "treatment" if outcome == design.treatment_name else "outcome"
                raise OptionError(
                    f"outcome: {outcome!r} is the {role} of this fit. Name a column that the "
                    "treatment cannot move, such as one measured before it."
                )
            vector = Vector.from_column(outcome, design.variables([outcome]))
            made = {*design.covariates, *design.spec.covariates_with_columns()}
            if outcome in made:
                places = named_covariates(design.spec, [outcome], "outcome")
                recipe, design = self.smaller(places)
        else:
            vector = Vector.from_values(outcome, "placebo", design.index)
        if vector.gaps.counts:
            raise vector.gaps.error("A placebo outcome needs a value in every row of the fit.")
        y, family = outcome_values(vector, None, design.weights)
        _check_copies(design, y, vector.name)
        _check_new(self.design, y, vector.name)
        replaced = dataclasses.replace(
            design,
            y=y,
            family=family,
            family_inferred=True,
            may_be_counts=may_be_counts(y),
            outcome_name=vector.name,
        )
        return _Trial("outcome", f"outcome {vector.name}", recipe, replaced)

    def confounder(self, drop: bool | str | Sequence[str]) -> tuple[str, tuple[int, ...]]:
        """Name and covariates, by number, of what is to be left out; none if there is nothing."""
        if drop is False:
            return "", ()
        if drop is True:
            strongest = strongest_term(self.design, self.selection)
            places = terms_of(self.design.spec, self.design.covariates).get(strongest, ())
            return strongest, places if len(places) < len(self.design.covariates) else ()
        names = [drop] if isinstance(drop, str) else list(drop)
        if not names or not all(isinstance(name, str) for name in names):
            raise OptionError(f"drop must be True, False or names of covariates, not {drop!r}")
        return listing(names, form=str), named_covariates(self.design.spec, names, "drop")

    def smaller(self, places: Sequence[int]) -> tuple[Recipe, AnyDesign]:
        """Recipe and design without some covariates."""
        return without(self.recipe, self.design, places)


def strongest_term(design: AnyDesign, selection: pd.DataFrame) -> str:
    """The term that is strongest in both models: by the product of its strengths in them.

    If no term is in both, the strongest in one; empty if none is in any.
    """
    both = selection["treatment_strength"], selection["outcome_strength"]
    best, largest = "", (0.0, 0.0)
    for term, places in design.spec.covariates_of_terms().items():
        treated, own = (float(values.iloc[list(places)].sum()) for values in both)
        strength = treated * own, float(selection["strength"].iloc[list(places)].sum())
        if strength > largest:
            best, largest = term, strength
    return best


def permutation(
    treatment: NDArray[Any],
    clusters: NDArray[np.integer] | None,
    weights: NDArray[np.float64] | None,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Whose treatment each unit is dealt, shape (n,).

    Parameters
    ----------
    treatment : (n,)
        Treatments.
    clusters : (n,) int or None
        Codes of clusters. If each has one treatment, clusters are dealt those of others as a whole;
        else units those of others in their cluster.
    weights : (n,) float64 or None
        Units of weight zero keep their own.
    rng : Generator
        Deals.
    """
    n = len(treatment)
    order = np.arange(n)
    rows = order if weights is None else np.flatnonzero(weights > 0)
    if clusters is None:
        order[rows] = rng.permutation(rows)
        return order
    _, codes = np.unique(clusters[rows], return_inverse=True)
    sizes = np.bincount(codes)
    members = np.split(rows[np.argsort(codes, kind="stable")], np.cumsum(sizes)[:-1])
    if all((treatment[own] == treatment[own[0]]).all() for own in members):
        for own, other in zip(members, rng.permutation(len(members)), strict=True):
            order[own] = members[other][0]
        return order
    for own in members:
        order[own] = rng.permutation(own)
    return order


def _values(treatment: Treatment) -> NDArray[Any]:
    """Treatments of the units, shape (n,): codes, or doses."""
    return treatment.codes if isinstance(treatment, Arms) else treatment.values


def _reordered(treatment: Treatment, order: NDArray[np.int64]) -> Treatment:
    """The treatment with other units' values."""
    if isinstance(treatment, Arms):
        return dataclasses.replace(treatment, codes=treatment.codes[order])
    return dataclasses.replace(treatment, values=treatment.values[order])


def _check_copies(design: AnyDesign, y: NDArray[np.float64], name: str) -> None:
    """Refuse an outcome that a covariate holds, in these units or in others."""
    found = copies_of(counted(y, design.weights), Rows.counted(design.X, design.weights))
    if found.size:
        raise OutcomeLeakError(
            f"The covariate {design.covariates[found[0]]!r} is the placebo outcome {name!r}, maybe "
            "in other units, so that it would explain all of it. Fit without this covariate, and "
            "ask that fit."
        )


def _check_new(design: AnyDesign, y: NDArray[np.float64], name: str) -> None:
    """Refuse an outcome that is that of the fit, or its treatment, in these units or in others."""
    own = counted(y, design.weights)
    for role, values in (
        ("outcome", design.y),
        ("treatment", _values(design.treatment).astype(np.float64)),
    ):
        if copies_of(own, Rows(counted(values, design.weights)[:, np.newaxis])).size:
            raise OptionError(
                f"outcome: {name!r} holds the {role} of this fit, possibly in other units. Name a "
                "column that the treatment cannot move, such as one measured before it."
            )


def _draws(draws: Any) -> int:
    """Number of permutations, or OptionError."""
    whole = isinstance(draws, int | np.integer) and not isinstance(draws, bool)
    if not whole or not 1 <= draws <= _MOST_DRAWS:
        raise OptionError(f"draws must be a whole number from 1 to {_MOST_DRAWS}, not {draws!r}")
    return int(draws)
