"""What a search may do, and what is made of what it found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.network.structure import Model, Structure
from cstonet.network.trained import OUTCOME, TREATMENT, TrainedNetwork


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What a search may do beside what the data say; by default, everything.

    Attributes
    ----------
    models
        The models whose supports are searched for.
    always
        Covariates that every model searched for holds from the start and never drops; the
        treatment model only those that it may hold.
    one_of
        Covariates of which the outcome model always holds at least one.
    familiar
        Covariates that are tested at the bar of few, as are those that the other model holds.
    barred
        Covariates that cannot explain the treatment.
    adjust
        Covariates that a network with united supports uses beside those found.
    """

    models: tuple[Model, ...] = ("outcome", "treatment")
    always: tuple[int, ...] = ()
    one_of: tuple[int, ...] = ()
    familiar: tuple[int, ...] = ()
    barred: tuple[int, ...] = ()
    adjust: tuple[int, ...] = ()

    def held(self, model: Model) -> tuple[int, ...]:
        """Covariates that a model always holds."""
        if model == "outcome":
            return self.always
        allowed = self.always if "treatment" in self.models else ()
        return tuple(j for j in allowed if j not in self.barred)

    def united(self, found: Structure) -> Structure:
        """Models on the covariates found for either, as far as the scope lets them."""
        both = tuple(dict.fromkeys(found.united.outcome + self.adjust))
        allowed = both if "treatment" in self.models else ()
        return Structure(tuple(j for j in allowed if j not in self.barred), both)


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What the search of a fold found, and how its covariates are adjusted for.

    Attributes
    ----------
    found : Structure or None
        Covariates found for each model; None without a search.
    used : Structure or None
        Those that the final networks use, which may be more; None: all.
    linear : tuple of int
        Covariates found for the treatment alone, which the estimator adjusts for by slopes, whether
        or not the treatment model uses them.
    """

    found: Structure | None = None
    used: Structure | None = None
    linear: tuple[int, ...] = ()

    def selects(self, net: TrainedNetwork, block: int) -> NDArray[np.bool_]:
        """Which connected covariates of a network are selected for a model, shape (q,).

        A path of kept weights leads to its unit and the search, if there was one, found the
        covariate for this model. Those left to slopes need no path to the treatment's unit.
        """
        if block == OUTCOME:
            reached = net.reaches_outcome
            return reached if self.found is None else reached & self._found(net, OUTCOME)
        reached = net.reaches_treatment | self._is_linear(net)
        return reached if self.found is None else reached & self._found(net, TREATMENT)

    def selects_levels(self, net: TrainedNetwork) -> NDArray[np.bool_]:
        """The same for the unit of each treatment level but the reference, shape (q, L-1)."""
        reached = net.reaches_levels() | self._is_linear(net)[:, None]
        return self.selects(net, TREATMENT)[:, None] & reached

    def _found(self, net: TrainedNetwork, block: int) -> NDArray[np.bool_]:
        found = Structure() if self.found is None else self.found
        return np.isin(net.inputs, found.outcome if block == OUTCOME else found.treatment)

    def _is_linear(self, net: TrainedNetwork) -> NDArray[np.bool_]:
        return np.isin(net.inputs, self.linear)
