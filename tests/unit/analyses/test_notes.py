"""Notes on the training: what another seed would change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cstonet.analyses.notes import spread_note
from cstonet.estimators import Effects


def effects_of(estimate: float) -> Effects:
    return Effects(
        names=("ATE",),
        n_contrasts=1,
        estimates=np.array([estimate]),
        covariance=np.array([[0.01]]),
        influence=np.zeros((4, 1)),
        n_clipped=0,
        clip=0.01,
        variance_kind="paper",
    )


def test_spread_between_repetitions_is_noted_when_large():
    far, near = [effects_of(2.0), effects_of(2.06)], [effects_of(2.0), effects_of(2.01)]
    # Standard error 0.1; the mean of two that differ by 0.06 has a standard deviation of 0.03.
    (note,) = spread_note(effects_of(2.03), far)
    assert "about 0.30 standard errors" in note
    assert spread_note(effects_of(2.005), near) == ()
    assert spread_note(effects_of(2.0), [effects_of(2.0)]) == ()
    # The errors of the effects contain the spread, and do not hide it.
    wide = replace(effects_of(2.03), covariance=np.array([[1.0]]))
    assert spread_note(wide, far) == (note,)
    # Another seed draws other imputations, too: of nine, with (1 + 1/9) B = 0.009, B/9 = 0.03².
    imputed = replace(effects_of(2.005), between=np.array([[0.009]]), imputations=9)
    assert "about 0.30 standard errors" in spread_note(imputed, near)[0]
