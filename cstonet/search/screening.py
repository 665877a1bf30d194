"""Sure independence screening: the covariates of largest score, in a search or without.

Iterated once (Fan and Lv 2008): each model first admits a few covariates one after the other, its
residuals are cleared of what these explain, and the rest is ranked by what is left. By marginal
scores alone, covariates that share a factor with strong ones would crowd out weak ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.network.covariates import FoldCovariates
from cstonet.network.structure import Model
from cstonet.network.training_data import TrainingData, Workplace
from cstonet.search.scores import Candidate, Largest, ScoreTests
from cstonet.search.working import weighted_tests, without_covariates

# Covariates that each model admits before the rest is ranked.
LEADERS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Screened:
    """What a screening left.

    Attributes
    ----------
    chosen : (q,)
        The covariates, best first.
    score : (p,)
        Of every covariate, its largest for any model.
    scores
        Those for each model.
    """

    chosen: NDArray[np.int64]
    score: NDArray[np.float64]
    scores: Mapping[Model, Largest]

    def chosen_for(self, model: Model) -> list[Candidate]:
        """The chosen covariates whose largest score is the one for this model."""
        last, mine = float(self.score[self.chosen].min()), self.scores[model]
        return [
            Candidate(int(j), float(self.score[j]), last, float(mine.main[j]))
            for j in self.chosen
            if mine.overall[j] == self.score[j]
        ]


def screen(tests: Mapping[Model, ScoreTests], size: int) -> Screened:
    """The covariates of largest score for any of the models, its leaders first.

    Parameters
    ----------
    tests
        Of models without covariates. Used up: their residuals are cleared of the leaders.
    size
        How many to keep.
    """
    leaders: set[int] = set()
    scores: dict[Model, Largest] = {}
    for model, test in tests.items():
        admitted: list[Candidate] = []
        for _ in range(min(LEADERS, size)):
            inside = [c.covariate for c in admitted]
            admitted += test.admit(test.nothing_asked(), inside=inside, most=1)
            test.settle()
        left = test.largest()
        for c in admitted:  # a leader's score is the one that it was admitted with
            left.overall[c.covariate], left.main[c.covariate] = c.score, c.main
        leaders.update(c.covariate for c in admitted)
        scores[model] = left
    best = np.max([largest.overall for largest in scores.values()], axis=0)
    follows = np.ones(len(best), dtype=bool)
    follows[list(leaders)] = False
    return Screened(np.lexsort((-best, follows))[:size], best, scores)


def screen_rows(data: TrainingData, place: Workplace, size: int) -> Screened:
    """Screen the covariates of a fit without a search, on the rows that a fold trains on."""
    rows = place.split.known
    working = without_covariates(data, rows)
    covariates = FoldCovariates(data.covariates, rows, threads=place.threads, stop=place.stop)
    tests: dict[Model, ScoreTests] = {
        "outcome": weighted_tests(data, covariates, working.outcome),
        "treatment": weighted_tests(data, covariates, working.treatment),
    }
    return screen(tests, size)
