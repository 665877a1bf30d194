"""The best linear projection of an effect: coefficients, tests and their table."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cstonet.estimators import Effects
from cstonet.reporting.inference import EffectInference, check_alpha
from cstonet.reporting.joint_test import JointTest
from cstonet.reporting.printed import Printed

if TYPE_CHECKING:
    from cstonet.reporting.tables import CausalSummary

CONSTANT = "Intercept"


class Projection(Printed, EffectInference):
    """The linear function of some terms that is nearest to the effect of every unit.

    It has statsmodels' names: params, bse, tvalues, pvalues, conf_int(), cov_params(), t_test(),
    wald_test().

    Parameters
    ----------
    effects : Effects
        The k coefficients.
    terms : str
        The terms as typed.
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
        A row per coefficient: estimate, se, statistic, pvalue, lower, upper.
    test : JointTest
        Whether all coefficients but the constant are zero: the effect does not depend on the
        terms, as far as a linear function can tell.
    """

    def __init__(
        self,
        effects: Effects,
        *,
        terms: str,
        name: str,
        outcome_name: str,
        alpha: float = 0.05,
        seed: int = 0,
    ) -> None:
        check_alpha(alpha)
        super().__init__(effects, outcome_name, seed)
        self.terms = terms
        self.name = name
        self.alpha = alpha

    @cached_property
    def table(self) -> pd.DataFrame:
        """The coefficients with their inference."""
        limits = self.conf_int(self.alpha)
        return pd.DataFrame(
            {
                "estimate": self.params,
                "se": self.bse,
                "statistic": self.tvalues,
                "pvalue": self.pvalues,
                "lower": limits[0],
                "upper": limits[1],
            }
        )

    @cached_property
    def test(self) -> JointTest:
        """Test of the hypothesis that no term matters."""
        slopes = [k for k, name in enumerate(self.effects.names) if name != CONSTANT]
        matrix = np.eye(len(self.effects.names))[slopes]
        return JointTest.of(self.effects, matrix, "no slopes")

    def summary(self) -> CausalSummary:
        """The table and the test, to print or export: as_text, as_html, as_latex, as_csv."""
        # statsmodels takes a second to import: only those who print pay for it.
        from cstonet.reporting.summary import effects_table
        from cstonet.reporting.tables import CausalSummary

        tested = f"; {self.test}" if self.test.df else ""
        notes = [f"Best linear projection of the {self.name} on {self.terms}{tested}."]
        if self.effects.bias is not None:
            notes.append("Support is lost: limits include what extrapolation could hide.")
        return CausalSummary([effects_table(self, self.alpha)], notes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name} on {self.terms}; {self.test}>"
