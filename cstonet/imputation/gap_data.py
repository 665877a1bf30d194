"""What is missing in the covariates, as networks see it: standardised, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.data.columns import listing
from cstonet.data.design import AnyDesign
from cstonet.data.gaps import CovariateGaps, Mechanism
from cstonet.errors import OptionError
from cstonet.imputation.conditionals import Entries, Variable, standardised_variables
from cstonet.imputation.regressions import VALUES_PER_FEATURE
from cstonet.network.scaling import Scaling, column_scaling
from cstonet.settings.plan import Plan
from cstonet.suggestions import did_you_mean


@dataclass(frozen=True, slots=True, eq=False)
class GapData:
    """What the imputation of every fold shares.

    Attributes
    ----------
    mechanism
        ``"mar"`` or ``"mnar"``.
    variables
        The incomplete columns.
    entries
        All missing entries, e of them.
    neighbours
        Covariates that variables, by number, depend on, where the user knows.
    limit
        Bound on standardised covariates.
    candidates
        Candidates per row.
    """

    mechanism: Mechanism
    variables: tuple[Variable, ...]
    entries: Entries
    neighbours: Mapping[int, tuple[int, ...]]
    limit: float
    candidates: int

    def whole(self, inputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Covariates of the incomplete columns to be drawn for a network that reads these.

        All of them if it reads any: a column that it does not read may be missing together with
        one that it reads, and what is known of the one through treatment and outcome then has to
        reach the other. So they are drawn jointly.
        """
        read = any(np.isin(v.columns, inputs).any() for v in self.variables)
        drawn = [v.columns for v in self.variables] if read else []
        return np.concatenate([np.empty(0, dtype=np.int64), *drawn])


def observed_scaling(scaling: Scaling, design: AnyDesign) -> Scaling:
    """The scaling of a design with columns that are mostly missing in units of what is there.

    Start values in most of the rows would make the unit so small that observed values lie beyond
    the bound on standardised ones. Of fewer gaps the unit hardly depends.
    """
    center, inverse_scale = scaling.center.copy(), scaling.inverse_scale.copy()
    for variable in () if design.gaps is None else design.gaps.variables:
        there, columns = ~variable.missing, np.array(variable.columns)
        weights = None if design.weights is None else design.weights[there]
        if 2 * there.sum() >= len(there) or (weights is not None and not weights.any()):
            continue
        own = column_scaling(design.X[np.ix_(there, columns)], scaling.limit, weights)
        center[columns], inverse_scale[columns] = own.center, own.inverse_scale
    return Scaling(center, inverse_scale, scaling.limit)


def gap_data(design: AnyDesign, plan: Plan, scaling: Scaling) -> GapData | None:
    """The gaps of a design as the networks see them; None if it has none.

    Raises
    ------
    OptionError
        If the plan names neighbours that the design does not have, or too many.
    """
    gaps = design.gaps
    names = [variable.name for variable in gaps.variables] if gaps is not None else []
    columns = design.spec.covariates_of_columns()
    neighbours = {}
    for name, others in plan.neighbours or ():
        unknown = [other for other in (name, *others) if other not in columns]
        if unknown:
            raise OptionError(
                f"neighbours names {unknown[0]!r}, which is no column among the covariates. Choose "
                f"from {listing(columns)}.{did_you_mean(unknown[0], columns)}"
            )
        if name in names:
            chosen = {j for other in others if other != name for j in columns[other]}
            neighbours[names.index(name)] = tuple(sorted(chosen))
            _check_neighbours(name, len(chosen), gaps)
    if gaps is None:
        return None
    variables = standardised_variables(gaps, scaling)
    return GapData(
        mechanism=gaps.mechanism,
        variables=variables,
        entries=Entries.of(variables, np.ones(len(design.y), dtype=bool)),
        neighbours=neighbours,
        limit=scaling.limit,
        candidates=plan.candidates,
    )


def _check_neighbours(name: str, covariates: int, gaps: CovariateGaps | None) -> None:
    """Refuse neighbours that would reproduce the few values of a column, and leave no spread."""
    for variable in () if gaps is None else gaps.variables:
        values = int((~variable.missing).sum())
        if variable.name == name and covariates * VALUES_PER_FEATURE > values:
            raise OptionError(
                f"neighbours gives {name!r} {covariates} covariates, but it has a value in only "
                f"{values} rows. Name columns with at most {values // VALUES_PER_FEATURE} "
                "covariates, or leave it out of neighbours: they are then found from the data."
            )


def with_imputed_means(
    X: NDArray[np.floating], values: NDArray[np.float32], gaps: GapData, scaling: Scaling
) -> NDArray[np.floating]:
    """A copy of covariates (n, p) with the means of imputed values (e, M) in the gaps."""
    entries = gaps.entries
    completed = X.copy()
    scale = scaling.inverse_scale[entries.column]
    mean = values.mean(axis=1) / np.where(scale > 0, scale, 1.0)
    completed[entries.rows[entries.row], entries.column] = mean + scaling.center[entries.column]
    for variable in gaps.variables:
        if variable.raw_levels is not None:
            # Rare levels lie beyond the bound on standardised values, where they look alike.
            places = [entries.column == column for column in variable.columns]
            codes = variable.codes(np.stack([values[p].ravel() for p in places], axis=1))
            drawn = variable.raw_levels[codes].reshape(-1, values.shape[1], len(places))
            completed[np.ix_(variable.missing, variable.columns)] = drawn.mean(axis=1)
    return completed
