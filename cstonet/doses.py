"""The doses of a continuous treatment: read, checked, and dealt evenly to the folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .columns import is_number, listing
from .errors import ConstantTreatmentError, TooFewRowsError, TreatmentTypeError
from .roles import Vector, counted, rows_that_count

# Below this many different values a density of the dose means nothing.
_FEWEST_VALUES = 5
# Units with positive weight that a curve, a variance and a slope need.
_FEWEST_UNITS = 20
# Folds and validation rows have the same share of each of so many groups by size of dose.
_STRATA = 10


def dose_values(treatment: Vector, weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The doses as numbers, shape (n,); a copy.

    Parameters
    ----------
    treatment : Vector
        The treatment, without gaps.
    weights : (n,) or None
        Row weights; rows of weight zero do not count.

    Raises
    ------
    TreatmentTypeError
        If the treatment is not numeric, or takes too few values.
    TooFewRowsError
        If there are too few units.
    ConstantTreatmentError
        If all units that count have the same dose.
    """
    values = treatment.values.infer_objects()
    if not is_number(values.dtype):
        raise TreatmentTypeError(
            f"The treatment {treatment.name!r} ({values.dtype}) is not numeric, so it cannot be "
            "continuous. Use treatment='multilevel' to compare its values with each other, or "
            "pass numbers."
        )
    dose = values.to_numpy(dtype=np.float64, copy=True)
    own = counted(dose, weights)
    different = np.unique(own)
    if len(different) == 1:
        raise ConstantTreatmentError(
            f"The treatment {treatment.name!r} is {different[0]:g} in all "
            f"{rows_that_count(own, weights)}, so there is nothing to compare. Check the column, "
            "or the filter that selected the rows."
        )
    if len(different) < _FEWEST_VALUES:
        raise TreatmentTypeError(
            f"The treatment {treatment.name!r} has {len(different)} values "
            f"({listing(different.tolist())}), too few for a continuous treatment, which needs at "
            f"least {_FEWEST_VALUES}. Use treatment='multilevel' to compare its values with each "
            f"other, or define groups in the formula, for example I({treatment.name} > c)."
        )
    if len(own) < _FEWEST_UNITS:
        raise TooFewRowsError(
            f"A continuous treatment needs at least {_FEWEST_UNITS} units with positive weight; "
            f"there are {len(own)}. Add rows, or check the filter that selected them."
        )
    return dose


def dose_strata(
    dose: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Group of each unit by size of dose, shape (n,): equal doses share a group.

    The groups are of equal size, not counting units of weight zero.
    """
    cuts = np.quantile(counted(dose, weights), np.linspace(0, 1, _STRATA + 1)[1:-1])
    return np.searchsorted(cuts, dose, side="right").astype(np.int64)
