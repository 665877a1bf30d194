"""What importing the package costs: modules that are loaded only by those who need them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import cstonet as cs

LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"

SMALL_FIT = """
import numpy as np
import cstonet as cs
rng = np.random.default_rng(1)
X, treat = rng.normal(size=(60, 3)), np.arange(60) % 2
y = X[:, 0] + treat + rng.normal(size=60)
results = cs.CausalStoNet(y, treat, X).fit(seed=1, n_jobs=1, folds=2)
assert np.isfinite(results.effect("ATE").estimate)
"""


def modules_after(code: str) -> set[str]:
    """Modules loaded in a fresh process that runs this code."""
    command = [sys.executable, "-c", f"{code}\n{LOADED}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_loads_no_library():
    assert not modules_after("import cstonet") & {
        *("numpy", "pandas", "scipy", "statsmodels", "patsy", "tqdm"),
        *("cstonet._core", "cstonet.model", "cstonet.datasets"),
    }


def test_a_fit_to_arrays_loads_only_what_it_needs():
    loaded = modules_after(SMALL_FIT)
    assert "cstonet._core" in loaded
    assert not loaded & {
        *("scipy.signal", "scipy.stats", "scipy.interpolate"),
        *("statsmodels", "patsy", "tqdm", "safetensors", "cstonet.datasets"),
    }


def test_an_optimiser_is_loaded_by_fits_alone():
    code = "import cstonet as cs\ncs.fit, cs.CausalStoNet"
    loaded = modules_after(code)
    assert "cstonet.model" in loaded
    assert not loaded & {"scipy.optimize", "scipy.linalg"}


def test_simulations_load_no_filters_and_no_statistics():
    code = "import cstonet as cs\ncs.datasets.simulation2(n=20, p=5)\ncs.datasets.three_arms(n=30)"
    assert not modules_after(code) & {"scipy.signal", "scipy.stats", "scipy.optimize"}


def test_every_public_name_is_there():
    assert set(cs.__all__) <= set(dir(cs))
    namespace: dict[str, object] = {}
    exec("from cstonet import *", namespace)
    assert set(cs.__all__) <= set(namespace)
    for name in cs.__all__:
        assert namespace[name] is getattr(cs, name)


def test_public_classes_are_where_they_say():
    assert cs.fit.__module__ == "cstonet.model"
    assert cs.Effect.__module__ == "cstonet.reporting.inference"
    assert cs.datasets.__name__ == "cstonet.datasets"


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        _ = cs.fitt
    with pytest.raises(ImportError):
        exec("from cstonet import fitt")
