"""The methods that are compared with the package, and the names of all on the command line.

Peers have the settings that their documentation or common practice suggests. Each is optional:
where its library is missing the runner says so and goes on.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from baselines import BASELINES
from baselines.base import Baseline
from common import Z95, Estimate, Problem, Variables
from own import Preset

import cstonet as cs

FOLDS = 5


@dataclass(frozen=True, slots=True)
class Peer:
    """A method of another library.

    Parameters
    ----------
    name : str
        Name of the method.
    modules : tuple of str
        What it needs; loaded before the clock starts.
    function : callable
        ``function(problem, threads, seed)`` gives the estimate.
    """

    name: str
    modules: tuple[str, ...]
    function: Callable[[Variables, int, int], Estimate]

    @property
    def recipe(self) -> str:
        """A peer's settings are those of its function here."""
        return ""

    def prepare(self) -> None:
        """Import the libraries."""
        for module in self.modules:
            importlib.import_module(module)

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """What the library says."""
        return self.function(problem, threads, seed)


def doubleml_lightgbm(problem: Variables, threads: int, seed: int) -> Estimate:
    """DoubleML's interactive regression model with gradient boosting, 300 trees."""
    return _boosted_regression(problem, _boosting(threads, seed), seed)


def doubleml_lightgbm_small(problem: Variables, threads: int, seed: int) -> Estimate:
    """The same with 100 trees of 8 leaves at the library's learning rate: the cheapest boosting."""
    small = {"n_estimators": 100, "num_leaves": 8, "learning_rate": 0.1}
    return _boosted_regression(problem, _boosting(threads, seed) | small, seed)


def _boosted_regression(problem: Variables, boosting: dict[str, Any], seed: int) -> Estimate:
    """DoubleML's interactive regression model with LightGBM of these settings."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    outcome = LGBMClassifier if problem.binary else LGBMRegressor
    return _interactive_regression(problem, outcome(**boosting), LGBMClassifier(**boosting), seed)


def doubleml_lightgbm_stopped(problem: Variables, threads: int, seed: int) -> Estimate:
    """The same with at most 300 trees: growth stops when a tenth of the rows no longer gains.

    Where treatment depends weakly on the covariates, all 300 trees give propensities worse than
    a coin's and intervals several times too wide. Held-out rows tell, without any truth.
    """
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping
    from sklearn.model_selection import train_test_split

    def fit_until_no_gain(fit: Callable[..., Any], X: Any, y: Any, stratify: Any) -> Any:
        train, held_out, y_train, y_held_out = train_test_split(
            X, y, test_size=0.1, random_state=seed, stratify=stratify
        )
        stopping = [early_stopping(20, verbose=False)]
        return fit(train, y_train, eval_set=[(held_out, y_held_out)], callbacks=stopping)

    class Classifier(LGBMClassifier):
        def fit(self, X: Any, y: Any) -> Any:
            return fit_until_no_gain(super().fit, X, y, y)

    class Regressor(LGBMRegressor):
        def fit(self, X: Any, y: Any) -> Any:
            return fit_until_no_gain(super().fit, X, y, None)

    boosting = _boosting(threads, seed)
    outcome = Classifier if problem.binary else Regressor
    return _interactive_regression(problem, outcome(**boosting), Classifier(**boosting), seed)


def _boosting(threads: int, seed: int) -> dict[str, Any]:
    """LightGBM's settings; what is not named has the library's default."""
    return {
        "n_estimators": 300,
        "learning_rate": 0.05,
        "n_jobs": threads,
        "random_state": seed,
        "verbose": -1,
    }


def doubleml_lasso(problem: Variables, threads: int, seed: int) -> Estimate:
    """DoubleML's interactive regression model with the lasso, penalties by cross-validation."""
    from sklearn.linear_model import LassoCV, LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def logistic() -> Any:
        # liblinear: coordinate descent, made for this penalty.
        model = LogisticRegressionCV(
            Cs=10,
            cv=5,
            l1_ratios=(1.0,),
            solver="liblinear",
            scoring="neg_log_loss",
            use_legacy_attributes=False,
            n_jobs=threads,
            random_state=seed,
        )
        return make_pipeline(StandardScaler(), model)

    lasso = make_pipeline(StandardScaler(), LassoCV(cv=5, n_jobs=threads, random_state=seed))
    return _interactive_regression(
        problem, logistic() if problem.binary else lasso, logistic(), seed
    )


def _interactive_regression(problem: Variables, ml_g: Any, ml_m: Any, seed: int) -> Estimate:
    """The cross-fitted AIPW of DoubleML with these learners."""
    from doubleml import DoubleMLData, DoubleMLIRM

    np.random.seed(seed)  # noqa: NPY002  DoubleML draws its folds from the global state
    data = DoubleMLData.from_arrays(problem.X, problem.y, problem.treat.astype(np.float64))
    model = DoubleMLIRM(data, ml_g=ml_g, ml_m=ml_m, n_folds=FOLDS)
    model.fit(store_predictions=True)
    lower, upper = model.confint(level=0.95).to_numpy()[0]
    mu1, mu0 = (model.predictions[name][:, 0, 0] for name in ("ml_g1", "ml_g0"))
    return Estimate(
        ate=float(model.coef[0]),
        se=float(model.se[0]),
        lower=float(lower),
        upper=float(upper),
        cate=mu1 - mu0,
    )


def econml_forest(problem: Variables, threads: int, seed: int) -> Estimate:
    """EconML's causal forest: mean of its effects over the rows, with its own interval."""
    forest, X = _causal_forest(problem, threads, seed)
    inference = forest.ate_inference(X)
    lower, upper = inference.conf_int_mean(alpha=0.05)
    return Estimate(
        ate=float(np.squeeze(inference.mean_point)),
        se=float(np.squeeze(inference.stderr_mean)),
        lower=float(np.squeeze(lower)),
        upper=float(np.squeeze(upper)),
        cate=forest.effect(X).reshape(-1),
    )


def econml_forest_dr(problem: Variables, threads: int, seed: int) -> Estimate:
    """EconML's causal forest: the doubly robust mean effect on the training rows."""
    forest, X = _causal_forest(problem, threads, seed)
    ate, se = float(np.squeeze(forest.ate_)), float(np.squeeze(forest.ate_stderr_))
    return Estimate(ate, se, ate - Z95 * se, ate + Z95 * se, forest.effect(X).reshape(-1))


def _causal_forest(problem: Variables, threads: int, seed: int) -> tuple[Any, Any]:
    """The fitted forest and the covariates it was fitted to."""
    from econml.dml import CausalForestDML

    X = problem.X
    forest = CausalForestDML(
        discrete_treatment=True,
        discrete_outcome=problem.binary,
        n_jobs=threads,
        random_state=seed,
    )
    outcome = problem.y.astype(np.int64) if problem.binary else problem.y
    forest.fit(outcome, problem.treat, X=X)
    return forest, X


def bart(problem: Variables, threads: int, seed: int) -> Estimate:
    """BART with the treatment as a covariate: posterior of the mean effect over the rows."""
    from stochtree import BARTModel, OutcomeModel

    X = problem.X
    general: dict[str, Any] = {"random_seed": seed, "num_threads": threads}
    if problem.binary:
        general["outcome_model"] = OutcomeModel(outcome="binary", link="probit")
    model = BARTModel()
    model.sample(
        X_train=np.column_stack([X, problem.treat]),
        y_train=problem.y,
        num_gfr=10,
        num_burnin=200,
        num_mcmc=1000,
        general_params=general,
    )
    scale = "probability" if problem.binary else "linear"
    mu0, mu1 = (
        model.predict(np.column_stack([X, np.full(len(X), a)]), terms="y_hat", scale=scale)
        for a in (0.0, 1.0)
    )
    effects = mu1 - mu0  # (n, draws)
    draws = effects.mean(axis=0)
    lower, upper = np.quantile(draws, [0.025, 0.975])
    return Estimate(
        ate=float(draws.mean()),
        se=float(draws.std(ddof=1)),
        lower=float(lower),
        upper=float(upper),
        cate=effects.mean(axis=1),
    )


def ols(problem: Variables, threads: int, seed: int) -> Estimate:  # noqa: ARG001
    """Least squares on the treatment and every covariate, with heteroskedastic errors (HC1)."""
    import statsmodels.api as sm

    design = np.column_stack([problem.treat, np.ones(len(problem.y)), problem.X])
    others = design[:, 1:]
    left = design[:, 0] - others @ np.linalg.lstsq(others, design[:, 0], rcond=None)[0]
    if left @ left < 1e-10 * len(left):
        raise ValueError("the treatment is a linear combination of the covariates")
    fit = sm.OLS(problem.y, design).fit(cov_type="HC1")
    ate, se = float(fit.params[0]), float(fit.bse[0])
    return Estimate(ate, se, ate - Z95 * se, ate + Z95 * se)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("doubleml-lightgbm", ("doubleml", "lightgbm"), doubleml_lightgbm),
        Peer("doubleml-lightgbm-small", ("doubleml", "lightgbm"), doubleml_lightgbm_small),
        Peer(
            "doubleml-lightgbm-stopped",
            ("doubleml", "lightgbm", "sklearn.model_selection"),
            doubleml_lightgbm_stopped,
        ),
        Peer("doubleml-lasso", ("doubleml", "sklearn.linear_model"), doubleml_lasso),
        Peer("econml-forest", ("econml.dml",), econml_forest),
        Peer("econml-forest-dr", ("econml.dml",), econml_forest_dr),
        Peer("bart", ("stochtree",), bart),
        Peer("ols", ("statsmodels.api",), ols),
    )
}

DEFAULT_METHODS = (
    "calibrated,doubleml-lightgbm,doubleml-lightgbm-stopped,doubleml-lasso,econml-forest,bart"
)


def parse_methods(text: str) -> list[Preset | Peer | Baseline]:
    """Methods of a comma-separated list: peers, baselines of the paper, presets of the package."""
    methods: list[Preset | Peer | Baseline] = []
    for name in text.split(","):
        method = PEERS.get(name) or BASELINES.get(name) or Preset(name)
        if isinstance(method, Preset):
            try:
                method.prepare()
            except (cs.errors.OptionError, ValueError) as unknown:
                others = ", ".join([*PEERS, *BASELINES])
                raise argparse.ArgumentTypeError(
                    f"{name!r} is no peer ({others}) and no preset: {unknown}"
                ) from None
        methods.append(method)
    return methods
