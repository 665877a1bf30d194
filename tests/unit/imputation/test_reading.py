"""Covariates with gaps, as users give them: what is to be imputed, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.datasets import simulation2
from cstonet.errors import DataError, MissingValuesError, NotAvailableError


class TestDesign:
    def test_gaps_are_found_and_start_values_stand_in_them(self, mixed):
        design = CausalStoNet.from_formula("y ~ treat | .", mixed, missing="mar").design
        assert design.gaps is not None
        assert [v.name for v in design.gaps.variables] == ["x1", "flag", "group", "yes"]
        assert design.gaps.n_values == int(mixed.isna().sum().sum())
        np.testing.assert_array_equal(
            design.gaps.rows, np.flatnonzero(mixed.isna().any(axis=1).to_numpy())
        )
        assert np.isfinite(design.X).all()
        x1 = design.covariates.index("x1")
        gap = mixed["x1"].isna().to_numpy()
        np.testing.assert_allclose(design.X[gap, x1], mixed["x1"].mean())
        np.testing.assert_array_equal(design.X[~gap, x1], mixed["x1"].to_numpy()[~gap])

    @pytest.mark.parametrize("kind", ["category", "str"])
    def test_a_column_of_one_level_has_nothing_to_impute(self, mixed, kind):
        frame = mixed.assign(same="a")
        frame["same"] = frame["same"].astype(kind)
        frame.loc[5:20, "same"] = None
        design = CausalStoNet.from_formula("y ~ treat | .", frame, missing="mar").design
        assert "same" not in [variable.name for variable in design.gaps.variables]

    @pytest.mark.parametrize("copied", ["treat", "y"])
    def test_a_copy_with_gaps_is_still_a_copy(self, mixed, copied):
        mixed["copy"] = mixed[copied].astype(float)
        mixed.loc[5:9, "copy"] = np.nan
        with pytest.raises(DataError, match="'copy'"):
            CausalStoNet.from_formula("y ~ treat | .", mixed, missing="mar")

    def test_kinds(self, mixed):
        design = CausalStoNet.from_formula("y ~ treat | .", mixed, missing="mar").design
        kinds = {v.name: v.levels for v in design.gaps.variables}
        assert kinds["x1"] is None
        np.testing.assert_array_equal(kinds["flag"], [[0], [1]])
        np.testing.assert_array_equal(kinds["group"], [[0, 0], [1, 0], [0, 1]])
        assert kinds["yes"].shape == (2, 1)

    def test_the_users_frame_is_not_changed(self, mixed):
        before = mixed.copy()
        CausalStoNet.from_formula("y ~ treat | .", mixed, missing="mnar")
        pd.testing.assert_frame_equal(mixed, before)

    def test_without_gaps_nothing_is_imputed(self):
        sim = simulation2(n=200, p=6, seed=1)
        assert CausalStoNet.from_formula(sim.formula, sim.data, missing="mar").design.gaps is None

    def test_arrays(self, mixed):
        X = mixed[["x1", "x2", "x3", "flag"]].to_numpy()
        design = CausalStoNet(mixed["y"], mixed["treat"], X, missing="mnar").design
        assert [v.name for v in design.gaps.variables] == ["x1", "x4"]
        assert design.gaps.mechanism == "mnar"


class TestErrors:
    @pytest.mark.parametrize("column", ["y", "treat"])
    def test_outcome_and_treatment_must_be_there(self, mixed, column):
        frame = mixed.astype({"treat": float})
        frame.loc[3, column] = np.nan
        with pytest.raises(MissingValuesError, match=f"{column} \\(1\\).*covariates only"):
            CausalStoNet.from_formula("y ~ treat | x1 + x2", frame, missing="mar")

    def test_column_without_any_value(self, mixed):
        with pytest.raises(MissingValuesError, match=r"'x2' has no value.*- x2"):
            CausalStoNet.from_formula("y ~ treat | .", mixed.assign(x2=np.nan), missing="mar")

    def test_row_without_any_value(self, mixed):
        mixed.loc[5, ["x1", "x2"]] = np.nan
        with pytest.raises(MissingValuesError, match=r"1 of 400 rows.*row 5"):
            CausalStoNet.from_formula("y ~ treat | x1 + x2", mixed, missing="mar")

    def test_terms_of_incomplete_columns(self, mixed):
        with pytest.raises(NotAvailableError, match=r"'x1'.*column of its own"):
            CausalStoNet.from_formula("y ~ treat | np.exp(x1) + x2", mixed, missing="mar")

    def test_refusal_names_the_choices(self, mixed):
        with pytest.raises(MissingValuesError, match=r"'mar'.*'mnar'.*'drop'"):
            CausalStoNet.from_formula("y ~ treat | .", mixed)


class TestWhereImputationIsNotAvailable:
    def test_continuous_treatment(self, mixed):
        frame = mixed.assign(treat=lambda data: data["y"] + data["x2"])
        with pytest.raises(MissingValuesError, match=r"'mar'.*continuous treatment.*'drop'"):
            CausalStoNet.from_formula("y ~ treat | x1 + x3", frame, missing="mar")

    def test_mediators(self, mixed):
        with pytest.raises(MissingValuesError, match=r"'mnar'.*with mediators"):
            CausalStoNet.from_formula("y ~ treat | x1 + x3 | x2", mixed, missing="mnar")
        with pytest.raises(MissingValuesError, match=r"x1 \(\d+\).*with mediators.*'drop'"):
            CausalStoNet.from_formula("y ~ treat | x2 + x3 | x1", mixed, missing="mar")
