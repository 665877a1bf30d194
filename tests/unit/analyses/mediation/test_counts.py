"""Counts as outcomes of a mediation analysis."""

from __future__ import annotations

import numpy as np
import pandas as pd

# An interval of this level misses once in 16 000 fits.
ALPHA = 6e-5


def test_direct_and_indirect_effects_on_counts(fit_quickly):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(800, 4))
    treat = (rng.random(800) < 1 / (1 + np.exp(-0.5 * x[:, 0]))).astype(int)
    m = 0.8 * treat + 0.3 * x[:, 0] + rng.normal(size=800)
    y = rng.poisson(np.exp(0.2 + 0.3 * treat + 0.3 * m + 0.2 * x[:, 0]))
    data = pd.DataFrame(x, columns=list("abcd")).assign(treat=treat, m=m, y=y)
    fitted = fit_quickly("y ~ treat | . | m", data, family="poisson")

    def mean(direct, through):
        """E y under a direct effect of one level and the mediator of another: log-normal."""
        spread = 0.3**2 + (0.3 * 0.3 + 0.2) ** 2
        return np.exp(0.2 + 0.3 * direct + 0.3 * 0.8 * through + spread / 2)

    truth = {
        "TE": mean(1, 1) - mean(0, 0),
        "NDE": mean(1, 0) - mean(0, 0),
        "NIE": mean(1, 1) - mean(1, 0),
    }
    for name, value in truth.items():
        effect = fitted.effect(name, alpha=ALPHA)
        assert effect.lower < value < effect.upper
        assert effect.se < 0.25
