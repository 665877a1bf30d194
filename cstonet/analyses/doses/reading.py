"""The doses of a continuous treatment, read from the user's column and checked."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from cstonet.data.caller import caller_stacklevel
from cstonet.data.columns import in_formula, is_number, listing
from cstonet.data.native import doubles, inferred
from cstonet.data.treatment import Dose, treatment_levels
from cstonet.data.units import Units
from cstonet.data.variables import Vector, counted, rows_that_count
from cstonet.errors import (
    ConstantTreatmentError,
    OptionError,
    OutlyingDoseWarning,
    PointMassWarning,
    TooFewRowsError,
    TreatmentTypeError,
)

# Below this many different values a density of the dose means nothing.
_FEWEST_VALUES = 5
# Units with positive weight that a curve, a variance and a slope need.
_FEWEST_UNITS = 20
# Share of the units with one and the same dose from which that dose counts as a point mass.
_POINT_MASS = 0.1
# Quantiles of the doses between which lies what a few outliers cannot stretch.
_MIDDLE = (0.05, 0.95)
# Distance from the median, in such ranges, from which a dose is far. Far ones set the scale if the
# mean square of all distances is so many times that of the others. Exponential doses practically
# never do, nor lognormal ones (sigma = 1) among thousands.
_OUTLYING = 10.0
_INFLATED = 4.0


def read_dose(treatment: Vector, reference: object, weights: NDArray[np.float64] | None) -> Dose:
    """The doses of a treatment without gaps; see :func:`dose_values` for errors and warnings."""
    treatment_levels(treatment)  # refuses what could be no treatment of any kind
    if reference is not None:
        raise OptionError(
            f"reference={reference!r}: the continuous treatment {treatment.name!r} has no "
            "reference level. Leave it out, or use treatment='multilevel'."
        )
    values = dose_values(treatment, weights)
    return Dose(treatment.name, values, Units.of(values, "gaussian", weights))


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

    Warns
    -----
    PointMassWarning
        If many units share a dose.
    OutlyingDoseWarning
        If some are very far out.
    """
    values = inferred(treatment.values, f"The treatment {treatment.name!r}")
    if not is_number(values.dtype):
        raise TreatmentTypeError(
            f"The treatment {treatment.name!r} ({values.dtype}) is not numeric, so it cannot be "
            "continuous. Use treatment='multilevel' to compare its values with each other, or "
            "pass numbers."
        )
    dose = doubles(values, f"The treatment {treatment.name!r}")
    own = counted(dose, weights)
    # An expression of other columns stands for itself.
    computed = treatment.columns not in ((), (treatment.name,))
    typed = treatment.name if computed else in_formula(treatment.name)
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
            f"other, or define groups in the formula, for example I({typed} > c)."
        )
    if len(own) < _FEWEST_UNITS:
        raise TooFewRowsError(
            f"A continuous treatment needs at least {_FEWEST_UNITS} units with positive weight; "
            f"there are {len(own)}. Add rows, or check the filter that selected them."
        )
    _warn_of_outliers(treatment.name, typed, own)
    _warn_of_point_mass(treatment.name, typed, point_mass(dose, weights))
    return dose


def _warn_of_outliers(name: str, typed: str, dose: NDArray[np.float64]) -> None:
    """Say if a few doses (n,) set the scale for all others."""
    distance = np.abs(dose - np.median(dose))
    # Most doses may be one and the same: then the others' usual distance from it counts.
    unit = max(np.ptp(np.quantile(dose, _MIDDLE)), np.median(distance[distance > 0]))
    far = distance > _OUTLYING * unit
    if not far.any():
        return
    with np.errstate(over="ignore"):  # an infinite mean square is large
        square = (distance / unit) ** 2
        if square.mean() <= _INFLATED * square[~far].mean():
            return
    scale = f", or use another scale, for example np.log({typed})" if (dose > 0).all() else ""
    warnings.warn(
        f"The treatment {name!r} is further from its median than {_OUTLYING:g} times the range of "
        f"most doses ({unit:.3g}) in {int(far.sum())} rows ({listing(dose[far].tolist(), 3)}). On "
        "this scale the other doses hardly differ, and the networks may not see what they do. "
        f"Correct or leave out these rows{scale}.",
        OutlyingDoseWarning,
        stacklevel=caller_stacklevel(),
    )


def _warn_of_point_mass(name: str, typed: str, mass: tuple[float, float] | None) -> None:
    """Say if many units have one dose, given it and its share."""
    if mass is None:
        return
    value, share = _exactly(mass[0]), mass[1]
    warnings.warn(
        f"The treatment {name!r} is {value} for {share:.0%} of the units. The average "
        "marginal effect and the dose-response curve assume a dose with a density, which has "
        "no such point mass: they may be wrong, most of all near this dose. Compare values or "
        f"groups with treatment='multilevel', or fit two parts: I({typed} != {value}) as a "
        f"binary treatment, then {name!r} among the rows where it is not {value}.",
        PointMassWarning,
        stacklevel=caller_stacklevel(),
    )


def _exactly(value: float) -> str:
    """A number as short as possible without rounding it."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def point_mass(
    dose: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[float, float] | None:
    """The commonest dose and its share of the units, if it is one that many of them have."""
    if weights is not None:
        dose, weights = counted(dose, weights), counted(weights, weights)
    values, place, units = np.unique(dose, return_inverse=True, return_counts=True)
    # A single unit is no point mass, whatever its weight.
    sizes = np.bincount(place, weights) * (units > 1)
    most = int(np.argmax(sizes))
    share = float(sizes[most] / (len(dose) if weights is None else weights.sum()))
    return (float(values[most]), share) if share >= _POINT_MASS else None
