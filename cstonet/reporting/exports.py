"""Results as frames, dictionaries and JSON, for other programs to read.

`tidy` has a row per effect and `glance` a row per fit, under the names of R's broom; the dictionary
has both, the selected covariates, and all that the summary says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd

from cstonet.estimators import Effects
from cstonet.reporting.inference import check_alpha, studentised


class Estimated(Protocol):
    """Effects with their inference, as `cstonet.reporting.inference.EffectInference` has them."""

    @property
    def effects(self) -> Effects:
        """The effects."""

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values."""

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Confidence limits."""


def tidy(results: Estimated, alpha: float = 0.05) -> pd.DataFrame:
    """One row per effect.

    Parameters
    ----------
    results
        Effects with their inference.
    alpha : float
        One minus the confidence level.

    Returns
    -------
    DataFrame
        Columns `term`, `estimate`, `std_error`, `statistic`, `p_value`, `conf_low`, `conf_high`,
        and `df`, infinite where estimates are taken for normal.
    """
    check_alpha(alpha)
    effects, limits = results.effects, results.conf_int(alpha).to_numpy()
    many = np.full(len(effects.names), np.inf)
    return pd.DataFrame(
        {
            "term": list(effects.names),
            "estimate": effects.estimates,
            "std_error": effects.standard_errors,
            "statistic": studentised(effects),
            "p_value": results.pvalues.to_numpy(),
            "conf_low": limits[:, 0],
            "conf_high": limits[:, 1],
            "df": many if effects.freedom is None else effects.freedom,
        }
    )


def plain(value: Any) -> Any:
    """A value as JSON knows it: numbers without NumPy, no infinities, keys of text.

    What is not a finite number becomes None, because JSON has no name for it.
    """
    if isinstance(value, pd.DataFrame):
        return [plain(row) for row in value.to_dict("records")]
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def to_json(content: Mapping[str, Any], indent: int | None) -> str:
    """A dictionary of plain values as JSON text that every parser reads."""
    return json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
