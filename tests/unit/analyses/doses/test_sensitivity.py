"""Sensitivity of the average marginal effect to omitted confounders."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.errors import NotAvailableError
from cstonet.estimators.marginal_effect import riesz_representer


def test_scale_and_limits_are_those_of_the_marginal_effect(fitted):
    sensitivity = fitted.sensitivity()
    assert sensitivity.effect == fitted.effect()
    lower, upper = sensitivity.confidence_bounds(0, 0)
    limits = fitted.conf_int().loc["AME"]
    assert (float(lower), float(upper)) == pytest.approx(tuple(limits), rel=1e-9)
    nuisances = fitted.dose_nuisances
    sigma2 = np.mean((nuisances.y - nuisances.mu) ** 2)
    nu2 = np.mean(riesz_representer(nuisances) ** 2)
    assert sensitivity.scale == pytest.approx(np.sqrt(sigma2 * nu2), rel=1e-12)
    assert sensitivity.evalue is None


def test_covariates_are_benchmarks(fitted):
    table = fitted.sensitivity().benchmarks
    selected = fitted.selection.index[fitted.selection["treatment"] | fitted.selection["outcome"]]
    assert set(table.index) == set(selected)
    assert table["bias"].is_monotonic_decreasing
    assert table["bias"].iloc[0] > 0


def test_only_the_marginal_effect_has_it(fitted):
    with pytest.raises(NotAvailableError, match="no effect 'ATE'"):
        fitted.sensitivity("ATE")
