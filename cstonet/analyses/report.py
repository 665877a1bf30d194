"""The page of a fit: what one would send to a colleague together with the paper.

Every piece of it is asked of the results as a user would ask; what a fit cannot say, because it is
of another analysis or was saved without its rows, is left out with the reason in its place.
"""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd

from cstonet.errors import (
    CStoNetWarning,
    MissingPackageError,
    NotAvailableError,
    NotOfThisFitError,
)
from cstonet.reporting import page as html
from cstonet.versions import version_of

if TYPE_CHECKING:
    from cstonet.analyses.results import CausalResults

# Rows of a table on the page, where there are more.
_MOST_ROWS = 20
_LIBRARIES = ("cstonet", "numpy", "scipy", "pandas", "patsy", "statsmodels")


def report(results: CausalResults, alpha: float = 0.05, groups: Any = None) -> str:
    """The page as HTML text, with styles and pictures inside.

    Parameters
    ----------
    results
        The fit.
    alpha : float
        One minus the confidence level.
    groups : GroupEffects, optional
        Effects by group, for a section of their own.
    """
    sections = []
    for title, make in _SECTIONS.items():
        if title == _GROUPS_BEFORE and groups is not None:
            sections.append(html.Section("Groups", list(_groups(results, groups))))
        if parts := list(make(results, alpha)):
            sections.append(html.Section(title, parts))
    design = results.design
    lead = "; ".join(str(results.effect(name, alpha=alpha)) for name in results._shown())
    title = f"Effect of {design.treatment_name} on {design.outcome_name}"
    return html.page(title, f"{lead}. {results.nobs} units.", sections)


Parts = Iterator[str]


def _summary(results: CausalResults, alpha: float) -> Parts:
    yield results.summary(alpha).as_html(styled=False)
    plot = results.plot
    yield from _picture(lambda: plot.effects(alpha=alpha), "Effects with their intervals.")
    if hasattr(results, "dose_response"):
        yield from _picture(lambda: plot.dose_response(alpha=alpha), "Mean outcome at every dose.")


def _overlap(results: CausalResults, alpha: float) -> Parts:
    del alpha
    yield from _picture(
        lambda: results.plot.overlap(),
        "Estimated probabilities of treatment, by what was received.",
    )
    yield from _table(lambda: results.overlap(), "Distribution of the propensities")


def _balance(results: CausalResults, alpha: float) -> Parts:
    del alpha
    yield from _picture(
        lambda: results.plot.balance(), "Differences between the arms, before and after."
    )
    yield from _table(lambda: _largest(results.balance()), "Covariates that differed most")


def _largest(balance: pd.DataFrame) -> pd.DataFrame:
    """The rows of the largest first differences."""
    order = balance.iloc[:, 0].abs().sort_values(ascending=False, kind="stable").index
    return balance.loc[order[:_MOST_ROWS]]


def _selection(results: CausalResults, alpha: float) -> Parts:
    del alpha
    plot = results.plot
    yield from _picture(lambda: plot.selection(), "How surely covariates belong to either model.")
    yield from _picture(
        lambda: plot.network(), "A fitted network: what is left of it after the search."
    )


def _groups(results: CausalResults, groups: Any) -> Parts:
    yield from _text(lambda: groups)
    plot = results.plot
    caption = "Effects by group: thick, the interval of each; thin, those of all together."
    yield from _picture(lambda: plot.effects(groups=groups), caption)


def _heterogeneity(results: CausalResults, alpha: float) -> Parts:
    yield from _text(lambda: results.heterogeneity(alpha=alpha))
    plot = results.plot
    yield from _picture(
        lambda: plot.cate(alpha=alpha), "Effects of the units, sorted, with their intervals."
    )
    yield from _text(lambda: results.policy())


def _sensitivity(results: CausalResults, alpha: float) -> Parts:
    yield from _text(lambda: results.sensitivity(alpha=alpha))
    yield from _picture(
        lambda: results.plot.sensitivity(),
        "What confounders of a given strength would leave of the effect.",
    )


def _methods(results: CausalResults, alpha: float) -> Parts:
    del alpha
    yield from html.paragraphs(results.methods())


def _how(results: CausalResults, alpha: float) -> Parts:
    del alpha
    if results.call is not None:
        yield html.preformatted(results.call)
    installed = ", ".join(f"{name} {version_of(name)}" for name in _LIBRARIES)
    yield html.paragraph(
        f"{installed}; Python {platform.python_version()} on {platform.system()} "
        f"{platform.machine()}. The fit took {results.runtime:.1f} s."
    )
    yield from _picture(
        lambda: results.plot.trace(), "Training: the loss of every fold, stage by stage."
    )


_SECTIONS: dict[str, Callable[[CausalResults, float], Parts]] = {
    "Summary": _summary,
    "Overlap": _overlap,
    "Balance": _balance,
    "Selection": _selection,
    "Heterogeneity": _heterogeneity,
    "Sensitivity": _sensitivity,
    "Methods": _methods,
    "How it was made": _how,
}

# The section that effects by group come before, if there are any.
_GROUPS_BEFORE = "Heterogeneity"


@contextmanager
def _quietly() -> Iterator[None]:
    """Warnings of the fit are on the page: nobody needs to hear them again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CStoNetWarning)
        yield


def _piece(make: Callable[[], Any], show: Callable[[Any], str]) -> Parts:
    """A piece of the page, or why it is not there; nothing where another analysis has it."""
    try:
        with _quietly():
            yield show(make())
    except NotOfThisFitError:
        return
    except (NotAvailableError, MissingPackageError) as reason:
        yield html.paragraph(str(reason), kind="absent")


def _picture(draw: Callable[[], Any], caption: str) -> Parts:
    yield from _piece(draw, lambda axes: html.picture(axes, caption))


def _table(make: Callable[[], pd.DataFrame], title: str) -> Parts:
    yield from _piece(make, lambda table: html.frame(table, title))


def _text(make: Callable[[], Any]) -> Parts:
    yield from _piece(make, _shown)


def _shown(answer: Any) -> str:
    """An answer as its tables, where it has any, else as it is printed."""
    if hasattr(answer, "summary"):
        tables: str = answer.summary().as_html(styled=False)
        return tables
    return html.preformatted(str(answer))
