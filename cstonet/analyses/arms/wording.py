"""Estimands of treatments with levels in words: who is compared with whom, and in which units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cstonet.analyses.arms.cautions import NOT_ESTIMABLE

if TYPE_CHECKING:
    from cstonet.analyses.arms.comparisons import ComparedArms
    from cstonet.data.treatment import Arms
    from cstonet.estimators.nuisances import Clip

_EITHER = "units that could have received either (overlap weights)"


def estimand_words(results: ComparedArms) -> str:
    """What leads the table, and in which direction: "ATE, drug against placebo"."""
    arms, name = results.arms, leading_estimand(results)
    words = ", ".join(filter(None, (name, direction(arms), population(arms, name))))
    return words if getattr(results, "estimable", True) else f"{words}: {NOT_ESTIMABLE}"


def leading_estimand(results: ComparedArms) -> str:
    """Kind of the first effect, such as "ATT" of "ATT[b-a]"."""
    return str(results.effects.names[0]).partition("[")[0]


def direction(arms: Arms) -> str:
    """Which level is compared with which."""
    reference, *others = arms.levels
    # A number, or a truth value, says little without the name of what it is the value of.
    bare = any(isinstance(level, int | float) for level in arms.levels)
    if arms.kind == "multilevel":
        return f"each level{f' of {arms.name}' if bare else ''} against {reference}"
    return f"{f'{arms.name} = ' if bare else ''}{others[0]} against {reference}"


def population(arms: Arms, estimand: str) -> str:
    """Among whom an estimand asks for the effect; nothing if among all."""
    if estimand == "ATO":
        return f"among {_EITHER}"
    if estimand not in ("ATT", "ATC"):
        return ""
    reference, *others = arms.levels
    treated = others[0] if arms.kind == "binary" else "that level"
    return f"among those who received {treated if estimand == 'ATT' else reference}"


def clip_label(clip: Clip, levels: int) -> str:
    """Within what propensities were kept: those of the second of two levels, or of all."""
    bounds = clip if isinstance(clip, tuple) else (clip,) * levels
    if levels > 2 and len(set(bounds)) > 1:
        return "bounds by arm"
    low, high = bounds[-1], 1 - sum(bounds[:-1])
    return f"[{low:.2g}, {high:.3g}]"
