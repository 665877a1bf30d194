"""A design without some of its covariates, for a fit that must do without them.

Covariates that are made of one term go together: the indicators of a column with levels, the parts
of a spline. What is left of a term that patsy computes stands in X as it is, so that the design
serves for a fit, not for predictions of new rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from cstonet.data.columns import listing
from cstonet.data.covariates import Block, CovariateSpec, NumericBlock
from cstonet.data.design import Design, TreatmentT
from cstonet.data.gaps import CovariateGaps
from cstonet.errors import EmptyDataError, UnknownColumnError
from cstonet.suggestions import did_you_mean


def terms_of(spec: CovariateSpec, covariates: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Terms that hold some of these covariates, with all their covariates by number, in order."""
    found = spec.covariates_of_terms()
    return {
        term: places
        for term, places in found.items()
        if any(spec.names[j] in covariates for j in places)
    }


def named_covariates(spec: CovariateSpec, names: Sequence[str], what: str) -> tuple[int, ...]:
    """Numbers of the covariates that names stand for, whole terms, ascending.

    Parameters
    ----------
    spec : CovariateSpec
        How X was made.
    names : sequence of str
        Each a covariate (then with the rest of its term), a term, or a column of the data (then
        all covariates made of it).
    what : str
        The argument that names them, for the message.

    Raises
    ------
    UnknownColumnError
        If a name is none of these.
    """
    terms, columns = spec.covariates_of_terms(), spec.covariates_with_columns()
    chosen: set[int] = set()
    for name in names:
        places = set(terms.get(name, ())) | set(columns.get(name, ()))
        if name in spec.names:
            own = spec.names.index(name)
            places |= {j for term in terms.values() if own in term for j in term}
        if not places:
            raise UnknownColumnError(
                f"{what} names {name!r}, which is neither a covariate nor a column that covariates "
                f"are made of. Choose from {listing([*terms])}.{did_you_mean(name, terms)}"
            )
        chosen |= places
    return tuple(sorted(chosen))


def without_covariates(design: Design[TreatmentT], places: Collection[int]) -> Design[TreatmentT]:
    """The same design without some covariates, by number.

    Raises
    ------
    EmptyDataError
        If no covariate would be left.
    """
    kept = np.array([j for j in range(len(design.covariates)) if j not in places], dtype=np.int64)
    if not kept.size:
        raise EmptyDataError(
            f"without {listing(list(design.covariates))} there is no covariate left to adjust for."
        )
    matrix: Any = design.X
    names = {design.covariates[j] for j in kept}
    blocks = tuple(block for own in design.spec.blocks for block in _what_is_left(own, names))
    return dataclasses.replace(
        design,
        X=matrix[:, kept],
        covariates=tuple(design.covariates[j] for j in kept),
        spec=CovariateSpec(blocks, design.spec.source),
        gaps=_gaps_left(design.gaps, kept.tolist()),
    )


def _what_is_left(block: Block, names: Collection[str]) -> Iterator[Block]:
    """A block without the covariates that are not among the names."""
    left = tuple(name for name in block.names if name in names)
    if len(left) == len(block.names):
        yield block
    elif left:
        yield NumericBlock(left)


def _gaps_left(gaps: CovariateGaps | None, kept: list[int]) -> CovariateGaps | None:
    """The gaps of the covariates that stay, which have other numbers now."""
    if gaps is None:
        return None
    number = {old: new for new, old in enumerate(kept)}
    variables = tuple(
        dataclasses.replace(variable, columns=tuple(number[j] for j in variable.columns))
        for variable in gaps.variables
        if all(j in number for j in variable.columns)
    )
    return CovariateGaps.of(gaps.mechanism, variables) if variables else None
