"""A network small enough to follow its paths with a finger.

It has 3 covariates, hidden layers of 2 units (both latent) and 2 units (one latent, then the
treatment), then the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cstonet_seams
import numpy as np
import pytest

from cstonet.network.spec import NetworkSpec
from cstonet.network.trained import OUTCOME, TREATMENT, TrainedNetwork

# x1 reaches only the first hidden unit, x2 only the second, x3 none. The first hidden unit feeds
# the latent unit of layer 2, and so the outcome; the second feeds the treatment.
FIRST = [[2.0, 0.0], [0.0, -3.0], [0.0, 0.0]]
SECOND = [[0.5, 0.0], [0.0, 1.0]]
LAST = [[4.0], [7.0]]

Weights = Sequence[Sequence[float]]


@pytest.fixture
def network(small_network: Callable[..., NetworkSpec]) -> Callable[..., TrainedNetwork]:
    """A trained network with given weights, its paths traced by the kernel."""
    spec = small_network(3, (2, 2), 2)

    def make(
        first: Weights = FIRST,
        second: Weights = SECOND,
        last: Weights = LAST,
        *,
        fold: int = 0,
        start: int = 0,
    ) -> TrainedNetwork:
        weights = [np.array(w, dtype=np.float32) for w in (first, second, last)]
        biases = [np.zeros(w.shape[1], dtype=np.float32) for w in weights]
        masks, reaches = cstonet_seams.prune_and_trace(spec, weights, biases, 0.0)
        return TrainedNetwork(
            fold=fold,
            start=start,
            spec=spec,
            inputs=np.arange(3),
            weights=tuple(weights),
            masks=tuple(masks),
            biases=tuple(biases),
            variance=1.0,
            log_likelihood=np.zeros(2),
            bic=0.0,
            reaches_treatment=np.array(reaches[TREATMENT]),
            reaches_outcome=np.array(reaches[OUTCOME]),
        )

    return make
