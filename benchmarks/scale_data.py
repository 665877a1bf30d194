"""What `scale.py` compares, and its data: the package's simulations in blocks of rows as float32.

A folder holds ``X.npy`` (n, p) float32, ``y.npy`` (n,), ``treat.npy`` (n,) and ``truth.json``. Its
rows are drawn a block at a time, so that memory stays bounded whatever n; the rows of a block are
those of one data set of `cstonet.datasets`.

    python benchmarks/scale_data.py 2 1000000 100 1 build/scale
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from loaders import SIMULATIONS, aipw
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

FILE = "scale.jsonl"

DEFAULT = "calibrated"
LIGHTGBM = "doubleml-lightgbm-small"
# The package's own methods and the peers.
OWN = (DEFAULT, "stonet")
PEERS = (LIGHTGBM, "doubleml-lasso", "econml-forest-dr", "bart")
METHODS = (*OWN, *PEERS)

# Values of a block, 400 MB in float64; a block has at least so many rows, however wide they are.
BLOCK_VALUES = 5 * 10**7
MIN_BLOCK_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Size:
    """A simulation of the package (its name in `loaders.SIMULATIONS`) and its sizes."""

    simulation: str
    n: int
    p: int

    @property
    def values(self) -> int:
        """Covariates' values in all."""
        return self.n * self.p

    def folder(self, root: Path, seed: int) -> Path:
        """Where its files are."""
        return root / f"simulation{self.simulation}-n{self.n}-p{self.p}-seed{seed}"


def blocks_of(n: int, p: int) -> list[slice]:
    """The rows of each block."""
    rows = max(MIN_BLOCK_ROWS, BLOCK_VALUES // p)
    return [slice(first, min(first + rows, n)) for first in range(0, n, rows)]


def block_seed(seed: int, block: int) -> int:
    """Seed of a block; that of the first block is the data set's own."""
    return seed + 1_000_000 * block


def write_data(size: Size, seed: int, root: Path) -> Path:
    """Write the files of a data set, unless they are there; gives their folder."""
    folder = size.folder(root, seed)
    # Written last, so that it says that the others are complete.
    truth_file = folder / "truth.json"
    if truth_file.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    n, p = size.n, size.p
    X = open_memmap(folder / "X.npy", "w+", np.float32, (n, p))
    y, propensity, tau = np.empty(n), np.empty(n), np.empty(n)
    treat, mu = np.empty(n, np.int64), np.empty((n, 2))
    ate = 0.0
    for number, rows in enumerate(blocks_of(n, p)):
        count = rows.stop - rows.start
        sim = SIMULATIONS[size.simulation](n=count, p=p, seed=block_seed(seed, number))
        X[rows] = sim.data.iloc[:, 2:].to_numpy(copy=False)
        y[rows], treat[rows] = sim.data["y"], sim.data["treat"]
        mu[rows, 0], mu[rows, 1] = sim.mu0, sim.mu1
        propensity[rows], tau[rows] = sim.propensity, sim.tau
        ate = sim.ate
    X.flush()
    np.save(folder / "y.npy", y)
    np.save(folder / "treat.npy", treat)
    truth = {
        "sample_ate": float(tau.mean()),
        "ate": ate,
        "oracle": list(aipw(y, treat, mu, propensity)),
        "y_sd": float(y.std()),
    }
    truth_file.write_text(json.dumps(truth), encoding="utf-8")
    return folder


def read_truth(folder: Path) -> dict[str, Any]:
    """What is known about the data set of a folder."""
    truth: dict[str, Any] = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    return truth


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """Outcome (n,), treatment (n,) and covariates (n, p) as a method gets them."""

    y: NDArray[np.float64]
    treat: NDArray[np.int64]
    X: NDArray[np.float32]
    binary: bool = False


def load_arrays(folder: Path, *, memmap: bool) -> Arrays:
    """The variables of a folder, X in memory or as a map of its file."""
    X = np.load(folder / "X.npy", mmap_mode="r" if memmap else None)
    return Arrays(np.load(folder / "y.npy"), np.load(folder / "treat.npy"), X)


if __name__ == "__main__":
    simulation, n, p, seed, root = sys.argv[1:]
    print(write_data(Size(simulation, int(n), int(p)), int(seed), Path(root)))
