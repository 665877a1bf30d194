"""Frames with gaps of every kind: what is imputed, what is refused, and by which error."""

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.design import Design
from cstonet.errors import ColumnTypeError, NotAvailableError

QUICK = {"folds": 2, "repeats": 1, "starts": 1, "updates": 300, "imputations": 4, "seed": 3}
FORMULA = "y ~ treat | ."


def complete_frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    treat = (x[:, 0] + rng.normal(size=n) > 0).astype(int)
    y = treat + x[:, 0] + rng.normal(size=n)
    return pd.DataFrame({"y": y, "treat": treat, "x1": x[:, 0], "x2": x[:, 1], "x3": x[:, 2]})


def fit(frame, missing="mar", formula=FORMULA, **changes):
    return cs.fit(formula, frame, missing=missing, n_jobs=1, **{**QUICK, **changes})


class TestOneLevel:
    @pytest.fixture
    def frame(self):
        return complete_frame().assign(same=["a", None] * 100)

    def test_gaps_in_a_column_of_one_level_only(self, frame):
        assert Design.from_formula(FORMULA, frame, missing="mar").gaps is None
        with_gaps, without = fit(frame), fit(frame.drop(columns="same"), missing="raise")
        assert with_gaps.imputations is None
        np.testing.assert_array_equal(with_gaps.params, without.params)

    def test_such_gaps_in_new_rows(self, frame):
        results = fit(frame)
        pd.testing.assert_series_equal(
            results.cate(frame), results.cate(frame.assign(same="a")), check_exact=True
        )

    def test_such_gaps_beside_others(self, frame):
        frame.loc[3:9, "x2"] = np.nan
        results = fit(frame)
        assert [variable.name for variable in results.design.gaps.variables] == ["x2"]
        assert results.cate(frame.head(2)).notna().all()


@pytest.mark.parametrize("term", ["np.exp(k)", "k:x1", "k + np.log(k + 1)"])
def test_terms_of_nullable_numbers_with_gaps(term):
    k = pd.array(np.arange(200) % 7, dtype="Int64")
    k[5] = pd.NA
    with pytest.raises(NotAvailableError, match="'k', where values are missing"):
        Design.from_formula(f"y ~ treat | x1 + {term}", complete_frame().assign(k=k), missing="mar")


@pytest.mark.parametrize("kind", [object, "string"])
def test_identifiers_are_found_among_the_observed(kind):
    frame = complete_frame()
    frame["id"] = pd.Series([f"unit {i}" for i in range(200)], dtype=kind)
    frame.loc[7, "id"] = None
    with pytest.raises(ColumnTypeError, match=r"'id'.*identifier"):
        Design.from_formula(FORMULA, frame, missing="mar")
    declared = frame.assign(id=frame["id"].astype("category"))
    assert Design.from_formula(FORMULA, declared, missing="mar").X.shape == (200, 3 + 198)


@pytest.fixture(scope="module")
def frame():
    frame = complete_frame().assign(
        group=["a", "b", None, "b"] * 50, yes=[True, None, False, False] * 50
    )
    frame.loc[::9, "x2"] = np.nan
    return frame


@pytest.fixture(scope="module")
def results(frame):
    return fit(frame)


class TestNewRows:
    @pytest.mark.parametrize("gap", [None, pd.NA, np.nan, pd.NaT])
    @pytest.mark.parametrize("column", ["x2", "group", "yes"])
    def test_a_single_row_without_a_value(self, frame, results, column, gap):
        row = frame.iloc[[1]].drop(columns=["y", "treat"])
        expected = results.cate(row.assign(**{column: np.nan}))
        single = pd.DataFrame([{**row.iloc[0].to_dict(), column: gap}], index=row.index)
        pd.testing.assert_series_equal(results.cate(single), expected)

    def test_numbers_in_a_column_of_objects(self, frame, results):
        rows = frame.head(12)
        mixed = rows.assign(x2=rows["x2"].astype(object).where(rows["x2"].notna(), None))
        assert mixed["x2"].dtype == object
        pd.testing.assert_series_equal(results.cate(mixed), results.cate(rows))
        with pytest.raises(ColumnTypeError, match="'x2'"):
            results.cate(rows.assign(x2="three"))
