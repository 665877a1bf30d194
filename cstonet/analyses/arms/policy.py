"""Whom to treat: a shallow tree over covariates, learned from doubly robust scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cstonet.analyses.arms.heterogeneity import HeterogeneousEffects
from cstonet.analyses.results import Data
from cstonet.data.arrays import as_names
from cstonet.data.columns import listing
from cstonet.data.covariates import CovariateSpec, LevelBlock, NumericBlock
from cstonet.data.design import Design
from cstonet.data.frames import answers_in_kind
from cstonet.data.matrix import dense_part
from cstonet.data.treatment import Arms
from cstonet.errors import (
    DataError,
    MissingValuesError,
    NotAvailableError,
    OptionError,
    UnknownColumnError,
)
from cstonet.estimators.nuisances import FloatArray, Nuisances
from cstonet.estimators.policy_tree import DEEPEST, Leaf, Tree, actions
from cstonet.estimators.policy_value import PolicyProblem, cut_points, estimate_policy
from cstonet.reporting.inference import check_alpha
from cstonet.reporting.policy import PolicyValue, RuleCovariate, rule_text
from cstonet.settings.checks import as_whole, check_truth, is_real
from cstonet.shown import shown
from cstonet.suggestions import did_you_mean

# Covariates that a rule may look at, unless the user names more.
MOST_COVARIATES = 15


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A treatment rule, and what it is worth.

    Attributes
    ----------
    tree : Leaf or Split
        The rule, learned from all units. Its covariates are numbers in `covariates`.
    covariates : tuple of str
        Covariates that it could look at.
    rule : str
        The rule as text.
    worth : PolicyValue
        Value and gains of rules learned in the same manner from other folds than those they are
        judged by.
    assigned : Series
        What the rule assigns to the units of the fit.
    """

    tree: Tree
    covariates: tuple[str, ...]
    rule: str
    worth: PolicyValue
    assigned: pd.Series[Any]
    _design: Design[Arms] = dataclasses.field(repr=False)

    @property
    def value(self) -> float:
        """Mean outcome if everyone were treated by the rule, costs taken off, out of fold."""
        return self.worth.value

    @property
    def value_se(self) -> float:
        """Standard error of the value."""
        return self.worth.value_se

    @property
    def gains(self) -> pd.DataFrame:
        """Gains over the same level for everyone, such as none or all treated, out of fold."""
        return self.worth.gains

    @property
    def used(self) -> tuple[str, ...]:
        """Covariates that the rule looks at."""
        return tuple(name for j, name in enumerate(self.covariates) if j in _used(self.tree))

    @answers_in_kind
    def assign(self, data: Data | None = None) -> pd.Series[Any]:
        """The level that the rule assigns to each unit.

        Parameters
        ----------
        data : DataFrame, array or None
            New units; of a frame, the columns behind `used` suffice. None: the units of the fit.

        Returns
        -------
        Series
            Levels of the treatment.

        Raises
        ------
        UnknownColumnError, MissingValuesError, UnseenLevelError
            If a column that the rule looks at is absent, or has a gap or a new level.
        """
        if data is None:
            return self.assigned.copy()
        spec = self._design.spec
        if spec.source == "frame":
            spec = _restricted(spec, self.used)
        data = dataclasses.replace(self._design, spec=spec).new_units(data)
        if not hasattr(data, "shape"):
            raise DataError(
                "data must be a frame of new units, or an array if the fit had one; got "
                f"{type(data).__name__}."
            )
        index = data.index if isinstance(data, pd.DataFrame) else pd.RangeIndex(data.shape[0])
        X = np.zeros((len(index), len(self.covariates)))
        if self.used:
            gaps = spec.sources(data).gaps().counts
            if gaps:
                raise MissingValuesError(
                    f"data: values are missing in {listing(gaps)}. A rule needs all values that it "
                    "looks at: leave these rows out, or fill the gaps in."
                )
            columns = spec.transform(data)
            for name in self.used:
                place = spec.names.index(name)
                part = dense_part(columns, slice(None), slice(place, place + 1))
                X[:, self.covariates.index(name)] = part[:, 0]
        return _levels_of(self.tree, X, index, self._design.treatment)

    def __str__(self) -> str:
        levels, share = self._design.treatment.levels, self.assigned.value_counts(normalize=True)
        shares = ", ".join(f"{level}: {100 * share.get(level, 0.0):.0f} %" for level in levels)
        return "\n".join(
            [
                f"Rule for {self._design.treatment_name}, learned from all units",
                "",
                *(f"  {line}" for line in self.rule.splitlines()),
                "",
                f"Assigned: {shares}",
                "",
                "Out of fold: rules learned from other folds than those they are judged by",
                str(self.worth),
            ]
        )


# Beyond this, sums of costs could overflow.
_DEAREST = 1e150


class TreatmentRules(HeterogeneousEffects):
    """Questions about whom to treat."""

    def policy(
        self,
        depth: int = 2,
        *,
        cost: float | Mapping[Any, float] = 0.0,
        covariates: Sequence[str] | None = None,
        larger_is_better: bool = True,
        alpha: float = 0.05,
    ) -> Policy:
        """A shallow decision tree that says whom to treat, and what that is worth.

        The tree maximises the doubly robust value of treating by it (Athey and Wager 2021); the
        search is exact to a depth of two. What it is worth is estimated out of fold, by rules
        learned from the other folds.

        Parameters
        ----------
        depth : {0, 1, 2, 3}
            At most so many conditions in a row; 0: the same level for everyone.
        cost : float or dict
            Cost per unit of any level but the first, or of each by its label, in units of the
            outcome. Treatment is assigned where it gains more than it costs.
        covariates : sequence of str, optional
            Covariates, or columns of the formula, that the rule may look at; by default those
            selected for the outcome, at most 15 and the strongest of them.
        larger_is_better : bool
            Whether large outcomes are wanted; False: small ones.
        alpha : float
            One minus the confidence level.

        Returns
        -------
        Policy
            `rule`, `value`, `value_se`, `gains`, `assign(data)`; print it.

        Raises
        ------
        OptionError, UnknownColumnError
            If an argument cannot be used.
        NotAvailableError
            If nothing was selected and no covariates are named, or the fit is not cross-fitted.
        """
        self._check_in_memory("policy()")
        self._check_out_of_fold("policy()")
        check_truth(larger_is_better, "larger_is_better")
        check_alpha(alpha)
        levels = as_whole(depth)
        if levels is None or not 0 <= levels <= DEEPEST:
            raise OptionError(
                f"depth must be a whole number from 0 to {DEEPEST}, not {shown(depth)}."
            )
        places = self._rule_covariates(covariates) if levels else []
        X = np.column_stack(
            [np.empty((self.nobs, 0)), *(self._rule_column(place) for place in places)]
        )
        problem = PolicyProblem(
            X=X,
            cuts=[cut_points(column) for column in X.T],
            depth=levels,
            costs=self._costs(cost),
            sign=1.0 if larger_is_better else -1.0,
        )
        clip = self.effects.clip

        def estimate(nuisances: Nuisances) -> Any:
            return estimate_policy(nuisances, problem, clip=clip)

        rewards = problem.rewards(self.nuisances, clip)
        tree = problem.learned(rewards, self.nuisances.unit_weights)
        spoken = [_spoken(self.design, place, X[:, j]) for j, place in enumerate(places)]
        return Policy(
            tree=tree,
            covariates=tuple(self.design.covariates[place] for place in places),
            rule=rule_text(tree, spoken, self.arms.levels),
            worth=PolicyValue.of(self._effects_by(estimate), self.arms.levels, alpha),
            assigned=_levels_of(tree, X, self.design.index, self.arms),
            _design=self.design,
        )

    def _rule_covariates(self, names: Sequence[str] | None) -> list[int]:
        """Numbers of the covariates that a rule may look at."""
        known = self.design.covariates
        if names is None:
            table = self.selection
            chosen = table[table["outcome"]].sort_values("strength", ascending=False, kind="stable")
            if chosen.empty:
                raise NotAvailableError(
                    "no covariate was selected for the outcome, so there is nothing that a rule "
                    "could look at. Name some with covariates=[...], or ask for depth=0."
                )
            return sorted(known.index(str(name)) for name in chosen.index[:MOST_COVARIATES])
        named = as_names(names)
        if not named:
            raise OptionError(
                "covariates must be a list of names, such as covariates=['age']; got "
                f"{shown(names)}."
            )
        columns = self.design.spec.covariates_of_columns()
        places: list[int] = []
        for name in named:
            if name in known:
                places.append(known.index(name))
            elif name in columns:
                places += columns[name]
            else:
                raise UnknownColumnError(
                    f"covariates: {shown(name)} is no covariate of this fit; they are "
                    f"{listing(known)}."
                    f"{did_you_mean(str(name), [*known, *columns])}"
                )
        return list(dict.fromkeys(places))

    def _rule_column(self, place: int) -> FloatArray:
        """Values of a covariate, shape (n,)."""
        part = dense_part(self._complete_covariates(), slice(None), slice(place, place + 1))
        return np.asarray(part[:, 0], dtype=np.float64)

    def _costs(self, cost: float | Mapping[Any, float]) -> FloatArray:
        """Cost of every level, shape (L,)."""
        costs = np.zeros(len(self.arms.levels))
        if isinstance(cost, Mapping):
            for level, value in cost.items():
                costs[self.arms.code_of(level, "cost")] = _real(value)
        else:
            costs[1:] = _real(cost)
        return costs


def _real(cost: object) -> float:
    if not is_real(cost) or abs(float(cost)) > _DEAREST:
        raise OptionError(
            f"cost must be a number, in units of the outcome, or one for each level as a "
            f"dictionary; got {shown(cost)}."
        )
    return float(cost)


def _levels_of(tree: Tree, X: FloatArray, index: pd.Index, arms: Arms) -> pd.Series[Any]:
    """Labels of what a tree assigns."""
    codes = actions(tree, X)
    return pd.Series([arms.levels[code] for code in codes], index=index, name=arms.name)


def _used(tree: Tree) -> set[int]:
    """Numbers of the covariates that a tree looks at."""
    if isinstance(tree, Leaf):
        return set()
    return {tree.covariate} | _used(tree.below) | _used(tree.above)


def _restricted(spec: CovariateSpec, names: Sequence[str]) -> CovariateSpec:
    """The part of a specification that makes these covariates, and perhaps some beside them."""
    blocks = []
    for block in spec.blocks:
        own = tuple(name for name in block.names if name in names)
        if own:
            blocks.append(NumericBlock(own) if isinstance(block, NumericBlock) else block)
    return dataclasses.replace(spec, blocks=tuple(blocks))


def _spoken(design: Design[Arms], place: int, values: FloatArray) -> RuleCovariate:
    """How a rule speaks of a covariate: of a category's indicator, by column and category."""
    name = design.covariates[place]
    for block in design.spec.blocks:
        if isinstance(block, LevelBlock) and name in block.names:
            return RuleCovariate(
                block.column.name, str(block.column.levels[1:][block.names.index(name)])
            )
    distinct = np.unique(values)
    return RuleCovariate(name, f"{distinct[-1]:g}" if len(distinct) == 2 else None)
