"""Effects as ratios: of risks, of odds, of means, and the number needed to treat."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Literal, TypeAlias, get_args

import numpy as np

from cstonet.analyses.arms.effects import ArmsEffects
from cstonet.errors import NotAvailableError
from cstonet.estimators import Effects, Nuisances, estimate_effects
from cstonet.estimators.ratios import log_ratio
from cstonet.estimators.support import hidden_bias_of_mean
from cstonet.reporting.inference import Effect
from cstonet.reporting.ratios import NumberNeeded, Ratio
from cstonet.settings.checks import is_choice
from cstonet.shown import shown

RatioName: TypeAlias = Literal["RR", "OR", "NNT", "ratio"]
RATIOS: tuple[RatioName, ...] = get_args(RatioName)


class Ratios(ArmsEffects):
    """Ratios of the mean outcomes under two levels of the treatment."""

    def effect(
        self, name: str | None = None, *, where: object = None, alpha: float = 0.05
    ) -> Effect:
        """One effect by name, in everyone or in a part of the population.

        Parameters
        ----------
        name : str, optional
            One of `params`, by default the one that leads them. Differences in other populations:
            "ATT", "ATC", "ATO", among those who received the treatment, among those who did not,
            and among those who could have received either (overlap weights p(1 - p)). Ratios, in
            everyone or among the units of `where`:

            - "RR", the risk ratio of a binary outcome, or the rate ratio of counts
              (``family="poisson"``);
            - "OR", the odds ratio of a binary outcome;
            - "NNT", the number needed to treat, one over the risk difference of a binary outcome;
            - "ratio", the ratio of the means of any outcome whose means are positive.

            A multilevel treatment has all of them for any two of its levels: "RR[b-a]" is that of b
            over a, "ATT[b-a]" the effect of b against a among those who received b, "ATC[b-a]"
            among those who received a, "ATO[b-a]" with weights p_a p_b / (p_a + p_b).
        where : optional
            Only among some units: see `ArmsEffects.effect`.
        alpha : float
            One minus the confidence level.

        Returns
        -------
        Effect
            Estimate, standard error, confidence limits and p-value. Those of ratios are a
            :class:`~cstonet.reporting.ratios.Ratio`: limits are those of the log by the delta
            method, and the p-value is that of a ratio of one. "NNT" is a
            :class:`~cstonet.reporting.ratios.NumberNeeded`, whose interval runs through infinity
            where that of the risk difference holds zero.
        """
        kind = _kind(name)
        if name is None or kind is None:
            return super().effect(name, where=where, alpha=alpha)
        contrast = self._compared(name, kind)
        self._check_outcome(name, kind)
        if kind == "NNT":
            difference = super().effect(f"ATE{name[len(kind) :]}", where=where, alpha=alpha)
            return NumberNeeded.from_difference(difference, name)
        means = self.effects if where is None else self._means_among(name, contrast, where)
        b, a = (means.n_contrasts + code for code in contrast)
        log = log_ratio(means, (b, a), name=name, odds=kind == "OR")
        return Ratio.from_log(Effect.of(log, name, alpha))

    def _compared(self, name: str, kind: RatioName) -> tuple[int, int]:
        """Codes of the two levels in the name of a ratio."""
        levels = self.arms.levels
        known: dict[str, tuple[int, int]] = {kind: (1, 0)}
        if self._multilevel:
            pairs = itertools.permutations(reversed(range(len(levels))), 2)
            known = {f"{kind}[{levels[b]}-{levels[a]}]": (b, a) for b, a in pairs}
        if not is_choice(name, known):
            raise NotAvailableError(
                f"this fit has no effect {shown(name)}; it has {', '.join(list(known)[:3])}"
                f"{', ...' if len(known) > 3 else ''}"
            )
        return known[name]

    def _check_outcome(self, name: str, kind: RatioName) -> None:
        """Raise NotAvailableError if a ratio says nothing about outcomes of this kind."""
        rates = kind == "RR" and self.design.family == "poisson"
        if kind == "ratio" or rates or bool(np.isin(self.design.y, (0.0, 1.0)).all()):
            return
        instead = name.replace(kind, "ratio", 1)
        raise NotAvailableError(
            f"{name} is for outcomes that are 0 or 1, and {self.design.outcome_name!r} holds other "
            f"numbers. For the ratio of its means use effect({instead!r})."
        )

    def _means_among(self, name: str, contrast: tuple[int, int], where: object) -> Effects:
        """The mean outcomes of some units, with weights and slopes of their own."""
        part, arms = self._part(name, contrast, where), self.arms

        def estimate(nuisances: Nuisances) -> Effects:
            return estimate_effects(
                nuisances.among(part.mask),
                levels=arms.levels,
                clip=part.clip,
                variance=self.effects.variance_kind,
                kind=arms.kind,
            )

        effects, (b, a) = self._effects_by(estimate), contrast
        bias = np.zeros(len(effects.names))
        for arm, other in ((b, a), (a, b)):
            hidden = hidden_bias_of_mean(part.overlap, part.nuisances, arm, other)
            bias[effects.n_contrasts + arm] = hidden
        return dataclasses.replace(effects, bias=bias) if bias.any() else effects


def _kind(name: str | None) -> RatioName | None:
    """Which ratio a name asks for, if any: "RR[b-a]" and "RR" for a risk ratio."""
    for kind in RATIOS:
        if isinstance(name, str) and (name == kind or name.startswith(f"{kind}[")):
            return kind
    return None
