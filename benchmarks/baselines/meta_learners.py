"""X-learners: effects imputed with the other arm's regression, then regressed on the covariates.

Künzel, Sekhon, Bickel and Yu (2019). One regression per arm predicts what the rows of the other
arm would have had. The difference to what they had is regressed again, in each arm, and the two
regressions of effects are averaged with the propensity as weight. Settings are the defaults of the
authors' software (R package causalToolbox) where the libraries at hand have them. The authors
bootstrap intervals of rows' effects, and have none of the mean effect: there is none here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from common import Estimate, FloatArray, Variables
from numpy.typing import NDArray
from peers_trees import prediction_scale, sampler_settings

from baselines.base import Baseline

FOREST_TREES = 300

# Trees and draws are the authors'. The burn-in is longer than their 100: it stands in for the
# recursive fits that stochtree can start from, which take far longer than draws where covariates
# are many.
BART_TREES = 200
BURN_IN = 1000
DRAWS = 1200


@dataclass(frozen=True, slots=True, eq=False)
class FittedLearner:
    """An X-learner fitted to training rows.

    Parameters
    ----------
    learner : econml.metalearners.XLearner
        The fitted learner.
    """

    learner: Any

    def on(self, rows: Variables) -> Estimate:
        """The mean of these rows' effects; their outcomes and treatments are not looked at."""
        effects = np.asarray(self.learner.effect(np.asarray(rows.X, np.float64))).reshape(-1)
        return Estimate(float(effects.mean()), np.nan, np.nan, np.nan, effects)


def fit_x_learner(rows: Variables, outcome: Any, effect: Any, treatment: Any) -> FittedLearner:
    """Fit an X-learner with these models.

    Parameters
    ----------
    rows : Variables, n rows
        Training rows.
    outcome, effect : object
        Regressions of both stages, with ``fit`` and ``predict``.
    treatment : object
        Model of the propensity, with ``fit`` and ``predict_proba``.
    """
    from econml.metalearners import XLearner

    learner = XLearner(models=outcome, cate_models=effect, propensity_model=treatment)
    learner.fit(rows.y, rows.treat, X=np.asarray(rows.X, np.float64))
    return FittedLearner(learner)


def learn_forests(rows: Variables, threads: int, seed: int) -> FittedLearner:
    """Random forests in both stages and for the propensity.

    Shares of rows and covariates and sizes of leaves are the authors'. Their forests of effects
    and propensities estimate a tree's leaves from rows that did not choose its splits, which those
    of scikit-learn cannot. They grow 1000 trees; the variance that 300 add to a mean is a 300th of
    one tree's. A regression of outcomes of 0 or 1 gives probabilities.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    general = {"n_estimators": FOREST_TREES, "n_jobs": threads, "random_state": seed}
    return fit_x_learner(
        rows,
        outcome=RandomForestRegressor(max_features=13 / 20, max_samples=0.8, **general),
        effect=RandomForestRegressor(
            max_features=17 / 20, max_samples=0.7, min_samples_leaf=6, **general
        ),
        treatment=RandomForestClassifier(
            max_features=1.0, max_samples=0.5, min_samples_leaf=33, **general
        ),
    )


@dataclass(slots=True, eq=False)
class Bart:
    """BART of stochtree with the interface of scikit-learn.

    Parameters
    ----------
    binary : bool
        Whether the response is 0 or 1, and the model a probit one.
    threads, seed : int
        Threads and seed.
    """

    binary: bool
    threads: int
    seed: int
    model: Any = field(default=None, init=False)

    def fit(self, X: FloatArray, y: NDArray[Any]) -> Bart:
        """Draw from the posterior given covariates (n, p) and a response (n,)."""
        from stochtree import BARTModel

        self.model = BARTModel()
        self.model.sample(
            X_train=X,
            y_train=np.asarray(y, np.float64),
            num_gfr=0,
            num_burnin=BURN_IN,
            num_mcmc=DRAWS,
            general_params=sampler_settings(self.binary, self.threads, self.seed),
            mean_forest_params={"num_trees": BART_TREES},
        )
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Posterior means (m,) at covariates (m, p), probabilities if the response is 0 or 1."""
        scale = prediction_scale(self.binary)
        draws = self.model.predict(X, terms="y_hat", scale=scale)  # (m, draws)
        means: FloatArray = np.asarray(draws, np.float64).mean(axis=1)
        return means

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Probabilities (m, 2) of 0 and 1."""
        ones = self.predict(X)
        return np.column_stack([1 - ones, ones])


def learn_bart(rows: Variables, threads: int, seed: int) -> FittedLearner:
    """BART in both stages and for the propensity.

    Outcomes of 0 or 1 have a probit model; their imputed effects, which are no longer 0 or 1, a
    normal one, as all other outcomes and effects.
    """
    normal = Bart(binary=False, threads=threads, seed=seed)
    probit = Bart(binary=True, threads=threads, seed=seed)
    return fit_x_learner(rows, probit if rows.binary else normal, normal, probit)


_SOURCE = "Künzel, Sekhon, Bickel and Yu (2019), PNAS 116, 4156-4165"

X_LEARNER_FOREST = Baseline(
    name="x-learner-forest",
    modules=("econml.metalearners", "sklearn.ensemble"),
    learn=learn_forests,
    source=_SOURCE,
)

X_LEARNER_BART = Baseline(
    name="x-learner-bart",
    modules=("econml.metalearners", "stochtree"),
    learn=learn_bart,
    source=_SOURCE,
)
