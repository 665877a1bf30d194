"""Counts as outcomes of a dose."""

from __future__ import annotations

import numpy as np
import pandas as pd

# An interval of this level misses once in 16 000 fits.
ALPHA = 6e-5


def test_average_slope_of_a_log_linear_curve(fit_quickly):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 4))
    dose = 0.5 * x[:, 0] + rng.normal(size=600)
    y = rng.poisson(np.exp(0.2 + 0.3 * dose + 0.3 * x[:, 0]))
    data = pd.DataFrame(x, columns=list("abcd")).assign(dose=dose, y=y)
    fitted = fit_quickly("y ~ dose | .", data, family="poisson")
    # E(y | do(dose)) has the slope 0.3 E exp(0.2 + 0.3 dose + 0.3 x0), with a normal exponent.
    spread = (0.3 * 0.5 + 0.3) ** 2 + 0.3**2
    truth = 0.3 * np.exp(0.2 + spread / 2)
    effect = fitted.effect("AME", alpha=ALPHA)
    assert effect.lower < truth < effect.upper
    assert effect.se < 0.1
    assert (fitted.predict() > 0).all()
