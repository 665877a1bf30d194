"""How probable it is that a covariate belongs to a model, given what a fold has seen.

After a search, by Bayes factors of its score tests. A weight with one observation's worth of
prior information, tested by a score z on n rows, has the Bayes factor exp(z²/2) / sqrt(n) against
zero, up to a factor near one: the BIC's. A covariate that matters does so in one of its ways in,
as likely in a simple effect as in any other, and in each of either kind as likely as in the next
one; the largest score of d stands for all of them, exp(z²/2) / (d sqrt(n)), which is a lower
bound. Prior odds are

- of a covariate that the other model holds: one among these, since a confounder is no surprise,
- of any other: as many as were found, and at least one, among the rest.

A covariate that was found may stand in for another one that is correlated with it. If its effect
is put back into the residuals, others have scores as well, and the effect, if there is one, is that
of one of them: the single-effect model of Wang, Sarkar, Carbonetto and Stephens (2020). Its
probability is that of an effect times its share o_j / (o_j + Σ o_k) in the odds of all, the o's by
the scores with the effect put back; the rest of the effect's probability goes to the others.

Where networks are pruned instead, the weights say it: each belongs to the slab with some posterior
probability, and a covariate to a model if a path of such weights leads there. The most probable
path stands for all of them, again a lower bound; it is measured just before pruning
(``slab_paths`` in csrc/core/sparse).

Each fold knows only the rows that it trains on, and probabilities are averaged over the folds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from cstonet.network.structure import Model
from cstonet.network.trained import OUTCOME, TREATMENT
from cstonet.search.scores import Largest


@dataclass(frozen=True, slots=True, eq=False)
class Inclusion:
    """Probabilities that covariates belong to the models, as one fold sees it, shape (p,) each."""

    treatment: NDArray[np.float32]
    outcome: NDArray[np.float32]

    def of(self, model: Model) -> NDArray[np.float32]:
        """Those of one model."""
        return self.outcome if model == "outcome" else self.treatment


class PrunedNetwork(Protocol):
    """What the probabilities ask of a network that was pruned."""

    @property
    def inputs(self) -> NDArray[np.int64]:
        """Indices of the covariates that are still connected, (q,)."""

    @property
    def slab_paths(self) -> list[NDArray[np.float64]]:
        """Probabilities (p,) of the paths to the treatment and to every outcome."""


class WeighedFold(Protocol):
    """What the probabilities ask of a fold."""

    @property
    def inclusion(self) -> Inclusion | None:
        """What is known of the covariates there; None if that says little."""


def prior_log_odds(
    covariates: int, own: Sequence[int], other: Sequence[int]
) -> NDArray[np.float64]:
    """Log of the prior odds that covariates belong to a model, shape (p,).

    Parameters
    ----------
    covariates
        How many there are, p.
    own, other
        Those found for the model, and for the other model.
    """
    rest = max(covariates - len(other), 1)
    log_odds = np.full(covariates, math.log(max(len(set(own) - set(other)), 1) / rest))
    log_odds[list(other)] = -math.log(max(len(other), 1))
    return log_odds


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """The evidence for every covariate of a model.

    Attributes
    ----------
    scores
        Largest |z| of each, over all directions and over simple effects.
    tests, main_tests
        How many scores these are the largest of.
    rows
        Rows behind a score.
    log_odds : (p,)
        Prior odds.
    """

    scores: Largest
    tests: int
    main_tests: int
    rows: int
    log_odds: NDArray[np.float64]

    def probabilities(self, rivals: Mapping[int, NDArray[np.float64]]) -> NDArray[np.float32]:
        """Posterior probabilities, shape (p,).

        Parameters
        ----------
        rivals
            Of every covariate in the model: the scores of simple effects, its own included, with
            its effect put back into the residuals, (p,).
        """
        effect = expit(self.log_odds + self._log_factors(self.scores.overall, self.scores.main))
        probabilities = effect.copy()
        inside, nobodys = list(rivals), np.ones_like(effect)
        for covariate, scores in rivals.items():
            odds = self.log_odds + self._log_factors(scores, scores)
            own = odds[covariate]
            if self.scores.overall[covariate] > self.scores.main[covariate]:
                # No simple effect: how others would stand in for that is not known.
                alone = self._log_factors(self.scores.overall, scores)[covariate]
                own = max(own, self.log_odds[covariate] + alone)
            odds[inside] = -np.inf
            odds[covariate] = own
            share = effect[covariate] * softmax(odds)
            probabilities[covariate] = share[covariate]
            share[covariate] = 0.0
            nobodys *= 1 - share
        rest = np.ones(len(effect), dtype=bool)
        rest[inside] = False
        probabilities[rest] = 1 - ((1 - probabilities) * nobodys)[rest]
        narrow: NDArray[np.float32] = probabilities.astype(np.float32)
        return narrow

    def _log_factors(
        self, overall: NDArray[np.float64], main: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Log Bayes factors of any effect, given the largest scores over all and simple ones."""
        factors: NDArray[np.float64] = np.logaddexp(
            self._log_factor(overall, self.tests), self._log_factor(main, self.main_tests)
        )
        return factors

    def _log_factor(self, z: NDArray[np.float64], tests: int) -> NDArray[np.float64]:
        """Log Bayes factors if the largest of some scores stands for half of the ways in."""
        factor: NDArray[np.float64] = 0.5 * (z**2 - math.log(self.rows)) - math.log(2 * tests)
        return factor


def pruned_inclusion(networks: Sequence[PrunedNetwork], inputs: int) -> Inclusion | None:
    """What pruned networks say about the covariates, on average.

    None if nothing was pruned, or so little that a network reads more than half of the covariates
    still: its weights are then where the start has put them, and say nothing about the data.

    Parameters
    ----------
    networks
        After training.
    inputs
        Covariates that they read before they were pruned.
    """
    for net in networks:
        if not net.slab_paths or 2 * len(net.inputs) > inputs:
            return None
    treatment = np.mean([net.slab_paths[TREATMENT] for net in networks], axis=0)
    outcome = np.mean([np.max(net.slab_paths[OUTCOME:], axis=0) for net in networks], axis=0)
    return Inclusion(treatment.astype(np.float32), outcome.astype(np.float32))


def mean_inclusion(folds: Sequence[WeighedFold], model: Model) -> NDArray[np.float64] | None:
    """Probabilities that covariates belong to a model, averaged over the folds; shape (p,).

    None where a fold has none.
    """
    known = [fold.inclusion.of(model) for fold in folds if fold.inclusion is not None]
    if len(known) < len(folds):
        return None
    mean: NDArray[np.float64] = np.mean(known, axis=0, dtype=np.float64)
    return mean
