"""One trained network: its parameters, what training said about them, what it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.data.treatment import level_dummies
from cstonet.network.covariates import Covariates
from cstonet.network.spec import NetworkSpec
from cstonet.network.structure import Wiring

if TYPE_CHECKING:
    from cstonet.network.training import StartResult

# Position of the visible blocks in layer order: the treatment's layer precedes the outcome's.
TREATMENT, OUTCOME = 0, 1


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """One network: the parameters θ̂ of a (fold, start) and what training said about them.

    Attributes
    ----------
    spec
        Layers, on the connected covariates only.
    inputs : (q,)
        Indices of the connected covariates.
    weights, masks, biases
        Per layer: (inputs, units), (inputs, units), (units,).
    variance
        Estimated variance of the (first) outcome in network units (1 for binary outcomes).
    log_likelihood : (2,)
        Of treatment and outcome (or outcomes), over the fold's training rows.
    bic
        The criterion among starts.
    reaches_treatment, reaches_outcome : (q,)
        Does a path of kept weights lead from the covariate to the unit? To the outcome (or any of
        several) it must not pass through the treatment, which is observed.
    """

    fold: int
    start: int
    spec: NetworkSpec
    inputs: NDArray[np.int64]
    weights: tuple[NDArray[np.float32], ...]
    masks: tuple[NDArray[np.float32], ...]
    biases: tuple[NDArray[np.float32], ...]
    variance: float
    log_likelihood: NDArray[np.float64]
    bic: float
    reaches_treatment: NDArray[np.bool_]
    reaches_outcome: NDArray[np.bool_]

    @classmethod
    def from_task(
        cls, fold: int, start: int, wiring: Wiring, result: _core.TaskResult
    ) -> TrainedNetwork:
        """Take over the kernel's result of one task."""
        outcomes = np.array(result.reaches[OUTCOME:], dtype=bool)
        return cls(
            fold=fold,
            start=start,
            spec=wiring.spec.with_inputs(len(result.inputs)),
            inputs=result.inputs,
            weights=tuple(result.weights),
            masks=tuple(result.masks),
            biases=tuple(result.biases),
            variance=float(result.variances[OUTCOME]),
            log_likelihood=result.log_likelihood,
            bic=result.bic,
            reaches_treatment=np.array(result.reaches[TREATMENT], dtype=bool),
            reaches_outcome=np.logical_or.reduce(outcomes),
        )

    def check(self, covariates: int) -> None:
        """Raise ValueError unless its parameters are finite and those of its layers.

        Its inputs must be some of so many covariates.
        """
        sources = (self.spec.inputs, *self.spec.units[:-1])
        shapes = list(zip(sources, self.spec.units, strict=True))
        if [w.shape for w in self.weights] != shapes or [m.shape for m in self.masks] != shapes:
            raise ValueError("a network's weights are not those of its layers")
        if [b.shape for b in self.biases] != [(units,) for units in self.spec.units]:
            raise ValueError("a network's biases are not those of its layers")
        if not all(np.isfinite(values).all() for values in (*self.weights, *self.biases)):
            raise ValueError("a network has weights that are not finite")
        inputs = self.inputs
        if inputs.shape != (self.spec.inputs,) or not np.isin(inputs, np.arange(covariates)).all():
            raise ValueError("a network reads covariates that are not there")

    @property
    def nonzero(self) -> int:
        """Kept weights |γ̂|."""
        return int(sum(np.count_nonzero(m) for m in self.masks))

    def means(
        self,
        data: Covariates,
        rows: NDArray[np.int64],
        threads: int,
        offset: NDArray[np.float32] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Outcome means in network units, shape (m, L), and probabilities of the treatment's units.

        The latter, shape (m, L-1), are those of all levels but the reference. An offset has shape
        (L, m, units): under each level, what is added to the predictor of every visible unit.
        """
        outcomes, probability = self.visible_means(data, rows, threads, offset)
        return outcomes[:, :, -1], probability

    def visible_means(
        self,
        data: Covariates,
        rows: NDArray[np.int64],
        threads: int,
        offset: NDArray[np.float32] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same for a network with J outcomes, whose means have shape (m, L, J)."""
        # Visible units to predict under: each treatment level. The outcome feeds nothing, so its
        # value is immaterial.
        dummies = level_dummies(self.spec.treatment_width + 1)
        clamp = np.pad(dummies, ((0, 0), (0, self.spec.units[-1]))).astype(np.float32)
        means = _core.predict(
            self.spec,
            list(self.weights),
            list(self.biases),
            self.inputs,
            data.trained_on(self.inputs),
            rows,
            clamp,
            threads,
            offset,
        ).astype(np.float64)
        own = self.spec.treatment_width
        return means[:, :, own:].transpose(1, 0, 2), means[0, :, :own]

    def means_received(
        self,
        data: Covariates,
        rows: NDArray[np.int64],
        received: NDArray[np.float32],
        threads: int,
        offset: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float64]:
        """Means of all visible units in network units, the treatment's first, shape (m, units).

        Those of the outcomes are under the treatment received, as dummies or a dose (m, L-1). An
        offset, shape (m, units), is added to their predictors.
        """
        return _core.predict_received(
            self.spec,
            list(self.weights),
            list(self.biases),
            self.inputs,
            data.trained_on(self.inputs),
            rows,
            np.ascontiguousarray(received),
            threads,
            offset,
        ).astype(np.float64)

    def path_strength(self, block: int) -> NDArray[np.float64]:
        """Share of each connected covariate in the total weight of paths to a block, shape (q,).

        A path weighs the product of its absolute weights; the inputs are standardised, so paths
        of different covariates compare. Paths end at visible units.
        """
        return _shares(self._path_weights(self.weights, block).sum(axis=1))

    def level_strengths(self) -> NDArray[np.float64]:
        """The same for each unit of the treatment's block, shape (q, L-1)."""
        flow = self._path_weights(self.weights, TREATMENT)
        return np.apply_along_axis(_shares, 0, flow)

    def reaches_levels(self) -> NDArray[np.bool_]:
        """Does a path of kept weights lead to the unit of a treatment level? Shape (q, L-1)."""
        return self._path_weights(self.masks, TREATMENT) > 0

    def _path_weights(
        self, weights: tuple[NDArray[np.float32], ...], block: int
    ) -> NDArray[np.float64]:
        """Total weight of the paths from each covariate to each unit of a block, (q, size)."""
        flow = np.abs(weights[0]).astype(np.float64)
        for layer, above in zip(self.spec.layers[:-1], weights[1:], strict=True):
            if block == TREATMENT and any(b.visible for b in layer):
                break
            latent = sum(b.size for b in layer if not b.visible)
            flow = flow[:, :latent] @ np.abs(above[:latent])
        # The block holds the layer's last units.
        return flow[:, -self.spec.treatment_width :] if block == TREATMENT else flow


@dataclass(frozen=True, slots=True, eq=False)
class TrainedStart:
    """What became of one start.

    Attributes
    ----------
    network
        The network; None if it diverged.
    failure
        Why it was given up; empty if it was not.
    rescue
        Why it was tried again with smaller steps, if that helped; empty if it did not have to be.
    trace : (epochs, columns)
        Its history.
    slab_paths
        See :class:`cstonet.search.inclusion.PrunedNetwork`.
    """

    network: TrainedNetwork | None
    failure: str
    rescue: str
    trace: NDArray[np.float64]
    slab_paths: list[NDArray[np.float64]]

    @classmethod
    def of(cls, fold: int, start: int, wiring: Wiring, learned: StartResult) -> TrainedStart:
        """What is needed of a start, on this side of the kernel."""
        result = learned.result
        return cls(
            network=None
            if learned.failure
            else TrainedNetwork.from_task(fold, start, wiring, result),
            failure=learned.failure,
            rescue=learned.rescue,
            trace=result.trace,
            slab_paths=list(result.slab_paths),
        )

    @property
    def inputs(self) -> NDArray[np.int64]:
        """Indices of the covariates that the network reads, (q,)."""
        if self.network is None:
            raise ValueError("a start that diverged has no network")
        return self.network.inputs


def _shares(total: NDArray[np.float64]) -> NDArray[np.float64]:
    return total / total.sum() if total.sum() > 0 else total
