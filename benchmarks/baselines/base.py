"""What a baseline of the paper is: learnt on some rows, asked about the same or about others.

The paper has in-sample and out-of-sample columns. In both, what a method learns (regressions,
selected covariates, networks) comes from the training rows; its last step, which turns that into a
mean effect, is taken on the rows that are asked about: the least squares of double selection, the
balancing weights of approximate residual balancing, the targeting of TMLE, the mean over the rows'
effects for all that estimate these.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from common import Estimate, Variables


class Fitted(Protocol):
    """What a method has learnt from its training rows."""

    def on(self, rows: Variables) -> Estimate:
        """The mean effect among these rows, which may be the training rows or new ones.

        Parameters
        ----------
        rows : Variables, m rows
            Their outcomes and treatments serve the last step only, and only where it needs them.

        Returns
        -------
        Estimate
            ``se``, ``lower``, ``upper`` are NaN where the method has no interval; ``cate`` (m,)
            where it estimates the rows' effects.
        """


def version_recipe(version: int) -> str:
    """The recipe of a method whose settings stand in its code: nothing at first, then "v2", "v3".

    Results keep the recipe that they were computed with. A raised version therefore computes them
    again, and tells those that are there already from the new ones.
    """
    return "" if version == 1 else f"v{version}"


class Versioned:
    """What a peer and a baseline have in common: libraries to load, and a version."""

    __slots__ = ()
    modules: tuple[str, ...]
    version: int

    @property
    def recipe(self) -> str:
        """Its settings are those of its function here, in this version."""
        return version_recipe(self.version)

    def prepare(self) -> None:
        """Import the libraries."""
        for module in self.modules:
            importlib.import_module(module)


@dataclass(frozen=True, slots=True)
class Baseline(Versioned):
    """A method of the paper's comparisons.

    Parameters
    ----------
    name : str
        Name on the command line and in the report.
    modules : tuple of str
        What it needs; loaded before the clock starts.
    learn : callable
        ``learn(rows, threads, seed)`` gives what was learnt from training rows.
    source : str
        Where the method is described.
    version : int
        Raised whenever its settings here change its estimates, see `version_recipe`.
    """

    name: str
    modules: tuple[str, ...]
    learn: Callable[[Variables, int, int], Fitted]
    source: str
    version: int = 1

    def estimate(self, problem: Variables, *, threads: int, seed: int) -> Estimate:
        """Learn from all rows, and ask about these."""
        return self.learn(problem, threads, seed).on(problem)
