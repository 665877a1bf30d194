"""The data of the paper's tables, split as the paper splits them.

Some experiments learn from training and validation rows and ask about test rows, too; others cut
the rows into three parts, learn from two and ask about the third. Where the published files cannot
be had, what stands in for them is said by the table (`paper_tables.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from common import FloatArray, Problem
from loaders import aipw, frame_of, load_acic2019, load_twins, truths_of
from numpy.typing import NDArray
from tcga import gene_columns, load_tcga, screened_genes

from cstonet.datasets import Simulation, paper_holes, punch_holes, simulation1, simulation2

FOLDS = 3
_SPLIT_ENTROPY = 2024
# Share of a data set that is not learnt from, where the files do not come split.
TEST_SHARE = 0.2
# The data sets of the paper's Table 1: one of each of these designs of the ACIC 2019 challenge.
PAPERS_DESIGNS = (2, 3, 5, 7, 8, 10, 12, 13, 15, 16)
CHALLENGE = Path("acic2019", "challenge")
CHALLENGE_TRUTHS = "highDim_trueATE.csv"


@dataclass(frozen=True, slots=True, eq=False)
class SplitProblem(Problem):
    """Rows to learn from, and others to ask about."""

    test: Problem | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FoldProblem(Problem):
    """Rows in three parts, each asked about by what was learnt from the other two.

    Parameters
    ----------
    fold : (n,) int64
        The part of each row.
    genes : int or None
        How many genes to screen, within the rows that are learnt from; None: all columns stay.
    """

    fold: NDArray[np.int64] | None = None
    genes: int | None = None

    def parts(self, number: int) -> tuple[Problem, Problem]:
        """What is learnt from, and what is asked about."""
        assert self.fold is not None
        train, test = self.rows(self.fold != number), self.rows(self.fold == number)
        if self.genes is None:
            return train, test
        left_out = set(gene_columns(self.data)) - set(screened_genes(train, self.genes))
        columns = [column for column in self.data if column not in left_out]
        return replace(train, data=train.data[columns]), replace(test, data=test.data[columns])


@dataclass(frozen=True, slots=True)
class VaryingSize:
    """The figure: simulation 1, p = 1000, so many training rows; validation and test a quarter."""

    n_train: int
    seed: int
    p: int = 1000

    @property
    def group(self) -> str:
        """The size."""
        return f"varying-n {self.n_train}"

    def load(self) -> SplitProblem:
        """Draw all rows, keep the last sixth for the test."""
        quarter = self.n_train // 4
        sim = simulation1(n=self.n_train + 2 * quarter, p=self.p, seed=self.seed)
        return split_simulation(sim, sim.data, quarter)


@dataclass(frozen=True, slots=True)
class MissingValues:
    """Table A1: simulation 2, 11 000 rows to learn from, 1000 complete ones for the test.

    Parameters
    ----------
    scenario : str
        "complete", "mar" (a tenth of x1 and x4 at random), "mnar" (the paper's mechanism), or
        "noise-free": complete, with one normal draw for all outcomes instead of one for each.
    """

    scenario: str
    seed: int
    n: int = 12_000

    @property
    def group(self) -> str:
        """The scenario, and the size where it is not the paper's."""
        return f"missing {self.scenario}" + ("" if self.n == 12_000 else f", n={self.n}")

    def load(self) -> SplitProblem:
        """Draw all rows, and remove values from those to learn from."""
        sim = simulation2(n=self.n, p=100, seed=self.seed)
        if self.scenario == "noise-free":
            sim = without_noise(sim)
        if self.scenario in ("complete", "noise-free"):
            return split_simulation(sim, sim.data, self.n // 12)
        holes = paper_holes(sim) if self.scenario == "mnar" else punch_holes(sim, share=0.1)
        problem = split_simulation(sim, holes.data, self.n // 12)
        return replace(problem, missing=self.scenario)


def without_noise(sim: Simulation) -> Simulation:
    """The same units with their expected outcomes, all moved by the same normal draw."""
    rng = np.random.default_rng(np.random.SeedSequence([_SPLIT_ENTROPY, sim.seed]))
    draw = rng.normal()
    mu0, mu1 = sim.mu0 + draw, sim.mu1 + draw
    expected = np.where(sim.data["treat"] == 1, mu1, mu0)
    return replace(sim, mu0=mu0, mu1=mu1, data=sim.data.assign(y=expected))


def split_simulation(sim: Simulation, data: pd.DataFrame, n_test: int) -> SplitProblem:
    """The first rows with these data to learn from, the last `n_test`, complete, to ask about."""
    truths = truths_of(sim)
    n_train = len(sim.data) - n_test
    train, test = slice(0, n_train), slice(n_train, None)
    y, treat = (sim.data[name].to_numpy() for name in ("y", "treat"))
    mu = np.column_stack([sim.mu0, sim.mu1])

    def part(rows: slice, frame: pd.DataFrame) -> dict[str, object]:
        return truths | {
            "data": frame.iloc[rows].reset_index(drop=True),
            "sample_ate": float(sim.tau[rows].mean()),
            "tau": sim.tau[rows],
            "oracle": aipw(y[rows], treat[rows], mu[rows], sim.propensity[rows]),
        }

    return SplitProblem(**part(train, data), test=Problem(**part(test, sim.data)))


@dataclass(frozen=True, slots=True)
class AcicTestSet:
    """A high-dimensional test set of the ACIC 2019 challenge, four fifths to learn from."""

    table: str
    number: int
    seed: int
    folder: Path

    @property
    def group(self) -> str:
        """Table and data set."""
        return f"{self.table} testdataset{self.number}"

    def load(self) -> SplitProblem:
        """Read the files and draw the split."""
        return random_split(load_acic2019(self.folder / "acic2019", self.number), self.seed)


@dataclass(frozen=True, slots=True)
class AcicChallengeSet:
    """A data set of the challenge itself, as in the paper's Table 1, four fifths to learn from."""

    name: str
    ate: float
    seed: int
    folder: Path

    @property
    def group(self) -> str:
        """Table and data set."""
        return f"acic-ate {self.name}"

    def load(self) -> SplitProblem:
        """Read the file and draw the split."""
        observed = pd.read_csv(self.folder / CHALLENGE / f"{self.name}.csv")
        data = frame_of(
            observed["Y"].to_numpy(np.float64),
            observed["A"].to_numpy(np.int64),
            observed.drop(columns=["Y", "A"]),
        )
        # The effect is the same for everybody.
        tau: FloatArray = np.full(len(data), self.ate)
        return random_split(Problem(data, sample_ate=self.ate, ate=self.ate, tau=tau), self.seed)


def challenge_sets(folder: Path, seed: int) -> list[AcicChallengeSet]:
    """The first file at hand of each design of the paper's Table 1; none without the truths."""
    truths = folder / CHALLENGE / CHALLENGE_TRUTHS
    if not truths.exists():
        return []
    table = pd.read_csv(truths)
    found = []
    for design in PAPERS_DESIGNS:
        for row in table[table["DGPid"] == design].itertuples():
            name = Path(str(row.filename)).stem
            if (folder / CHALLENGE / f"{name}.csv").exists():
                found.append(AcicChallengeSet(name, float(row.trueATE), seed, folder))
                break
    return found


def random_split(problem: Problem, seed: int) -> SplitProblem:
    """A fifth of the rows, drawn at random, is kept for the test."""
    rng = np.random.default_rng(np.random.SeedSequence([_SPLIT_ENTROPY, seed]))
    n = len(problem.data)
    held_out = np.zeros(n, dtype=np.bool_)
    held_out[rng.choice(n, round(TEST_SHARE * n), replace=False)] = True
    train = problem.rows(~held_out)
    fields = {name: getattr(train, name) for name in ("data", "sample_ate", "ate", "tau")}
    return SplitProblem(**fields, test=problem.rows(held_out))


@dataclass(frozen=True, slots=True)
class TwinsThirds:
    """Table 3: a draw of which twin is observed, in three parts."""

    seed: int
    folder: Path

    @property
    def group(self) -> str:
        """The table."""
        return "twins"

    def load(self) -> FoldProblem:
        """Draw treatment and parts."""
        return in_thirds(load_twins(self.folder / "twins", self.seed), self.seed)


@dataclass(frozen=True, slots=True)
class TcgaThirds:
    """Table A3: patients in three parts; clinical features and some genes, or all of them."""

    genes: int | None
    seed: int
    folder: Path

    @property
    def group(self) -> str:
        """Table and number of genes."""
        return "tcga, " + ("all genes" if self.genes is None else f"{self.genes} genes")

    def load(self) -> FoldProblem:
        """Read the files and draw the parts."""
        return in_thirds(load_tcga(self.folder / "tcga_brca"), self.seed, self.genes)


def in_thirds(problem: Problem, seed: int, genes: int | None = None) -> FoldProblem:
    """The rows in three parts of equal size, both arms alike in each."""
    rng = np.random.default_rng(np.random.SeedSequence([_SPLIT_ENTROPY, seed]))
    fold = np.empty(len(problem.data), dtype=np.int64)
    for arm in (0, 1):
        places = np.flatnonzero(problem.treat == arm)
        fold[rng.permutation(places)] = np.arange(len(places)) % FOLDS
    return FoldProblem(
        data=problem.data,
        sample_ate=problem.sample_ate,
        ate=problem.ate,
        oracle=problem.oracle,
        fold=fold,
        genes=genes,
    )
