"""Fits with missing covariates: design, options, errors, results, reproducibility."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import CausalStoNet
from cstonet.analyses.arms.results import CausalResults
from cstonet.data.gaps import CovariateGaps, Incomplete
from cstonet.datasets import many_holes, paper_holes, punch_holes, simulation2
from cstonet.errors import DataError, MissingValuesError, NotAvailableError, OptionError
from cstonet.estimators import (
    Imputations,
    estimate_effects,
    missing_information,
    pooled_effects,
)

QUICK = {"folds": 2, "repeats": 1, "starts": 1, "updates": 400, "imputations": 4, "seed": 3}


def mixed_frame(n=400, seed=0):
    """A number, a 0/1 column, a category and a boolean with gaps, and complete columns."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    group = np.array(["a", "b", "c"])[rng.integers(3, size=n)]
    flag = (x[:, 0] + rng.normal(size=n) > 0).astype(float)
    treat = (x[:, 0] + rng.normal(size=n) > 0).astype(int)
    y = treat + x[:, 0] + (group == "b") + rng.normal(size=n)
    frame = pd.DataFrame({"y": y, "treat": treat, "x1": x[:, 0], "x2": x[:, 1], "x3": x[:, 2]})
    frame["flag"] = flag
    frame["group"] = pd.Categorical(group)
    frame["yes"] = pd.array(rng.random(n) < 0.5, dtype="boolean")
    for name in ("x1", "flag", "group", "yes"):
        frame.loc[rng.random(n) < 0.15, name] = pd.NA if name == "yes" else np.nan
    return frame


@pytest.fixture(scope="module")
def mixed():
    frame = mixed_frame()
    return frame, cs.fit("y ~ treat | .", frame, missing="mar", n_jobs=1, **QUICK)


def test_new_categories_may_lack_the_start_level(mixed):
    frame, fit = mixed
    new = frame.head(2).copy()
    new["group"] = pd.Categorical(["b", None])
    assert fit.cate(new).notna().all()


class TestDesign:
    def test_gaps_are_found_and_start_values_stand_in_them(self):
        frame = mixed_frame()
        design = CausalStoNet.from_formula("y ~ treat | .", frame, missing="mar").design
        assert design.gaps is not None
        assert [v.name for v in design.gaps.variables] == ["x1", "flag", "group", "yes"]
        assert design.gaps.n_values == int(frame.isna().sum().sum())
        np.testing.assert_array_equal(
            design.gaps.rows, np.flatnonzero(frame.isna().any(axis=1).to_numpy())
        )
        assert np.isfinite(design.X).all()
        x1 = design.covariates.index("x1")
        gap = frame["x1"].isna().to_numpy()
        np.testing.assert_allclose(design.X[gap, x1], frame["x1"].mean())
        np.testing.assert_array_equal(design.X[~gap, x1], frame["x1"].to_numpy()[~gap])

    @pytest.mark.parametrize("kind", ["category", "str"])
    def test_a_column_of_one_level_has_nothing_to_impute(self, kind):
        frame = mixed_frame().assign(same="a")
        frame["same"] = frame["same"].astype(kind)
        frame.loc[5:20, "same"] = None
        design = CausalStoNet.from_formula("y ~ treat | .", frame, missing="mar").design
        assert "same" not in [variable.name for variable in design.gaps.variables]

    @pytest.mark.parametrize("copied", ["treat", "y"])
    def test_a_copy_with_gaps_is_still_a_copy(self, copied):
        frame = mixed_frame()
        frame["copy"] = frame[copied].astype(float)
        frame.loc[5:9, "copy"] = np.nan
        with pytest.raises(DataError, match="'copy'"):
            CausalStoNet.from_formula("y ~ treat | .", frame, missing="mar").design

    def test_kinds(self):
        design = CausalStoNet.from_formula("y ~ treat | .", mixed_frame(), missing="mar").design
        kinds = {v.name: v.levels for v in design.gaps.variables}
        assert kinds["x1"] is None
        np.testing.assert_array_equal(kinds["flag"], [[0], [1]])
        np.testing.assert_array_equal(kinds["group"], [[0, 0], [1, 0], [0, 1]])
        assert kinds["yes"].shape == (2, 1)

    def test_the_users_frame_is_not_changed(self):
        frame = mixed_frame()
        before = frame.copy()
        CausalStoNet.from_formula("y ~ treat | .", frame, missing="mnar").design
        pd.testing.assert_frame_equal(frame, before)

    def test_without_gaps_nothing_is_imputed(self):
        sim = simulation2(n=200, p=6, seed=1)
        assert CausalStoNet.from_formula(sim.formula, sim.data, missing="mar").design.gaps is None

    def test_arrays(self):
        frame = mixed_frame()
        X = frame[["x1", "x2", "x3", "flag"]].to_numpy()
        design = CausalStoNet(frame["y"], frame["treat"], X, missing="mnar").design
        assert [v.name for v in design.gaps.variables] == ["x1", "x4"]
        assert design.gaps.mechanism == "mnar"


class TestErrors:
    @pytest.mark.parametrize("column", ["y", "treat"])
    def test_outcome_and_treatment_must_be_there(self, column):
        frame = mixed_frame().astype({"treat": float})
        frame.loc[3, column] = np.nan
        with pytest.raises(MissingValuesError, match=f"{column} \\(1\\).*covariates only"):
            CausalStoNet.from_formula("y ~ treat | x1 + x2", frame, missing="mar").design

    def test_column_without_any_value(self):
        with pytest.raises(MissingValuesError, match=r"'x2' has no value.*- x2"):
            CausalStoNet.from_formula(
                "y ~ treat | .", mixed_frame().assign(x2=np.nan), missing="mar"
            ).design

    def test_row_without_any_value(self):
        frame = mixed_frame()
        frame.loc[5, ["x1", "x2"]] = np.nan
        with pytest.raises(MissingValuesError, match=r"1 of 400 rows.*row 5"):
            CausalStoNet.from_formula("y ~ treat | x1 + x2", frame, missing="mar").design

    def test_terms_of_incomplete_columns(self):
        with pytest.raises(NotAvailableError, match=r"'x1'.*column of its own"):
            CausalStoNet.from_formula(
                "y ~ treat | np.exp(x1) + x2", mixed_frame(), missing="mar"
            ).design

    def test_refusal_names_the_choices(self):
        with pytest.raises(MissingValuesError, match=r"'mar'.*'mnar'.*'drop'"):
            CausalStoNet.from_formula("y ~ treat | .", mixed_frame()).design

    def test_drop_says_how_many_rows_remain(self):
        frame = mixed_frame()
        frame.loc[frame.index % 5 < 3, "x2"] = np.nan
        with pytest.warns(UserWarning, match=r"leaves \d+ of 400 rows"):
            results = cs.fit("y ~ treat | .", frame, missing="drop", n_jobs=1, **QUICK)
        remaining = int(frame.notna().all(axis=1).sum())
        note = " ".join(str(results.summary()).split())
        assert f"{remaining} of 400 remain" in note

    def test_neighbours(self):
        frame = mixed_frame()
        with pytest.raises(OptionError, match="neighbours"):
            cs.fit("y ~ treat | .", frame, missing="mar", neighbours={"x1": "x2"}, **QUICK)
        with pytest.raises(OptionError, match="'x9'"):
            cs.fit("y ~ treat | .", frame, missing="mar", neighbours={"x1": ["x9"]}, **QUICK)


class TestFit:
    def test_imputed_levels_are_levels(self, mixed):
        _, results = mixed
        entries, scaling = results.networks.gaps.entries, results.networks.x_scaling
        values = results.imputations.values / scaling.inverse_scale[entries.column][:, None]
        values = values + scaling.center[entries.column][:, None]
        names = np.array(results.design.covariates)[entries.column]
        for name in ("flag", "group[T.b]", "group[T.c]", "yes[T.True]"):
            drawn = values[names == name]
            # Rounding of float32 in standardising and back.
            np.testing.assert_allclose(drawn, np.round(drawn), atol=1e-5)
            assert set(np.round(drawn).ravel()) == {0.0, 1.0}
        b, c = values[names == "group[T.b]"], values[names == "group[T.c]"]
        assert not np.any((b > 0.5) & (c > 0.5))

    def test_variance_by_rubins_rules(self, mixed):
        _, results = mixed
        effects = results.effects
        assert results.imputations.count == 4
        assert (effects.missing_information > 0).all()
        assert (effects.missing_information < 1).all()
        assert (effects.freedom > 3).all()
        t = results.conf_int().loc["ATE"] - results.params["ATE"]
        assert t[1] / results.bse["ATE"] > 1.96

    def test_summary_says_what_was_imputed(self, mixed):
        frame, results = mixed
        text = " ".join(str(results.summary()).split())
        count = int(frame.isna().sum().sum())
        assert f"{count} missing values imputed in 4 columns (x1, flag, group, yes)" in text
        assert "missing at random" in text
        assert "Fraction of missing information on the ATE" in text
        assert "P>|t|" in text

    def test_predictions_of_new_rows_with_gaps(self, mixed):
        frame, results = mixed
        new = frame.iloc[:20].drop(columns="y")
        for method in (results.cate, results.propensity, results.predict):
            values = method(new)
            assert np.isfinite(values.to_numpy()).all()
            assert values.index.equals(new.index)
        complete = new.notna().all(axis=1)
        np.testing.assert_allclose(
            results.cate(new)[complete], results.cate(new[complete]), rtol=1e-6
        )
        pd.testing.assert_series_equal(results.cate(new), results.cate(new))

    def test_new_gaps_need_a_distribution(self, mixed):
        frame, results = mixed
        new = frame.dropna().iloc[:5].copy()
        new.iloc[0, new.columns.get_loc("x3")] = np.nan
        with pytest.raises(MissingValuesError, match=r"'x3', which had no gaps"):
            results.cate(new)

    def test_effects_in_parts_of_the_population(self, mixed):
        _, results = mixed
        att = results.effect("ATT")
        assert att.se > 0
        assert abs(att.estimate - results.params["ATE"]) < 1

    def test_balance_uses_imputed_values(self, mixed):
        frame, results = mixed
        assert np.isfinite(results.balance().to_numpy(dtype=float)).all()
        X = results.networks.with_imputed(results.design.X, results.imputations.values)
        gap = frame["x1"].isna().to_numpy()
        x1 = results.design.covariates.index("x1")
        assert np.ptp(X[gap, x1]) > 0
        np.testing.assert_array_equal(X[~gap, x1], results.design.X[~gap, x1])

    def test_any_number_of_threads(self):
        holes = paper_holes(simulation2(n=300, p=8, seed=5))
        one, two = (
            cs.fit(holes.formula, holes.data, missing="mnar", n_jobs=jobs, **QUICK)
            for jobs in (1, 2)
        )
        np.testing.assert_array_equal(one.params, two.params)
        np.testing.assert_array_equal(one.bse, two.bse)
        np.testing.assert_array_equal(one.imputations.values, two.imputations.values)

    @pytest.mark.parametrize("missing", ["mar", "mnar"])
    def test_a_single_gap(self, missing):
        """Some folds then train on complete rows only."""
        sim = simulation2(n=200, p=5, seed=5)
        frame = sim.data.copy()
        frame.loc[7, "x4"] = np.nan
        results = cs.fit(sim.formula, frame, missing=missing, n_jobs=1, **QUICK)
        assert results.imputations.values.shape == (1, 4)
        assert np.isfinite(results.params).all()

    def test_known_neighbours_are_used(self):
        holes = punch_holes(simulation2(n=300, p=8, seed=5))
        results = cs.fit(
            holes.formula, holes.data, missing="mar", n_jobs=1, neighbours={"x4": ["x7"]}, **QUICK
        )
        for model in results.networks.imputation:
            np.testing.assert_array_equal(model.covariates.regressions[1].features, [6])
        assert results.plan.neighbours == (("x4", ("x7",)),)

    def test_mnar_states_its_assumptions(self):
        holes = paper_holes(simulation2(n=300, p=8, seed=5))
        results = cs.fit(holes.formula, holes.data, missing="mnar", n_jobs=1, **QUICK)
        text = " ".join(str(results.summary()).split())
        assert "independent of y given treat and all covariates" in text
        assert "log-odds are linear in treat, the value, and other covariates" in text
        assert "gaps of different columns are independent given these" in text

    def test_the_papers_algorithm_runs_without_a_search(self):
        holes = punch_holes(simulation2(n=300, p=6, seed=5))
        model = cs.CausalStoNet.from_formula(holes.formula, holes.data, missing="mar")
        plan = {k: v for k, v in QUICK.items() if k not in ("seed",)}
        results = model.fit(n_jobs=1, search=None, hidden=(6, 4, 3), seed=1, **plan)
        assert np.isfinite(results.params["ATE"])


def test_options_of_imputation():
    from cstonet.settings.presets import preset

    options = preset("calibrated")
    assert dataclasses.replace(options, imputations=5).imputations == 5
    with pytest.raises(OptionError, match="imputations"):
        dataclasses.replace(options, imputations=1)
    with pytest.raises(OptionError, match="candidates"):
        dataclasses.replace(options, candidates=0)


def test_golden_imputed(make_results, check_golden):
    results = make_results()
    n = results.nobs
    missing = np.arange(n) % 7 == 0
    rows = np.flatnonzero(missing)
    gaps = CovariateGaps("mnar", (Incomplete("x2", (1,), None, missing, 0.0),))
    # Every imputation moves the nuisances of these rows a little further.
    shifts = np.linspace(-0.5, 0.5, 5)[:, None, None]
    imputations = Imputations(
        rows,
        results.nuisances.mu[rows] + shifts,
        np.repeat(results.nuisances.propensity[rows][None], 5, axis=0),
        np.zeros((len(rows), 5), np.float32),
    )

    def estimate(nuisances):
        return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance="paper")

    imputed = CausalResults(
        design=dataclasses.replace(results.design, gaps=gaps),
        plan=results.plan,
        effects=pooled_effects(estimate, results.nuisances, imputations),
        nuisances=imputations.averaged(results.nuisances),
        selection=results.selection,
        networks=results.networks,
        notes=(),
        runtime=1.0,
        imputations=imputations,
    )
    check_golden("summary_imputed.txt", str(imputed.summary()))
    assert imputed.effect("ATT").se > 0


class TestRubin:
    def test_by_hand(self):
        """Three imputations with variance 2 within and estimates 1, 2, 3: T = 2 + 4/3."""
        within, between = np.array([2.0]), np.array([4 / 3])
        fraction, freedom = missing_information(within, between, 3, 1001)
        share = (4 / 3) / (10 / 3)
        old = 2 / share**2
        observed = 1001 / 1003 * 1000 * (1 - share)
        expected = 1 / (1 / old + 1 / observed)
        np.testing.assert_allclose(freedom, expected)
        np.testing.assert_allclose(fraction, share)

    def test_equal_imputations_change_nothing(self, draw_nuisances):
        _, nuisances = draw_nuisances(200, np.random.default_rng(0))
        rows = np.arange(0, 200, 5)
        same = Imputations(
            rows,
            np.repeat(nuisances.mu[rows][None], 3, axis=0),
            np.repeat(nuisances.propensity[rows][None], 3, axis=0),
            np.zeros((0, 3), np.float32),
        )

        def estimate(nuisances):
            return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance="influence")

        plain, pooled = estimate(nuisances), pooled_effects(estimate, nuisances, same)
        np.testing.assert_allclose(pooled.estimates, plain.estimates, rtol=1e-12)
        np.testing.assert_allclose(pooled.covariance, plain.covariance, rtol=1e-12)
        np.testing.assert_allclose(pooled.missing_information, 0, atol=1e-12)


class TestHoles:
    def test_shares_and_truths(self):
        sim = simulation2(n=4000, p=8, seed=1)
        for mechanism in ("mcar", "mar", "mnar"):
            holes = punch_holes(sim, share=0.2, mechanism=mechanism)
            shares = holes.data.isna().mean()
            # Four standard errors of a share of 4000.
            assert np.abs(shares[["x1", "x4"]] - 0.2).max() < 4 * np.sqrt(0.16 / 4000)
            assert shares.drop(["x1", "x4"]).sum() == 0
            assert holes.ate == sim.ate
            kept = holes.data["x1"].notna()
            pd.testing.assert_series_equal(holes.data["x1"][kept], sim.data["x1"][kept])
        assert sim.data.notna().all().all()

    def test_mechanisms(self):
        sim = simulation2(n=4000, p=8, seed=1)

        def difference(holes, column):
            gap = holes.data["x1"].isna()
            values = sim.data[column]
            return (values[gap].mean() - values[~gap].mean()) / values.std()

        error = 1 / np.sqrt(4000 * 0.2 * 0.8)
        at_random = punch_holes(sim, share=0.2, mechanism="mcar")
        assert abs(difference(at_random, "x1")) < 4 * error
        assert difference(punch_holes(sim, share=0.2, mechanism="mar"), "y") > 10 * error
        assert difference(punch_holes(sim, share=0.2, mechanism="mnar"), "x1") < -10 * error
        paper = paper_holes(sim)
        gaps = paper.data[["x1", "x4"]].isna().groupby(sim.data["treat"]).mean()
        assert (gaps.loc[1] > 3 * gaps.loc[0]).all()
        assert difference(paper, "x1") < -8 * error

    def test_levels(self):
        complete, holes = many_holes(n=500, p=25, seed=2)
        assert holes.data.iloc[:, 2:22].isna().any().all()
        assert holes.data.iloc[:, 22:].notna().all().all()
        assert isinstance(complete.data["x7"].dtype, pd.CategoricalDtype)
        assert set(complete.data["x6"]) == {0.0, 1.0}

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"share": 1.5}, "share"),
            ({"mechanism": "magic"}, "mechanism"),
            ({"columns": ["x99"]}, "'x99'"),
        ],
    )
    def test_errors(self, changes, message):
        with pytest.raises(OptionError, match=message):
            punch_holes(simulation2(n=50, p=6), **changes)


class TestWhereImputationIsNotAvailable:
    def test_continuous_treatment(self):
        frame = mixed_frame().assign(treat=lambda data: data["y"] + data["x2"])
        with pytest.raises(MissingValuesError, match=r"'mar'.*continuous treatment.*'drop'"):
            CausalStoNet.from_formula("y ~ treat | x1 + x3", frame, missing="mar").design

    def test_mediators(self):
        with pytest.raises(MissingValuesError, match=r"'mnar'.*with mediators"):
            CausalStoNet.from_formula(
                "y ~ treat | x1 + x3 | x2", mixed_frame(), missing="mnar"
            ).design
        with pytest.raises(MissingValuesError, match=r"x1 \(\d+\).*with mediators.*'drop'"):
            CausalStoNet.from_formula(
                "y ~ treat | x2 + x3 | x1", mixed_frame(), missing="mar"
            ).design
