"""The methods that the paper compares with, by name."""

from __future__ import annotations

from baselines.base import Baseline
from baselines.double_selection import DOUBLE_SELECTION
from baselines.meta_learners import X_LEARNER_BART, X_LEARNER_FOREST
from baselines.neural import NEURAL_BASELINES
from baselines.residual_balancing import RESIDUAL_BALANCING
from baselines.targeted import TMLE_ENSEMBLE, TMLE_LASSO

BASELINES: dict[str, Baseline] = {
    baseline.name: baseline
    for baseline in (
        DOUBLE_SELECTION,
        RESIDUAL_BALANCING,
        TMLE_LASSO,
        TMLE_ENSEMBLE,
        X_LEARNER_FOREST,
        X_LEARNER_BART,
        *NEURAL_BASELINES,
    )
}
