"""How a fit was asked for: what is needed to do it again on other data."""

from __future__ import annotations

import time
from dataclasses import dataclass

from cstonet.analyses.base import AnyAnalysis
from cstonet.analyses.results import CausalResults
from cstonet.crossfit.workforce import Workforce
from cstonet.data.design import AnyDesign
from cstonet.memory import explained, release_freed, sizes
from cstonet.settings.options import FitOptions
from cstonet.settings.plan import Plan


@dataclass(frozen=True, slots=True)
class Recipe:
    """An analysis with the options of a fit, before any data.

    Attributes
    ----------
    analysis
        The analysis.
    options, preset
        Its options, automatic ones among them, and the name under which they were asked for.
    """

    analysis: AnyAnalysis
    options: FitOptions
    preset: str

    def plan(self, design: AnyDesign, seed: int) -> Plan:
        """Every automatic option resolved for these data."""
        return self.analysis.plan(design, self.options, preset=self.preset, seed=seed)

    def fit(self, design: AnyDesign, seed: int, workforce: Workforce) -> CausalResults:
        """Train the networks and estimate the effects.

        Parameters
        ----------
        design
            Data that the analysis has read, or the same with some of them replaced.
        seed
            Governs everything random.
        workforce
            Who does the work, and who is told about it.
        """
        began = time.perf_counter()
        analysis, plan = self.analysis, self.plan(design, seed)
        design.treatment.check_folds(plan.folds, design.weights)
        needs = sizes(design.X)
        with explained("training", needs):
            trained = analysis.train(design, plan, workforce)
        release_freed()
        workforce.announce("estimating")
        with explained("predictions and estimates", needs):
            nuisances = analysis.nuisances(design, plan, trained)
            estimates = analysis.estimate(design, plan, nuisances)
            runtime = time.perf_counter() - began
            results = analysis.results(design, plan, trained, nuisances, estimates, runtime)
        results.recipe = self
        return results
