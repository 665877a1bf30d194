"""How often intervals cover, over fits of many simulated data sets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import cstonet as cs

REPLICATIONS = 20


class Coverage:
    """Intervals of level 95 % that cover their truths, and errors in standard errors."""

    def __init__(self) -> None:
        self._covered: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []

    def add(self, results: cs.CausalResults, truth: Mapping[str, float]) -> None:
        """Count the effects of one fit whose truths are given."""
        names, values = list(truth), np.array(list(truth.values()))
        low, high = results.conf_int().loc[names].to_numpy().T
        self._covered.append((low <= values) & (values <= high))
        errors = results.params[names].to_numpy() - values
        self._scores.append(errors / results.bse[names].to_numpy())

    def check(self) -> None:
        """Of 20 intervals fewer than 16 cover with probability 0.003, per effect."""
        assert len(self._covered) == REPLICATIONS
        assert np.sum(self._covered, axis=0).min() >= 16
        # The estimates lie on both sides of the truth: a mean score has standard error 1/√20.
        assert abs(np.mean(self._scores, axis=0)).max() < 4 / np.sqrt(REPLICATIONS)


@pytest.fixture
def coverage() -> Coverage:
    return Coverage()
