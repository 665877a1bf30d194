"""Methods for other questions than the ATE: the effect among the treated, and several arms.

They have the names of the methods that estimate the ATE, and their settings, but for one: see
``ARMS_DOUBLEML``. What has no version of its own for a question is left out of its protocols.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import peers_doubleml as dml
from baselines.base import Baseline
from common import FORMULA, Z95, Estimate, FloatArray, Method, Problem, Record
from field_data import ARMS_NAMES, ArmsProblem, arms_estimate
from least_squares import Adjusted, adjust, adjust_within_arms
from own import Preset, plan_digest
from peers import DOUBLEML, LearnerChoice, Peer
from peers_linear import ols_treated
from peers_trees import econml_forest_dr_treated, mean_among_treated, sample_bart, sample_bcf

import cstonet as cs

Question: TypeAlias = Literal["ATE", "ATT", "arms"]


@dataclass(frozen=True, slots=True)
class TreatedPreset(Preset):
    """A preset of the package, asked for the effect among the treated."""

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """The ATT by AIPW with the fitted networks."""
        results = cs.fit(
            FORMULA,
            problem.data,
            preset=self.preset,
            estimand="ATT",
            seed=seed,
            n_jobs=threads,
            **self.changes,
        )
        effect = results.effect("ATT")
        return Estimate(
            ate=effect.estimate,
            se=effect.se,
            lower=effect.lower,
            upper=effect.upper,
            extra={"plan": plan_digest(results.plan), "estimable": bool(results.estimable)},
        )


@dataclass(frozen=True, slots=True)
class ArmsPreset(Preset):
    """A preset of the package, on data with several arms."""

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """The effects of all arms against the reference."""
        assert isinstance(problem, ArmsProblem)
        results = self.fit(problem, threads=threads, seed=seed)
        limits = results.conf_int()
        found = {
            name: _figures(results.params[name], results.bse[name], *limits.loc[name])
            for name in problem.truths
        }
        return arms_estimate(problem, found, plan=plan_digest(results.plan))


def _figures(estimate: float, se: float, lower: float, upper: float) -> Record:
    return {
        "estimate": float(estimate),
        "se": float(se),
        "lower": float(lower),
        "upper": float(upper),
    }


def arms_by_doubleml(
    learners_of: dml.LearnersOf, problem: ArmsProblem, threads: int, seed: int
) -> Estimate:
    """DoubleML's average potential outcomes of all arms, as differences with the reference."""
    from doubleml import DoubleMLAPOS, DoubleMLData

    X = _covariates(problem)
    learners = learners_of(dml.Task(problem.binary, X.shape[1], threads, seed))
    np.random.seed(seed)  # noqa: NPY002  DoubleML draws its folds from the global state
    data = DoubleMLData.from_arrays(X, problem.y, problem.arms.astype(np.float64))
    model = DoubleMLAPOS(
        data,
        ml_g=learners.outcome,
        ml_m=learners.treatment,
        treatment_levels=list(range(len(ARMS_NAMES))),
        n_folds=dml.FOLDS,
    )
    model.fit()
    contrasts = model.causal_contrast(reference_levels=0)
    limits = contrasts.confint(level=0.95).to_numpy()
    values = zip(contrasts.thetas, contrasts.ses, *limits.T, strict=True)
    found = {name: _figures(*each) for name, each in zip(problem.truths, values, strict=True)}
    return arms_estimate(problem, found)


def arms_by_ols(problem: ArmsProblem, threads: int, seed: int) -> Estimate:  # noqa: ARG001
    """Least squares on an indicator of every arm and every covariate, with HC1 errors."""
    indicators = (problem.arms[:, None] == np.arange(1, len(ARMS_NAMES))).astype(np.float64)
    return _arms_estimate(problem, adjust(problem.y, indicators, _covariates(problem)))


def arms_by_interacted_ols(problem: ArmsProblem, threads: int, seed: int) -> Estimate:  # noqa: ARG001
    """The same with slopes of each arm's own, see `peers_linear.ols_interacted`."""
    effects, _ = adjust_within_arms(problem.y, problem.arms, _covariates(problem))
    return _arms_estimate(problem, effects)


def _covariates(problem: ArmsProblem) -> FloatArray:
    return problem.data.drop(columns=["y", "treat"]).to_numpy(np.float64)


def _arms_estimate(problem: ArmsProblem, effects: Adjusted) -> Estimate:
    values = zip(problem.truths, effects.coefficients, effects.errors, strict=True)
    found = {name: _figures(b, se, b - Z95 * se, b + Z95 * se) for name, b, se in values}
    return arms_estimate(problem, found)


# The coverage page of several arms has learners of its own for one peer.
ARMS_DOUBLEML = DOUBLEML | {
    "doubleml-lightgbm-slow": LearnerChoice(dml.lightgbm_slow_arms, ("lightgbm",), version=2)
}

TREATED_PEERS = {
    peer.name: peer
    for peer in (
        *(
            choice.peer(name, dml.interactive_regression, "ATTE")
            for name, choice in DOUBLEML.items()
        ),
        Peer("econml-forest-dr", ("econml.dml",), econml_forest_dr_treated),
        Peer("bart", ("stochtree",), partial(mean_among_treated, sample_bart)),
        Peer("bcf", ("stochtree",), partial(mean_among_treated, sample_bcf)),
        Peer("ols", (), ols_treated),
    )
}
ARMS_PEERS = {
    peer.name: peer
    for peer in (
        *(choice.peer(name, arms_by_doubleml) for name, choice in ARMS_DOUBLEML.items()),
        Peer("ols", (), arms_by_ols),
        Peer("ols-interacted", (), arms_by_interacted_ols),
    )
}


def for_question(methods: Iterable[Method], question: Question) -> list[Method]:
    """The same methods as they answer a question; says which have no answer to it.

    Parameters
    ----------
    methods : iterable of Method
        Methods for the ATE, as the command line gives them.
    question : {"ATE", "ATT", "arms"}
        What a protocol asks.
    """
    if question == "ATE":
        return list(methods)
    peers = TREATED_PEERS if question == "ATT" else ARMS_PEERS
    preset = TreatedPreset if question == "ATT" else ArmsPreset
    answering: list[Method] = []
    for method in methods:
        if isinstance(method, Preset):
            answering.append(preset(method.name))
        elif not isinstance(method, Baseline) and method.name in peers:
            answering.append(peers[method.name])
        else:
            print(f"{method.name}: skipped, it has no answer for {question}", file=sys.stderr)
    return answering
