"""The doses of a continuous treatment, read from the user's column and checked."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from cstonet.data.caller import caller_stacklevel
from cstonet.data.columns import in_formula, is_number, listing
from cstonet.data.design import Design
from cstonet.data.native import doubles, inferred
from cstonet.data.treatment import Dose, treatment_levels
from cstonet.data.units import Units
from cstonet.data.variables import (
    Vector,
    check_scale,
    counted,
    differ,
    power_of_range,
    rows_that_count,
)
from cstonet.errors import (
    ConstantTreatmentError,
    ExtremeScaleError,
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
# Powers of ten up to which doses may be, whose fourth powers are computed with, and up to which
# outcomes may be per unit of the dose: squares of effects are numbers.
_LARGEST_POWER, _LARGEST_EFFECT = 50, 145
# Quantiles of the doses between which lies what a few outliers cannot stretch.
_MIDDLE = (0.05, 0.95)
# Distance from the median, in such ranges, from which a dose is far. Far ones set the scale if the
# mean square of all distances is so many times that of the others. Exponential doses practically
# never do, nor lognormal ones (sigma = 1) among thousands.
_OUTLYING = 10.0
_INFLATED = 4.0
# Range of the middle half in standard deviations, 1.35 of normal doses, below which a long tail has
# the same effect: average marginal effects of Cauchy doses, a function of which is smooth for most
# of them, are off by several standard errors below 0.2, and right above.
_HALF, _NARROW = (0.25, 0.75), 0.2


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
    ExtremeScaleError
        If its squares would be no numbers.

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
    if not differ(own):
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
    check_scale(dose, own, f"treatment {treatment.name!r}", _LARGEST_POWER)
    _warn_of_outliers(treatment.name, typed, own)
    _warn_of_point_mass(treatment.name, typed, point_mass(dose, weights))
    return dose


def check_effects(design: Design[Dose]) -> None:
    """Refuse an outcome whose change per unit of the dose would be too large or small a number.

    Raises
    ------
    ExtremeScaleError
    """
    dose, weights = design.treatment, design.weights
    power = power_of_range(counted(design.y, weights)) - power_of_range(
        counted(dose.values, weights)
    )
    if abs(power) > _LARGEST_EFFECT:
        how = "Divide" if power > 0 else "Multiply"
        raise ExtremeScaleError(
            f"Effects of {dose.name!r} on the outcome {design.outcome_name!r} are of the size "
            f"1e{power}: their squares cannot be computed with. {how} the outcome by "
            f"1e{abs(power)}, or change the units of the treatment."
        )


def _warn_of_outliers(name: str, typed: str, dose: NDArray[np.float64]) -> None:
    """Say if a few doses (n,), or a long tail of them, set the scale for all others."""
    distance = np.abs(dose - np.median(dose))
    # Most doses may be one and the same: then the others' usual distance from it counts.
    usual = np.median(distance[distance > 0])
    unit = max(np.ptp(np.quantile(dose, _MIDDLE)), usual)
    far = distance > _OUTLYING * unit
    with np.errstate(over="ignore"):  # an infinite mean square is large
        square = (distance / unit) ** 2
        outlying = far.any() and square.mean() > _INFLATED * square[~far].mean()
        half = max(np.ptp(np.quantile(dose, _HALF)), usual) / unit / np.sqrt(square.mean())
    if not outlying and half >= _NARROW:
        return
    if outlying:
        what = (
            f"is further from its median than {_OUTLYING:g} times the range of most doses "
            f"({unit:.3g}) in {int(far.sum())} rows ({listing(dose[far].tolist(), 3)})"
        )
        correct = "Correct or leave out these rows, or use"
    else:
        what = (
            f"has so long a tail that half of the doses lie within {half:.2g} standard deviations"
        )
        correct = "Use"
    scale = "log" if (dose > 0).all() else "arcsinh"
    warnings.warn(
        f"The treatment {name!r} {what}. On this scale the other doses hardly differ, and the "
        f"networks may not see what they do. {correct} another scale, for example "
        f"np.{scale}({typed}).",
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
