"""Simulations with every truth an estimate can be compared with: the paper's two, and others."""

from cstonet.datasets.autoregressive import simulation2
from cstonet.datasets.clustered import ClusteredSimulation, clustered
from cstonet.datasets.common_factor import simulation1
from cstonet.datasets.counts import counts
from cstonet.datasets.dose_curve import DoseSimulation, dose_curve
from cstonet.datasets.holes import many_holes, paper_holes, punch_holes
from cstonet.datasets.mediation import (
    MediationSimulation,
    linear_mediation,
    one_mediator,
    three_mediators,
)
from cstonet.datasets.simulation import Simulation
from cstonet.datasets.three_arms import ThreeArms, three_arms
from cstonet.datasets.truths import Simulated

__all__ = [
    "ClusteredSimulation",
    "DoseSimulation",
    "MediationSimulation",
    "Simulated",
    "Simulation",
    "ThreeArms",
    "clustered",
    "counts",
    "dose_curve",
    "linear_mediation",
    "many_holes",
    "one_mediator",
    "paper_holes",
    "punch_holes",
    "simulation1",
    "simulation2",
    "three_arms",
    "three_mediators",
]
