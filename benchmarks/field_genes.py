"""Real gene expression of breast tumours, with a simulated treatment and outcome: p > n."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from common import FloatArray, Problem
from loaders import aipw, frame_of, standardised
from numpy.typing import NDArray
from scipy.special import expit
from support_data import stream
from tcga import read_genes

# How many of the genes that vary most the simulated models may draw theirs from.
_VARIABLE_GENES = 3000
_GENES = 6


def load_genes(folder: Path, seed: int) -> Problem:
    """Real expression of 6000 genes in 769 tumours, simulated treatment and outcome.

    Of six genes drawn for each data set, two confound, two matter for the treatment only and two
    for the outcome only. All functions are bounded in the genes, so that single extreme tumours do
    not decide: propensities are between 0.04 and 0.96. The tumours are the same in every data
    set: the truth is the mean effect among them.
    """
    expression, candidates = _expression(folder)
    rng = stream("tcga-genes", seed)
    chosen = rng.choice(candidates, _GENES, replace=False)
    genes = standardised(expression.iloc[:, chosen].to_numpy(np.float64))
    propensity, mu = gene_models(genes)
    treat = (rng.random(len(mu)) < propensity).astype(np.int64)
    y = mu[np.arange(len(mu)), treat] + rng.standard_normal(len(mu))
    tau = mu[:, 1] - mu[:, 0]
    names = expression.columns[chosen]
    return Problem(
        frame_of(y, treat, expression),
        sample_ate=float(tau.mean()),
        tau=tau,
        oracle=aipw(y, treat, mu, propensity),
        supports={
            "outcome": frozenset(names[[0, 1, 4, 5]]),
            "treatment": frozenset(names[[0, 1, 2, 3]]),
        },
    )


def gene_models(genes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Propensities (n,) and means of both arms (n, 2) of tumours with these genes, (n, 6).

    The first two genes are in both, the next two in the propensity, the last two in the means.
    """
    shared, other, treatment = np.tanh(genes[:, :3]).T
    outcome, last = np.tanh(genes[:, 4:]).T
    bump = np.exp(-(genes[:, 3] ** 2))  # in (0, 1], high for middling expression
    propensity: FloatArray = expit(shared - 0.8 * other + 0.8 * treatment + bump - 0.6)
    without = 2 * shared - 1.5 * other + outcome + 1.5 * outcome * last
    tau = 1 + 0.8 * shared + 0.5 * last
    return propensity, np.column_stack([without, without + tau])


@lru_cache
def _expression(folder: Path) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """All genes by tumour, and the positions of those that vary most."""
    genes = read_genes(folder).reset_index(drop=True)
    spread = genes.to_numpy(np.float64).std(axis=0)
    return genes, np.argsort(-spread, kind="stable")[:_VARIABLE_GENES]
