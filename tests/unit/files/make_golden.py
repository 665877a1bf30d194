"""How tests/golden/fit_format_1.cst was made. It is not to be made again: it must load for ever."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import cstonet as cs
from cstonet.settings.options import StageOptions
from cstonet.settings.presets import preset

GOLDEN = Path(__file__).parents[2] / "golden"


def units(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x1", "x2", "x3"])
    frame["region"] = pd.Categorical(rng.choice(["north", "south"], n))
    frame["treat"] = (rng.random(n) < 1 / (1 + np.exp(-frame["x1"]))).astype(int)
    frame["y"] = frame["x1"] + 2 * frame["treat"] + rng.normal(size=n)
    return frame


def make() -> None:
    base = preset("calibrated")
    training = replace(base.training, stages=(StageOptions(epochs=2),))
    search = replace(base.search, training=training, hidden=(2, 2), rounds=2)
    small = {"hidden": (2, 2), "folds": 2, "starts": 1, "ensemble": 1, "repeats": 1}
    options = base.replace(training=training, search=search, **small)
    results = cs.fit(
        "y ~ treat | x1 + center(x2) + x3 + region", units(60, 1), options=options, seed=1, n_jobs=1
    )
    results.save(GOLDEN / "fit_format_1.cst")
    new = units(8, 2)
    expected = {
        "params": results.params.to_dict(),
        "bse": results.bse.to_dict(),
        "cate": results.cate(new).tolist(),
        "propensity": results.propensity(new).tolist(),
        "selected": results.selection.index[results.selection["outcome"]].tolist(),
    }
    (GOLDEN / "fit_format_1.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    make()
