"""TCGA-BRCA: radiation therapy and death of breast-cancer patients, clinical features, genes.

The paper has ten clinical features and 100 genes, screened by MV-SIS out of 20 531, for 845
patients. The files at hand hold 769 patients, 715 of them with a known radiation therapy, and 6000
genes, which those who offer the files took for differing most between the molecular subtypes of
all these tumours. From these, genes are screened within the rows that a method learns from. What is
filled in for gaps of the clinical features, and which small groups are joined, comes from all rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from common import FloatArray, Problem

FOLDER = "tcga_brca"
CLINICAL, EXPRESSION = "clinical.csv.gz", "rna.csv.gz"
# Genes that the paper names among the most frequently selected ones.
PAPERS_GENES = (
    *("ACMSD", "AKAP2", "ALDH3A2", "ALG1", "ALMS1P", "ANKLE1", "ANKRD54", "AQP7P1", "AZI1"),
    *("B4GALT1", "B4GALT2", "BCL6B", "C10orf47", "C10orf72"),
)
# Clinical features that the paper names, as they are called here.
PAPERS_CLINICAL = ("age", "year_of_diagnosis", "lymph_nodes", "n_stage")
GENE_PREFIX = "gene_"

_NUMBERS = {
    "years_to_birth": "age",
    "date_of_initial_pathologic_diagnosis": "year_of_diagnosis",
    "number_of_lymph_nodes": "lymph_nodes",
}
_STAGES = {"pathology_T_stage": "t_stage", "pathology_N_stage": "n_stage"}
_GROUPS = {"histological_type": "histology", "race.1": "race", "ethnicity.1": "ethnicity"}
# Groups with fewer patients are joined.
_SMALLEST_GROUP = 25


def load_tcga(folder: Path) -> Problem:
    """Patients with known radiation therapy, age and year: clinical features and all genes.

    No effect is known: the truths are NaN.
    """
    patients = pd.read_csv(folder / CLINICAL, index_col="patient")
    known = patients["radiation_therapy"].notna()
    known &= patients["years_to_birth"].notna()
    known &= patients["date_of_initial_pathologic_diagnosis"].notna()
    patients = patients[known]
    genes = read_genes(folder).loc[patients.index]
    head = pd.DataFrame(
        {
            "y": patients["vital_status.1"].astype(np.float64),
            "treat": (patients["radiation_therapy"] == "yes").astype(np.int64),
        }
    )
    data = pd.concat([head, clinical_features(patients), genes], axis=1)
    return Problem(data.reset_index(drop=True), sample_ate=np.nan)


def read_genes(folder: Path) -> pd.DataFrame:
    """Expression by patient and gene, columns such as "gene_ESR1"."""
    genes = pd.read_csv(folder / EXPRESSION, index_col="patient").astype(np.float32)
    # The files write SYMBOL_number; a symbol that occurs twice keeps its number.
    symbols = pd.Series([name.rpartition("_")[0] for name in genes.columns])
    twice = symbols.duplicated(keep=False).to_numpy()
    names = np.where(twice, genes.columns, symbols)
    return genes.set_axis([f"{GENE_PREFIX}{name}" for name in names], axis=1)


def clinical_features(patients: pd.DataFrame) -> pd.DataFrame:
    """The paper's ten: three numbers, stages as numbers, groups as categories.

    A number of lymph nodes that is not known is the median, and a column says so; a stage that
    could not be assessed (tx, nx, mx, stage x) is the most frequent one.
    """
    features = pd.DataFrame(index=patients.index)
    for column, name in _NUMBERS.items():
        features[name] = patients[column].astype(np.float64)
    unknown = features["lymph_nodes"].isna()
    features["lymph_nodes"] = features["lymph_nodes"].fillna(features["lymph_nodes"].median())
    features["lymph_nodes_unknown"] = unknown.astype(np.float64)
    for column, name in _STAGES.items():
        features[name] = _most_frequent(patients[column].str.extract(r"^.(\d)")[0].astype(float))
    features["metastasis"] = (patients["pathology_M_stage"] == "m1").astype(np.float64)
    roman = patients["pathologic_stage"].str.extract(r"^stage (iv|i{1,3})")[0]
    stage = roman.map({"i": 1.0, "ii": 2.0, "iii": 3.0, "iv": 4.0})
    features["stage"] = _most_frequent(stage)
    for column, name in _GROUPS.items():
        group = patients[column].fillna("unknown")
        small = group.map(group.value_counts()) < _SMALLEST_GROUP
        features[name] = group.mask(small, "other").astype("category")
    return features


def _most_frequent(values: pd.Series) -> pd.Series:
    """The values with gaps filled by the most frequent one."""
    return values.fillna(values.mode().iloc[0])


def gene_columns(data: pd.DataFrame) -> list[str]:
    """The columns that are genes."""
    return [column for column in data.columns if column.startswith(GENE_PREFIX)]


def screened_genes(problem: Problem, count: int) -> list[str]:
    """The genes whose distribution depends most on the outcome, by MV-SIS among these rows."""
    genes = gene_columns(problem.data)
    index = mean_variance_index(problem.data[genes].to_numpy(np.float64), problem.y)
    return [genes[j] for j in np.sort(np.argsort(-index, kind="stable")[:count])]


def mean_variance_index(X: FloatArray, classes: FloatArray) -> FloatArray:
    """Cui, Li and Zhong's (2015) index MV(X_j | Y) = E Var F(X_j | Y) of every column, (p,).

    Parameters
    ----------
    X : (n, p) float64
        Columns.
    classes : (n,)
        Classes Y of the rows.

    Returns
    -------
    (p,) float64
        Σ_r p̂_r n⁻¹ Σ_i [F̂_r(x_ij) - F̂(x_ij)]², with empirical distribution functions of all rows
        and of those of class r.
    """
    n = len(X)
    order = np.argsort(X, axis=0, kind="stable")
    ordered = np.take_along_axis(X, order, axis=0)
    # F̂ at equal values is that of the last of them.
    last = np.empty(X.shape, dtype=np.int64)
    for j in range(X.shape[1]):
        last[:, j] = np.searchsorted(ordered[:, j], ordered[:, j], side="right") - 1
    overall = (last + 1) / n
    index = np.zeros(X.shape[1])
    for value in np.unique(classes):
        member = (classes == value)[order]
        share = member[:, 0].mean() if X.shape[1] else 0.0
        among = np.take_along_axis(np.cumsum(member, axis=0), last, axis=0) / (share * n)
        index += share * np.mean((among - overall) ** 2, axis=0)
    return index
