"""Training of networks in the kernel, from one or several starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cstonet import _core
from cstonet.network.structure import Wiring
from cstonet.network.training_data import TrainingData, Workplace
from cstonet.settings.options import TrainingOptions


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
    progress: Callable[[int], object] | None = None,
    trace: bool = True,
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
    progress
        Called now and then with the number of epochs done; may raise to stop.
    trace
        Whether to keep a record of every epoch.
    """
    split = place.split
    return _core.train(
        wiring.spec,
        options,
        data.covariates,
        wiring.inputs,
        data.visible,
        data.weights,
        [(split.index, start, split.fit, split.validation) for start in starts],
        place.seed,
        place.threads,
        place.stop if progress is None else progress,
        wiring.masks,
        candidates,
        trace=trace,
        network_id=place.network_id,
    )
