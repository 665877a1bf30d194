"""Memory: what reading and reporting take beside the data, and what is said when there is none."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from cstonet import CausalStoNet, memory
from cstonet.errors import CStoNetError, NotEnoughMemoryError
from cstonet.estimators import Nuisances
from cstonet.memory import available_bytes, explained, readable, sizes
from cstonet.reporting.diagnostics import balance

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import memory_probe

linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
N, P = 200_000, 50
INPUT = 4 * N * P  # bytes in float32


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P), dtype=np.float32)
    return rng.standard_normal(N), rng.integers(0, 2, N), X


@linux
def test_the_probe_sees_an_array_and_not_a_map(tmp_path):
    with memory_probe.PeakMemory() as peak:
        np.ones(INPUT // 8)
    assert 0.9 * INPUT < peak.above < 1.2 * INPUT
    np.ones(INPUT // 8).tofile(tmp_path / "x")
    with memory_probe.PeakMemory(mapped=True) as peak:
        np.memmap(tmp_path / "x", mode="r").sum()
    assert peak.above < 0.2 * INPUT


@linux
@pytest.mark.parametrize("weighted", [False, True])
def test_reading_copies_no_covariates(weighted, data):
    """About twelve numbers per row are read and checked; a copy of X would be another 50."""
    y, treat, X = data
    weights = np.where(np.arange(N) % 20, 1.0, 0.0) if weighted else None
    with memory_probe.PeakMemory() as peak:
        model = CausalStoNet(y, treat, X, weights=weights)
    assert np.shares_memory(model.design.X, X)
    assert peak.above < 0.75 * INPUT


WHOLE_FIT = """
import sys
sys.path[:0] = sys.argv[1:]
import numpy as np
from conftest import options_for_quick_fits
from cstonet import CausalStoNet
from memory_probe import PeakMemory

rng = np.random.default_rng(0)
X = rng.standard_normal((300_000, 100), dtype=np.float32)
treat = rng.integers(0, 2, len(X))
y = X[:, 0].astype(np.float64) + treat
options = options_for_quick_fits(epochs=2)
CausalStoNet(y[:300], treat[:300], X[:300]).fit(options=options)  # loads the libraries
model = CausalStoNet(y, treat, X)
with PeakMemory() as peak:
    model.fit(options=options, seed=1, n_jobs=2)
print(peak.above)
"""


@linux
def test_a_whole_fit_takes_no_more_than_the_covariates():
    """Beside what does not grow with the data: search, training, predictions, estimates.

    In a process of its own: what others have freed would count where it is taken again.
    """
    root = Path(__file__).parents[2]
    folders = [str(root / name) for name in ("tests", "benchmarks")]
    run = [sys.executable, "-c", WHOLE_FIT, *folders]
    above = int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert 0 < above < 4 * 300_000 * 100 + 100 * 2**20


@linux
def test_balance_reads_the_covariates_in_parts(data):
    """Weights of two arms before and after are 32 bytes a row; a float64 copy of X, 400."""
    y, treat, X = data
    half = np.full((N, 2), 0.5)
    nuisances = Nuisances(y, treat, np.zeros((N, 2)), half, None, np.zeros(N, dtype=np.uint8))
    with memory_probe.PeakMemory() as peak:
        table = balance(
            nuisances, X, covariates=[f"x{j}" for j in range(P)], levels=(0, 1), clip=0.01
        )
    assert peak.above < 1.5 * INPUT
    treated = treat == 1
    wide = X.astype(np.float64)
    spread = np.sqrt((wide[treated].var(axis=0) + wide[~treated].var(axis=0)) / 2)
    smd = (wide[treated].mean(axis=0) - wide[~treated].mean(axis=0)) / spread
    # Sums of 2e5 terms of order one, in parts.
    np.testing.assert_allclose(table["smd_before"], smd, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("left", "wanted", "given"),
    [(None, 64, 64), (2**40, 64, 64), (2**30, 64, 8), (2**27, 2, 1), (2**27 - 1, 2, 0), (0, 1, 0)],
)
def test_threads_are_started_where_there_is_memory_for_them(monkeypatch, left, wanted, given):
    monkeypatch.setattr(memory, "available_bytes", lambda: left)
    assert memory.affordable_threads(wanted) == given


def test_sizes_are_readable():
    assert [readable(x) for x in (12, 2500, 4e9)] == ["12 bytes", "2.5 kB", "4.0 GB"]
    assert sizes(np.empty((1000, 5))) == "1000 rows x 5 columns are 20.0 kB in float32"
    assert "not known" in sizes("file.parquet")


@linux
def test_some_memory_is_available():
    found = available_bytes()
    assert found is not None
    assert found > 0


@pytest.mark.parametrize(
    ("limit", "left"), [("1000", 1000 - 600 + 150), ("max", None), ("9223372036854771712", "much")]
)
def test_pages_of_files_are_no_memory_that_is_taken(limit, left, tmp_path, monkeypatch):
    for name, text in (
        ("most", limit),
        ("used", "600"),
        ("memory.stat", "anon 450\ninactive_file 150\n"),
    ):
        (tmp_path / name).write_text(text + "\n")
    files = ("/no/such/group", "most", "used", ""), (str(tmp_path), "most", "used", "inactive_file")
    monkeypatch.setattr(memory, "_GROUP_FILES", files)
    found = memory._of_group()
    assert found == left if left != "much" else found > 2**60


def test_a_lack_of_memory_is_explained():
    says = r"training \(no room\): 9 GB; .*n_jobs=1"
    with pytest.raises(NotEnoughMemoryError, match=says) as got, explained("training", "9 GB"):
        raise MemoryError("no room")
    assert isinstance(got.value, MemoryError)
    assert isinstance(got.value, CStoNetError)
    with pytest.raises(KeyError), explained("training", "9 GB"):
        raise KeyError


LIMITED = """
import resource, sys
import numpy as np
import cstonet as cs
from cstonet.settings.options import FitOptions

rng = np.random.default_rng(0)
n, p = 20_000, 400
X = rng.standard_normal((n, p), dtype=np.float32)
model = cs.CausalStoNet(rng.standard_normal(n), rng.integers(0, 2, n), X)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 24_000_000, -1))
try:
    model.fit(options=FitOptions(search=None, updates=2, folds=2, repeats=1), n_jobs=1)
except cs.errors.NotEnoughMemoryError as error:
    print("named:", error)
"""


@linux
def test_memory_that_cannot_be_had_has_a_name():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "named: There is not enough memory for training" in done.stdout
    assert "20000 rows x 400 columns are 32.0 MB in float32" in done.stdout
