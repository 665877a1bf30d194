"""A treatment rule as text, and what it is worth as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cstonet.estimators import Effects
from cstonet.estimators.policy_tree import Leaf, Tree
from cstonet.reporting.inference import check_alpha, critical_values, half_widths
from cstonet.reporting.numbers import plain, with_errors

_INDENT = "    "
_WIDTHS = (12, 12, 12, 12)


@dataclass(frozen=True, slots=True)
class RuleCovariate:
    """How a rule speaks of a covariate.

    Attributes
    ----------
    name : str
        Its name; of an indicator, that of the column it was made of.
    upper : str or None
        What the covariate is above its cut, if it has only two values: "1", or a category.
    """

    name: str
    upper: str | None = None


def rule_text(tree: Tree, covariates: Sequence[RuleCovariate], levels: Sequence[object]) -> str:
    """A rule in lines: conditions, and below them what to assign."""
    return "\n".join(_lines(tree, covariates, levels))


def _lines(tree: Tree, covariates: Sequence[RuleCovariate], levels: Sequence[object]) -> list[str]:
    if isinstance(tree, Leaf):
        return [f"assign {levels[tree.action]}"]
    covariate = covariates[tree.covariate]
    condition, first, second = f"{covariate.name} < {plain(tree.cut)}", tree.below, tree.above
    if covariate.upper is not None:
        condition, first, second = f"{covariate.name} = {covariate.upper}", second, first
    lines = []
    for head, branch in ((f"if {condition}:", first), ("otherwise:", second)):
        below = _lines(branch, covariates, levels)
        if isinstance(branch, Leaf):
            lines.append(f"{head} {below[0]}")
        else:
            lines += [head, *(_INDENT + line for line in below)]
    return lines


@dataclass(frozen=True, slots=True, eq=False)
class PolicyValue:
    """What a rule is worth, out of fold.

    Attributes
    ----------
    value, value_se : float
        Mean outcome under the rule, costs taken off (added, where small outcomes are wanted), and
        its standard error.
    gains : DataFrame
        By how much the rule is better than the same level for everyone, a row per level: estimate,
        se, lower, upper.
    alpha : float
        One minus the confidence level.
    """

    value: float
    value_se: float
    gains: pd.DataFrame
    alpha: float

    @classmethod
    def of(cls, effects: Effects, levels: Sequence[object], alpha: float) -> PolicyValue:
        """Read off what `cstonet.estimators.policy_value.estimate_policy` gives."""
        check_alpha(alpha)
        half = half_widths(effects, critical_values(effects, alpha))[:-1]
        gain, errors = effects.estimates[:-1], effects.standard_errors
        columns = {"estimate": gain, "se": errors[:-1], "lower": gain - half, "upper": gain + half}
        gains = pd.DataFrame(columns, index=pd.Index(list(levels), name="everyone"))
        return cls(float(effects.estimates[-1]), float(errors[-1]), gains, alpha)

    def __str__(self) -> str:
        level = f"{100 * (1 - self.alpha):g}%"
        head = ["estimate", "std err", f"{level} low", "high"]
        names = ["value of the rule", *(f"gain over all {name}" for name in self.gains.index)]
        values = np.vstack([[self.value, self.value_se, *[np.nan] * 2], self.gains.to_numpy()])
        cells = with_errors(values, values[:, 1], _WIDTHS)
        cells[0][2:] = ["", ""]
        width = max(24, *(len(name) for name in names))
        lines = []
        for name, row in zip(["", *names], [head, *cells], strict=True):
            numbers = (cell.rjust(room) for cell, room in zip(row, _WIDTHS, strict=True))
            lines.append(f"{name:<{width}} {' '.join(numbers)}".rstrip())
        return "\n".join(lines)
