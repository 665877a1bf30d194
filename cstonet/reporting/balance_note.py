"""The covariate that weighting leaves least balanced, and what a summary says about it.

Every analysis has a `balance()`: one row per covariate, and pairs of columns before and after
weighting. Arms have standardised mean differences there, doses correlations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cstonet.data.columns import listing
from cstonet.estimators.nuisances import FloatArray

# Above this, a difference or a correlation deserves a look: the usual rule of thumb.
NOTABLE = 0.1
# Below this, nobody asks which covariate it is.
_NOTHING = 0.005
# A covariate ended worse than it began if it did by more than this.
_WORSE = 0.02
_NAMED = 5  # covariates that a note names


@dataclass(frozen=True, slots=True)
class LargestImbalance:
    """What weighting leaves of the covariates' imbalance.

    Parameters
    ----------
    after : float
        The largest absolute difference, or correlation, after weighting.
    covariate : str
        The covariate that has it.
    before : float
        That of the same covariate before weighting.
    worse : tuple of str
        Covariates that end above 0.1 and worse than they began, by more than 0.02; worst first.
    """

    after: float
    covariate: str
    before: float
    worse: tuple[str, ...]

    @classmethod
    def of(cls, table: pd.DataFrame) -> LargestImbalance:
        """Read it from a table of balance.

        Parameters
        ----------
        table : DataFrame
            At least one row, indexed by covariate, with columns ``…_before…`` and ``…_after…``.
            Where there are several pairs, a covariate counts by its largest value.
        """
        before, after = _largest(table, "_before"), _largest(table, "_after")
        worst_first = np.argsort(-after, kind="stable")
        worse = (after > NOTABLE) & (after > before + _WORSE)
        first = worst_first[0]
        return cls(
            after=float(after[first]),
            covariate=str(table.index[first]),
            before=float(before[first]),
            worse=tuple(str(table.index[row]) for row in worst_first if worse[row]),
        )


def _largest(table: pd.DataFrame, when: str) -> FloatArray:
    """Largest absolute value of every covariate in the columns of this name, shape (p,)."""
    columns = [name for name in table.columns if when in name]
    values: FloatArray = table[columns].abs().to_numpy(np.float64).max(axis=1)
    return values


def note_balance(imbalance: LargestImbalance, noun: str) -> str:
    """What a summary says about it.

    Parameters
    ----------
    imbalance : LargestImbalance
        The value.
    noun : str
        What was measured: "difference", or "correlation with" the dose.
    """
    if imbalance.after < _NOTHING:
        return f"Largest {noun} after weighting: below {_NOTHING:g}, of every covariate."
    note = f"Largest {noun} after weighting: {imbalance.after:.2f} ({imbalance.covariate})."
    if imbalance.after > NOTABLE:
        note += (
            f" It was {imbalance.before:.2f} before. A {noun.partition(' ')[0]} above {NOTABLE:g} "
            "is removed only as far as the outcome model holds the covariate. See res.balance()."
        )
    if imbalance.worse:
        names = listing(imbalance.worse, _NAMED, form=str)
        note += f" Worse than without weights: {names}."
    return note
