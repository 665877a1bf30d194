"""Effects by group: their table, and whether they are equal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.estimators import Effects
from cstonet.estimators.nuisances import IntArray
from cstonet.reporting.inference import EffectInference, check_alpha
from cstonet.reporting.joint_test import JointTest
from cstonet.reporting.numbers import count, with_errors
from cstonet.reporting.printed import Printed

if TYPE_CHECKING:
    from cstonet.reporting.tables import CausalSummary

# Group, units, estimate, error, and two intervals.
_WIDTHS = (19, 5, 8, 7, 8, 8, 8, 8)


class GroupEffects(Printed, EffectInference):
    """Average effects of groups of units, with joint inference under statsmodels' names.

    Parameters
    ----------
    effects : Effects
        One effect for each of G groups.
    sizes : (G, L) int
        Units of each group in each arm.
    labels : pandas.Index of length G
        The groups.
    levels : sequence of length L
        The arms.
    name : str
        Name of the effect.
    outcome_name : str
        Name of the outcome.
    alpha : float
        One minus the confidence level of the table.
    seed : int
        Seed of the draws behind simultaneous intervals.

    Attributes
    ----------
    table : DataFrame
        A row per group: estimate, se, lower, upper, lower_simultaneous, upper_simultaneous,
        pvalue, n, and the number of units in each arm, "n[arm]". Simultaneous limits hold for all
        groups together.
    test : JointTest
        Whether all groups have the same effect.
    """

    def __init__(
        self,
        effects: Effects,
        sizes: IntArray,
        *,
        labels: pd.Index,
        levels: Sequence[object],
        name: str,
        outcome_name: str,
        alpha: float = 0.05,
        seed: int = 0,
    ) -> None:
        check_alpha(alpha)
        super().__init__(effects, outcome_name, seed)
        self.name = name
        self.alpha = alpha
        self._sizes, self._labels, self._levels = sizes, labels, tuple(levels)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The effects with their inference, a row per group."""
        pointwise = self.conf_int(self.alpha).to_numpy()
        together = self.conf_int(self.alpha, simultaneous=True).to_numpy()
        columns: dict[str, NDArray[np.floating] | IntArray] = {
            "estimate": self.effects.estimates,
            "se": self.effects.standard_errors,
            "lower": pointwise[:, 0],
            "upper": pointwise[:, 1],
            "lower_simultaneous": together[:, 0],
            "upper_simultaneous": together[:, 1],
            "pvalue": self.pvalues.to_numpy(),
            "n": self._sizes.sum(axis=1),
        }
        columns |= {f"n[{level}]": self._sizes[:, a] for a, level in enumerate(self._levels)}
        return pd.DataFrame(columns, index=self._labels)

    @cached_property
    def test(self) -> JointTest:
        """Test of the hypothesis that all groups have the same effect."""
        groups = len(self.effects.names)
        differences = np.eye(groups)[1:] - np.eye(groups)[0]
        return JointTest.of(self.effects, differences, "equal effects")

    def summary(self) -> CausalSummary:
        """The table and the test, to print or export: as_text, as_html, as_latex, as_csv."""
        # statsmodels takes a second to import: only those who print pay for it.
        from cstonet.reporting.tables import CausalSummary, table_with_headers

        low, high = f"[{self.alpha / 2:g}", f"{1 - self.alpha / 2:g}]"
        by = "" if self._labels.name is None else str(self._labels.name)
        headers = [by, "n", self.name, "std err", low, high, "[all", "all]"]
        shown = ["estimate", "se", "lower", "upper", "lower_simultaneous", "upper_simultaneous"]
        values = self.table[shown].to_numpy(np.float64)
        numbers = with_errors(values, self.effects.standard_errors, _WIDTHS[2:])
        cells = [
            [str(label), count(int(n)), *row]
            for label, n, row in zip(self._labels, self.table["n"], numbers, strict=True)
        ]
        notes = [
            f"Limits under [all hold for all {len(cells)} groups together, with probability "
            f"{1 - self.alpha:g}."
        ]
        if self.effects.bias is not None:
            notes.append("Support is lost: limits include what extrapolation could hide.")
        table = table_with_headers(cells, headers, _WIDTHS, footer=_sentence(self.test))
        return CausalSummary([table], notes)

    def __repr__(self) -> str:
        groups = len(self.effects.names)
        return f"<{type(self).__name__}: {self.name} of {groups} groups; {self.test}>"


def _sentence(test: JointTest) -> str:
    text = str(test)
    return text[0].upper() + text[1:]
