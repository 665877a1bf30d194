"""Fits of every kind, made once; small, of a number of rows that nothing else is counted by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.analyses.results import CausalResults

ROWS = 211


def simulated(n: int = ROWS, seed: int = 1) -> pd.DataFrame:
    """Six numbers and a category, treatments of all kinds, mediators, outcomes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
    frame["g"] = pd.Categorical(rng.choice(["u", "v", "w"], n))
    frame["treat"] = (rng.random(n) < 1 / (1 + np.exp(-frame["a"]))).astype(int)
    frame["arm"] = np.array(["low", "mid", "high"])[rng.integers(0, 3, n)]
    frame["dose"] = frame["a"] + rng.normal(size=n)
    frame["m1"] = frame["treat"] + frame["a"] + rng.normal(size=n)
    frame["m2"] = rng.normal(size=n)
    frame["y"] = frame["a"] + frame["treat"] + frame["dose"] + rng.normal(size=n)
    frame["yes"] = (frame["y"] > 0).astype(int)
    frame["w"] = rng.uniform(0.5, 2, n)
    frame["visits"] = rng.poisson(np.exp(0.3 * frame["a"] + 0.2 * frame["treat"]))
    frame["village"] = rng.integers(0, 40, n)
    frame["secret"] = "not in the formula"
    return frame


def with_gaps(frame: pd.DataFrame, seed: int = 2) -> pd.DataFrame:
    """The same with values missing in a number and in a category."""
    rng = np.random.default_rng(seed)
    return frame.assign(
        b=frame["b"].mask(rng.random(len(frame)) < 0.1),
        g=frame["g"].mask(rng.random(len(frame)) < 0.1),
    )


PLAIN = "a + b + c + d + e + f + g"
# Formula, keyword arguments of the fit, recipe and changes of the quick options.
FITS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "arms": (f"y ~ treat | {PLAIN}", {}, "search", {"repeats": 2, "keep": ("b",)}),
    "alone": (f"yes ~ treat | {PLAIN}", {}, "search", {"backbone": False, "starts": 1}),
    "att": (f"y ~ treat | {PLAIN}", {"weights": "w"}, "search", {"estimand": "ATT"}),
    "clustered": (f"y ~ treat | {PLAIN}", {"cluster": "village"}, "search", {}),
    "counts": (f"visits ~ treat | {PLAIN}", {"family": "poisson"}, "search", {}),
    "suspected": (f"visits ~ treat | {PLAIN}", {}, "search", {"folds": 2}),
    "levels": (
        "yes ~ arm | a + np.log(b**2 + 1) + center(c):g + bs(d, df=4) + C(g)",
        {},
        "prune",
        {},
    ),
    "dose": (f"y ~ np.exp(dose / 4) | {PLAIN}", {}, "search", {"repeats": 2}),
    "mediation": (f"y ~ treat | {PLAIN} | m1 + m2", {}, "search", {}),
    "mar": (f"y ~ treat | {PLAIN}", {"missing": "mar"}, "search", {"repeats": 2}),
    "mnar": (f"y ~ treat | {PLAIN}", {"missing": "mnar"}, "search", {}),
}


def data_of(kind: str, n: int = ROWS, seed: int = 1) -> pd.DataFrame:
    frame = simulated(n, seed)
    return with_gaps(frame) if kind in ("mar", "mnar") else frame


@pytest.fixture(scope="session")
def fitted(quick_options) -> Callable[[str], CausalResults]:
    made: dict[str, CausalResults] = {}

    def fit(kind: str) -> CausalResults:
        if kind not in made:
            formula, arguments, recipe, changes = FITS[kind]
            options = quick_options(recipe, **changes)
            made[kind] = cs.fit(
                formula, data_of(kind), options=options, seed=1, n_jobs=1, **arguments
            )
        return made[kind]

    return fit


@pytest.fixture(params=list(FITS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
