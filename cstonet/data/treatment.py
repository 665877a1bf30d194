"""The treatment as a value: arms to compare, or doses. Each knows how it is dealt and clamped.

How either is read from the user's column is the business of its analysis
(:mod:`cstonet.analyses.arms.reading`, :mod:`cstonet.analyses.doses.reading`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types as pdt

from cstonet.data.columns import is_number, listing
from cstonet.data.leaks import check_dose_is_no_outcome, check_no_dose, check_no_treatment
from cstonet.data.matrix import Rows
from cstonet.data.native import inferred
from cstonet.data.units import Units
from cstonet.data.variables import (
    BlockFamily,
    Vector,
    check_finite_values,
    check_weights,
    counted,
)
from cstonet.errors import (
    ConstantTreatmentError,
    OneArmedError,
    TooFewRowsError,
    TreatmentTypeError,
    UnknownLevelError,
)
from cstonet.shown import shown

TreatmentKind = Literal["binary", "multilevel", "continuous"]
ArmsKind = Literal["binary", "multilevel"]

_FEW_LEVELS = 10  # a numeric treatment with more values than this is called continuous
# Folds and validation rows have the same share of each of so many groups by size of dose.
_STRATA = 10


@dataclass(frozen=True, slots=True, eq=False)
class Arms:
    """A treatment with two or more levels.

    Attributes
    ----------
    name : str
        Its name.
    codes : ndarray (n,) of int64
        Codes into `levels`.
    levels : tuple
        The L values: the reference first, the others sorted or in the order of a pandas category.
        Of two, the second is "treated".
    kind : {"binary", "multilevel"}
        Decides the names of the effects; a multilevel treatment may have two levels.
    """

    name: str
    codes: NDArray[np.int64]
    levels: tuple[Any, ...]
    kind: ArmsKind

    @property
    def label(self) -> str:
        """What the header of a summary says of it."""
        if self.kind == "multilevel":
            return f"{len(self.levels)} levels"
        return ", ".join(str(level) for level in self.levels)

    @property
    def block_family(self) -> BlockFamily:
        """Family of its units in the network."""
        return "bernoulli" if len(self.levels) == 2 else "categorical"

    @property
    def block_units(self) -> int:
        """Its units in the network: one for every level but the reference."""
        return len(self.levels) - 1

    def visible(self) -> NDArray[np.float64]:
        """Values of these units, shape (n, L-1): zeros for the reference."""
        return level_dummies(len(self.levels))[self.codes]

    def strata(self, weights: NDArray[np.float64] | None) -> NDArray[np.int64]:
        """Groups that every fold has its share of, shape (n,): the arms."""
        del weights  # arms are arms, whatever their units count
        return self.codes

    def check_folds(self, folds: int, weights: NDArray[np.float64] | None) -> None:
        """Raise an error unless every fold can train on at least two units of each arm.

        Rows of weight zero train nothing, and where one row has all the weight it is alone.

        Raises
        ------
        TooFewRowsError, OneArmedError, UnevenWeightsError
        """
        codes = counted(self.codes, weights)
        _check_rows(len(codes), folds, weights)
        positive = "" if weights is None else " with positive weight"
        # One unit per fold leaves two or more to train on, whichever fold is left out, from three
        # folds on; two folds need two units each.
        needed = folds if folds >= 3 else 2 * folds
        for code, level in enumerate(self.levels):
            units = int(np.sum(codes == code))
            if units < needed:
                raise OneArmedError(
                    f"Treatment arm {level!r} has {units} unit(s){positive}; with {folds} fold(s) "
                    f"an effect needs at least {needed} in each arm. Use fewer folds, or more data."
                )
            if weights is not None:
                check_weights(weights[self.codes == code], f"treatment arm {level!r}")

    def check_training(self, rows: NDArray[np.int64], cluster: str) -> None:
        """Raise an error unless rows of whole clusters hold two or more units of each arm.

        Parameters
        ----------
        rows
            Those that a fold trains on.
        cluster
            Name of the clusters.

        Raises
        ------
        OneArmedError
        """
        sizes = np.bincount(self.codes[rows], minlength=len(self.levels))
        if sizes.min() < 2:
            raise OneArmedError(
                f"Treatment arm {self.levels[int(sizes.argmin())]!r} is in so few clusters of "
                f"{cluster!r}, which stay whole, that a fold has {sizes.min()} unit(s) of it to "
                "train on. Use fewer folds, or clusters that hold both arms."
            )

    def check_no_copy(
        self,
        X: Rows,
        names: Sequence[str],
        y: NDArray[np.float64],
        outcome: str,
        rows: NDArray[np.int64] | slice,
    ) -> None:
        """Refuse covariates X (m, p) of some rows that are the treatment."""
        del y, outcome  # levels are no outcome
        check_no_treatment(X, names, self.codes[rows], self.name)

    def compares(self, rows: NDArray[np.bool_]) -> bool:
        """Whether some rows (n,) hold units of every arm."""
        return np.unique(self.codes[rows]).size == np.unique(self.codes).size

    def code_of(self, level: object, what: str) -> int:
        """Code of a level that the user named as `what`, or an error that lists the levels."""
        return level_code(level, self.levels, self.name, what)


@dataclass(frozen=True, slots=True, eq=False)
class Dose:
    """A continuous treatment.

    Attributes
    ----------
    name : str
        Its name.
    values : ndarray (n,) of float64
        The doses.
    units : Units
        Their mean and spread, in rows of positive weight.
    """

    name: str
    values: NDArray[np.float64]
    units: Units

    kind: ClassVar[Literal["continuous"]] = "continuous"
    label: ClassVar[str] = "continuous"
    block_family: ClassVar[BlockFamily] = "gaussian"
    block_units: ClassVar[int] = 1

    def visible(self) -> NDArray[np.float64]:
        """The standardised doses, shape (n, 1)."""
        return self.units.standardise(self.values)[:, None]

    def strata(self, weights: NDArray[np.float64] | None) -> NDArray[np.int64]:
        """Group of each unit by size of dose, shape (n,): equal doses share a group.

        The groups are of equal size, not counting units of weight zero.
        """
        cuts = np.quantile(counted(self.values, weights), np.linspace(0, 1, _STRATA + 1)[1:-1])
        return np.searchsorted(cuts, self.values, side="right").astype(np.int64)

    def check_folds(self, folds: int, weights: NDArray[np.float64] | None) -> None:
        """Raise an error unless every fold has a row; those of weight zero do not count.

        Raises
        ------
        TooFewRowsError
        """
        _check_rows(len(counted(self.values, weights)), folds, weights)

    def check_training(self, rows: NDArray[np.int64], cluster: str) -> None:
        """Any rows can train."""

    def check_no_copy(
        self,
        X: Rows,
        names: Sequence[str],
        y: NDArray[np.float64],
        outcome: str,
        rows: NDArray[np.int64] | slice,
    ) -> None:
        """Refuse covariates X (m, p) of some rows that are the dose, and a dose that is y (m,)."""
        own = self.values[rows]
        check_no_dose(X, names, own, self.name)
        check_dose_is_no_outcome(own, y, self.name, outcome)

    def compares(self, rows: NDArray[np.bool_]) -> bool:
        """Whether some rows (n,) hold different doses."""
        return np.unique(self.values[rows]).size > 1


Treatment: TypeAlias = Arms | Dose


def level_dummies(levels: int) -> NDArray[np.float64]:
    """Values of the treatment's units at each level, shape (L, L-1): zeros for the reference."""
    return np.eye(levels)[:, 1:]


def treatment_levels(treatment: Vector) -> tuple[Any, ...]:
    """The distinct values of a treatment without gaps, in order; at least two.

    They are plain Python values where possible.

    Raises
    ------
    ConstantTreatmentError
        If there is only one.
    TreatmentTypeError
        If they are neither numbers, booleans, text nor categories.
    """
    values = inferred(treatment.values, f"The treatment {treatment.name!r}")
    levels = _distinct(values, treatment.name)
    if len(levels) == 1:
        raise ConstantTreatmentError(
            f"The treatment {treatment.name!r} is {levels[0]!r} in all {len(values)} rows, so "
            "there is nothing to compare. Check the column, or the filter that selected the rows."
        )
    return levels


def natural_kind(treatment: Vector) -> TreatmentKind | None:
    """The kind of a treatment about which the user said nothing.

    Binary for two levels; multilevel for more, unless they are numbers that look like amounts.
    Rows with gaps do not count. None if the values are nothing that could be a treatment.
    """
    values = inferred(treatment.values[~treatment.gaps.rows], f"The treatment {treatment.name!r}")
    if values.empty:
        return None
    try:
        levels = _distinct(values, treatment.name)
    except TreatmentTypeError:
        return None
    if len(levels) <= 2:
        return "binary"
    whole = all(isinstance(level, int) for level in levels)
    if is_number(values.dtype) and not (whole and len(levels) <= _FEW_LEVELS):
        return "continuous"
    return "multilevel"


def level_code(value: object, levels: tuple[Any, ...], name: str, what: str) -> int:
    """Position of a level that the user named, or an error that lists the levels."""
    for code, level in enumerate(levels):
        try:
            if value is level or bool(level == value):
                return code
        except Exception:  # values that cannot be compared are no levels
            break
    raise UnknownLevelError(
        f"{what}: the treatment {name!r} has no level {shown(value)}. Choose one of "
        f"{listing(levels)}."
    )


def _check_rows(n: int, folds: int, weights: NDArray[np.float64] | None) -> None:
    if folds > n:
        positive = "" if weights is None else " with positive weight"
        raise TooFewRowsError(
            f"{folds} folds need at least {folds} rows{positive}, but there are {n}. Use fewer "
            "folds, or folds=1 to train and estimate on the same rows."
        )


def _distinct(values: pd.Series, name: str) -> tuple[Any, ...]:
    """The distinct values, in order, as plain Python values where possible."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return tuple(values.cat.remove_unused_categories().cat.categories.tolist())
    if is_number(values.dtype):
        if pdt.is_integer_dtype(values.dtype):  # exact, beyond what double precision tells apart
            return tuple(sorted(map(int, values.unique())))
        numbers = values.to_numpy(dtype=np.float64)
        check_finite_values(numbers, f"treatment {name!r}")
        return tuple(int(v) if v.is_integer() else v for v in np.unique(numbers).tolist())
    kind = pdt.infer_dtype(values, skipna=True)
    if kind not in ("boolean", "string"):
        raise TreatmentTypeError(
            f"The treatment {name!r} ({values.dtype}, {kind}) holds neither numbers, booleans, "
            "text nor categories. Code it as 0 and 1, or as two labels."
        )
    return tuple(sorted(values.unique().tolist()))
