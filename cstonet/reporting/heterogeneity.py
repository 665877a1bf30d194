"""Whether effects differ between units, and whether the fit knows where: numbers and their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr

from cstonet.estimators import Effects
from cstonet.estimators.heterogeneity_test import OneSidedTest
from cstonet.estimators.nuisances import FloatArray
from cstonet.reporting.inference import Effect, check_alpha, critical_values, half_widths
from cstonet.reporting.numbers import pvalue, statistic, with_errors

_PRINTED = (0.1, 0.2, 0.3, 0.5, 0.75)  # shares of the curve that the text shows
_WIDTHS = (12, 10, 10, 10, 8, 8)


@dataclass(frozen=True, slots=True, eq=False)
class Heterogeneity:
    """Evidence that effects differ between units as the fit predicts, from units held out.

    Attributes
    ----------
    contrast : str
        Which effect: the two levels, "b - a".
    calibration : DataFrame
        Coefficients of effects on their out-of-fold predictions, in rows "mean" (one if predictions
        are right on average) and "differential" (one if they differ as effects do, zero if they say
        nothing): estimate, se, lower, upper, statistic and one-sided pvalue against zero.
    autoc : Effect
        Area under the TOC curve, with a one-sided p-value.
    toc : DataFrame
        How much larger the average effect is among the units ranked first: share, estimate, se,
        lower, upper, the limits of each point by itself.
    alpha : float
        One minus the confidence level.

    Notes
    -----
    P-values of "differential" and of the AUTOC come from a test that knows that folds teach each
    other, and that counts units by their overlap (:mod:`cstonet.estimators.heterogeneity_test`);
    they may be larger than estimate and standard error suggest. Where predictions do not vary they
    are one.
    """

    contrast: str
    calibration: pd.DataFrame
    autoc: Effect
    toc: pd.DataFrame
    alpha: float

    @classmethod
    def of(
        cls,
        contrast: str,
        estimates: tuple[Effects, Effects],
        tests: tuple[OneSidedTest, OneSidedTest],
        shares: Sequence[float],
        alpha: float,
    ) -> Heterogeneity:
        """Put together calibration and curve, with the tests of "differential" and AUTOC."""
        check_alpha(alpha)
        calibration, ranking = estimates
        coefficients = _table(calibration, alpha)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = float(calibration.estimates[0] / calibration.standard_errors[0])
        coefficients["statistic"] = [z, tests[0].statistic]
        few = calibration.freedom
        tail = float(ndtr(-z) if few is None else stdtr(few[0], -z))
        mean = tail if np.isfinite(z) else 1.0
        coefficients["pvalue"] = [mean, tests[0].pvalue]
        curve = _table(ranking, alpha)
        estimate, se, lower, upper = map(float, curve.iloc[0])
        autoc = Effect("AUTOC", estimate, se, lower, upper, tests[1].pvalue, alpha)
        toc = curve.iloc[1:].reset_index(drop=True)
        toc.insert(0, "share", list(shares))
        return cls(contrast, coefficients, autoc, toc, alpha)

    @property
    def pvalue(self) -> float:
        """One-sided p-value of the hypothesis that predictions say nothing about effects.

        That of the AUTOC: ranks do not let a few extreme predictions decide.
        """
        return self.autoc.pvalue

    @property
    def constant(self) -> bool:
        """Whether predictions do not vary in any fold, so that there is nothing to test."""
        return bool(np.isnan(self.calibration["estimate"].to_numpy()[1]))

    def __str__(self) -> str:
        level = f"{100 * (1 - self.alpha):g}%"
        head = ["estimate", "std err", f"{level} low", "high", "z", "P>z"]
        lines = [
            f"Heterogeneity of the effect {self.contrast}, from predictions out of fold",
            "",
            _line("", head),
            "Calibration: effects on their predictions",
        ]
        table = self.calibration
        for name, cells in zip(table.index, _cells(table.iloc[:, :4].to_numpy()), strict=True):
            tests = [statistic(table.loc[name, "statistic"]), pvalue(table.loc[name, "pvalue"])]
            lines.append(_line(f"  {name}", [*cells, *tests]))
        autoc = self.autoc
        shown = self.toc[[any(np.isclose(share, _PRINTED)) for share in self.toc["share"]]]
        area = np.array([autoc.estimate, autoc.se, autoc.lower, autoc.upper])
        rows = _cells(np.vstack([area, shown.iloc[:, 1:].to_numpy()]))
        lines.append("Ranking: effect among the first, less that of everyone")
        lines.append(_line("  AUTOC", [*rows[0], "", pvalue(autoc.pvalue)]))
        for share, cells in zip(shown["share"], rows[1:], strict=True):
            lines.append(_line(f"  first {100 * share:g} %", cells))
        note = "z and P>z allow for what folds learn from each other; the intervals do not."
        return "\n".join([*lines, "", note, self._verdict()])

    def _verdict(self) -> str:
        """What it comes to, in a sentence."""
        if self.constant:
            return "Predicted effects do not vary, so there is nothing to test."
        if self.pvalue < self.alpha:
            return "Units with larger predicted effects have larger effects."
        return "No evidence that effects differ between units as predicted."


def _table(effects: Effects, alpha: float) -> pd.DataFrame:
    """Estimates, errors and limits, a row per effect."""
    half = half_widths(effects, critical_values(effects, alpha))
    return pd.DataFrame(
        {
            "estimate": effects.estimates,
            "se": effects.standard_errors,
            "lower": effects.estimates - half,
            "upper": effects.estimates + half,
        },
        index=list(effects.names),
    )


def _cells(values: FloatArray) -> list[list[str]]:
    return with_errors(values, values[:, 1], _WIDTHS[:4])


def _line(name: str, cells: Sequence[str]) -> str:
    numbers = (cell.rjust(width - 1) for cell, width in zip(cells, _WIDTHS, strict=False))
    return f"{name:<19} {' '.join(numbers)}".rstrip()
