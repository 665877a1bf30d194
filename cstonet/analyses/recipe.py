"""How a fit was asked for: what is needed to do it again on other data."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from cstonet.analyses.base import AnyAnalysis
from cstonet.analyses.identity import fit_identity
from cstonet.analyses.results import CausalResults
from cstonet.blas import one_thread
from cstonet.crossfit.stopping import under_way
from cstonet.crossfit.workforce import Workforce
from cstonet.data.design import AnyDesign
from cstonet.memory import affordable_threads, explained, release_freed, sizes
from cstonet.settings.options import FitOptions
from cstonet.settings.plan import Plan

# Values of a list that is written out.
_LISTED = 20


@dataclass(frozen=True, slots=True)
class Call:
    """A call of `cstonet.fit` or of the class with arrays, to be written down.

    Attributes
    ----------
    formula
        The formula; None: arrays.
    arguments
        What was given beside data and seed, by name. Values other than numbers, names and lists of
        them are the user's own arrays: only their names are written.
    """

    formula: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def text(self, seed: int) -> str:
        """The call as Python, on one line."""
        words = [f"{name}={_written(name, value)}" for name, value in self.arguments.items()]
        words.append(f"seed={seed}")
        if self.formula is None:
            return f"cs.CausalStoNet(y, treat, X).fit({', '.join(words)})"
        return f"cs.fit({self.formula!r}, data, {', '.join(words)})"

    def to_json(self) -> dict[str, Any]:
        """The call as plain values, for a file: what would be written of the arguments."""
        texts = {name: _written(name, value) for name, value in self.arguments.items()}
        return {"formula": self.formula, "arguments": texts}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Call:
        """The call that :meth:`to_json` described."""
        formula, texts = saved["formula"], saved["arguments"]
        return cls(
            None if formula is None else str(formula),
            {str(name): _Text(text) for name, text in texts.items()},
        )


class _Text(str):
    """A value of which only the text is left: that of a fit from a file."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _written(name: str, value: Any) -> str:
    simple = isinstance(value, str | int | float | bool | None)
    if simple or (isinstance(value, tuple | list) and len(value) <= _LISTED):
        return repr(value)
    return name


@dataclass(frozen=True, slots=True)
class Recipe:
    """An analysis with the options of a fit, before any data.

    Attributes
    ----------
    analysis
        The analysis.
    options, preset
        Its options, automatic ones among them, and the name under which they were asked for.
    call
        The Python call that asked for it, but for the seed.
    """

    analysis: AnyAnalysis
    options: FitOptions
    preset: str
    call: Call = field(default_factory=Call)

    def plan(self, design: AnyDesign, seed: int) -> Plan:
        """Every automatic option resolved for these data."""
        return self.analysis.plan(design, self.options, preset=self.preset, seed=seed)

    def fit(
        self,
        design: AnyDesign,
        seed: int,
        workforce: Workforce,
        checkpoint: str | PathLike[str] | None = None,
    ) -> CausalResults:
        """Train the networks and estimate the effects.

        Parameters
        ----------
        design
            Data that the analysis has read, or the same with some of them replaced.
        seed
            Governs everything random.
        workforce
            Who does the work, and who is told about it.
        checkpoint
            The folder that finished folds are kept in, and known ones come from; None: nowhere.
        """
        began = time.perf_counter()
        workforce = replace(workforce, threads=max(1, affordable_threads(workforce.threads)))
        design.check_unchanged()
        plan = self.plan(design, seed)
        design.check_folds(plan.folds)
        with under_way(), one_thread():
            with explained("training", sizes(design.X)):
                design = design.of_its_own()
                if checkpoint is None:
                    trained = self.analysis.train(design, plan, workforce)
                else:
                    trained = self._resumed(design, plan, workforce, checkpoint)
            release_freed()
            return self._estimated(design, plan, trained, workforce, began)

    def _resumed(
        self,
        design: AnyDesign,
        plan: Plan,
        workforce: Workforce,
        checkpoint: str | PathLike[str],
    ) -> Any:
        """What training leaves, with what a folder holds of it."""
        from cstonet.files.checkpoint import opened  # not at the top: only checkpoints need it

        identity = fit_identity(design, plan, type(self.analysis).__name__)
        with opened(checkpoint, identity) as kept:
            return self.analysis.train(design, plan, replace(workforce, keeper=kept))

    def _estimated(
        self, design: AnyDesign, plan: Plan, trained: Any, workforce: Workforce, began: float
    ) -> CausalResults:
        """The effects, and what else the user gets."""
        analysis = self.analysis
        workforce.announce("estimating")
        with explained("predictions and estimates", sizes(design.X)):
            nuisances = analysis.nuisances(design, plan, trained)
            workforce.heed()
            estimates = analysis.estimate(design, plan, nuisances)
            runtime = time.perf_counter() - began
            results = analysis.results(design, plan, trained, nuisances, estimates, runtime)
        results.recipe = self
        return results
