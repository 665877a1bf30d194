"""The data of one analysis, checked: outcome, treatment, covariates, weights, clusters.

Whatever can be wrong with data is found here or by the analysis that reads its treatment, before
anything is computed. Nothing is ever written into what the user passed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.arrow import open_table
from cstonet.data.columns import as_frame, unknown_column
from cstonet.data.copies import count_copies
from cstonet.data.covariates import CovariateSpec
from cstonet.data.frames import is_dictionary
from cstonet.data.gaps import CovariateGaps, fill_sources
from cstonet.data.leaks import check_no_outcome, check_no_outcome_levels
from cstonet.data.lookup import Lookup
from cstonet.data.matrix import Rows, checksum, copied, dense_part, is_small, may_be_changed
from cstonet.data.raw import Missing, RawData
from cstonet.data.received import Received
from cstonet.data.treatment import Treatment
from cstonet.data.variables import (
    Family,
    Vector,
    cluster_codes,
    counted,
    may_be_counts,
    outcome_values,
    weight_values,
)
from cstonet.errors import DataChangedError, NotAvailableError, TooFewClustersError

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix

# Of fewer values one cannot say whether they copy the treatment or agree with it by chance.
_ROWS_FOR_A_COPY = 20
# The kind of treatment that a design has. A design of arms serves wherever any design does.
TreatmentT = TypeVar("TreatmentT", bound=Treatment, covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Design(Generic[TreatmentT]):
    """The data of one analysis, checked.

    Attributes
    ----------
    y : ndarray (n,) of float64
        Outcome; 0 and 1 for the binomial family.
    treatment : Arms or Dose
        The treatment.
    X : ndarray or scipy.sparse.csc_array (n, p) of float32 or float64
        Covariates; an array is in C or Fortran order as the data came, or a memory map. May be a
        view of the user's data: not to be written to.
    covariates : tuple of str
        The p names.
    outcome_name : str
        Name of the outcome.
    family : {"gaussian", "binomial", "poisson"}
        Distribution of the outcome.
    family_inferred : bool
        Whether the family was read off the outcome rather than given.
    weights : ndarray (n,) of float64, or None
        Non-negative, with mean 1.
    formula : str or None
        As typed; None for arrays.
    spec : CovariateSpec
        How X was made, to make it again for new data.
    received : Received
        How to find the treatment in new data.
    index : pandas.Index
        Labels of the n rows.
    n_dropped : int
        Rows left out because of missing values.
    gaps : CovariateGaps, or None
        Missing values of the covariates, where they are to be imputed; X holds start values there.
    lookup : Lookup, or None
        Where columns of the data can be looked up that are not in the formula; None: nowhere.
    clusters : ndarray (n,) of int64, or None
        Codes of the clusters that rows belong to, in the order in which these appear; None: rows
        are independent.
    cluster_name : str or None
        Name of the variable that says so.
    may_be_counts : bool
        Whether the outcome looks like a number of events.
    n_clusters : int or None
        Number G of clusters with a row that counts; None where rows are independent.
    cluster_sizes : (int, int) or None
        Rows that count in the smallest and in the largest of them.
    n_copies : int
        Rows that are exact copies of an earlier one though that can be no coincidence; not counted
        where there are clusters.
    """

    y: NDArray[np.float64]
    treatment: TreatmentT
    X: Matrix
    covariates: tuple[str, ...]
    outcome_name: str
    family: Family
    family_inferred: bool
    weights: NDArray[np.float64] | None
    formula: str | None
    spec: CovariateSpec
    received: Received
    index: pd.Index
    n_dropped: int
    gaps: CovariateGaps | None = None
    lookup: Lookup | None = None
    clusters: NDArray[np.int64] | None = None
    cluster_name: str | None = None
    may_be_counts: bool = False
    n_clusters: int | None = None
    cluster_sizes: tuple[int, int] | None = None
    n_copies: int = 0
    checksum: int | None = None

    @property
    def treatment_name(self) -> str:
        """Name of the treatment."""
        return self.treatment.name

    @property
    def unit_weights(self) -> NDArray[np.float64]:
        """The weights, or ones if there are none, shape (n,)."""
        return np.ones(len(self.y)) if self.weights is None else self.weights

    def of_its_own(self) -> Design[TreatmentT]:
        """The same design, which does not change with what the user does to his arrays.

        Small matrices are copied. Of large ones a checksum is taken, by which a change is noticed;
        frames of pandas 3 are safe from it in any case.
        """
        X, summed = self.X, self.checksum
        if summed is None and may_be_changed(X):
            if is_small(X):
                X = copied(X)
            else:
                summed = checksum(X)
        # An array is looked up where its copy is: one copy is enough.
        lookup = None if self.lookup is None else self.lookup.of_its_own(self.X, X)
        return replace(self, X=X, checksum=summed, lookup=lookup)

    def check_unchanged(self) -> None:
        """Raise an error if the covariates are no longer those of the fit.

        Raises
        ------
        DataChangedError
        """
        if self.checksum is not None and checksum(self.X) != self.checksum:
            raise DataChangedError(
                "The covariates were changed after they were fitted, and this question needs them "
                "as they were. They are too large for a fit to keep a copy: put them back, or fit "
                "again and leave the array alone."
            )

    def check_folds(self, folds: int) -> None:
        """Raise an error unless there are rows, and clusters, for so many folds.

        Raises
        ------
        TooFewRowsError, OneArmedError, TooFewClustersError
        """
        self.treatment.check_folds(folds, self.weights)
        if self.n_clusters is not None and self.n_clusters < folds:
            raise TooFewClustersError(
                f"{folds} folds need at least as many clusters, which stay whole, but "
                f"{self.cluster_name!r} has {self.n_clusters}. Use folds={self.n_clusters} or "
                "fewer."
            )

    def new_units(self, data: Any) -> Any:
        """New data as they are, unless they are a table, a dictionary or a file: then as a frame.

        Parameters
        ----------
        data : DataFrame, array, dictionary of columns, Arrow table or dataset, or path of a file
            Of tables and files, what covariates and treatment are made of is read.
        """
        if is_dictionary(data):
            return as_frame(data)
        table = open_table(data)
        if table is None:
            return data
        plain = self.spec.numeric_columns()
        named = (*self.spec.columns, self.received.name, *self.received.inputs)
        absent = [name for name in self.spec.columns if name not in table.columns]
        if absent:
            raise unknown_column(absent[0], list(table.columns), formula=False)
        return table.frame(plain, [name for name in named if name in table.columns])

    def variables(self, names: Sequence[str]) -> pd.DataFrame:
        """Columns of the user's data, in the formula or not, or covariates by name; (n, k).

        Raises
        ------
        UnknownColumnError
            If a name is neither.
        NotAvailableError
            If the rows are not at hand: a fit to a Dask DataFrame.
        """
        known = () if self.lookup is None else self.lookup.names
        coded = [name for name in names if name not in known and name in self.covariates]
        if len(coded) < len(names) and self.lookup is None:
            raise NotAvailableError(
                f"column {next(name for name in names if name not in coded)!r} is not at hand: "
                "this fit did not keep the data. Pass the values themselves, one for each unit."
            )
        plain = [name for name in names if name not in coded]
        frame = pd.DataFrame(index=self.index)
        if plain and self.lookup is not None:
            frame = self.lookup.columns(plain).set_axis(self.index)
        for name in coded:
            place = self.covariates.index(name)
            values = dense_part(self.X, slice(None), slice(place, place + 1))[:, 0]
            frame = frame.assign(**{name: values})
        return frame[list(names)]

    def with_formula_alone(self) -> Design[TreatmentT]:
        """The same design, in which only columns of the formula can be looked up."""
        if self.lookup is None:
            return self
        used = [self.outcome_name, self.received.name, *self.received.inputs, *self.spec.columns]
        used += [] if self.cluster_name is None else [self.cluster_name]
        names = [name for name in dict.fromkeys(used) if name in self.lookup.names]
        return replace(self, lookup=Lookup(self.lookup.columns(names)))

    @property
    def strata(self) -> NDArray[np.int64]:
        """Groups that every fold has its share of, shape (n,).

        Those of the treatment, for a binary outcome crossed with it.
        """
        strata = self.treatment.strata(self.weights)
        return strata * 2 + self.y.astype(np.int64) if self.family == "binomial" else strata


AnyDesign: TypeAlias = Design[Treatment]


def read_design(
    raw: RawData,
    read_treatment: Callable[[Vector, NDArray[np.float64] | None], TreatmentT],
    *,
    family: Family | None,
    missing: Missing,
) -> Design[TreatmentT]:
    """The design of raw variables, or the error that says why there is none.

    Parameters
    ----------
    raw : RawData
        The variables. Gaps that `missing` does not allow are known not to be there.
    read_treatment : callable
        The analysis' own reading of the treatment, given the row weights.
    family, missing
        As the user chose.

    Raises
    ------
    DataError, OptionError
        Or one of their children, each saying what to do.
    """
    weights = None if raw.weights is None else weight_values(raw.weights)
    clusters = None if raw.cluster is None else cluster_codes(raw.cluster, weights)
    y, found_family = outcome_values(raw.outcome, family, weights)
    treatment = read_treatment(raw.treatment, weights)
    sources, filled = raw.sources, None
    if missing in ("mar", "mnar") and sources.gaps().counts:
        filled = fill_sources(sources)
        sources = filled.sources
    spec = CovariateSpec.fit(raw.selected, sources, source=raw.source)
    X = spec.build(sources)
    gaps = None
    if filled is not None:
        gaps = CovariateGaps.find("mnar" if missing == "mnar" else "mar", spec, X, filled)
    design = Design(
        y=y,
        treatment=treatment,
        X=X,
        covariates=spec.names,
        outcome_name=raw.outcome.name,
        family=found_family,
        family_inferred=family is None,
        may_be_counts=may_be_counts(y),
        weights=weights,
        formula=raw.formula,
        spec=spec,
        received=raw.received,
        index=raw.sources.index,
        n_dropped=raw.n_dropped,
        gaps=gaps,
        lookup=raw.lookup,
        clusters=clusters,
        cluster_name=None if raw.cluster is None else raw.cluster.name,
    )
    _check_copies(design)
    if clusters is not None:
        _, sizes = np.unique(counted(clusters, weights), return_counts=True)
        ends = int(sizes.min()), int(sizes.max())
        return replace(design, n_clusters=len(sizes), cluster_sizes=ends)
    own = counted(y, weights), counted(treatment.visible(), weights)[:, 0]
    return replace(design, n_copies=count_copies(*own, Rows.counted(X, weights)))


def _check_copies(design: AnyDesign) -> None:
    """Refuse covariates that are the treatment or the outcome, in the rows that count."""
    X, names, y, treatment = design.X, design.covariates, design.y, design.treatment
    counts = design.unit_weights > 0
    rows = slice(None) if counts.all() else np.flatnonzero(counts)
    all_that_count = Rows(X, None if isinstance(rows, slice) else rows)
    treatment.check_no_copy(all_that_count, names, y[rows], design.outcome_name, rows)
    check_no_outcome(all_that_count, names, y[rows], design.outcome_name, _first_rows(design, rows))
    check_no_outcome_levels(
        all_that_count, design.spec.covariates_of_levels(), y[rows], design.outcome_name
    )
    for variable in () if design.gaps is None else design.gaps.variables:
        # Where the column has values: the start values elsewhere hide a copy.
        there, own = counts & ~variable.missing, list(variable.columns)
        if treatment.compares(there) and there.sum() >= _ROWS_FOR_A_COPY:
            labels, places = [names[j] for j in own], np.flatnonzero(there)
            part = Rows(dense_part(X, places, np.array(own)))
            treatment.check_no_copy(part, labels, y[there], design.outcome_name, places)
            check_no_outcome(
                part, labels, y[there], design.outcome_name, _first_rows(design, places)
            )


def _first_rows(design: AnyDesign, rows: NDArray[np.int64] | slice) -> NDArray[np.intp] | slice:
    """Of some rows, by place among them, the first of every cluster; all where there are none."""
    if design.clusters is None:
        return slice(None)
    return np.unique(design.clusters[rows], return_index=True)[1]
