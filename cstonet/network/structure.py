"""Sparse structures: which covariates feed which model, as masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cstonet.network.spec import NetworkSpec

Model = Literal["treatment", "outcome"]


@dataclass(frozen=True, slots=True)
class Structure:
    """Supports of the two models, as indices of covariates in order of admission."""

    treatment: tuple[int, ...] = ()
    outcome: tuple[int, ...] = ()

    @property
    def inputs(self) -> NDArray[np.int64]:
        """Covariates of either model, ascending, shape (q,)."""
        return np.array(sorted({*self.treatment, *self.outcome}), dtype=np.int64)

    @property
    def united(self) -> Structure:
        """Both models on the covariates of either."""
        both = tuple(dict.fromkeys(self.outcome + self.treatment))
        return Structure(treatment=both, outcome=both)

    @property
    def of_treatment_alone(self) -> tuple[int, ...]:
        """Covariates of the treatment model that are none of the outcome's."""
        return tuple(j for j in self.treatment if j not in self.outcome)

    def beyond(self, other: Structure) -> int:
        """How many memberships in a model this structure has that another one lacks."""
        return len({*self.treatment} - {*other.treatment}) + len({*self.outcome} - {*other.outcome})

    def weighing(self, covariates: tuple[int, ...]) -> Structure:
        """The outcome model on the covariates of either, the treatment model on fewer.

        It has the outcome's covariates and those given: they make the weights.
        """
        return self.united.with_treatment(self.outcome + covariates)

    def with_treatment(self, support: tuple[int, ...]) -> Structure:
        """The same outcome support with another treatment support."""
        return Structure(treatment=support, outcome=self.outcome)

    def with_outcome(self, support: tuple[int, ...]) -> Structure:
        """The same treatment support with another outcome support."""
        return Structure(treatment=self.treatment, outcome=support)

    def masks(self, network: NetworkSpec, treatment_units: int) -> list[NDArray[np.float32]]:
        """Weights the structure allows, one (inputs, units) matrix of zeros and ones per layer.

        Below the treatment's layer each layer's last ``treatment_units`` units serve the treatment
        model, the others the outcome model, and no weight crosses over. So a covariate can belong
        to one model without touching the other. Every such network is a sparse Causal-StoNet.
        """
        treatment_layer = network.treatment_layer
        inputs = self.inputs
        # Which sources of the current layer serve the outcome and which the treatment.
        to_outcome = np.isin(inputs, self.outcome)
        to_treatment = np.isin(inputs, self.treatment)
        masks = []
        for i, width in enumerate(network.units):
            if i > treatment_layer:
                masks.append(np.ones((network.units[i - 1], width), dtype=np.float32))
                continue
            serves_treatment = np.zeros(width, dtype=bool)
            own = network.treatment_width if i == treatment_layer else treatment_units
            serves_treatment[-own:] = True
            mask = np.outer(to_treatment, serves_treatment) | np.outer(
                to_outcome, ~serves_treatment
            )
            masks.append(mask.astype(np.float32))
            to_outcome, to_treatment = ~serves_treatment, serves_treatment
        return masks


@dataclass(frozen=True, slots=True, eq=False)
class Wiring:
    """A network on some of the covariates, with the weights it may have.

    Attributes
    ----------
    spec
        Its layers, on so many inputs.
    inputs : (q,)
        Indices of the covariates that it reads.
    masks
        Per layer: ones where a weight may be, shape (inputs, units); None: everywhere.
    """

    spec: NetworkSpec
    inputs: NDArray[np.int64]
    masks: list[NDArray[np.float32]] | None

    @classmethod
    def sparse(cls, spec: NetworkSpec, structure: Structure, treatment_units: int) -> Wiring:
        """The network that a structure allows, see :meth:`Structure.masks`."""
        inputs = structure.inputs
        narrow = spec.with_inputs(len(inputs))
        return cls(narrow, inputs, structure.masks(narrow, treatment_units))

    @classmethod
    def dense(cls, spec: NetworkSpec, inputs: NDArray[np.int64] | None = None) -> Wiring:
        """Some covariates, by default all, connected with every unit of the first layer."""
        if inputs is None:
            inputs = np.arange(spec.inputs)
        return cls(spec.with_inputs(len(inputs)), inputs, None)
