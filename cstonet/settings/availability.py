"""Options that not every analysis, or not every other option, goes together with."""

from __future__ import annotations

from cstonet.errors import OptionError
from cstonet.estimators.targets import Target
from cstonet.settings.options import FitOptions


def kept(options: FitOptions) -> tuple[str, ...]:
    """The covariates to keep, once the data have said which these are."""
    keep = options.keep
    if keep is None or isinstance(keep, str):
        return ()
    prunes = any(stage.prune for stage in options.training.stages)
    if options.search is None and options.screen is None and prunes:
        raise OptionError(
            "keep= needs the structure search, or screening (screen=): these options have neither "
            "and give all covariates to a network that is pruned, which no covariate is sure to "
            "survive. Use preset='calibrated', or leave keep= out."
        )
    return tuple(keep)


def check_estimand(estimand: Target, what: str) -> None:
    """Refuse parts of the population where the effects are no differences of means.

    Parameters
    ----------
    estimand
        As asked for.
    what
        What the fit has, for the message.
    """
    if estimand != "ATE":
        raise OptionError(
            f"estimand={estimand!r} is the effect of levels of a treatment in a part of the "
            f"population, and is not available with {what}. Leave the option out; for the "
            f"{estimand}, fit arms to compare, without mediators."
        )
