"""Covariates that the analyst keeps in all models, from what was typed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cstonet.data.columns import listing
from cstonet.data.covariates import CovariateSpec
from cstonet.data.formula import summands
from cstonet.errors import FormulaError, OptionError
from cstonet.shown import shown
from cstonet.suggestions import did_you_mean


def kept_covariates(spec: CovariateSpec, keep: Sequence[str]) -> tuple[str, ...]:
    """Names of the covariates that entries stand for, in the order of X.

    Parameters
    ----------
    spec : CovariateSpec
        How X was made.
    keep : sequence of str
        Each the name of a covariate (``"g[T.b]"``), of a term of the formula or of a column
        (``"C(g)"``, ``"g"``: all covariates made of it alone), or several of these with plus signs
        or commas between them (``"age + C(g)"``).

    Raises
    ------
    OptionError
        If there is no such covariate, term or column.
    """
    named = {name: (j,) for j, name in enumerate(spec.names)}
    # A covariate's own name counts first, then that of a term, then that of a column.
    known = {**spec.covariates_of_single_columns(), **spec.covariates_of_terms(), **named}
    known = {name: places for name, places in known.items() if places}
    chosen = {j for entry in keep for j in _places(entry, known)}
    return tuple(spec.names[j] for j in sorted(chosen))


def _places(entry: str, known: dict[str, tuple[int, ...]]) -> Iterator[int]:
    """Numbers of the covariates that an entry stands for."""
    if entry in known:
        yield from known[entry]
        return
    # As patsy writes terms, blanks aside.
    written = {_without_blanks(name): places for name, places in known.items()}
    try:
        parts = summands(entry)
    except FormulaError as error:
        raise OptionError(f"keep: {entry!r} cannot be read. {error}") from error
    for part in parts:
        if _without_blanks(part) not in written:
            raise OptionError(
                f"keep names {shown(part)}, which is neither a covariate nor a term of the "
                f"formula. Choose from {listing(list(known))}.{did_you_mean(part, known)}"
            )
        yield from written[_without_blanks(part)]


def _without_blanks(text: str) -> str:
    return "".join(text.split())
