"""The same fit again: on other data, or without some of its covariates."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from cstonet.analyses.recipe import Recipe
from cstonet.analyses.results import CausalResults
from cstonet.data.design import AnyDesign
from cstonet.data.kept import kept_covariates
from cstonet.data.omission import without_covariates
from cstonet.errors import NotAvailableError
from cstonet.settings.options import FitOptions


def recipe_of(results: CausalResults, wish: str) -> Recipe:
    """How the fit was asked for.

    Raises
    ------
    NotAvailableError
        If nobody knows; `wish` says what it would have been needed for.
    """
    if results.recipe is None:
        raise NotAvailableError(
            f"{wish} repeats the fit, and these results do not know how they were made, as after "
            "loading them from a file. Fit again and ask the new results."
        )
    return results.recipe


def without(recipe: Recipe, design: AnyDesign, places: Collection[int]) -> tuple[Recipe, AnyDesign]:
    """Recipe and design without some covariates, by number: options no longer name them."""
    smaller = without_covariates(design, places)
    options = recipe.options
    if options.keep is not None:
        kept = kept_covariates(design.spec, options.keep)
        options = options.replace(keep=[name for name in kept if name in smaller.covariates])
    return dataclasses.replace(recipe, options=_with_neighbours(options, smaller)), smaller


def _with_neighbours(options: FitOptions, design: AnyDesign) -> FitOptions:
    """The options with neighbours, for imputation, that the design has."""
    columns = design.spec.covariates_of_columns()
    if options.neighbours is not None:
        pairs = dict(options.neighbours)
        left = {
            name: [other for other in others if other in columns]
            for name, others in pairs.items()
            if name in columns
        }
        options = options.replace(neighbours={k: v for k, v in left.items() if v} or None)
    return options
