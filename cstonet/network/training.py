"""Training of networks in the kernel, from one or several starts.

A start that diverges is trained again with smaller steps, from the same random numbers: what comes
of it depends on the data, the plan and its number alone. One that diverges with the smallest, too,
is given up, and nobody averages it in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.network.divergence import SMALLER_STEPS, breakdown, with_smaller_steps
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


@dataclass(frozen=True, slots=True, eq=False)
class StartResult:
    """What came of a start.

    Attributes
    ----------
    result
        Of its last attempt.
    broke_down
        What was wrong with each attempt that diverged, the first with the steps of the options.
    """

    result: _core.TaskResult
    broke_down: tuple[str, ...] = ()

    @property
    def failure(self) -> str:
        """Why it was given up; empty if an attempt converged."""
        return self._history if len(self.broke_down) > len(SMALLER_STEPS) else ""

    @property
    def rescue(self) -> str:
        """Why it has smaller steps than the options say; empty if it has not."""
        return "" if self.failure or not self.broke_down else self._history

    @property
    def _history(self) -> str:
        parts = [f"1/{round(1 / part)}" for part in SMALLER_STEPS[: len(self.broke_down)]]
        return f"{self.broke_down[0]}; tried again with {' and '.join(parts)} of the steps"


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
) -> list[StartResult]:
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

    def attempt(numbers: Sequence[int], part: float) -> list[_core.TaskResult]:
        return _core.train(
            wiring.spec,
            with_smaller_steps(options, part),
            data.covariates.trained_on(wiring.inputs),
            wiring.inputs,
            data.visible,
            data.weights,
            [(split.index, start, fitted, validation) for start in numbers],
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

    noise_held_out = options.estimate_variance and len(validation) > 0
    measured = validation if noise_held_out else np.concatenate([fitted, validation])
    results: dict[int, _core.TaskResult] = {}
    broke_down: dict[int, list[str]] = {start: [] for start in starts}
    left = list(broke_down)
    for tried, part in enumerate((1.0, *SMALLER_STEPS), start=1):
        for start, result in zip(left, attempt(left, part), strict=True):
            results[start] = result
            if wrong := breakdown(result, wiring.spec, data, measured):
                broke_down[start].append(wrong)
        left = [start for start in left if len(broke_down[start]) == tried]
        if not left:
            break
    return [StartResult(results[start], tuple(broke_down[start])) for start in broke_down]
