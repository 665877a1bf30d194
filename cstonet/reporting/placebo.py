"""Checks that a fit should pass, and what it did: a table with verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pandas as pd

from cstonet.reporting.inference import Effect
from cstonet.reporting.numbers import pvalue, with_errors
from cstonet.reporting.printed import Printed

if TYPE_CHECKING:
    from cstonet.reporting.tables import CausalSummary

CheckKind: TypeAlias = Literal["fitted", "permuted", "outcome", "dropped"]

_WIDTHS = (10, 9, 10, 10, 7, 10)
# Chance that as many intervals miss zero, below which it is not put down to chance.
_CHANCE = 0.05


@dataclass(frozen=True, slots=True)
class Checked:
    """One effect of one fit.

    Attributes
    ----------
    kind : {"fitted", "permuted", "outcome", "dropped"}
        As it is; with a permuted treatment; on an outcome that the treatment cannot move; without
        a confounder.
    label : str
        What was done.
    effect : Effect
        What came of it.
    """

    kind: CheckKind
    label: str
    effect: Effect

    def verdict(self, fitted: Effect) -> str:
        """What it says, beside the effect of the fit itself."""
        own = self.effect
        if self.kind == "fitted":
            return ""
        if self.kind == "dropped":
            return "stays" if fitted.lower <= own.estimate <= fitted.upper else "moves"
        return "zero" if own.lower <= 0 <= own.upper else "not zero"


@dataclass(frozen=True, slots=True, eq=False)
class Placebo(Printed):
    """Effects where there should be none, and without what confounds most.

    Attributes
    ----------
    checks : tuple of Checked
        The fit itself first, then every check, one for each effect.
    dropped, skipped : str
        The confounder that was left out, if any; what could not be done, if anything.
    """

    checks: tuple[Checked, ...]
    dropped: str = ""
    skipped: str = ""

    @property
    def table(self) -> pd.DataFrame:
        """One row per check: effect, estimate, se, lower, upper, pvalue, verdict.

        The verdict is "zero" or "not zero", by whether the interval holds zero; without a
        confounder, "stays" or "moves", by whether the estimate is in the interval of the fit.
        """
        names = ("estimate", "se", "lower", "upper", "pvalue")
        rows = [
            {
                "effect": check.effect.name,
                **{name: getattr(check.effect, name) for name in names},
                "verdict": check.verdict(self._fitted(check.effect.name)),
            }
            for check in self.checks
        ]
        labels = [check.label for check in self.checks]
        return pd.DataFrame(rows, index=pd.Index(labels, name="check"))

    @property
    def passed(self) -> bool:
        """Whether no placebo outcome moved, and permutations no more often than by chance."""
        moved = [check for check in self._of("outcome") if self._missed(check)]
        return not moved and self._chance() >= _CHANCE

    def summary(self) -> CausalSummary:
        """The table with what it means.

        Returns
        -------
        CausalSummary
            A `statsmodels.iolib.summary.Summary`: as_text, as_html, as_latex, as_csv.
        """
        from cstonet.reporting.tables import WIDTH, CausalSummary, table_with_headers

        table, alpha = self.table, self.checks[0].effect.alpha
        values = table[["estimate", "se", "lower", "upper"]].to_numpy(dtype=np.float64)
        cells = with_errors(values, values[:, 1], _WIDTHS[:4])
        several = table["effect"].nunique() > 1
        rows = [
            [
                f"{label} ({effect})" if several else str(label),
                *numbers,
                pvalue(float(p)),
                str(verdict),
            ]
            for label, effect, numbers, p, verdict in zip(
                table.index, table["effect"], cells, table["pvalue"], table["verdict"], strict=True
            )
        ]
        limits = [f"[{alpha / 2:g}", f"{1 - alpha / 2:g}]"]
        name = "" if several else self.checks[0].effect.name
        width = WIDTH - sum(_WIDTHS) - len(_WIDTHS)
        headers = [name, "coef", "std err", *limits, "P", "verdict"]
        shown = table_with_headers(rows, headers, (width, *_WIDTHS))
        shown.title = "Placebo Checks"
        return CausalSummary([shown], self._sentences())

    def _sentences(self) -> list[str]:
        """What came of every kind of check, in words."""
        sentences = []
        permuted = self._of("permuted")
        if permuted:
            missed = sum(map(self._missed, permuted))
            expected = self.checks[0].effect.alpha * len(permuted)
            blame = (
                "as chance would have it" if self._chance() >= _CHANCE else "too many for chance"
            )
            sentences.append(
                f"With a permuted treatment there is no effect: {missed} of {len(permuted)} "
                f"intervals miss zero, where {expected:g} would on average; {blame}."
            )
        for check in self._of("outcome"):
            name = check.label.removeprefix("outcome ")
            sentences.append(
                f"On {name!r}, which it cannot move, the treatment seems to have an effect."
                if self._missed(check)
                else f"On {name!r}, which it cannot move, the treatment shows no effect."
            )
        for check in self._of("dropped"):
            fitted = self._fitted(check.effect.name)
            by = abs(check.effect.estimate - fitted.estimate)
            steps = "" if fitted.se <= 0 else f", {by / fitted.se:.1f} standard errors"
            sentences.append(
                f"Without {self.dropped} the {fitted.name} changes by {by:.3g}{steps}: about what "
                "an omitted confounder like that would have done."
            )
        return [*sentences, *([self.skipped] if self.skipped else [])]

    def _of(self, kind: CheckKind) -> list[Checked]:
        return [check for check in self.checks if check.kind == kind]

    def _fitted(self, name: str) -> Effect:
        """The effect of the fit itself."""
        return next(check.effect for check in self._of("fitted") if check.effect.name == name)

    def _missed(self, check: Checked) -> bool:
        return not check.effect.lower <= 0 <= check.effect.upper

    def _chance(self) -> float:
        """Chance that as many intervals of permuted treatments miss zero, or more."""
        permuted = self._of("permuted")
        if not permuted:
            return 1.0
        from scipy.special import bdtrc  # not at the top: only placebos pay for loading it

        missed = sum(map(self._missed, permuted))
        return float(bdtrc(missed - 1, len(permuted), permuted[0].effect.alpha)) if missed else 1.0
