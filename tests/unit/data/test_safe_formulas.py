"""Safe formulas: the same models as in the usual mode, or the part that a formula may not have."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import CausalStoNet
from cstonet.data.covariates import CovariateSpec
from cstonet.data.patsy_terms import term_matrix
from cstonet.errors import (
    FormulaError,
    NotAvailableError,
    NotEnoughMemoryError,
    OptionError,
    UnknownColumnError,
    UnsafeFormulaError,
)

N = 60


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
            "h": pd.Categorical(rng.permutation(np.resize(["lo", "hi"], N))),
            "flag": rng.permutation(np.resize([True, False, True], N)),
            "day": pd.date_range("2020-01-01", periods=N),
            "BRCA-1": rng.normal(size=N),
            "id": [f"unit {i}" for i in range(N)],
        }
    )


PARTS = [
    ". - id - day",
    "g*x1 + h:k - x1",
    "x1*x2*g",
    "C(g) + C(k) + np.log(x2) + 1",
    "Q('BRCA-1') + np.sqrt( x2 ):Q('BRCA-1') - 1",
    "center(k) + standardize(x2) + scale(x1, ddof=1)",
    "bs(x2, df=4) + bs(x1, knots=[0.0], degree=2, lower_bound=-5, upper_bound=5)",
    "cr(x2, df=3) + cc(x1, df=3) + te(cr(x1, 3), cr(x2, 3), constraints='center')",
    "standardize(center(x1) + x2) + C(h, Sum) + C(k, Poly) + I(g == 'a')",
    "C(g, Treatment('b')) + C(k, levels=[2, 1, 0]) + C(k, Treatment(reference=1)):x1",
    "C(g, Helmert):x1 + C(g, Diff):x2 + C(g, ContrastMatrix([[0], [1], [2]], ['up']))",
    "I(-x1**2 + 2.0 ** -k) + np.maximum(x1, x2) + I((x1 > 0) & ~flag) + I(x1 / (1 + k % 2))",
    "bs(np.log(x2), df=4):C(g) + I(day > '2020-01-15') + C(g + id):x1",
]


@pytest.mark.parametrize("part", PARTS)
def test_the_model_is_that_of_the_usual_mode(part, frame):
    """Names, matrix, rows of new data and files: all as if Python had evaluated the terms."""
    usual, safe = (
        CausalStoNet.from_formula(f"y ~ a | {part}", frame, safe=safe).design
        for safe in (False, True)
    )
    assert safe.covariates == usual.covariates
    np.testing.assert_array_equal(safe.X, usual.X)
    some = frame.iloc[[3, 17, 4]]
    np.testing.assert_array_equal(safe.spec.transform(some), usual.X[[3, 17, 4]])
    saved = [json.dumps(d.spec.to_json()["blocks"][-1].get("info")) for d in (usual, safe)]
    assert saved[0] == saved[1]
    again = CovariateSpec.from_json(json.loads(json.dumps(safe.spec.to_json())))
    np.testing.assert_array_equal(again.transform(some), usual.X[[3, 17, 4]])


@pytest.mark.parametrize(
    ("outcome", "treatment"),
    [
        ("np.log(x2)", "a"),
        ("y", "I(x2 > 1.5)"),
        ("x2 * 2", "x1 > 0"),
        ("I(k == 1)", "C(g)"),
        ("Q('BRCA-1')", "np.exp(x1)"),
    ],
)
def test_outcomes_and_treatments_may_be_computed(outcome, treatment, frame):
    formula = f"{outcome} ~ {treatment} | h"
    usual = CausalStoNet.from_formula(formula, frame).design
    safe = CausalStoNet.from_formula(formula, frame, safe=True).design
    assert (safe.outcome_name, safe.treatment.name) == (usual.outcome_name, usual.treatment.name)
    np.testing.assert_array_equal(safe.y, usual.y)
    np.testing.assert_array_equal(safe.treatment.visible(), usual.treatment.visible())
    new = safe.received.read(frame.iloc[:7], "")
    pd.testing.assert_series_equal(new, usual.received.read(frame.iloc[:7], ""))


def test_functions_of_numpy_go_without_their_module(frame):
    plain = CausalStoNet.from_formula("y ~ a | log(x2) + abs(x1):k", frame, safe=True).design
    dotted = CausalStoNet.from_formula("y ~ a | np.log(x2) + np.abs(x1):k", frame, safe=True).design
    np.testing.assert_array_equal(plain.X, dotted.X)
    assert plain.covariates == ("log(x2)", "abs(x1):k")


@pytest.mark.parametrize(
    ("formula", "part"),
    [
        ("y ~ a | np.where(x1 > 0, 1, 0)", "np.where"),
        ("y ~ a | x1.clip(0, 1)", "x1.clip"),
        ("y ~ a | x1 + __import__('os').getcwd()", "__import__"),
        ("y ~ a.map(print) | x1", "a.map"),
        ("eval('y') ~ a | x1", "eval"),
        ("y ~ a | x1 | open('f')", "open"),
        ("y ~ a | x1 / x2", "/ x2"),
        ("y ~ a | (x1 + x2)", r"\(x1 \+ x2\)"),
        ("y ~ a | . - x1.mean()", "x1.mean"),
    ],
)
def test_what_a_safe_formula_may_not_say_is_named(formula, part, frame):
    with pytest.raises(UnsafeFormulaError, match=f"'{part}'.*safe=False"):
        CausalStoNet.from_formula(formula, frame, safe=True)


def test_a_misspelt_column_is_called_unknown(frame):
    for formula in ("y ~ a | np.log(x3)", "y ~ a | x3:x1", "y ~ a | x3", "np.log(x3) ~ a | x1"):
        with pytest.raises(UnknownColumnError, match="no column 'x3'"):
            CausalStoNet.from_formula(formula, frame, safe=True)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("I(g * 1000000000)", "needs numbers"),
        ("np.log(g)", "needs numbers"),
        ("x1:np.power(k, -1)", "negative integer powers"),
        ("C(g, Treatment('z'))", "'z' not found"),
        ("C(g, ContrastMatrix([[1]], ['up', 'down']))", "conform"),
        ("bs(g, df=4)", "cannot be evaluated"),
    ],
)
def test_what_cannot_be_computed_is_said_of_the_term(part, says, frame):
    with pytest.raises(FormulaError, match=says):
        CausalStoNet.from_formula(f"y ~ a | x2 + {part}", frame, safe=True)


def test_an_outcome_is_one_column(frame):
    for formula in ("bs(x1, df=4) ~ a | x2", "y ~ te(cr(x1, 3), cr(x2, 3)) | x2"):
        with pytest.raises(FormulaError, match="several columns"):
            CausalStoNet.from_formula(formula, frame, safe=True)


@pytest.mark.parametrize(
    "part",
    [
        "te(bs(x1, 200), bs(x1, 200), bs(x1, 200), bs(x2, 200))",
        "C(te(bs(x1, 200), bs(x1, 200), bs(x1, 200)))",
        "bs(I(x1 ** te(bs(x1, 200), bs(x1, 200), bs(x1, 200), bs(x1, 200))), 4)",
        "center(te(bs(x1, 200), cr(x1, 200), bs(x2, 200)))",
        "C(te(bs(x1, 200), bs(x1, 200), bs(x1, 200)), levels=[1, 2])",
        "C(x1):C(x2):C(id)",
        "bs(x1, 200):bs(x2, 200):id",
        "I(te(bs(x1, 200), bs(x2, 200), bs(x1, 200)) > 0)",
    ],
)
def test_terms_without_end_are_refused_before_they_are_made(part, frame):
    with pytest.raises(NotEnoughMemoryError, match=r"up to [0-9]+ columns") as caught:
        CausalStoNet.from_formula(f"y ~ a | {part}", frame, safe=True)
    assert caught.value.__cause__ is None


def test_a_column_may_be_called_like_code(frame):
    """Names are looked up before anything is read: a column letter for letter is that column."""
    frame["np.load('f')"] = frame.x1
    frame["np"], frame["log"] = frame.x2, frame.x1
    design = CausalStoNet.from_formula("y ~ a | np.load('f') + np:log", frame, safe=True).design
    np.testing.assert_array_equal(design.X[:, 0], frame.x1)
    np.testing.assert_array_equal(design.X[:, 1], frame.x2 * frame.x1)


def test_names_of_the_session_mean_nothing(frame):
    def log(x):
        raise AssertionError("this would be code")

    class Spy:
        def __getattr__(self, name):
            raise AssertionError("this would be code")

    np_of_session, center = Spy(), log
    assert log is center
    assert np_of_session is not None
    design = CausalStoNet.from_formula("y ~ a | log(x2) + center(x1)", frame, safe=True).design
    np.testing.assert_array_equal(design.X[:, 0], np.log(frame.x2))


def test_safe_is_a_truth_value(frame):
    for safe in ("yes", None, 1):
        with pytest.raises(OptionError, match="safe must be True or False"):
            CausalStoNet.from_formula("y ~ a | x1", frame, safe=safe)


def test_very_long_formulas_are_refused_unread(frame):
    with pytest.raises(UnsafeFormulaError, match="1000000 characters"):
        CausalStoNet.from_formula("y ~ a | x1" + " + x1" * 250_000, frame, safe=True)


def test_tables_and_new_treatments_are_read_safely(frame, tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(frame[["y", "a", "x1", "x2", "g"]])
    formula = "np.exp(y) ~ I(x2 > 1.5) | np.sin(x1) + C(g)"
    design = CausalStoNet.from_formula(formula, table, safe=True).design
    expected = CausalStoNet.from_formula(formula, frame, safe=True).design
    np.testing.assert_array_equal(design.X, expected.X)
    with pytest.raises(UnsafeFormulaError):
        CausalStoNet.from_formula("y ~ a.map(print) | x1", table, safe=True)
    whole = CausalStoNet.from_formula("y ~ center(x1) | x2", frame, safe=True).design
    with pytest.raises(NotAvailableError, match="depends on all rows"):
        whole.received.read(frame.iloc[:3], "")


def test_sums_of_terms(frame):
    """Those of a projection: constants, removed terms, interactions."""
    for text in ("x1 + C(g)", "0 + x1:x2 + g", "x1*k - x1", "x1 - 1", "1", "np.log(x2) + 1"):
        usual = term_matrix(text, frame.columns, frame.get, N)
        safe = term_matrix(text, frame.columns, frame.get, N, safe=True)
        assert safe[1] == usual[1], text
        np.testing.assert_array_equal(safe[0], usual[0])
    for text in ("x1.mean()", "x1 + open('f')", ".", "x1 ~ x2"):
        with pytest.raises(FormulaError):
            term_matrix(text, frame.columns, frame.get, N, safe=True)


def test_fits_remember_how_their_formula_was_read(frame, quick_options, tmp_path):
    results = cs.fit(
        "y ~ a | log(x2) + x1*g", frame, safe=True, options=quick_options(), seed=1, n_jobs=1
    )
    assert "safe=True" in results.call
    with pytest.raises(UnsafeFormulaError):
        results.projection("x1.clip(0, 1)")
    assert results.projection("x1.clip(0, 1)", safe=False).params.size == 2
    loaded = [pickle.loads(pickle.dumps(results)), copy.deepcopy(results)]
    results.save(tmp_path / "fit.cst", with_data=True)
    for other in [*loaded, cs.load(tmp_path / "fit.cst")]:
        assert other.cate(frame).equals(results.cate(frame))
        with pytest.raises(UnsafeFormulaError):
            other.projection("x1.clip(0, 1)")
