"""A scikit-learn estimator: ``fit(X, y, treatment=...)``, then the effect of each unit.

For pipelines, column transformers and searches over parameters. What it knows more than an
estimator of that library can say, the table of effects and all questions after it, is in
`results_`. Needs scikit-learn: ``pip install 'cstonet[sklearn]'``.

>>> from cstonet.sklearn import CausalStoNetRegressor
>>> model = CausalStoNetRegressor(random_state=1).fit(X, y, treatment=a)  # doctest: +SKIP
>>> model.effect(X_new), model.effect_interval(X_new), model.results_  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstonet.analyses.arms.comparisons import ComparedArms
from cstonet.analyses.results import CausalResults
from cstonet.data.frames import is_frame
from cstonet.data.raw import Missing
from cstonet.data.variables import Family
from cstonet.errors import (
    LengthMismatchError,
    MissingPackageError,
    NotAvailableError,
    OptionError,
)
from cstonet.model import CausalStoNet
from cstonet.reporting.inference import check_alpha

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingPackageError(
        "cstonet.sklearn needs scikit-learn 1.6 or newer: pip install 'cstonet[sklearn]'."
    ) from error

FloatArray = NDArray[np.float64]


class CausalStoNetRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """Causal effects by a sparse stochastic neural network, as scikit-learn estimates.

    Parameters
    ----------
    preset : str
        Named options, see :func:`cstonet.settings.presets.preset`.
    family : {"gaussian", "binomial", "poisson"}, optional
        Distribution of the outcome; inferred by default.
    kind : {"binary", "multilevel", "continuous"}, optional
        Kind of treatment; inferred by default.
    reference : level of the treatment, optional
        What the other levels are compared with; by default the first.
    missing : {"raise", "drop", "mar", "mnar"}
        What to do with missing covariates.
    starts, folds, repeats : int, optional
        Random starts per fold, folds, and repetitions of the cross-fitting; those of the preset by
        default.
    options : dict, optional
        Further options of :class:`cstonet.options.FitOptions`, by name.
    n_jobs : int
        Threads; -1 is every core.
    random_state : int
        Governs everything random.

    Attributes
    ----------
    results_ : CausalResults
        The fit: summary, effects, selection, and all questions after it.
    ate_ : float
        The effect that leads its table.
    n_features_in_ : int
        Number of covariates.
    feature_names_in_ : array of str
        Their names, if a frame was given.

    Notes
    -----
    The treatment is given to `fit` by its name, so that pipelines pass it on:
    ``pipeline.fit(X, y, model__treatment=a)``. New rows need none.
    """

    def __init__(
        self,
        preset: str = "calibrated",
        *,
        family: Family | None = None,
        kind: str | None = None,
        reference: Any = None,
        missing: Missing = "raise",
        starts: int | None = None,
        folds: int | None = None,
        repeats: int | None = None,
        options: Mapping[str, Any] | None = None,
        n_jobs: int = -1,
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.family = family
        self.kind = kind
        self.reference = reference
        self.missing = missing
        self.starts = starts
        self.folds = folds
        self.repeats = repeats
        self.options = options
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        treatment: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
    ) -> CausalStoNetRegressor:
        """Fit the networks and estimate the effects.

        Parameters
        ----------
        X : array, sparse matrix or frame, (n, p)
            Covariates; columns of text or categories in a frame are coded by levels.
        y : array_like, (n,)
            Outcome.
        treatment : array_like, (n,)
            Treatment with two or more levels, or a dose.
        sample_weight : array_like, (n,), optional
            Sampling weights of the rows.
        cluster : array_like, (n,), optional
            Groups of rows that belong together.

        Returns
        -------
        CausalStoNetRegressor
            The estimator itself.
        """
        if treatment is None:
            raise OptionError(
                "fit needs the treatment of every row: fit(X, y, treatment=...), or in a pipeline "
                "fit(X, y, <step>__treatment=...)."
            )
        X, y = self._checked(X, y)
        model = CausalStoNet(
            y,
            treatment,
            X,
            family=self.family,
            treatment=self.kind,
            reference=self.reference,
            missing=self.missing,
            weights=sample_weight,
            cluster=cluster,
        )
        if not isinstance(self.options, Mapping | None):
            raise OptionError(f"options must be a dictionary of options, not {self.options!r}.")
        given = {"starts": self.starts, "folds": self.folds, "repeats": self.repeats}
        changes = {name: value for name, value in given.items() if value is not None}
        self.results_: CausalResults = model.fit(
            self.preset,
            seed=self.random_state,
            n_jobs=self.n_jobs,
            **(changes | dict(self.options or {})),
        )
        self.ate_ = float(self.results_.params.iloc[0])
        return self

    def effect(self, X: Any, *, contrast: tuple[Any, Any] | None = None) -> FloatArray:
        """Effect of each unit.

        Parameters
        ----------
        X : (m, p)
            Covariates.
        contrast : (b, a), optional
            Two levels, or two doses, of the treatment.

        Returns
        -------
        (m,) float64
            Of a multilevel treatment without contrast, (m, L - 1): each level against the
            reference.
        """
        results = self._fitted()
        effects = results.cate(self._new(X), contrast=contrast)
        return np.asarray(effects, dtype=np.float64)

    def effect_interval(
        self, X: Any, *, alpha: float = 0.05, contrast: tuple[Any, Any] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Confidence limits of the effect of each unit, see `cate` of the results.

        Parameters
        ----------
        X : (m, p)
            Covariates.
        alpha : float
            One minus the confidence level.
        contrast : (b, a), optional
            Two levels of the treatment.

        Returns
        -------
        lower, upper : (m,) float64
        """
        results = self._fitted()
        check_alpha(alpha)
        band = results.cate(self._new(X), contrast=contrast, intervals=1 - alpha)
        lower, upper = (np.asarray(band[name], dtype=np.float64) for name in ("lower", "upper"))
        return lower, upper

    def predict(self, X: Any, treatment: ArrayLike | None = None) -> FloatArray:
        """Expected outcome of each unit.

        Parameters
        ----------
        X : (m, p)
            Covariates.
        treatment : array_like, (m,), optional
            What each unit receives; by default treatments as likely as the fit says.

        Returns
        -------
        (m,) float64
        """
        results, X = self._fitted(), self._new(X)
        if not isinstance(results, ComparedArms):
            raise NotAvailableError(
                "predict(X) averages over the levels of a treatment. Of a dose, ask "
                "results_.potential_outcomes(X, dose=...)."
            )
        outcomes = results.potential_outcomes(X).to_numpy()
        if treatment is None:
            likely = np.asarray(results.propensity(X))
            likely = np.column_stack([1 - likely, likely]) if likely.ndim == 1 else likely
            mean: FloatArray = np.sum(outcomes * likely, axis=1)
            return mean
        received = np.asarray(treatment)
        if received.shape != (len(outcomes),):
            raise LengthMismatchError(
                f"treatment must hold one value per row of X, {len(outcomes)} of them; its shape "
                f"is {received.shape}."
            )
        codes = [results.arms.code_of(level, "treatment") for level in received.tolist()]
        expected: FloatArray = outcomes[np.arange(len(codes)), codes]
        return expected

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "raise"
        tags.target_tags.required = True
        return tags

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.results_

    def _new(self, X: Any) -> Any:
        """Covariates of new units, which must have the columns of those fitted."""
        if is_frame(X):
            return validate_data(self, X, reset=False, skip_check_array=True)
        return validate_data(self, X, reset=False, **self._rules())

    def _checked(self, X: Any, y: ArrayLike) -> tuple[Any, Any]:
        """Covariates and outcome as scikit-learn wants them checked; frames keep their columns."""
        if is_frame(X):
            return validate_data(self, X, skip_check_array=True), y
        X, y = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, **self._rules())
        return X, y

    def _rules(self) -> dict[str, Any]:
        """What arrays of covariates may be."""
        return {
            "accept_sparse": ("csc", "csr"),
            "dtype": (np.float64, np.float32),
            "ensure_all_finite": "allow-nan" if self.missing != "raise" else True,
        }
