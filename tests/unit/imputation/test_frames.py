"""Frames with gaps of every kind: what is imputed, what is refused, and by which error."""

import warnings

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet, _core
from cstonet.errors import (
    ColumnTypeError,
    EmptyArmWarning,
    InfiniteValuesError,
    NotAvailableError,
    OptionError,
    UnseenLevelError,
)
from cstonet.imputation.gap_data import with_imputed_means
from cstonet.imputation.regressions import Target, select_features

FORMULA = "y ~ treat | ."


def complete_frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    treat = (x[:, 0] + rng.normal(size=n) > 0).astype(int)
    y = treat + x[:, 0] + rng.normal(size=n)
    return pd.DataFrame({"y": y, "treat": treat, "x1": x[:, 0], "x2": x[:, 1], "x3": x[:, 2]})


class TestOneLevel:
    @pytest.fixture
    def frame(self):
        return complete_frame().assign(same=["a", None] * 100)

    def test_gaps_in_a_column_of_one_level_only(self, frame, fit_gaps):
        assert CausalStoNet.from_formula(FORMULA, frame, missing="mar").design.gaps is None
        with_gaps, without = fit_gaps(frame), fit_gaps(frame.drop(columns="same"), missing="raise")
        assert with_gaps.imputations is None
        np.testing.assert_array_equal(with_gaps.params, without.params)

    def test_such_gaps_in_new_rows(self, frame, fit_gaps):
        results = fit_gaps(frame)
        pd.testing.assert_series_equal(
            results.cate(frame), results.cate(frame.assign(same="a")), check_exact=True
        )

    def test_such_gaps_beside_others(self, frame, fit_gaps):
        frame.loc[3:9, "x2"] = np.nan
        results = fit_gaps(frame)
        assert [variable.name for variable in results.design.gaps.variables] == ["x2"]
        assert results.cate(frame.head(2)).notna().all()


@pytest.mark.parametrize("term", ["np.exp(k)", "k:x1", "k + np.log(k + 1)"])
def test_terms_of_nullable_numbers_with_gaps(term):
    k = pd.array(np.arange(200) % 7, dtype="Int64")
    k[5] = pd.NA
    with pytest.raises(NotAvailableError, match="'k', where values are missing"):
        CausalStoNet.from_formula(
            f"y ~ treat | x1 + {term}", complete_frame().assign(k=k), missing="mar"
        )


@pytest.mark.parametrize("kind", [object, "string"])
def test_identifiers_are_found_among_the_observed(kind):
    frame = complete_frame()
    frame["id"] = pd.Series([f"unit {i}" for i in range(200)], dtype=kind)
    frame.loc[7, "id"] = None
    with pytest.raises(ColumnTypeError, match=r"'id'.*identifier"):
        CausalStoNet.from_formula(FORMULA, frame, missing="mar")
    declared = frame.assign(id=frame["id"].astype("category"))
    assert CausalStoNet.from_formula(FORMULA, declared, missing="mar").design.X.shape == (
        200,
        3 + 198,
    )


@pytest.fixture(scope="module")
def frame():
    frame = complete_frame().assign(
        group=["a", "b", None, "b"] * 50, yes=[True, None, False, False] * 50
    )
    frame.loc[::9, "x2"] = np.nan
    return frame


@pytest.fixture(scope="module")
def results(frame, fit_gaps):
    return fit_gaps(frame)


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


class TestFewValues:
    def test_more_neighbours_than_values(self, fit_gaps):
        frame = complete_frame()
        for j in range(4, 10):
            frame[f"x{j}"] = np.random.default_rng(j).normal(size=200)
        frame.loc[8:, "x1"] = np.nan
        others = [f"x{j}" for j in range(2, 10)]
        with pytest.raises(OptionError, match=r"'x1' 8 covariates.*only 8 rows.*at most 2"):
            fit_gaps(frame, neighbours={"x1": others})
        assert np.isfinite(fit_gaps(frame, neighbours={"x1": others[:2]}).params).all()

    def test_found_neighbours_leave_a_spread(self):
        """Five copies of a column with nine values, each with some noise: three are enough."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=(300, 1)) + 0.05 * rng.normal(size=(300, 6))
        target = Target(x[:, 0], None, np.arange(300) < 9, barred=(0,))
        data = _core.Dataset(x, np.zeros(6), np.ones(6), 1e6, 0)
        (found,) = select_features(data, np.arange(300), [target], 1)
        assert 1 <= len(found) <= 3


class TestOddFrames:
    def test_infinite_values_beside_gaps_are_counted_alone(self):
        frame = complete_frame()
        frame.loc[:9, "x1"] = np.nan
        frame.loc[20, "x1"] = np.inf
        with pytest.raises(InfiniteValuesError, match=r"'x1'.*in 1 of 200 rows"):
            CausalStoNet.from_formula(FORMULA, frame, missing="mar")

    def test_no_value_in_an_arm(self, fit_gaps):
        frame = complete_frame()
        frame.loc[frame["treat"] == 1, "x2"] = np.nan
        with pytest.warns(EmptyArmWarning, match="'x2': no value where treat is 1"):
            results = fit_gaps(frame)
        assert np.isfinite(results.params).all()

    @pytest.mark.parametrize("observed", [1, 3])
    @pytest.mark.parametrize("column", ["x2", "group"])
    def test_hardly_any_value(self, column, observed, fit_gaps):
        frame = complete_frame().assign(group=["a", "b", "b", "c"] * 50)
        frame.loc[observed:, column] = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # perhaps none in one of the arms
            results = fit_gaps(frame, "mnar")
        assert np.isfinite(results.params).all()
        assert results.cate(frame).notna().all()

    def test_a_gap_in_every_row(self, fit_gaps):
        frame = complete_frame(500)  # enough to see that x1 matters, though half is missing
        frame.loc[::2, "x1"] = np.nan
        frame.loc[1::2, "x2"] = np.nan
        assert fit_gaps(frame).effects.missing_information.min() > 0

    def test_gaps_in_rows_without_weight(self, fit_gaps):
        frame = complete_frame()
        frame.loc[::3, "x1"] = np.nan
        weights = frame["x1"].notna().astype(float)
        assert np.isfinite(fit_gaps(frame, weights=weights).bse).all()

    def test_values_in_rows_without_weight_only(self, fit_gaps):
        frame = complete_frame()
        frame.loc[::3, "x1"] = np.nan
        weights = frame["x1"].isna().astype(float)
        with pytest.warns(EmptyArmWarning, match=r"'x1': no value where treat is [01]"):
            assert np.isfinite(fit_gaps(frame, weights=weights).bse).all()

    def test_unseen_levels_beside_gaps(self, frame, results):
        new = frame.head(4).assign(group=["z", None, "a", "b"])
        with pytest.raises(UnseenLevelError, match="'z'"):
            results.cate(new)

    def test_repeated_row_labels(self, fit_gaps):
        frame = complete_frame().assign(group=["a", None] * 100, text=["u", "v"] * 100)
        frame.loc[::7, "x1"] = np.nan
        frame["group"] = frame["group"].astype("category")
        labelled = frame.set_index(np.zeros(200, dtype=int))
        np.testing.assert_array_equal(fit_gaps(labelled).params, fit_gaps(frame).params)


class TestUnits:
    def test_a_column_that_is_mostly_missing_has_the_unit_of_its_values(self, fit_gaps):
        """Otherwise 5 % of values would be some five times as large, and cut off at the bound."""
        frame = complete_frame()
        frame.loc[10:, "x2"] = np.nan
        networks = fit_gaps(frame).networks
        np.testing.assert_allclose(
            1 / networks.x_scaling.inverse_scale[1], frame["x2"].std(ddof=0), rtol=1e-6
        )

    def test_balance_knows_rare_levels(self, fit_gaps):
        """Two rows of 200 are ten standard deviations from the others; the bound is six."""
        frame = complete_frame().assign(group=["a"] * 100 + ["b"] * 100)
        frame.loc[:1, "group"] = "c"
        frame.loc[60:140, "group"] = None
        results = fit_gaps(frame, imputations=40)
        networks, values = results.networks, results.imputations.values
        X = with_imputed_means(results.design.X, values, networks.gaps, networks.x_scaling)
        levels = [results.design.covariates.index(f"group[T.{level}]") for level in "bc"]
        share = X[60:141][:, levels] * 40
        np.testing.assert_allclose(share, np.round(share), atol=1e-4)
        assert share[:, 1].sum() > 0
