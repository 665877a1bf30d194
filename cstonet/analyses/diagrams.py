"""Trained networks as diagrams: their kept weights, by the names of the data."""

from __future__ import annotations

from cstonet.crossfit.fitted import FittedNetworks, NetworkSet
from cstonet.data.design import AnyDesign
from cstonet.data.treatment import Arms
from cstonet.errors import NotAvailableError, OptionError
from cstonet.network.trained import TrainedNetwork
from cstonet.plotting.network import Diagram


def chosen_network(networks: NetworkSet, fold: int | None, start: int | None) -> TrainedNetwork:
    """The network of smallest BIC among those of a fold and a start, or of all.

    Raises
    ------
    OptionError
        If there is no such fold, or no such start.
    NotAvailableError
        If the fit has no networks by fold.
    """
    if not isinstance(networks, FittedNetworks):
        raise NotAvailableError("this fit keeps no networks by fold that could be drawn")
    folds = networks.folds
    if fold is not None:
        if isinstance(fold, bool) or not isinstance(fold, int) or not 0 <= fold < len(folds):
            raise OptionError(f"fold must be one of 0, …, {len(folds) - 1}, not {fold!r}")
        folds = (folds[fold],)
    asked = [net for part in folds for net in part.starts if start is None or net.start == start]
    if not asked:
        known = sorted({net.start for part in folds for net in part.starts})
        raise OptionError(f"start must be one of {', '.join(map(str, known))}, not {start!r}")
    return min(asked, key=lambda net: (net.bic, net.fold, net.start))


def diagram_of(
    net: TrainedNetwork,
    covariates: tuple[str, ...],
    design: AnyDesign,
    outcomes: tuple[str, ...] | None = None,
) -> Diagram:
    """A network as a diagram.

    Parameters
    ----------
    net
        The network.
    covariates
        Names of all columns that it could have read.
    design
        Whose treatment and outcome its visible units are.
    outcomes
        Names of its last units, if these are not the outcome.
    """
    visible: list[tuple[str, ...]] = [()] * len(net.weights)
    visible[net.spec.treatment_layer] = _treatment_units(design)
    visible[-1] = (design.outcome_name,) if outcomes is None else outcomes
    return Diagram(
        inputs=tuple(covariates[column] for column in net.inputs),
        weights=tuple(
            weights.astype(float) * masks
            for weights, masks in zip(net.weights, net.masks, strict=True)
        ),
        visible=tuple(visible),
    )


def _treatment_units(design: AnyDesign) -> tuple[str, ...]:
    """Names of the visible units of the treatment: all levels but the reference, or the dose."""
    treatment = design.treatment
    if isinstance(treatment, Arms) and treatment.kind == "multilevel":
        return tuple(f"{treatment.name} = {level}" for level in treatment.levels[1:])
    return (treatment.name,)
