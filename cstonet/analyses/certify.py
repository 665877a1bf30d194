"""Certify a fit: the same analysis of twins of the data, whose effects are known."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cstonet.analyses.identity import fit_digest
from cstonet.analyses.ledger import Draw, opened
from cstonet.analyses.recipe import Recipe
from cstonet.analyses.repeating import repeat
from cstonet.analyses.results import CausalResults
from cstonet.analyses.twins import World
from cstonet.crossfit.progress import progress_reporter
from cstonet.crossfit.workforce import Workforce, thread_count
from cstonet.errors import CStoNetError, NotAvailableError, NumericalError, OptionError
from cstonet.reporting.certificate import Certificate
from cstonet.reporting.inference import check_alpha, critical_values, half_widths
from cstonet.settings.checks import as_whole, is_real
from cstonet.settings.options import LARGEST_SEED, check_seed
from cstonet.shown import shown
from cstonet.streams import Stream

_FEWEST = 2  # draws that have a spread
# What is kept of a draw, a number for each effect.
_COLUMNS = ("truth", "estimate", "se", "half")

_BLIND = (
    "Twins are drawn from the fitted models and share their blind spots: confounding that was not "
    "measured, and what the models missed, which is mere noise in twins. A good certificate is "
    "necessary, not sufficient."
)
_WORLD = (
    "A twin keeps the units and their covariates. Treatments are drawn by the estimator's "
    "propensities, outcomes by the out-of-fold regressions and what these left. Its true effect is "
    "that of a population resampled from the units, so that coverage is that of fresh data."
)
_SHIFTED = (
    "Power is that of the same intervals around estimates shifted by the effect: exact where an "
    "effect adds the same to every outcome."
)
_NEARBY = (
    "Power is that of the same intervals around estimates shifted by the effect; the variance of "
    "these outcomes depends on their means, so it holds for effects near that of the twins."
)
_OF_CLUSTERS = (
    "Binary outcomes and counts of a cluster are drawn independently of each other: twins do not "
    "say how intervals do where they are not."
)
_OF_GAPS = (
    "Twins have the gaps of the data, whatever their treatments; their outcomes are drawn by "
    "models averaged over the imputations."
)


def certify(
    results: CausalResults,
    draws: int,
    *,
    name: str | None,
    effects: Sequence[float] | None,
    alpha: float,
    n_jobs: int,
    seed: int,
    path: str | os.PathLike[str] | None,
    progress: object,
) -> Certificate:
    """Fit twins of the data, and hold the estimates against what is known of them.

    See :meth:`cstonet.analyses.results.CausalResults.certify`.
    """
    draws, seed, threads = _check_draws(draws), check_seed(seed), thread_count(n_jobs)
    check_alpha(alpha)
    grid = _check_effects(effects)
    names = results.effects.names
    chosen = names[0] if name is None else name
    if chosen not in names:
        raise NotAvailableError(
            f"certify() has no effect {name!r} of this fit; available: {', '.join(names)}"
        )
    if results.recipe is None:
        raise NotAvailableError(
            "certify() does the same analysis again, and this fit does not know how it was made. "
            "Fit the data anew."
        )
    results._check_in_memory("certify()")
    world = results._twin_world()
    digest = fit_digest(results.design, results.plan, names, alpha, seed)
    refits = _Refits(world, results.recipe, seed, alpha)
    whole = partial(_is_draw, effects=len(names))
    with (
        opened("certify", digest, path, whole=whole) as ledger,
        progress_reporter(progress) as report,
    ):
        repeat(refits.draw, draws, ledger, Workforce(threads, report))
    done = {number: ledger.draws[number] for number in range(draws)}
    refused = [str(draw["error"]) for draw in done.values() if "error" in draw]
    if draws - len(refused) < _FEWEST:
        raise NumericalError(
            f"{len(refused)} of {draws} twins could not be analysed; the last: {refused[-1]}"
        )
    place = names.index(chosen)
    return Certificate.of(
        chosen,
        {number: _of_effect(draw, place) for number, draw in done.items() if "error" not in draw},
        estimate=float(results.effects.estimates[place]),
        effects=grid,
        alpha=alpha,
        refused=tuple(refused),
        notes=_notes(results),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Refits:
    """What is done for a draw.

    Attributes
    ----------
    world, recipe
        Where twins come from, and how they are analysed.
    seed, alpha
        That of the draws, and one minus the level of the intervals.
    """

    world: World
    recipe: Recipe
    seed: int
    alpha: float

    def draw(self, number: int, workforce: Workforce) -> Draw:
        """One twin, analysed: truth, estimate, error and half of the interval's length, by effect.

        Or the error by which the analysis refused it, as it would refuse such data of the user's.
        """
        rng = Stream.TWINS.generator(self.seed, number)
        twin = self.world.twin(rng)
        try:
            fitted = self.recipe.fit(twin.design, int(rng.integers(LARGEST_SEED)), workforce)
        except CStoNetError as error:
            return {"error": f"{type(error).__name__}: {error}"}
        found = fitted.effects
        return {
            "truth": twin.truths.tolist(),
            "estimate": found.estimates.tolist(),
            "se": found.standard_errors.tolist(),
            "half": half_widths(found, critical_values(found, self.alpha)).tolist(),
        }


def _of_effect(draw: Draw, place: int) -> tuple[float, float, float, float]:
    """Truth, estimate, error and half of the interval's length of one of the effects."""
    truth, estimate, se, half = (float(draw[column][place]) for column in _COLUMNS)
    return truth, estimate, se, half


def _is_draw(draw: Any, effects: int) -> bool:
    """Whether this is what `_Refits.draw` says of a twin: an error, or numbers for all effects."""
    if not isinstance(draw, dict):
        return False
    if "error" in draw:
        return isinstance(draw["error"], str)
    columns = [draw.get(column) for column in _COLUMNS]
    return all(
        isinstance(column, list)
        and len(column) == effects
        and all(isinstance(value, float | int) for value in column)
        for column in columns
    )


def _notes(results: CausalResults) -> tuple[str, ...]:
    """What twins are, and what they have not of the data."""
    design = results.design
    gaps = () if design.gaps is None else (_OF_GAPS,)
    if design.family == "gaussian":
        return _BLIND, _WORLD, *gaps, _SHIFTED
    clusters = () if design.clusters is None else (_OF_CLUSTERS,)
    return _BLIND, _WORLD, *gaps, *clusters, _NEARBY


def _check_draws(draws: object) -> int:
    wanted = as_whole(draws)
    if wanted is None or wanted < _FEWEST:
        raise OptionError(
            f"draws must be a whole number of at least {_FEWEST}; got {shown(draws)}."
        )
    return wanted


def _check_effects(effects: object) -> tuple[float, ...] | None:
    if effects is None:
        return None
    values = np.atleast_1d(np.asarray(effects, dtype=object)).tolist()
    if not values or not all(is_real(value) for value in values):
        raise OptionError(f"effects must be finite numbers, to find the power of; got {effects!r}.")
    return tuple(float(value) for value in values)
