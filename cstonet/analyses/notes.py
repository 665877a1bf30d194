"""What a fit has to say about its own making, for the warnings and notes of the summary."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from cstonet.crossfit.fitted import FittedNetworks
from cstonet.data.caller import caller_stacklevel
from cstonet.data.columns import listing
from cstonet.data.design import AnyDesign
from cstonet.errors import FewUnitsWarning
from cstonet.estimators import Effects
from cstonet.estimators.clusters import cluster_sums
from cstonet.network.trained import OUTCOME, TREATMENT
from cstonet.settings.plan import Plan

# Spread over seeds, in standard errors, above which the summary mentions it.
SPREAD_WORTH_NOTING = 0.1
# Units, or clusters, that carry the variance of an effect, below which the reader is warned. Normal
# influence values of n units make it n / 3: that of fifteen in the smaller arm.
_FEW_UNITS = 5.0
# Share of the variance from which such a unit is named, and how many are.
_LARGE_SHARE, _NAMED = 0.1, 4


def training_warnings(
    networks: FittedNetworks,
    models: tuple[tuple[str, int], ...] = (("outcome", OUTCOME), ("treatment", TREATMENT)),
) -> tuple[str, ...]:
    """Networks that diverged, and models for which no covariate was found."""
    warnings, folds = [], networks.folds
    if networks.failures:
        starts = len(networks.failures) + networks.n_starts
        warnings.append(
            f"{len(networks.failures)} of {starts} networks diverged and were left out (first: "
            f"{networks.failures[0]})."
        )
    if networks.rescues:
        k = len(networks.rescues)
        warnings.append(
            f"{k} network{'s' * (k > 1)} diverged with the planned steps and converged with "
            f"smaller ones (first: {networks.rescues[0]})."
        )
    for model, block in models:
        empty = sum(
            not any(fold.adjustment.selects(net, block).any() for net in fold.networks)
            for fold in folds
        )
        if empty:
            warnings.append(
                f"In {empty} of {len(folds)} folds no covariate was found for the {model} model."
            )
    return tuple(warnings)


def constant_note(networks: FittedNetworks) -> tuple[str, ...]:
    """Name the covariates that hardly differ between the rows: no model can use them."""
    names = [networks.covariates[j] for j in networks.x_scaling.constant]
    if not names:
        return ()
    are = (
        "is constant, up to rounding, and explains"
        if len(names) == 1
        else ("are constant, up to rounding, and explain")
    )
    return (f"{listing(names, form=str)} {are} nothing.",)


def few_units_warning(effects: Effects, design: AnyDesign) -> tuple[str, ...]:
    """Say if a handful of units decide how sure the contrasts are; also as a FewUnitsWarning.

    Few events, an arm of a few, an outlying outcome or a weight above all others come to this: the
    standard error is as uncertain as the estimate, and no interval of a normal one holds.
    """
    carried = cluster_sums(effects.influence[:, : effects.n_contrasts], design.clusters) ** 2
    total = carried.sum(axis=0)
    if not total.all():  # an effect without any error
        return ()
    parts = carried / total
    units = 1 / (parts**2).sum(axis=0)
    worst = int(np.argmin(units))
    if units[worst] >= _FEW_UNITS:
        return ()
    shares = parts[:, worst]
    large = np.flatnonzero(shares > _LARGE_SHARE)
    kind, which = "clusters", ""
    if design.clusters is None:
        row = "row" if len(large) == 1 else "rows"
        kind, which = "units", f" ({row} {listing(design.index[large], _NAMED)})"
    text = (
        f"Few {kind} decide about the {effects.names[worst]}: {len(large)} of {len(shares)}{which} "
        f"make {shares[large].sum():.0%} of its variance, so that its standard error is uncertain "
        "and its interval rough. Look at their outcomes and weights; few events, a small arm or a "
        "long tail need more data, or an outcome on another scale."
    )
    warnings.warn(text, FewUnitsWarning, stacklevel=caller_stacklevel())
    return (text,)


def in_sample_warning(plan: Plan) -> tuple[str, ...]:
    """Say what a fit without cross-fitting risks."""
    if plan.folds > 1:
        return ()
    return (
        "No cross-fitting (folds=1): the models are evaluated on the rows they were fitted to, and "
        "overfitting can make the standard errors too small.",
    )


def spread_note(
    effects: Effects, singles: Sequence[Effects], leading: int | None = None
) -> tuple[str, ...]:
    """Say how far another seed would move the leading contrasts, by default all, if it is much.

    Each repetition of the cross-fitting deals the rows, searches and starts anew, as another seed
    would; the estimate averages them.
    """
    if len(singles) < 2:
        return ()
    k = effects.n_contrasts if leading is None else leading
    estimates = np.array([single.estimates for single in singles])[:, :k]
    moved = estimates.var(axis=0, ddof=1) / len(singles)
    if effects.between is not None:  # (1 + 1/M) B; the mean of other imputations moves by B/M
        moved += np.diag(effects.between)[:k] / (effects.imputations + 1)
    # Not the effects' own standard errors: the spread is in them.
    variance = np.mean([single.standard_errors[:k] ** 2 for single in singles], axis=0)
    spreads = np.sqrt(moved / variance)
    spread, name = spreads.max(), effects.names[int(np.argmax(spreads))]
    if not spread > SPREAD_WORTH_NOTING:
        return ()
    return (
        f"Another seed would move the {name} by about {spread:.2f} standard errors, "
        f"judging by its {len(singles)} repetitions; more repeats= reduce this.",
    )
