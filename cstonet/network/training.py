"""Training of networks in the kernel, from one or several starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.network.structure import Wiring
from cstonet.network.training_data import TrainingData, Workplace
from cstonet.settings.options import TrainingOptions


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """A trained network that another one goes on from.

    Attributes
    ----------
    inputs : (q,)
        Covariates that it reads, ascending.
    result
        Its parameters, and the optimiser's state.
    """

    inputs: NDArray[np.int64]
    result: _core.TaskResult

    def places(self, inputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of each of some covariates: which input of this network it is, or -1."""
        places = np.searchsorted(self.inputs, inputs)
        known = np.isin(inputs, self.inputs)
        return np.where(known, places, -1)


def divergence_advice(failure: str, options: str) -> str:
    """What to do about a network that diverged.

    Parameters
    ----------
    failure
        What the kernel said.
    options
        Where the training options are, such as ``"FitOptions.training"``.
    """
    if "latent variables" in failure:
        return (
            f"Use a lower temperature, smaller steps (StageOptions.step) or latent variances that "
            f"rise from layer to layer (SamplerOptions.variance) in {options}."
        )
    return f"Use smaller rates in {options}.stages."


def train_starts(
    place: Workplace,
    wiring: Wiring,
    options: TrainingOptions,
    data: TrainingData,
    starts: Iterable[int],
    *,
    candidates: _core.Candidates | None = None,
    rows: NDArray[np.int64] | None = None,
    previous: Carried | None = None,
    progress: Callable[[int], object] | None = None,
    trace: bool = True,
    offset: NDArray[np.float32] | None = None,
) -> list[_core.TaskResult]:
    """Train a network on the rows of a fold from every start.

    Parameters
    ----------
    place
        Rows, random streams and threads.
    wiring
        Which weights there are.
    options
        Without ``"auto"``.
    data
        Covariates, visible units and row weights.
    starts
        Numbers of the starts, keys of their random streams.
    candidates
        Completions of rows with missing covariates.
    rows : (m,), optional
        Rows to fit, ascending; by default all that the fold has for it.
    previous
        A network with the same layers to go on from, by default none: random weights.
    progress
        Called now and then with the number of epochs done; may raise to stop.
    trace
        Whether to keep a record of every epoch, and to compute likelihood and BIC.
    offset : (n, units), optional
        Added to the predictors of the visible units, of every row and in the order of
        ``data.visible``: standardised outcome or dose, or log-odds; by default nothing. A row has
        the same at all of its candidates.
    """
    split = place.split
    fitted, validation = split.fit if rows is None else rows, split.validation
    return _core.train(
        wiring.spec,
        options,
        data.covariates.trained_on(wiring.inputs),
        wiring.inputs,
        data.visible,
        data.weights,
        [(split.index, start, fitted, validation) for start in starts],
        place.seed,
        place.threads,
        place.stop if progress is None else progress,
        wiring.masks,
        candidates,
        None if previous is None else previous.result,
        wiring.inputs[:0] if previous is None else previous.places(wiring.inputs),
        trace=trace,
        network_id=place.network_id,
        offset=offset,
    )
