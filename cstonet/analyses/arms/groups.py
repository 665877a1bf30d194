"""Effects that differ between units: by group, and as a linear function of some terms."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cstonet.analyses.arms.effects import FEWEST_UNITS, ArmsEffects
from cstonet.analyses.arms.grouping import Cuts, Grouping, grouped
from cstonet.data.variables import check_scale, differ
from cstonet.errors import FormulaError, InfiniteValuesError, NotAvailableError, TooFewRowsError
from cstonet.estimators import Effects, Nuisances
from cstonet.estimators.groups import estimate_groups
from cstonet.estimators.nuisances import FloatArray, IntArray
from cstonet.estimators.projections import coefficient_weights, estimate_projection
from cstonet.estimators.support import hidden_bias, hidden_bias_of_sums
from cstonet.reporting.effect_projection import Projection
from cstonet.reporting.groups import GroupEffects
from cstonet.reporting.inference import check_alpha
from cstonet.settings.checks import check_truth

# A term that others explain up to this share of its size is one of them.
_DEPENDENT = 1e-7
# Units for each coefficient of a projection: with fewer, its errors are those of single units.
FEWEST_ROWS = 4


class Groups(ArmsEffects):
    """Questions about effects that are not the same for all units."""

    def gate(
        self,
        by: Any,
        *,
        cuts: Cuts = None,
        where: object = None,
        contrast: tuple[Any, Any] | None = None,
        alpha: float = 0.05,
    ) -> GroupEffects:
        """Group average treatment effects, and a test whether they are equal.

        Each is the effect among the units of its group, as ``effect("ATE", where=...)`` gives it:
        weights, slopes, and what extrapolation could hide are those of these units alone.

        Parameters
        ----------
        by : str, or array-like
            A column of the data, in the formula or not, or a covariate; or the labels themselves,
            one for each unit. Groups should not be chosen by a look at the effects.
        cuts : int or sequence of float, optional
            For numbers: how many groups of about equal size, or where to cut them; a unit at a cut
            belongs to the group above it.
        where : optional
            Groups of some units only, see `effect`.
        contrast : (b, a), optional
            Two levels of a multilevel treatment.
        alpha : float
            One minus the confidence level.

        Returns
        -------
        GroupEffects
            `table` with a row per group, pointwise limits and such that hold for all groups
            together; `test` of equal effects; print it.
        """
        check_alpha(alpha)
        self._check_in_memory("gate()")
        pair = self._one_contrast(contrast, "gate()")
        groups = grouped(
            by, cuts, self._variables(), None if where is None else self._chosen(where)
        )
        sizes = self._group_sizes(groups, pair)
        name = self._contrast_name(pair)
        parts = [self._part(name, pair, groups.codes == g) for g in range(len(sizes))]
        clips = [part.clip for part in parts]

        def estimate(nuisances: Nuisances) -> Effects:
            return estimate_groups(nuisances, groups.codes, pair, clips=clips, names=groups.names)

        effects = self._effects_by(estimate)
        if self.imputations is not None:
            # Joint estimates would share the degrees of freedom of the group that has the fewest.
            alone = [self._effects_among(name, "ATE", pair, part) for part in parts]
            freedom = [np.inf if one.freedom is None else one.freedom[0] for one in alone]
            effects = dataclasses.replace(effects, freedom=np.array(freedom))
        bias = np.array([hidden_bias(part.overlap, part.nuisances, "ATE", pair) for part in parts])
        return GroupEffects(
            dataclasses.replace(effects, bias=bias) if bias.any() else effects,
            sizes,
            labels=groups.labels,
            levels=self.arms.levels,
            name=name,
            outcome_name=self.design.outcome_name,
            alpha=alpha,
            seed=self.plan.seed,
        )

    def projection(
        self,
        terms: str,
        *,
        contrast: tuple[Any, Any] | None = None,
        alpha: float = 0.05,
        safe: bool | None = None,
    ) -> Projection:
        """The linear function of some terms that is nearest to the effect of every unit.

        The best linear projection of the conditional average treatment effect, by least squares of
        doubly robust scores on the terms (Semenova and Chernozhukov 2021). It assumes nothing of
        the effect: coefficients say how it changes on average with each term, given the others.

        Parameters
        ----------
        terms : str
            A sum of terms of columns of the data, in the formula or not, and covariates, as in a
            formula: ``"age + C(sex)"``. A constant is added, unless they begin with ``0 +``.
        contrast : (b, a), optional
            Two levels of a multilevel treatment.
        alpha : float
            One minus the confidence level.
        safe : bool, optional
            Whether the terms are limited to plain computations, see
            :meth:`CausalStoNet.from_formula`; else those that are no names are Python code, which
            is run. By default as the formula of the fit was read.

        Returns
        -------
        Projection
            Coefficients under statsmodels' names; `table`; `test` that no term matters; print it.
            Errors are robust to any variance (HC3), and to clusters if the fit has some.
        """
        check_alpha(alpha)
        self._check_in_memory("projection()")
        pair = self._one_contrast(contrast, "projection()")
        if safe is not None:
            check_truth(safe, "safe")
        matrix, names = self._term_matrix(terms, self._read_safely if safe is None else bool(safe))
        clip = self.effects.clip

        def estimate(nuisances: Nuisances) -> Effects:
            return estimate_projection(nuisances, matrix, pair, clip=clip, names=names)

        effects = self._effects_by(estimate)
        bias = hidden_bias_of_sums(
            self._cross_fits.overlap,
            self.nuisances,
            pair,
            coefficient_weights(self.nuisances, matrix),
        )
        return Projection(
            dataclasses.replace(effects, bias=bias) if bias.any() else effects,
            terms=terms,
            name=self._contrast_name(pair),
            outcome_name=self.design.outcome_name,
            alpha=alpha,
            seed=self.plan.seed,
        )

    def _contrast_name(self, contrast: tuple[int, int]) -> str:
        """What the average effect of two levels is called."""
        if not self._multilevel and contrast == (1, 0):
            return "ATE"
        b, a = (self.arms.levels[code] for code in contrast)
        return f"ATE[{b}-{a}]"

    def _group_sizes(self, groups: Grouping, contrast: tuple[int, int]) -> IntArray:
        """Units of each group in each arm, (G, L), enough of them where it matters."""
        levels = self.arms.levels
        # Units of weight zero have no part in any effect.
        inside = (groups.codes >= 0) & (self.nuisances.unit_weights > 0)
        sizes = np.zeros((len(groups.labels), len(levels)), dtype=np.int64)
        np.add.at(sizes, (groups.codes[inside], self.nuisances.treatment[inside]), 1)
        for label, own in zip(groups.labels, sizes, strict=True):
            for code in contrast:
                if own[code] < FEWEST_UNITS:
                    raise NotAvailableError(
                        f"by: group {label!r} of {groups.labels.name!r} has {own[code]} of its "
                        f"{own.sum()} units in arm {levels[code]!r}, and at least {FEWEST_UNITS} "
                        "are needed. Merge it with another group, by labels of your own, or leave "
                        "it out with where=."
                    )
        return sizes

    @property
    def _read_safely(self) -> bool:
        """Whether the formula of the fit was limited to plain computations."""
        return self.recipe is not None and "safe" in self.recipe.call.arguments

    def _term_matrix(self, terms: str, safe: bool) -> tuple[FloatArray, tuple[str, ...]]:
        """Terms of a projection (n, k) and their names, none of which others explain."""
        from cstonet.data.patsy_terms import term_matrix  # only those who ask pay for patsy

        variables = self._variables()
        matrix, names = term_matrix(
            terms,
            variables.names,
            lambda name: variables.values(name, "terms"),
            variables.n,
            safe=safe,
        )
        infinite = ~np.isfinite(matrix).all(axis=0)
        if infinite.any():
            raise InfiniteValuesError(
                f"terms: {names[int(np.argmax(infinite))]!r} is infinite for some units. Change "
                "the term, or correct these rows."
            )
        for name, column in zip(names, matrix.T, strict=True):
            if differ(column):
                check_scale(column, column, f"term {name!r}")
        if len(names) > len(matrix) // FEWEST_ROWS:
            raise TooFewRowsError(
                f"terms: {len(names)} coefficients are too many for {len(matrix)} units: there "
                f"must be at least {FEWEST_ROWS} units for each. Leave terms out, or merge levels."
            )
        counted = matrix * np.sqrt(self.nuisances.unit_weights)[:, None]
        scale = np.linalg.norm(counted, axis=0)
        diagonal = np.abs(np.diag(np.linalg.qr(counted / np.where(scale > 0, scale, 1.0))[1]))
        if len(diagonal) < len(names) or diagonal.min() < _DEPENDENT:
            raise FormulaError(
                f"terms: {names[int(np.argmin(diagonal))]!r} is a linear function of the terms "
                "before it, such as a constant or a copy. Take it out."
            )
        return matrix, names
