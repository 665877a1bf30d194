"""How many of the selected covariates may be false.

Bounds for selections over subsamples, q² / ((2π - 1) p) for q covariates per support and a
threshold π (Meinshausen and Bühlmann 2010) or the sharper ones for complementary pairs (Shah and
Samworth 2013), assume halves drawn anew, and that a false covariate is no likelier to be found
than any other. Here the supports come from training sets that share most of their rows, and
covariates that are correlated with a true one are found in all of them. The probabilities of
inclusion know of both, and their complements add up to the expected number of false ones.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from cstonet.network.structure import Model

_MODELS: tuple[Model, ...] = ("treatment", "outcome")


def expected_false(table: pd.DataFrame) -> pd.Series:
    """Expected number of false ones among the covariates selected for each model.

    Parameters
    ----------
    table
        That of :func:`cstonet.search.selection.select`, after a search.

    Returns
    -------
    Series
        Σ (1 - probability) over those selected for `treatment` and for `outcome`; NaN where the
        table has no probabilities.
    """
    numbers = {
        model: float((1 - table[f"{model}_probability"])[table[model]].sum())
        if f"{model}_probability" in table
        else np.nan
        for model in _MODELS
    }
    return pd.Series(numbers, name="expected_false_selections")
