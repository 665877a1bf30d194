"""What patsy learned goes into pickles and copies, and gives the same bits there."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.errors import NotAvailableError

N = 40
POWER = 1.5


@pytest.fixture
def frame():
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "y": rng.normal(size=N),
            "a": np.arange(N) % 2,
            "x1": rng.normal(size=N),
            "x2": rng.uniform(1.0, 2.0, size=N),
            "k": np.arange(N) % 3,
            "g": rng.permutation(np.resize(["b", "a", "c"], N)),
            "day": pd.to_datetime(rng.permutation(np.resize(["2020-01-01", "2021-01-01"], N))),
        }
    )


PARTS = [
    "C(g) + C(k, Poly) + np.log(x2) + g:x1",
    "standardize(center(x1) + x2) + bs(x2, df=4) + te(cr(x1, 3), cr(x2, 3))",
    "np.where(x1 > 0, x1, 0) + x1.clip(-1, 1) + pd.cut(x2, [0, 1.5, 2])",
    "I(x2 ** POWER) + x1.map(math.erf) + C(day)",
    "x1 + np.logaddexp(x1, x2) * g",
]


# `POWER` and `math` are names of this module, which other processes can import or be told.
assert math.erf(0) == 0


def blocks_of(part, frame, *, safe=False):
    return CausalStoNet.from_formula(f"y ~ a | {part}", frame, safe=safe).design.spec


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("part", PARTS)
def test_pickles_give_the_same_bits(part, frame, protocol):
    spec = blocks_of(part, frame)
    text = pickle.dumps(spec, protocol)
    again = pickle.loads(text)
    assert again.names == spec.names
    assert again.covariates_of_terms() == spec.covariates_of_terms()
    for rows in (frame, frame.iloc[[3, 17]]):
        np.testing.assert_array_equal(again.transform(rows), spec.transform(rows))
    twice = pickle.loads(pickle.dumps(again, protocol))
    np.testing.assert_array_equal(twice.transform(frame), spec.transform(frame))


@pytest.mark.parametrize("safe", [False, True])
def test_safe_terms_stay_safe(frame, safe):
    spec = blocks_of("log(x2) + C(g)" if safe else "np.log(x2) + C(g)", frame, safe=safe)
    again = pickle.loads(pickle.dumps(spec))
    kinds = {type(factor).__name__ for factor in again.blocks[0].info.factor_infos}
    assert kinds == {"PlainFactor" if safe else "EvalFactor"}
    np.testing.assert_array_equal(again.transform(frame), spec.transform(frame))


def test_copies_in_this_process_take_everything_along(frame):
    def of_this_test(x):
        return x**2

    spec = CausalStoNet.from_formula("y ~ a | of_this_test(x1) + C(g)", frame).design.spec
    for again in (copy.copy(spec), copy.deepcopy(spec)):
        np.testing.assert_array_equal(again.transform(frame), spec.transform(frame))


def test_what_is_of_this_session_alone_is_refused_by_name(frame):
    def of_this_test(x):
        return x**2

    model = CausalStoNet.from_formula("y ~ a | of_this_test(x1) + C(g)", frame)
    with pytest.raises(
        NotAvailableError, match=r"'of_this_test\(x1\)' cannot be pickled.*deepcopy"
    ):
        pickle.dumps(model)


def test_functions_of_a_script_are_refused_too(tmp_path):
    """They have a name, but in another process their module is another program."""
    script = tmp_path / "script.py"
    script.write_text(
        "import pickle\n"
        "import numpy as np, pandas as pd\n"
        "import cstonet as cs\n"
        "def squared(x):\n"
        "    return x ** 2\n"
        "numbers = np.arange(20.0)\n"
        "data = pd.DataFrame({'y': numbers, 'a': [0, 1] * 10, 'x': np.sin(numbers)})\n"
        "spec = cs.CausalStoNet.from_formula('y ~ a | squared(x) + x', data).design.spec\n"
        "try:\n"
        "    pickle.dumps(spec)\n"
        "except cs.errors.NotAvailableError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=120
    )
    assert "'squared' is defined only in this session" in done.stdout, done.stderr


def test_a_column_called_like_a_variable_is_no_part_of_the_pickle(frame):
    x1 = object()  # which cannot be carried along

    assert x1 is not None
    spec = CausalStoNet.from_formula("y ~ a | x1.clip(0, 1)", frame).design.spec
    again = pickle.loads(pickle.dumps(spec))
    np.testing.assert_array_equal(again.transform(frame), spec.transform(frame))


def test_models_and_workers(frame):
    cloudpickle = pytest.importorskip("cloudpickle")
    joblib = pytest.importorskip("joblib")
    model = CausalStoNet.from_formula("np.log(x2) ~ a | C(g) + bs(x1, df=4)", frame)
    expected = model.design.X
    for again in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        cloudpickle.loads(cloudpickle.dumps(model)),
    ):
        np.testing.assert_array_equal(again.design.spec.transform(frame), expected)
    with joblib.parallel_config("loky", n_jobs=2):
        (there,) = joblib.Parallel()([joblib.delayed(model.design.spec.transform)(frame)])
    np.testing.assert_array_equal(there, expected)
