"""Methods on the paper's two protocols: training and test rows, and three parts.

Both wrap what can learn from some rows and be asked about others: presets of the package and the
paper's baselines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from baselines.base import Fitted
from common import Z95, Estimate, Problem, Record, measure
from paper_data import FOLDS, FoldProblem, SplitProblem

# What a preset's fit to all rows at once is called beside its three fits.
ONE_FIT = " (one fit)"
_OUT_OF_SAMPLE = ("estimate", "se", "lower", "upper", "sample_ate", "ate", "oracle", "pehe", "y_sd")


class Learner(Protocol):
    """A preset of the package, or a baseline."""

    @property
    def name(self) -> str:
        """Name on the command line and in the report."""

    @property
    def recipe(self) -> str:
        """What a result was computed with."""

    def prepare(self) -> None:
        """Import what is needed."""

    def learn(self, problem: Problem, threads: int, seed: int) -> Fitted:
        """Learn from these rows."""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A learner under a protocol: the same name, the same recipe."""

    learner: Learner

    @property
    def name(self) -> str:
        """That of the learner."""
        return self.learner.name

    @property
    def recipe(self) -> str:
        """That of the learner."""
        return self.learner.recipe

    def prepare(self) -> None:
        """Import what is needed."""
        self.learner.prepare()


@dataclass(frozen=True, slots=True)
class OnSplit(Wrapped):
    """Learns from the training rows, is asked about these and about the test rows."""

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """In sample; ``extra["out"]`` has the same figures out of sample.

        There, ``mean_effect`` is the mean over the rows' effects, where the method has these.
        """
        assert isinstance(problem, SplitProblem)
        assert problem.test is not None
        fitted = self.learner.learn(problem, threads, seed)
        inside, outside = fitted.on(problem), fitted.on(problem.test)
        figures = measure(problem.test, outside)
        asked = {name: figures[name] for name in _OUT_OF_SAMPLE}
        if outside.cate is not None:
            asked["mean_effect"] = float(outside.cate.mean())
        extra = {"out": asked}
        return replace(inside, extra=(inside.extra or {}) | extra)


@dataclass(frozen=True, slots=True)
class OnThirds(Wrapped):
    """Learns from two parts, is asked about the third, three times; the estimate is the mean."""

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """The mean of three; ``extra`` has the parts and the error of the mean that they show.

        The paper gives the spread of the three estimates as the error of their mean. The standard
        error here is made of the three parts' own, where the method has them: the parts share no
        row, so that these are as good as independent.
        """
        assert isinstance(problem, FoldProblem)
        parts: list[Record] = []
        for number in range(FOLDS):
            train, test = problem.parts(number)
            fitted = self.learner.learn(train, threads, seed)
            found, selected = fitted.on(test), fitted.on(train).selected
            parts.append({"estimate": found.ate, "se": found.se})
            if selected is not None:
                parts[-1]["selected"] = {m: sorted(names) for m, names in selected.items()}
        estimates = np.array([part["estimate"] for part in parts])
        se = float(np.sqrt(np.sum([part["se"] ** 2 for part in parts])) / FOLDS)
        ate = float(estimates.mean())
        extra: Record = {
            "parts": parts,
            "spread": float(estimates.std(ddof=1) / np.sqrt(FOLDS)),
        }
        return Estimate(ate, se, ate - Z95 * se, ate + Z95 * se, extra=extra)


@dataclass(frozen=True, slots=True)
class OnAllRows(Wrapped):
    """Learns from all rows and is asked about them: what a user of the package does."""

    @property
    def name(self) -> str:
        """That of the learner, marked."""
        return self.learner.name + ONE_FIT

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """The estimate; what was selected stands in ``extra``."""
        found = self.learner.learn(problem, threads, seed).on(problem)
        selected = {m: sorted(names) for m, names in (found.selected or {}).items()}
        extra = (found.extra or {}) | {"selected": selected}
        return replace(found, selected=None, extra=extra)
