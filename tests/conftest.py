"""Shared fixtures: small known data, results around fake networks, and options for quick fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.analyses.arms.cautions import overlap_warnings
from cstonet.analyses.arms.estimation import ArmsNuisances
from cstonet.analyses.arms.prediction import Prediction
from cstonet.analyses.arms.results import ArmsResults
from cstonet.analyses.notes import in_sample_warning
from cstonet.analyses.results import CausalResults, FitRecord
from cstonet.data.variables import BlockFamily
from cstonet.estimators import CrossFit, Nuisances, estimate_effects
from cstonet.estimators.support import Overlap
from cstonet.network.spec import NetworkSpec, causal_network
from cstonet.search.selection import Selection
from cstonet.settings.options import FitOptions, StageOptions, TrainingOptions
from cstonet.settings.plan import Architecture
from cstonet.settings.presets import preset

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate-golden",
        action="store_true",
        help="rewrite the files under tests/golden instead of comparing with them",
    )


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with tests/golden/<name>, or rewrite that file under --regenerate-golden."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--regenerate-golden"):
            path.write_text(text + "\n", encoding="utf-8")
        assert path.exists(), f"{name} is missing: run pytest --regenerate-golden and read it"
        assert text + "\n" == path.read_text(encoding="utf-8")

    return check


def known_nuisances(
    n: int, rng: np.random.Generator, *, family: str = "gaussian", weighted: bool = False
) -> tuple[np.ndarray, Nuisances]:
    """Draw (X, nuisances) from a design whose nuisances are known: they are the true ones.

    One covariate of three confounds. Gaussian: τ(x) = 2 + x1, so the population ATE is 2.
    """
    X = rng.normal(size=(n, 3))
    p1 = 1 / (1 + np.exp(-X[:, 0]))
    treatment = rng.binomial(1, p1)
    if family == "binomial":
        mu = 1 / (1 + np.exp(-(X[:, [0]] + np.array([-0.5, 0.5]))))
        y = rng.binomial(1, mu[np.arange(n), treatment]).astype(float)
    else:
        mu = X[:, [0]] * np.array([1.0, 2.0]) + np.array([0.0, 2.0])
        y = mu[np.arange(n), treatment] + rng.normal(size=n)
    return X, Nuisances(
        y=y,
        treatment=treatment.astype(np.int64),
        mu=mu,
        propensity=np.column_stack([1 - p1, p1]),
        weights=rng.uniform(0.5, 2, size=n) if weighted else None,
        fold=np.arange(n) % 3,
    )


@pytest.fixture(scope="session")
def draw_nuisances() -> Callable[..., tuple[np.ndarray, Nuisances]]:
    return known_nuisances


@dataclass(frozen=True)
class FakePlan:
    preset: str = "calibrated"
    folds: int = 3
    starts: int = 4
    repeats: int = 1
    seed: int = 1
    clip: float = 0.01
    clip_by_share: bool = False
    variance: str = "paper"
    network_label: str = "3-8-4-1"
    unites_supports: bool = True
    adjusts_linearly: bool = False
    adjusts_by_slopes: bool = False
    backbone: bool = False
    estimand: str = "ATE"
    screen: int | None = None
    search: str | None = "score tests"

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class FakeNetworks:
    gaps = None
    n_nonzero = 41
    n_weights = 16_209
    trace = pd.DataFrame({"fold": [0], "start": [0], "stage": ["train"], "epoch": [1]})
    bic = pd.DataFrame({"fold": [0], "start": [0], "bic": [1.0], "chosen": [True]})


class KnownResults(ArmsResults):
    """Results that predict new units by the formulas of `known_nuisances`, gaussian."""

    def _predict(self, data: Any) -> Prediction:
        X = self.design.spec.transform(data)
        p1 = 1 / (1 + np.exp(-X[:, 0]))
        mu = X[:, [0]] * np.array([1.0, 2.0]) + np.array([0.0, 2.0])
        return Prediction(mu, np.column_stack([1 - p1, p1]))


def fake_selection(covariates: tuple[str, ...], n_selected: int, fits: int) -> Selection:
    """Select the first `n_selected` covariates, less and less convincingly."""
    rank = np.arange(len(covariates))
    outcome_count = np.where(rank < n_selected, np.maximum(fits - rank // 4, 1), 0)
    treatment_count = np.where(rank < n_selected, np.maximum(fits - 3 * rank, 0), 0)
    table = pd.DataFrame(
        {
            "treatment": treatment_count > fits / 2,
            "outcome": rank < n_selected,
            "treatment_frequency": treatment_count / fits,
            "outcome_frequency": outcome_count / fits,
            "treatment_count": treatment_count,
            "outcome_count": outcome_count,
            "treatment_probability": 0.98 * treatment_count / fits,
            "outcome_probability": 0.98 * outcome_count / fits,
            "treatment_strength": np.where(treatment_count > 0, 0.3 / (rank + 1), 0.0),
            "outcome_strength": np.where(rank < n_selected, 0.4 / (rank + 1), 0.0),
            "strength": np.where(rank < n_selected, 0.4 / (rank + 1), 0.0),
        },
        index=pd.Index(covariates, name="covariate"),
    )
    return Selection(table, fits)


def results_with_fakes(
    *,
    n: int = 500,
    n_covariates: int = 3,
    n_selected: int = 1,
    family: str = "gaussian",
    weighted: bool = False,
    clip: float = 0.01,
    variance: str = "paper",
    scale: float = 1.0,
    plan: FakePlan | None = None,
    notes: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
    treatment_name: str = "treat",
    treatment_levels: tuple[Any, ...] = (0, 1),
    **design_fields: Any,
) -> CausalResults:
    """Results on data of `known_nuisances`; `scale` is the unit of the outcome."""
    X, nuisances = known_nuisances(n, np.random.default_rng(7), family=family, weighted=weighted)
    nuisances = replace(nuisances, y=scale * nuisances.y, mu=scale * nuisances.mu)
    X = np.column_stack([X, np.zeros((n, n_covariates - 3))])
    names = [f"x{j + 1}" for j in range(n_covariates)]
    columns = np.column_stack([nuisances.y, nuisances.treatment, X])
    frame = pd.DataFrame(columns, columns=["y", "treat", *names]).astype({"treat": int})
    design = CausalStoNet.from_formula("y ~ treat | .", frame, family=family).design
    arms = replace(design.treatment, name=treatment_name, levels=treatment_levels)
    design = replace(design, treatment=arms, weights=nuisances.weights, **design_fields)
    plan = plan or FakePlan(clip=clip, variance=variance, network_label=f"{n_covariates}-8-4-1")
    effects = estimate_effects(nuisances, levels=treatment_levels, clip=clip, variance=variance)
    record = FitRecord(
        design=design,
        plan=plan,
        networks=FakeNetworks(),
        selection=fake_selection(design.covariates, n_selected, plan.folds * plan.starts),
        notes=notes,
        runtime=1.0,
        warnings=overlap_warnings(nuisances, effects) + in_sample_warning(plan) + warnings,
    )
    overlap = Overlap.of(nuisances.propensity, nuisances)
    return KnownResults(record, effects, ArmsNuisances(CrossFit(nuisances), (), overlap))


@pytest.fixture
def make_results() -> Callable[..., CausalResults]:
    return results_with_fakes


@pytest.fixture
def make_plan() -> type[FakePlan]:
    return FakePlan


def options_for_quick_fits(
    recipe: Literal["search", "prune"] = "search", epochs: int = 12, **changes: Any
) -> FitOptions:
    """Take the shape of the default recipe, or of the paper's, with few epochs and small layers."""
    small: dict[str, Any] = {"hidden": (4, 3), "folds": 2, "starts": 2, "ensemble": 1, "repeats": 1}
    if recipe == "prune":
        stages = (
            StageOptions(epochs=epochs),
            StageOptions(epochs=epochs, prior="mixture", prune=True),
            StageOptions(epochs=epochs, rate_decay="cosine"),
        )
        paper = {"search": None, "validation_fraction": 0.2, "outlier_limit": 1e6}
        return FitOptions(training=TrainingOptions(stages=stages), **(paper | small | changes))
    base = preset("calibrated")
    stages = tuple(replace(stage, epochs=epochs) for stage in base.training.stages)
    training = replace(base.training, stages=stages)
    search = replace(base.search, training=training, hidden=(4, 3), rounds=8)
    return base.replace(**({"training": training, "search": search} | small | changes))


@pytest.fixture(scope="session")
def quick_options() -> Callable[..., FitOptions]:
    return options_for_quick_fits


def network_of_widths(
    inputs: int,
    hidden: tuple[int, ...],
    layer: int,
    *,
    outcome: BlockFamily = "gaussian",
    levels: int = 2,
    continuous: bool = False,
) -> NetworkSpec:
    """Build a network with the treatment in hidden layer `layer`, from 1: arms, or a dose."""
    families: tuple[BlockFamily, BlockFamily] = ("bernoulli", "categorical")
    treatment: BlockFamily = "gaussian" if continuous else families[levels > 2]
    architecture = Architecture(
        inputs=inputs,
        hidden=hidden,
        treatment_layer=layer,
        treatment=treatment,
        outcome=outcome,
        visible_units=1 if continuous else levels - 1,
        treatment_units=1,
        activation="tanh",
        treatment_weight=1.0,
        outcome_temperature=1.0,
    )
    return causal_network(architecture)


@pytest.fixture(scope="session")
def small_network() -> Callable[..., NetworkSpec]:
    return network_of_widths
