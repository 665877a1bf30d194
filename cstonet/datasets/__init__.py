"""The paper's two simulations, each with every truth an estimate can be compared with."""

from cstonet.datasets.autoregressive import simulation2
from cstonet.datasets.common_factor import simulation1
from cstonet.datasets.simulation import Simulation

__all__ = ["Simulation", "simulation1", "simulation2"]
