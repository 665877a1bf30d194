"""What a fit returns: effects and their inference, predictions, diagnostics, the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet import diagnostics
from cstonet.errors import MissingValuesError, UnknownColumnError, UnseenLevelError
from cstonet.estimators import Effects, Nuisances
from cstonet.estimators.nuisances import FloatArray
from cstonet.inference import EffectInference

if TYPE_CHECKING:
    from cstonet.design import Design
    from cstonet.tables import CausalSummary

Data: TypeAlias = "pd.DataFrame | NDArray[Any]"


class Prediction(Protocol):
    """What networks say about m units and L treatment levels."""

    @property
    def mu(self) -> FloatArray:
        """Outcome regressions μ̂_a(x), shape (m, L)."""

    @property
    def propensity(self) -> FloatArray:
        """Treatment probabilities p̂_a(x), shape (m, L)."""


class Plan(Protocol):
    """What the results need of a resolved plan."""

    @property
    def preset(self) -> str:
        """Name of the preset."""

    @property
    def folds(self) -> int:
        """Number of folds; 1 is the in-sample fit."""

    @property
    def repeats(self) -> int:
        """Repetitions of the cross-fitting."""

    @property
    def starts(self) -> int:
        """Number of starts per fold."""

    @property
    def seed(self) -> int:
        """Seed of everything random."""

    @property
    def network_label(self) -> str:
        """Widths of the layers, such as "100-8-6-5-1"."""


class Networks(Protocol):
    """What the results need of the fitted networks."""

    @property
    def n_nonzero(self) -> int:
        """Weights that were kept."""

    @property
    def n_weights(self) -> int:
        """Weights there were."""

    @property
    def trace(self) -> pd.DataFrame:
        """Training history."""

    def predict(self, X: NDArray[np.floating]) -> Prediction:
        """Nuisances of new units, X of shape (m, p) in the units of the data."""


class CausalResults(EffectInference):
    """A fitted Causal-StoNet, in the manner of a statsmodels results object.

    Parameters
    ----------
    design : Design
        The data.
    plan : Plan
        The resolved options.
    effects : Effects
        Estimates with their covariance.
    nuisances : Nuisances
        (Out-of-fold) nuisances of the training rows.
    selection : DataFrame
        One row per covariate: selected for `treatment`, for `outcome`, how often, how strongly.
        ``selection.attrs["fits"]`` is the number of networks behind the counts.
    networks : Networks
        The fitted networks.
    notes : tuple of str
        What training wants the reader of the summary to know.
    runtime : float
        Seconds spent.
    """

    def __init__(
        self,
        *,
        design: Design,
        plan: Plan,
        effects: Effects,
        nuisances: Nuisances,
        selection: pd.DataFrame,
        networks: Networks,
        notes: tuple[str, ...],
        runtime: float,
    ) -> None:
        super().__init__(effects, design.outcome_name)
        self.design = design
        self.plan = plan
        self.nuisances = nuisances
        self.selection = selection
        self.networks = networks
        self.notes = notes
        self.runtime = runtime

    @property
    def nobs(self) -> int:
        """Number of units."""
        return self.nuisances.n

    @property
    def influence(self) -> pd.DataFrame:
        """Influence values of the estimates, one row per unit."""
        names = list(self.effects.names)
        return pd.DataFrame(
            self.effects.influence, index=self.design.index, columns=names, copy=True
        )

    def potential_outcomes(self, data: Data | None = None) -> pd.DataFrame:
        """Expected outcome under each treatment.

        Parameters
        ----------
        data : DataFrame, array or None
            New units. None: the training rows, predicted out of fold if the fit is cross-fitted.

        Returns
        -------
        DataFrame
            One column per treatment level.
        """
        mu, _, index = self._nuisances_of(data)
        columns = pd.Index(self.design.treatment_levels, name=self.design.treatment_name)
        return pd.DataFrame(mu, index=index, columns=columns, copy=True)

    def cate(self, data: Data | None = None) -> pd.Series[float]:
        """Conditional average treatment effect μ̂_1(x) - μ̂_0(x) of each unit.

        Parameters
        ----------
        data : DataFrame, array or None
            See `potential_outcomes`.

        Returns
        -------
        Series
        """
        mu, _, index = self._nuisances_of(data)
        return pd.Series(mu[:, 1] - mu[:, 0], index=index, name="CATE")

    def propensity(self, data: Data | None = None) -> pd.Series[float]:
        """Estimated probability of the second treatment level, not clipped.

        Parameters
        ----------
        data : DataFrame, array or None
            See `potential_outcomes`.

        Returns
        -------
        Series
        """
        _, propensity, index = self._nuisances_of(data)
        return pd.Series(propensity[:, 1], index=index, name="propensity", copy=True)

    def predict(self, data: pd.DataFrame | None = None) -> pd.Series[float]:
        """Expected outcome of each unit under the treatment it received.

        Parameters
        ----------
        data : DataFrame or None
            New units with their treatment. None: the training rows, see `potential_outcomes`.

        Returns
        -------
        Series
        """
        codes = self.nuisances.treatment if data is None else self._treatment_codes(data)
        mu, _, index = self._nuisances_of(data)
        expected = np.take_along_axis(mu, codes[:, None], axis=1)[:, 0]
        return pd.Series(expected, index=index, name=self.design.outcome_name)

    def overlap(self) -> pd.DataFrame:
        """Distribution of the propensities per arm, see `cstonet.diagnostics.overlap`."""
        return diagnostics.overlap(
            self.nuisances, levels=self.design.treatment_levels, clip=self.effects.clip
        )

    def balance(self) -> pd.DataFrame:
        """Covariate balance before and after weighting, see `cstonet.diagnostics.balance`."""
        return diagnostics.balance(
            self.nuisances,
            self.design.X,
            covariates=self.design.covariates,
            clip=self.effects.clip,
        )

    @property
    def trace(self) -> pd.DataFrame:
        """Training history: one row per fold, start, stage and epoch."""
        return self.networks.trace

    @property
    def default_model_infos(self) -> dict[str, Any]:
        """Rows that statsmodels' `summary_col` shows below the estimates."""
        return {
            "No. Observations": lambda results: str(results.nobs),
            "No. Covariates": lambda results: str(len(results.design.covariates)),
        }

    def summary(self, alpha: float = 0.05) -> CausalSummary:
        """Tables of the fit, its effects and its selected covariates, with notes.

        Parameters
        ----------
        alpha : float
            One minus the confidence level.

        Returns
        -------
        CausalSummary
            A `statsmodels.iolib.summary.Summary`: as_text, as_html, as_latex, as_csv.
        """
        # statsmodels takes a second to import: only those who print pay for it.
        from cstonet.summary import summarize

        return summarize(self, alpha=alpha)

    def __repr__(self) -> str:
        return f"<CausalResults: {self.effect('ATE')}, n = {self.nobs}; summary() for more>"

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def _nuisances_of(self, data: Data | None) -> tuple[FloatArray, FloatArray, pd.Index]:
        """Regressions (m, L), propensities (m, L) and row labels of new or training units."""
        if data is None:
            return self.nuisances.mu, self.nuisances.propensity, self.design.index
        prediction = self.networks.predict(self.design.spec.transform(data))
        index = data.index if isinstance(data, pd.DataFrame) else pd.RangeIndex(len(data))
        return prediction.mu, prediction.propensity, index

    def _treatment_codes(self, data: pd.DataFrame) -> NDArray[np.int64]:
        """Codes of the treatments that new units received, shape (m,)."""
        name, levels = self.design.treatment_name, self.design.treatment_levels
        if not isinstance(data, pd.DataFrame) or name not in data.columns:
            raise UnknownColumnError(
                f"data: predict needs a frame with the treatment column {name!r}; for the outcome "
                "under either treatment use potential_outcomes"
            )
        if data[name].isna().any():
            raise MissingValuesError(
                f"data: column {name!r} has {data[name].isna().sum()} missing values; "
                "fill or drop them, or use potential_outcomes"
            )
        # A plain dictionary equates 1, 1.0 and True, as the user does.
        lookup = {level: code for code, level in enumerate(levels)}
        values = data[name].tolist()
        unseen = [value for value in values if value not in lookup]
        if unseen:
            raise UnseenLevelError(
                f"data: column {name!r} holds {unseen[0]!r}, but the fit knows only "
                f"{', '.join(repr(level) for level in levels)}"
            )
        return np.array([lookup[value] for value in values], dtype=np.int64)
