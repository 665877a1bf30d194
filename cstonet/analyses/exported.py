"""Results for other programs: frames, dictionaries, JSON, and tables that others make."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import Any

import pandas as pd

from cstonet.data.design import AnyDesign
from cstonet.errors import OptionError
from cstonet.reporting import exports
from cstonet.reporting.inference import EffectInference
from cstonet.settings.checks import as_whole
from cstonet.settings.plan import Plan
from cstonet.shown import shown

_WIDEST = 100  # spaces before a line of JSON


class Exported(EffectInference):
    """Effects of a fit as other programs take them.

    Attributes
    ----------
    design, plan, selection, notes, warnings, runtime
        See :class:`~cstonet.analyses.results.CausalResults`.
    """

    design: AnyDesign
    plan: Plan
    selection: pd.DataFrame
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    runtime: float

    @property
    @abstractmethod
    def nobs(self) -> int:
        """Number of units."""

    @abstractmethod
    def methods(self) -> str:
        """How the effects were estimated."""

    def tidy(self, alpha: float = 0.05) -> pd.DataFrame:
        """One row per effect, under the names of R's broom.

        Parameters
        ----------
        alpha : float
            One minus the confidence level.

        Returns
        -------
        DataFrame
            Columns `term`, `estimate`, `std_error`, `statistic`, `p_value`, `conf_low`,
            `conf_high`, `df`.
        """
        return exports.tidy(self, alpha)

    def glance(self) -> pd.DataFrame:
        """One row for the fit: the data, the models, how it was made."""
        return pd.DataFrame([self._facts()])

    def to_dict(self, alpha: float = 0.05) -> dict[str, Any]:
        """All that the summary says, as numbers, text and lists of them.

        Parameters
        ----------
        alpha : float
            One minus the confidence level.
        """
        chosen = self.selection[self.selection[["treatment", "outcome"]].any(axis=1)]
        content: dict[str, Any] = exports.plain(
            {
                "fit": self._facts(),
                "alpha": alpha,
                "effects": self.tidy(alpha),
                "covariance": self.effects.covariance,
                "selection": chosen.reset_index(),
                "warnings": self.warnings,
                "notes": self.notes,
                "methods": self.methods(),
                "plan": json.loads(self.plan.to_json()),
            }
        )
        return content

    def to_json(self, alpha: float = 0.05, *, indent: int | None = 2) -> str:
        """The same as JSON text; what is not a finite number is null."""
        spaces = None if indent is None else as_whole(indent)
        if indent is not None and (spaces is None or not 0 <= spaces <= _WIDEST):
            raise OptionError(
                f"indent must be a whole number from 0 to {_WIDEST}, or None; got {shown(indent)}."
            )
        return exports.to_json(self.to_dict(alpha), spaces)

    def _facts(self) -> dict[str, Any]:
        """What `glance` says."""
        from cstonet import __version__

        design, plan, selection = self.design, self.plan, self.selection
        return {
            "formula": design.formula,
            "outcome": design.outcome_name,
            "family": design.family,
            "treatment": design.treatment_name,
            "estimand": self.effects.names[0].partition("[")[0],
            "nobs": self.nobs,
            "covariates": len(design.covariates),
            "selected_treatment": int(selection["treatment"].sum()),
            "selected_outcome": int(selection["outcome"].sum()),
            "clipped": self.effects.n_clipped,
            "estimable": bool(getattr(self, "estimable", True)),
            "preset": plan.preset,
            "folds": plan.folds,
            "repeats": plan.repeats,
            "starts": plan.starts,
            "seed": plan.seed,
            "runtime": self.runtime,
            "version": __version__,
        }

    def comparison_facts(self) -> dict[str, str]:
        """What `cs.compare` says of the fit below its effects."""
        from cstonet.reporting.compare import standard_facts

        return standard_facts(self)

    # Protocol of maketables, which asks results about themselves under these names.

    @property
    def __maketables_coef_table__(self) -> pd.DataFrame:
        names = {"estimate": "b", "std_error": "se", "statistic": "t", "p_value": "p"}
        limits = {"conf_low": "ci95l", "conf_high": "ci95u"}
        table = self.tidy().set_index("term").rename(columns=names | limits)
        return table.drop(columns="df").rename_axis("Coefficient")

    @property
    def __maketables_depvar__(self) -> str:
        return self.design.outcome_name

    @property
    def __maketables_vcov_info__(self) -> dict[str, Any]:
        return {"vcov_type": "influence function", "clustervar": self.design.cluster_name}

    @property
    def __maketables_default_stat_keys__(self) -> list[str]:
        return ["N", "covariates"]

    @property
    def __maketables_stat_labels__(self) -> dict[str, str]:
        return {"N": "Observations", "covariates": "Covariates"}

    def __maketables_stat__(self, key: str) -> Any:
        return self._facts().get({"N": "nobs"}.get(key, key))
