"""Random streams: one registry of what Python draws random numbers for.

Each purpose is the first word of a seed sequence, followed by the fit's seed and what else tells
its draws apart, so that no two purposes of a fit share numbers and none depends on what another
has drawn.
The kernel's streams are told apart in the same manner, by ``Purpose`` in ``csrc/core/rng.hpp``.
"""

from __future__ import annotations

from enum import IntEnum, unique

import numpy as np


@unique
class Stream(IntEnum):
    """What random numbers are for. A number, once given, is never given again."""

    FOLDS = 1
    VALIDATION = 2
    MULTIPLIERS = 3
    TRAINING_IMPUTATIONS = 4
    IMPUTATIONS = 5
    NEW_ROWS = 6
    MEDIATOR_RESIDUALS = 7
    SEARCH_ROWS = 8
    BACKBONE = 9
    MIXTURE = 10
    CATE_BANDS = 11
    TWINS = 16
    YARDSTICKS = 21
    PLACEBO = 22

    def generator(self, *words: int) -> np.random.Generator:
        """The generator of this purpose for a seed and further words."""
        return np.random.default_rng([self, *words])


class DataStream(IntEnum):
    """Simulated data sets, whose seed sequences are (seed, number of the data set)."""

    SIMULATION1 = 1
    SIMULATION2 = 2
    THREE_ARMS = 3
    DOSE_CURVE = 4
    # The same number by an oversight: another one would change every data set that was published.
    ONE_MEDIATOR = 4
    THREE_MEDIATORS = 5
    LINEAR_MEDIATION = 6
    CLUSTERED = 7
    COUNTS = 8
    HOLES = 101

    def generator(self, seed: int) -> np.random.Generator:
        """The generator of one data set."""
        return np.random.default_rng([seed, self])
