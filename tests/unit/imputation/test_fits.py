"""Fits with missing covariates: results, options, reproducibility."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from cstonet.datasets import paper_holes, punch_holes, simulation2
from cstonet.errors import MissingValuesError, OptionError
from cstonet.imputation.gap_data import with_imputed_means
from cstonet.settings.presets import preset


def test_new_categories_may_lack_the_start_level(mixed, fitted):
    new = mixed.head(2).copy()
    new["group"] = pd.Categorical(["b", None])
    assert fitted.cate(new).notna().all()


class TestFit:
    def test_imputed_levels_are_levels(self, fitted):
        entries, scaling = fitted.networks.gaps.entries, fitted.networks.x_scaling
        values = fitted.imputations.values / scaling.inverse_scale[entries.column][:, None]
        values = values + scaling.center[entries.column][:, None]
        names = np.array(fitted.design.covariates)[entries.column]
        for name in ("flag", "group[T.b]", "group[T.c]", "yes[T.True]"):
            drawn = values[names == name]
            # Rounding of float32 in standardising and back.
            np.testing.assert_allclose(drawn, np.round(drawn), atol=1e-5)
            assert set(np.round(drawn).ravel()) == {0.0, 1.0}
        b, c = values[names == "group[T.b]"], values[names == "group[T.c]"]
        assert not np.any((b > 0.5) & (c > 0.5))

    def test_variance_by_rubins_rules(self, fitted):
        effects = fitted.effects
        assert fitted.imputations.count == 4
        assert (effects.missing_information > 0).all()
        assert (effects.missing_information < 1).all()
        assert (effects.freedom > 3).all()
        t = fitted.conf_int().loc["ATE"] - fitted.params["ATE"]
        assert t[1] / fitted.bse["ATE"] > 1.96

    def test_summary_says_what_was_imputed(self, mixed, fitted):
        text = " ".join(str(fitted.summary()).split())
        count = int(mixed.isna().sum().sum())
        assert f"{count} missing values imputed in 4 columns (x1, flag, group, yes)" in text
        assert "missing at random" in text
        assert "fraction of missing information on the ATE" in text
        assert "P>|t|" in text

    def test_predictions_of_new_rows_with_gaps(self, mixed, fitted):
        new = mixed.iloc[:20].drop(columns="y")
        for method in (fitted.cate, fitted.propensity, fitted.predict):
            values = method(new)
            assert np.isfinite(values.to_numpy()).all()
            assert values.index.equals(new.index)
        complete = new.notna().all(axis=1)
        np.testing.assert_allclose(
            fitted.cate(new)[complete], fitted.cate(new[complete]), rtol=1e-6
        )
        pd.testing.assert_series_equal(fitted.cate(new), fitted.cate(new))

    def test_new_gaps_need_a_distribution(self, mixed, fitted):
        new = mixed.dropna().iloc[:5].copy()
        new.iloc[0, new.columns.get_loc("x3")] = np.nan
        with pytest.raises(MissingValuesError, match=r"'x3', which had no gaps"):
            fitted.cate(new)

    def test_effects_in_parts_of_the_population(self, fitted):
        att = fitted.effect("ATT")
        assert att.se > 0
        assert abs(att.estimate - fitted.params["ATE"]) < 1

    def test_balance_uses_imputed_values(self, mixed, fitted):
        assert np.isfinite(fitted.balance().to_numpy(dtype=float)).all()
        networks, values = fitted.networks, fitted.imputations.values
        X = with_imputed_means(fitted.design.X, values, networks.gaps, networks.x_scaling)
        gap = mixed["x1"].isna().to_numpy()
        x1 = fitted.design.covariates.index("x1")
        assert np.ptp(X[gap, x1]) > 0
        np.testing.assert_array_equal(X[~gap, x1], fitted.design.X[~gap, x1])

    def test_any_number_of_threads(self, fit_gaps):
        holes = paper_holes(simulation2(n=300, p=8, seed=5))
        one, two = (fit_gaps(holes.data, "mnar", n_jobs=jobs) for jobs in (1, 2))
        np.testing.assert_array_equal(one.params, two.params)
        np.testing.assert_array_equal(one.bse, two.bse)
        np.testing.assert_array_equal(one.imputations.values, two.imputations.values)

    @pytest.mark.parametrize("missing", ["mar", "mnar"])
    def test_a_single_gap(self, missing, fit_gaps):
        """Some folds then train on complete rows only."""
        frame = simulation2(n=200, p=5, seed=5).data
        frame.loc[7, "x4"] = np.nan
        results = fit_gaps(frame, missing)
        assert results.imputations.values.shape == (1, 4)
        assert np.isfinite(results.params).all()

    def test_known_neighbours_are_used(self, fit_gaps):
        holes = punch_holes(simulation2(n=300, p=8, seed=5))
        results = fit_gaps(holes.data, neighbours={"x4": ["x7"]})
        for fold in results.networks.folds:
            regression = fold.imputation.covariates.regressions[1]
            np.testing.assert_array_equal(regression.features, [6])
        assert results.plan.neighbours == (("x4", ("x7",)),)

    def test_mnar_states_its_assumptions(self, fit_gaps):
        holes = paper_holes(simulation2(n=300, p=8, seed=5))
        results = fit_gaps(holes.data, "mnar")
        text = results.methods()
        assert "independent of y given treat and all covariates" in text
        assert "log-odds are linear in treat, the value, and other covariates" in text
        assert "gaps of different columns are independent given these" in text

    def test_the_papers_algorithm_runs_without_a_search(self, fit_gaps):
        holes = punch_holes(simulation2(n=300, p=6, seed=5))
        results = fit_gaps(holes.data, search=None, hidden=(6, 4, 3), seed=1)
        assert np.isfinite(results.params["ATE"])

    def test_drop_says_how_many_rows_remain(self, mixed, fit_gaps):
        mixed.loc[mixed.index % 5 < 3, "x2"] = np.nan
        with pytest.warns(UserWarning, match=r"leaves \d+ of 400 rows"):
            results = fit_gaps(mixed, "drop")
        remaining = int(mixed.notna().all(axis=1).sum())
        note = " ".join(str(results.summary()).split())
        assert f"{remaining} of 400 remain" in note

    def test_neighbours(self, mixed, fit_gaps):
        with pytest.raises(OptionError, match="neighbours"):
            fit_gaps(mixed, neighbours={"x1": "x2"})
        with pytest.raises(OptionError, match="'x9'"):
            fit_gaps(mixed, neighbours={"x1": ["x9"]})


def test_options_of_imputation():
    options = preset("calibrated")
    assert dataclasses.replace(options, imputations=5).imputations == 5
    with pytest.raises(OptionError, match="imputations"):
        dataclasses.replace(options, imputations=1)
    with pytest.raises(OptionError, match="candidates"):
        dataclasses.replace(options, candidates=0)
