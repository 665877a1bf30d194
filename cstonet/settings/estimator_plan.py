"""The estimator's part of a plan: what is adjusted for how, which bounds and variances."""

from __future__ import annotations

from typing import Literal

from cstonet.errors import OptionError
from cstonet.estimators.nuisances import Clip
from cstonet.settings.options import FitOptions, SearchOptions, VarianceChoice, VarianceKind

# Least propensity in shares of its arm: a weight of more than fifty times the arm's mean weight is
# cut. And that of a dose's densities or of mediators' arms, in plain numbers.
SHARE_CLIP, DENSITY_CLIP = 0.02, 0.01
# How firmly slopes are held at zero: as if drawn with √10 standard errors of a common slope, about
# the size from which on a search finds a covariate.
SLOPE_RIDGE = 0.1


def backbone_of(options: FitOptions, obstacle: str | None) -> bool:
    """Whether there are linear parts; raises OptionError where there can be none.

    Parameters
    ----------
    options
        What was asked for.
    obstacle
        What the analysis has that rules them out; None: nothing.
    """
    if options.search is None:
        obstacle = "a preset that searches for no covariates"
    if options.backbone is True and obstacle is not None:
        raise OptionError(f"backbone=True is not available with {obstacle}. Leave the option out.")
    return obstacle is None and options.backbone is not False


def clip_of(options: FitOptions, shares: tuple[float, ...] | None) -> Clip:
    """Least propensities: a weight is large in relation to those of its arm."""
    clip = options.clip
    if isinstance(clip, tuple):
        if shares is None:
            raise OptionError(
                f"clip={clip!r}: bounds for each level are available for the effects of levels "
                "without mediators only. Give one number."
            )
        if len(clip) != len(shares) or sum(clip) >= 1:
            raise OptionError(
                f"clip={clip!r}: give one number, or one for each of the {len(shares)} levels, "
                "which must sum to less than one."
            )
    if not isinstance(clip, str):
        return clip
    return DENSITY_CLIP if shares is None else tuple(SHARE_CLIP * share for share in shares)


def adjustment(search: SearchOptions, whole: str | None) -> Literal["union", "own", "linear"]:
    """How the final networks and the estimator adjust for the covariates found.

    Parameters
    ----------
    search
        What was asked for.
    whole
        What the fit has that needs the whole p(A|x), if anything: imputations do, and so do the
        density ratios of mediators and the scores of doses.
    """
    if search.adjust == "linear" and whole is not None:
        raise OptionError(
            f"SearchOptions.adjust='linear' is not available with {whole}. Leave the option out, "
            "or use adjust='union'."
        )
    if search.adjust == "auto":
        return "linear" if whole is None else "union"
    return search.adjust


def influence_only(variance: VarianceChoice, what: str) -> VarianceKind:
    """The variance of effects that have no other than that of their influence function.

    Parameters
    ----------
    variance
        As asked for.
    what
        What the fit has, for the message.
    """
    if variance == "paper":
        raise OptionError(
            f"variance='paper' is that of potential-outcome means, and with {what} the effects are "
            "no differences of such means. Leave the option out, or use variance='influence'."
        )
    return "influence"
