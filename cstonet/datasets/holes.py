"""Holes in simulated covariates, by named mechanisms; every truth stays what it was."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from scipy.special import expit

from cstonet.datasets.autoregressive import simulation2
from cstonet.datasets.simulation import FloatArray, Simulation
from cstonet.errors import OptionError
from cstonet.streams import DataStream

HoleMechanism: TypeAlias = Literal["mcar", "mar", "mnar"]

# Slopes of the log-odds of a gap: on the treatment and the standardised outcome ("mar"), or on the
# treatment and the standardised value itself ("mnar", as in the paper).
_TREATED, _OUTCOME, _ITSELF = 2.0, 1.0, -1.0


def punch_holes(
    simulation: Simulation,
    columns: Sequence[str] = ("x1", "x4"),
    *,
    share: float = 0.1,
    mechanism: HoleMechanism = "mcar",
    seed: int | None = None,
) -> Simulation:
    """Remove values of some covariates from a simulated data set.

    Parameters
    ----------
    simulation : Simulation
        The complete data set. It is not changed.
    columns : sequence of str
        Covariates to lose values, each on its own.
    share : float
        Expected share of missing values in each, in (0, 1).
    mechanism : {"mcar", "mar", "mnar"}
        "mcar": every value alike, the paper's experiment for missingness at random. "mar": more
        often among treated units and large outcomes, hence at random given what is observed.
        "mnar": more often among treated units and where the value itself is small, with slopes 2
        on the treatment and -1 on the standardised value as for x1 in the paper's experiment.
    seed : int, optional
        Seed of the holes; by default the simulation's.

    Returns
    -------
    Simulation
        The same units and truths, with NaN in the holes.

    Examples
    --------
    >>> from cstonet.datasets import punch_holes, simulation2
    >>> holes = punch_holes(simulation2(n=1000, seed=1), share=0.2, mechanism="mnar")
    >>> holes.data["x1"].isna().mean().round(1)
    np.float64(0.2)
    """
    if mechanism not in get_args(HoleMechanism):
        raise OptionError(
            f"mechanism must be one of {', '.join(get_args(HoleMechanism))}, not {mechanism!r}"
        )
    if not isinstance(share, float) or not 0 < share < 1:
        raise OptionError(f"share must lie between 0 and 1, not {share!r}")
    from scipy.optimize import brentq  # not at the top: the other simulations do without

    data = simulation.data.copy()
    unknown = [name for name in columns if name not in data.columns[2:]]
    if unknown:
        raise OptionError(f"columns: {unknown[0]!r} is no covariate of {simulation!r}")
    rng = DataStream.HOLES.generator(simulation.seed if seed is None else seed)
    outcome = _standardised(simulation.data["y"])
    treated = simulation.data["treat"].to_numpy(np.float64)
    for name in columns:
        if mechanism == "mcar":
            slope = np.zeros(len(data))
        elif mechanism == "mar":
            slope = _TREATED / 2 * treated + _OUTCOME * outcome
        else:
            slope = _TREATED * treated + _ITSELF * _standardised(simulation.data[name])
        intercept = brentq(lambda a, s=slope: expit(a + s).mean() - share, -50, 50)
        data[name] = data[name].mask(rng.random(len(data)) < expit(intercept + slope))
    return dataclasses.replace(simulation, data=data)


def paper_holes(simulation: Simulation, *, seed: int | None = None) -> Simulation:
    """The holes of the paper's experiment with values missing not at random, in x1 and x4.

    x1 is observed with log-odds 4 - 2 A + Σ_j (-0.1)^(j-1) x_(2j-1), x4 with log-odds
    4 - 2 A + Σ_j (-0.1)^j x_(2j): about a tenth of both is missing, far more often among the
    treated. Whether x1 is missing depends on x1 itself, x4's gaps hardly on anything but treatment.

    Parameters
    ----------
    simulation : Simulation
        The complete data set.
    seed : int, optional
        Seed of the holes; by default the simulation's.
    """
    data = simulation.data.copy()
    x = simulation.data.iloc[:, 2:].to_numpy(np.float64)
    rng = DataStream.HOLES.generator(simulation.seed if seed is None else seed)
    base = 4 - 2 * simulation.data["treat"].to_numpy(np.float64)
    for name, first, power in (("x1", 0, 0), ("x4", 1, 1)):
        terms = x[:, first::2]
        factors = (-0.1) ** (power + np.arange(terms.shape[1]))
        observed = expit(base + terms @ factors)
        data[name] = data[name].mask(rng.random(len(data)) >= observed)
    return dataclasses.replace(simulation, data=data)


def _standardised(column: pd.Series) -> FloatArray:
    values = column.to_numpy(np.float64)
    standardised: FloatArray = (values - values.mean()) / values.std()
    return standardised


def many_holes(
    n: int = 3000, p: int = 100, *, seed: int = 0, share: float = 0.1, columns: int = 20
) -> tuple[Simulation, Simulation]:
    """Simulation 2 with levels among its covariates, complete and with holes in many columns.

    x6, x7 and x8 become what a registry might hold: a flag (x6 > 0), a grade of four levels and a
    flag with rare ones. Neither treatment nor outcome depends on them, but they tell about their
    neighbours. Then values of the first `columns` covariates are removed at random.

    Parameters
    ----------
    n, p, seed
        As for :func:`simulation2`; p at least 20.
    share : float
        Share of missing values in each column.
    columns : int
        Number of columns with holes.

    Returns
    -------
    complete, holes : Simulation
        The data before and after.
    """
    simulation = simulation2(n=n, p=max(p, columns), seed=seed)
    data = simulation.data.copy()
    data["x6"] = (simulation.data["x6"] > 0).astype(np.float64)
    edges = [-np.inf, -0.8, 0.0, 0.8, np.inf]
    data["x7"] = pd.cut(simulation.data["x7"], edges, labels=["a", "b", "c", "d"], ordered=False)
    data["x8"] = simulation.data["x8"] > 1.3
    complete = dataclasses.replace(simulation, data=data)
    rng = DataStream.HOLES.generator(seed)
    gappy = data.copy()
    gappy["x8"] = gappy["x8"].astype("boolean")
    for name in data.columns[2 : 2 + columns]:
        gappy.loc[rng.random(n) < share, name] = pd.NA if name == "x8" else np.nan
    return complete, dataclasses.replace(simulation, data=gappy)
