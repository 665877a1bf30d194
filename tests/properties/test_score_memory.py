"""Score tests of many rows need no memory that grows with rows times directions."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Peak memory above what the process had before, as a share of the covariates' size. With features
# and directions of all rows kept at once, 20 directions take six times that size.
SCRIPT = """
import resource
import numpy as np
from cstonet.network.covariates import FoldCovariates
from cstonet.network.scaling import column_scaling
from cstonet.search.predictors import Scored
from cstonet.search.projection import OwnDirections
from cstonet.search.scores import ScoreTests

rng = np.random.default_rng(0)
n, p = 200_000, 64
X = rng.standard_normal((n, p), dtype=np.float32)
residual = rng.standard_normal(n)

def tested(rows):
    data = column_scaling(X[rows], 6.0).dataset(X[rows], pack_bytes=0)
    covariates = FoldCovariates(data, np.arange(len(X[rows])))
    own = OwnDirections(np.ones(len(X[rows])), tuple(range(20)), X[rows, :1])
    tests = ScoreTests(covariates, [Scored(residual[rows], members=own.inside, own=own)])
    return tests.largest()

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

tested(slice(0, 2000))  # what the first call needs once
before = peak()
tested(slice(None))
print((peak() - before) / X.nbytes)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="units of ru_maxrss differ")
def test_peak_memory_is_a_fraction_of_the_covariates():
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    # Residuals in double and float, the row numbers, blocks of a few megabytes: about a fifth.
    assert float(run.stdout) < 0.5
