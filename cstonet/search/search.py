"""Structure search: the covariates of each model, from the empty support outwards.

Two moves alternate with refits of a small working network on the current support:

grow
    Admit covariates whose score tests (:mod:`cstonet.search.scores`) exceed sqrt(2 log m) + margin
    among the m scores of all covariates. Covariates that the other model holds already come
    first: they are few, so m counts only those, and confounders are found at a lower bar. The
    treatment model grows when the outcome model, whose signal is mostly stronger, has found what
    it needs. Where covariates share a common factor each of them is a proxy for those that
    matter, and the largest score of many proxies is larger than the score of a true cause.
prune
    Drop a covariate that would not be admitted again if it were left out, now that it is one of
    few. Tested from the last admitted backwards: false ones come late, when little is left to
    explain. Once three in a row have proved needed, only those are tested that came in with a
    score that others could have explained.

When neither finds anything, covariates that move the *ranks* of the outcome's residuals, or of
their sizes, are tried once: a pure interaction has no other trace than the spread it makes.

At last, covariates found for the treatment alone are asked whether they may matter to the outcome
(`StructureSearch.doubtful`): the others can stay out of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from cstonet.network.structure import Model, Structure
from cstonet.search.inclusion import Inclusion, Weighed, prior_log_odds
from cstonet.search.predictors import Scored
from cstonet.search.scope import SearchScope
from cstonet.search.scores import Candidate, Largest, ScoreTests, threshold
from cstonet.search.screening import screen
from cstonet.search.working import Working, WorkingNetworks, weighted_tests
from cstonet.settings.options import SearchOptions
from cstonet.settings.plan import MANY_ROWS

Kind = Literal["screen", "grow", "prune", "keep", "try", "weigh"]

# Moves that decide whether a covariate is in a model.
_JUDGEMENTS = ("grow", "try", "keep", "prune")
# A score that leaves no doubt: 3 of it are left if others explain 90 % of the covariate.
_WITHOUT_DOUBT = 10.0
# Covariates admitted per round: few while the support is small and residuals still mislead.
_FIRST_ADMISSIONS, _GROWTH = 2, 3
# How much more than the largest of few null scores is asked of covariates that a model holds.
_MARGIN_AMONG_FEW = 0.2
# Pruning goes back from the last admitted; once so many in a row have proved needed, it skips those
# without doubt.
_KEPT_IN_A_ROW = 3
# Covariates in doubt that are still tried then: where many matter, a false one among them is one
# of many slopes.
_MOST_DOUBTED = 6
# Units of the rarest arm that a covariate of the treatment needs: scores of fewer are not normal.
_ROWS_PER_COVARIATE = 10
# How often a test at AIC's price of a parameter, z² > 2, is passed by chance.
_AIC_SIZE = float(chdtrc(1, 2.0))


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a search, for the record."""

    fold: int
    round: int
    move: Kind
    model: Model
    covariate: int
    score: float
    threshold: float


class StructureSearch:
    """The search of one fold.

    Parameters
    ----------
    networks
        The fold's working networks; scores use the rows of these.
    options
        Resolved options.
    screen
        How many covariates take part; None: all.
    scope
        What the search may do.
    """

    def __init__(
        self,
        networks: WorkingNetworks[Any],
        options: SearchOptions,
        *,
        screen: int | None = None,
        scope: SearchScope | None = None,
    ) -> None:
        self._scope = SearchScope() if scope is None else scope
        self._best_of: tuple[int, ...] = ()
        self._networks = networks
        self._options = options
        self._screened = screen
        self._round, self._last_round = 0, options.rounds
        self._tried: set[int] = set()
        # The last look at a covariate, and those that proved needed when they were left out.
        self._judged: dict[tuple[Model, int], Candidate] = {}
        self._kept: set[tuple[Model, int]] = set()
        # What the last look at all covariates outside a model saw, and the network it looked at.
        self._outside: dict[Model, tuple[Working, Largest]] = {}
        self._open = np.ones(networks.data.covariates.columns, dtype=bool)
        self.moves: list[Move] = []

    @property
    def rescues(self) -> tuple[str, ...]:
        """Why working networks were trained again with smaller steps."""
        return tuple(self._networks.rescues)

    def run(self) -> Structure:
        """Grow and prune until nothing changes; return the supports."""
        structure = Structure(self._held("treatment"), self._held("outcome"))
        if self._scope.one_of:
            scores = self._tests(self._networks.refit(structure), "outcome").largest(
                self._scope.one_of
            )
            self._best_of = (self._scope.one_of[int(np.argmax(scores.main))],)
            structure = structure.with_outcome(self._held("outcome"))
        if self._screened is not None:
            self._screen(self._screened)
        # What stands out among few rows does so among all; the rest is judged by all of them.
        if not self._networks.sees_all:
            structure = self._grow(structure)
            self._networks.look_at_all()
            self._last_round += self._round  # all rows have rounds of their own
        while True:
            structure = self._grow(structure)
            structure = self._prune(structure)
            tried = self._try_ranks(structure)
            if tried == structure:
                return structure
            structure = tried

    def doubtful(self, structure: Structure) -> tuple[int, ...]:
        """Covariates found for the treatment alone that may matter to the outcome all the same.

        Their scores for the outcome pass a test about as lenient as AIC's, too lenient to call them
        found, but enough not to rely on a linear term alone.
        """
        waiting = structure.of_treatment_alone
        if not waiting:
            return ()
        tests = self._tests(self._networks.kept(structure), "outcome")
        scores = tests.largest(waiting).main
        each = 1 - (1 - _AIC_SIZE) ** (1 / tests.main_tests_per_covariate)
        bar = -float(ndtri(each / 2))
        found = [
            Candidate(covariate, float(score), bar, float(score))
            for covariate, score in zip(waiting, scores, strict=True)
            if score > bar
        ]
        self._record("weigh", "outcome", found)
        return tuple(candidate.covariate for candidate in found)

    def inclusion(self, structure: Structure) -> Inclusion:
        """Probabilities that covariates belong to the models, given the search that found these.

        Covariates outside have the scores of the last network that all were held against, those
        inside the scores that they were kept with when last left out.
        """
        self._leave_out(structure)
        treatment, outcome = (self._weigh(structure, model) for model in ("treatment", "outcome"))
        return Inclusion(treatment, outcome)

    def _leave_out(self, structure: Structure) -> None:
        """Score covariates anew that are in doubt still: a few of them, those in most doubt."""
        waiting = {
            model: sorted(
                (j for j in _supports(structure, model)[0] if self._is_doubted(model, j)),
                key=lambda j, model=model: self._judged[model, j].score,  # type: ignore[misc]
            )[:_MOST_DOUBTED]
            for model in self._scope.models
        }
        while any(waiting.values()):
            tested = {model: queue.pop() for model, queue in waiting.items() if queue}
            working = self._networks.refit(_without_all(structure, tested))
            for model, covariate in tested.items():
                largest = self._tests(working, model).largest([covariate])
                self._judged[model, covariate] = replace(
                    self._judged[model, covariate],
                    score=float(largest.overall[0]),
                    main=float(largest.main[0]),
                )

    def _weigh(self, structure: Structure, model: Model) -> NDArray[np.float32]:
        known, working = self._networks.latest
        tests = self._tests(working, model)
        seen_in, outside = self._outside.get(model, (None, None))
        scores = tests.largest() if outside is None or seen_in is not working else outside
        held = self._held(model)
        own, other = (
            tuple(j for j in support if j not in held) for support in _supports(structure, model)
        )
        # What is outside has passed no bar; a score that has is that of a feature without content.
        bar = self._among_all(tests.tests_per_covariate, model)
        np.minimum(scores.overall, bar, out=scores.overall)
        np.minimum(scores.main, scores.overall, out=scores.main)
        for covariate in {*own, *_supports(known, model)[0]}.difference(held):
            judged = self._judged[model, covariate]
            scores.overall[covariate], scores.main[covariate] = judged.score, judged.main
        weighed = Weighed(
            scores,
            tests.tests_per_covariate,
            tests.main_tests_per_covariate,
            len(self._networks.rows),
            prior_log_odds(len(self._open), own, other),
        )
        rivals = tests.stand_ins({j: float(scores.main[j]) for j in own})
        probabilities = weighed.probabilities(rivals)
        probabilities[list(held)] = np.nan  # nobody asked whether they belong there
        return probabilities

    def _grow(self, structure: Structure) -> Structure:
        """Admit covariates until there is none left to admit."""
        while self._round < self._last_round:
            self._round += 1
            working = self._networks.kept(structure, renew=True)
            outcome = self._admit(structure, working, "outcome")
            structure = structure.with_outcome(structure.outcome + outcome)
            if outcome:
                continue
            if "treatment" not in self._scope.models:
                break
            treatment = self._admit(structure, working, "treatment")
            structure = structure.with_treatment(structure.treatment + treatment)
            if not treatment:
                break
        return structure

    def _admit(self, structure: Structure, working: Working, model: Model) -> tuple[int, ...]:
        tests = self._tests(working, model)
        support, other = _supports(structure, model)
        most = _FIRST_ADMISSIONS + len(support) // _GROWTH
        if model == "treatment":
            most = min(most, self._networks.rarest // _ROWS_PER_COVARIATE - len(support))
            if most <= 0:
                return ()
        closed = {*support, *(self._scope.barred if model == "treatment" else ())}
        shared = [j for j in dict.fromkeys((*other, *self._scope.familiar)) if j not in closed]
        confounders = self._nowhere()
        confounders.main[shared] = self._among_few(tests.main_tests_per_covariate, len(shared))
        inside = sorted(closed)
        beyond = self._beyond(support)
        found = tests.admit(confounders, inside=inside, most=most, beyond=beyond) or tests.admit(
            self._everywhere(tests, model), inside=inside, most=most, beyond=beyond
        )
        if tests.outside is not None:
            self._outside[model] = working, tests.outside
        self._record("grow", model, found)
        return tuple(candidate.covariate for candidate in found)

    def _beyond(self, support: tuple[int, ...]) -> tuple[int, ...]:
        """Covariates whose share in others is not scored: those inside, where rows are many.

        Few rows do not show what a network gets wrong about its own covariates, and there the score
        of a covariate as it is finds more.
        """
        return support if len(self._networks.rows) >= MANY_ROWS else ()

    def _prune(self, structure: Structure) -> Structure:
        """Drop what is not needed. The models share no weights, so one refit serves both."""
        waiting = {
            model: [
                j for j in reversed(_supports(structure, model)[0]) if j not in self._held(model)
            ]
            for model in self._scope.models
        }
        kept = dict.fromkeys(waiting, 0)
        while any(waiting.values()):
            tested = {model: queue.pop(0) for model, queue in waiting.items() if queue}
            working = self._networks.refit(_without_all(structure, tested))
            for model, covariate in tested.items():
                if not self._is_needed(covariate, structure, working, model):
                    kept[model] = 0
                    structure = _without(structure, model, covariate)
                    continue
                kept[model] += 1
                if kept[model] >= _KEPT_IN_A_ROW:
                    doubted = [j for j in waiting[model] if self._is_doubted(model, j)]
                    waiting[model] = doubted[:_MOST_DOUBTED]
        return structure

    def _is_doubted(self, model: Model, covariate: int) -> bool:
        """Whether a covariate may have come in for another one that was not yet there.

        Not if it has proved needed when it was left out, was admitted without doubt, or is held.
        """
        known = (model, covariate)
        if covariate in self._held(model):
            return False
        return known not in self._kept and self._judged[known].score < _WITHOUT_DOUBT

    def _held(self, model: Model) -> tuple[int, ...]:
        """Covariates that a model never drops."""
        held = self._scope.held(model)
        return held + self._best_of if model == "outcome" else held

    def _is_needed(
        self, covariate: int, structure: Structure, working: Working, model: Model
    ) -> bool:
        """Whether a model fitted without a covariate of its own would admit it again."""
        size = len(_supports(structure, model)[0])
        tests = self._tests(working, model)
        largest = tests.largest([covariate])
        score, main = float(largest.overall[0]), float(largest.main[0])
        needed = self._among_few(tests.tests_per_covariate, size)
        keep = score > needed or main > self._among_few(tests.main_tests_per_covariate, size)
        judged = Candidate(covariate, score, needed, main)
        self._record("keep" if keep else "prune", model, [judged])
        return keep

    def _try_ranks(self, structure: Structure) -> Structure:
        """Put covariates that move ranks of the outcome's residuals, or of their size, to the test.

        A score is divided by its own spread. Where a square or a product acts, the residuals are
        so long-tailed that it stays small however strong the signal is; ranks have no tails.
        """
        families = self._networks.data.families
        if self._round >= self._last_round or set(families) == {"binomial"}:
            return structure
        weights = self._weights()
        working = self._networks.kept(structure)

        def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
            rank = pd.Series(values).rank().to_numpy() / len(values)
            centred: NDArray[np.float64] = weights * (rank - np.average(rank, weights=weights))
            return centred

        predictors = []
        for family, part in zip(families, working.outcome, strict=True):
            if family == "binomial":  # residuals of two values have no tails
                continue
            predictors.append(Scored(ranks(part.residual), part.modifiers))
            if family == "gaussian":  # the size of a count's residual is a matter of its mean
                predictors.append(Scored(ranks(np.abs(part.residual))))
        tests = ScoreTests(self._networks.covariates, predictors)
        # At the bar of the ordinary tests, which are more: ranks are a second look at the same.
        critical = self._everywhere(self._tests(working, "outcome"), "outcome")
        critical.overall[list(self._tried)] = np.inf
        found = tests.admit(
            critical,
            inside=structure.outcome,
            most=_FIRST_ADMISSIONS,
            beyond=self._beyond(structure.outcome),
        )
        self._record("try", "outcome", found)
        new = tuple(candidate.covariate for candidate in found)
        self._tried.update(new)
        return structure.with_outcome(structure.outcome + new)

    def _screen(self, size: int) -> None:
        """Sure independence screening: keep the covariates of largest score."""
        working = self._networks.refit(Structure())
        screened = screen(
            {model: self._tests(working, model) for model in self._scope.models}, size
        )
        self._open[:] = False
        self._open[screened.chosen] = True
        for model in self._scope.models:
            self._record("screen", model, screened.chosen_for(model))

    def _nowhere(self) -> Largest:
        """Critical values that nothing exceeds."""
        return Largest(*(np.full(len(self._open), np.inf) for _ in range(2)))

    def _everywhere(self, tests: ScoreTests, model: Model) -> Largest:
        """Critical values for a search among all covariates that take part."""
        critical = self._nowhere()
        critical.overall[self._open] = self._among_all(tests.tests_per_covariate, model)
        return critical

    def _among_all(self, tests_per_covariate: int, model: Model) -> float:
        """Critical value among all covariates that take part."""
        options = self._options
        asked = options.outcome_margin if model == "outcome" else options.treatment_margin
        margin = float(asked)  # a plan's: no longer "auto"
        tests = int(self._open.sum()) * tests_per_covariate
        return threshold(tests, len(self._networks.rows), margin)

    def _among_few(self, tests_per_covariate: int, covariates: int) -> float:
        """Critical value among covariates that one of the models holds already."""
        tests = covariates * tests_per_covariate
        return threshold(tests, len(self._networks.rows), _MARGIN_AMONG_FEW)

    def _tests(self, working: Working, model: Model) -> ScoreTests:
        parts = working.outcome if model == "outcome" else working.treatment
        return weighted_tests(self._networks.data, self._networks.covariates, parts)

    def _weights(self) -> NDArray[np.float64]:
        return np.asarray(self._networks.data.weights[self._networks.rows], dtype=np.float64)

    def _record(self, move: Kind, model: Model, candidates: list[Candidate]) -> None:
        if move in _JUDGEMENTS:
            self._judged.update({(model, c.covariate): c for c in candidates})
            again = {(model, c.covariate) for c in candidates}
            self._kept = self._kept | again if move == "keep" else self._kept - again
        self.moves += [
            Move(self._networks.fold, self._round, move, model, c.covariate, c.score, c.threshold)
            for c in candidates
        ]


def _supports(structure: Structure, model: Model) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The model's own support and the other model's."""
    if model == "outcome":
        return structure.outcome, structure.treatment
    return structure.treatment, structure.outcome


def _without(structure: Structure, model: Model, covariate: int) -> Structure:
    """The structure with a covariate taken out of one model."""
    rest = tuple(j for j in _supports(structure, model)[0] if j != covariate)
    return structure.with_outcome(rest) if model == "outcome" else structure.with_treatment(rest)


def _without_all(structure: Structure, covariates: dict[Model, int]) -> Structure:
    """The structure with a covariate taken out of each of some models."""
    for model, covariate in covariates.items():
        structure = _without(structure, model, covariate)
    return structure
