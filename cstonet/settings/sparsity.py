"""Constants of the mixture prior that are ``"auto"``: from the rows and the weights of a network.

While its spike narrows, the prior tests every weight. One that the data put at w with standard
error s is shrunken to w / (1 + s²/σ0²), and escapes to the slab once it exceeds the threshold
sqrt(2 σ0² L), L = log((1-λ)/λ) + log(σ1²/σ0²)/2. The two are furthest apart at σ0 = s: a weight is
kept if |w|/s > 2 sqrt(2L). So λ follows from the critical value that the test should have, and the
spike must be wider than s when it begins and narrower when it ends.
"""

from __future__ import annotations

import dataclasses
import math

from cstonet.settings.training_options import PriorOptions

# The largest of W noisy weights is near sqrt(2 log W) standard errors. What is asked beyond that
# grows with the sample: there is power to spare, and false weights cost precision. Effects that
# are too small to be kept shrink all the same, like n^(-1/4).
_MARGIN_PER_ROOT = 1 / 3
# Spike variances at both ends, in units of 1/n: a weight of a standardised input has s² = 1/n
# where the noise has variance one, less where it is smaller, and more further up the network.
_WIDE, _NARROW = 30.0, 0.1
# However few the rows, a spike is to be told from the slab.
_WIDEST_SHARE_OF_SLAB = 0.1


def automatic_prior(prior: PriorOptions, *, rows: int, weights: int) -> PriorOptions:
    """The prior with numbers for every ``"auto"``.

    Parameters
    ----------
    prior
        As asked for.
    rows
        Training rows n.
    weights
        Weights W of the network before it is pruned.
    """
    inclusion, start, end = prior.inclusion, prior.spike_start, prior.spike_end
    if isinstance(inclusion, str):
        inclusion = _inclusion(rows, weights, prior.slab_variance)
    if isinstance(start, str):
        start = min(_WIDE / rows, _WIDEST_SHARE_OF_SLAB * prior.slab_variance)
    if isinstance(end, str):
        end = min(_NARROW / rows, start)
    start = max(start, end)  # a spike does not widen
    return dataclasses.replace(prior, inclusion=inclusion, spike_start=start, spike_end=end)


def critical_value(rows: int, weights: int) -> float:
    """Standard errors that a weight must be away from zero to be kept."""
    return math.sqrt(2 * math.log(max(weights, 2))) + _MARGIN_PER_ROOT * math.sqrt(math.sqrt(rows))


def _inclusion(rows: int, weights: int, slab_variance: float) -> float:
    """λ with which 2 sqrt(2L) is the critical value, where s² = 1/n."""
    log_ratio = critical_value(rows, weights) ** 2 / 8
    return 1 / (1 + math.exp(log_ratio - 0.5 * math.log(rows * slab_variance)))
