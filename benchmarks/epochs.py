"""A network of fixed shape for timing: its data, and options that train it for so many epochs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from cstonet.settings.options import FitOptions
from cstonet.settings.presets import preset

HIDDEN, BATCH = (32, 16, 8), 100


def regression_data(n: int, p: int) -> pd.DataFrame:
    """Numeric covariates, a treatment that depends on the first, an outcome on the first two."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, p)), columns=[f"x{j}" for j in range(1, p + 1)])
    treat = rng.random(n) < 1 / (1 + np.exp(-frame["x1"].to_numpy()))
    y = frame["x1"].to_numpy() + frame["x2"].to_numpy() * treat + rng.normal(size=n)
    return pd.concat([pd.DataFrame({"y": y, "a": treat.astype(np.int64)}), frame], axis=1)


def with_epochs(name: str, epochs: int) -> FitOptions:
    """A preset's rules on the benchmark's network: one stage with the prior, nothing pruned."""
    base = preset(name if name == "calibrated" else "paper:simulation1")
    stage = next(stage for stage in base.training.stages if stage.prior != "none")
    stage = replace(stage, epochs=epochs, prune=False)
    # No rows are held out, so that an epoch is nothing but its minibatches.
    training = replace(base.training, stages=(stage,), batch_size=BATCH, estimate_variance=False)
    return base.replace(
        training=training,
        hidden=HIDDEN,
        treatment_layer=2,
        search=None,
        starts=1,
        folds=1,
        repeats=1,
        validation_fraction=0.0,
    )
