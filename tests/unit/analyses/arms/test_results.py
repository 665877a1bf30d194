"""Results: inference, tests, predictions and diagnostics, around fake networks."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.iolib.summary2 import summary_col

from cstonet.errors import (
    MissingValuesError,
    NotAvailableError,
    OptionError,
    UnknownColumnError,
    UnseenLevelError,
)
from cstonet.reporting.inference import EffectInference

NAMES = ["ATE", "POM[0]", "POM[1]"]


@pytest.fixture
def results(make_results):
    return make_results()


@pytest.fixture
def new_data():
    return pd.DataFrame(
        {"x1": [0.0, 1.0], "x2": 0.0, "x3": 0.0, "treat": [1, 0]}, index=["ann", "bob"]
    )


# Inference ----------------------------------------------------------------------------------------


@pytest.fixture(params=["many units decide", "few units decide"])
def decided(results, request):
    """Inference, and the distribution that studentised estimates are taken to have."""
    freedom = np.array([9.0, 80.0, 8.5]) if request.param.startswith("few") else None
    inference = EffectInference(replace(results.effects, freedom=freedom), "y")
    return inference, stats.norm if freedom is None else stats.t(freedom)


def test_inference_is_normal_or_students(decided):
    inference, law = decided
    z = inference.params / inference.bse
    assert list(inference.params.index) == NAMES
    np.testing.assert_allclose(inference.tvalues, z)
    np.testing.assert_allclose(inference.pvalues, 2 * law.sf(np.abs(z)), rtol=1e-9)
    np.testing.assert_allclose(inference.bse**2, np.diag(inference.cov_params()))
    assert inference.use_t == (inference.effects.freedom is not None)


@pytest.mark.parametrize("alpha", [0.05, 0.2, 1e-12])
def test_conf_int(decided, alpha):
    inference, law = decided
    limits = inference.conf_int(alpha)
    half = law.isf(alpha / 2) * inference.bse
    assert list(limits.columns) == [0, 1]
    np.testing.assert_allclose(limits[0], inference.params - half)
    np.testing.assert_allclose(limits[1], inference.params + half)


def test_what_extrapolation_hides_widens_intervals_and_tests(results):
    hidden = np.array([0.5, 10.0, 0.0])
    inference = EffectInference(replace(results.effects, freedom=None, bias=hidden), "y")
    plain = EffectInference(replace(results.effects, freedom=None), "y")
    wider, narrower = inference.conf_int(), plain.conf_int()
    np.testing.assert_allclose(narrower[0] - wider[0], hidden, atol=1e-12)
    np.testing.assert_allclose(wider[1] - narrower[1], hidden, atol=1e-12)
    z = (results.params["ATE"] - 0.5) / results.bse["ATE"]
    assert inference.pvalues["ATE"] == pytest.approx(2 * stats.norm.sf(z), rel=1e-9)
    assert inference.pvalues["POM[0]"] == 1  # all of it may be extrapolation
    assert inference.pvalues["POM[1]"] == plain.pvalues["POM[1]"]


def test_number_of_units(results):
    assert results.nobs == 500


@pytest.mark.parametrize("alpha", [0, 1, 95, np.nan, 10**400])
def test_alpha_out_of_range(results, alpha):
    with pytest.raises(OptionError, match="alpha must lie between 0 and 1"):
        results.conf_int(alpha)
    with pytest.raises(OptionError, match="alpha"):
        results.summary(alpha)


def test_effect(results):
    effect = results.effect("ATE", alpha=0.1)
    assert effect.estimate == results.params["ATE"]
    assert effect.se == results.bse["ATE"]
    assert [effect.lower, effect.upper] == results.conf_int(0.1).loc["ATE"].tolist()
    assert str(effect).startswith("ATE = 1.962 (SE 0.136, 90% CI ")


@pytest.mark.parametrize("name", ["ATT[1-0]", "ate", "POM[2]"])
def test_effect_not_available(results, name):
    available = r"available: ATE, POM\[0\], POM\[1\]; also ATT, ATC, ATO$"
    with pytest.raises(NotAvailableError, match=available):
        results.effect(name)


def test_influence_gives_the_influence_variance(make_results):
    results = make_results(variance="influence")
    influence = results.influence
    assert list(influence.columns) == NAMES
    assert influence.index.equals(results.design.index)
    np.testing.assert_allclose(influence.T @ influence / results.nobs**2, results.cov_params())


def test_what_is_handed_out_cannot_change_the_fit(results):
    before = copy.deepcopy(results.effects)
    mu = results.nuisances.mu.copy()
    inference = (results.params, results.bse, results.cov_params(), results.influence)
    for handed in (*inference, results.potential_outcomes(), results.propensity()):
        handed.iloc[:] = 0.0
    np.testing.assert_array_equal(results.effects.estimates, before.estimates)
    np.testing.assert_array_equal(results.effects.covariance, before.covariance)
    np.testing.assert_array_equal(results.effects.influence, before.influence)
    np.testing.assert_array_equal(results.nuisances.mu, mu)
    assert results.nuisances.propensity[:, 1].std() > 0


# statsmodels --------------------------------------------------------------------------------------


def test_t_test_of_the_difference_is_the_ate(results):
    test = results.t_test("POM[1] - POM[0] = 0")
    assert float(np.squeeze(test.effect)) == pytest.approx(results.params["ATE"], rel=1e-12)
    assert float(np.squeeze(test.sd)) == pytest.approx(results.bse["ATE"], rel=1e-12)
    # As many degrees of freedom as the mean that fewer units decide.
    few = results.effects.freedom[1:].min()
    z = results.tvalues["ATE"]
    assert float(test.pvalue) == pytest.approx(2 * stats.t.sf(abs(z), few), rel=1e-9)
    assert "Test for Constraints" in str(test.summary())


def test_t_test_takes_values_matrices_and_several_hypotheses(results):
    shifted = results.t_test("ATE = 2")
    expected = (results.params["ATE"] - 2) / results.bse["ATE"]
    assert float(np.squeeze(shifted.tvalue)) == pytest.approx(expected, rel=1e-12)
    rows = results.t_test(np.eye(3))
    np.testing.assert_allclose(rows.effect, results.params)
    np.testing.assert_allclose(rows.sd, results.bse)
    pair = results.t_test("POM[0] = 0, POM[1] = 1")
    np.testing.assert_allclose(pair.effect, results.params[["POM[0]", "POM[1]"]])


def test_labels_with_operators_in_them_are_names(make_results):
    results = make_results(treatment_levels=("no - drug", "drug, 5 mg"))
    test = results.t_test("POM[drug, 5 mg] - POM[no - drug] = 0")
    assert float(np.squeeze(test.effect)) == pytest.approx(results.params["ATE"], rel=1e-12)


def test_wald_test(decided):
    inference, _ = decided
    means = inference.params[["POM[0]", "POM[1]"]].to_numpy()
    covariance = inference.cov_params().loc["POM[0]":, "POM[0]":].to_numpy()
    expected = means @ np.linalg.solve(covariance, means)
    law = stats.chi2(2)
    if inference.use_t:
        expected, law = expected / 2, stats.f(2, 8.5)
    for hypothesis in ("POM[0] = 0, POM[1] = 0", np.eye(3)[1:], (np.eye(3)[1:], np.zeros(2))):
        test = inference.wald_test(hypothesis)
        assert float(test.statistic) == pytest.approx(expected, rel=1e-9)
        assert float(test.pvalue) == pytest.approx(law.sf(expected), rel=1e-9)


def test_redundant_hypotheses_are_refused(results):
    with pytest.raises(OptionError, match=r"ATE is POM\[1\] - POM\[0\] by definition: drop one"):
        results.wald_test("ATE = 0, POM[0] = 0, POM[1] = 0")
    with pytest.raises(OptionError, match="depend on each other"):
        results.wald_test("ATE = 0, POM[1] - POM[0] = 0")


@pytest.mark.parametrize("hypothesis", ["ATE - POM[1] + POM[0] = 0", [[0, 0, 0]]])
def test_hypotheses_without_variation_are_refused(results, hypothesis):
    with pytest.raises(OptionError, match="hypothesis 1 has no sampling variation"):
        results.t_test(hypothesis)


@pytest.mark.parametrize("hypothesis", ["ATT = 0", "ATE ==", np.eye(2)])
def test_unreadable_hypotheses(results, hypothesis):
    with pytest.raises(OptionError, match=r"in terms of ATE, POM\[0\], POM\[1\]"):
        results.t_test(hypothesis)


def test_summary_col_beside_a_regression(results):
    frame = pd.DataFrame({"y": results.design.y, "ATE": results.design.treatment.codes})
    ols = sm.OLS(frame["y"], frame[["ATE"]]).fit()
    text = summary_col([results, ols], stars=True, model_names=["StoNet", "OLS"]).as_text()
    assert f"{results.params['ATE']:.4f}***" in text
    assert f"({results.bse['POM[1]']:.4f})" in text
    assert f"{ols.params['ATE']:.4f}***" in text
    assert "No. Observations 500" in text
    assert summary_col([results, results]).as_latex()


# Predictions --------------------------------------------------------------------------------------


def test_training_rows_are_predicted_from_the_nuisances(results):
    nuisances, rows = results.nuisances, np.arange(results.nobs)
    np.testing.assert_array_equal(results.potential_outcomes(), nuisances.mu)
    np.testing.assert_array_equal(results.cate(), nuisances.mu[:, 1] - nuisances.mu[:, 0])
    np.testing.assert_array_equal(results.propensity(), nuisances.propensity[:, 1])
    np.testing.assert_array_equal(results.predict(), nuisances.mu[rows, nuisances.treatment])
    assert results.cate().index.equals(results.design.index)


def test_new_rows_are_predicted_by_the_networks(results, new_data):
    # The fake networks say μ_0 = x1, μ_1 = 2 + 2 x1, p = logistic(x1).
    outcomes = results.potential_outcomes(new_data)
    assert outcomes.columns.tolist() == [0, 1]
    assert outcomes.loc["bob"].tolist() == [1.0, 4.0]
    assert results.cate(new_data).to_dict() == {"ann": 2.0, "bob": 3.0}
    assert results.propensity(new_data)["ann"] == 0.5
    assert results.predict(new_data).to_dict() == {"ann": 2.0, "bob": 1.0}


def test_predictions_need_no_treatment_unless_it_is_asked_for(results, new_data):
    covariates = new_data.drop(columns="treat")
    assert results.cate(covariates).tolist() == [2.0, 3.0]
    with pytest.raises(UnknownColumnError, match=r"'treat'.*potential_outcomes"):
        results.predict(covariates)


def test_treatment_of_new_rows_is_checked(results, new_data):
    with pytest.raises(UnseenLevelError, match=r"'treat' holds .*2.* knows only 0, 1"):
        results.predict(new_data.assign(treat=[1, 2]))
    with pytest.raises(MissingValuesError, match="'treat' has 1 missing"):
        results.predict(new_data.assign(treat=[1, np.nan]))


@pytest.mark.parametrize("column", [[True, False], [1.0, 0.0], pd.Categorical([1, 0])])
def test_treatment_of_new_rows_may_be_typed_otherwise(results, new_data, column):
    assert results.predict(new_data.assign(treat=column)).tolist() == [2.0, 1.0]


def test_labelled_treatments(make_results, new_data):
    results = make_results(treatment_levels=("placebo", "drug"))
    labelled = new_data.assign(treat=["drug", "placebo"])
    assert results.predict(labelled).tolist() == [2.0, 1.0]
    assert results.potential_outcomes(labelled).columns.tolist() == ["placebo", "drug"]
    assert results.params.index.tolist() == ["ATE", "POM[placebo]", "POM[drug]"]


# Diagnostics --------------------------------------------------------------------------------------


def test_overlap(make_results):
    results = make_results(clip=0.2)
    table = results.overlap()
    p, treated = results.propensity(), results.design.treatment.codes == 1
    assert table.index.tolist() == [0, 1, "all"]
    assert table["n"].tolist() == [(~treated).sum(), treated.sum(), 500]
    assert table.loc[1, "50%"] == np.median(p[treated])
    assert table.loc["all", "min"] == p.min()
    assert (
        table.loc["all", "n_clipped"] == results.effects.n_clipped == ((p < 0.2) | (p > 0.8)).sum()
    )
    assert table["n_clipped"].tolist()[:2] == [
        ((p[arm] < 0.2) | (p[arm] > 0.8)).sum() for arm in (~treated, treated)
    ]


@pytest.mark.parametrize("weighted", [False, True])
def test_balance_against_plain_formulas(make_results, weighted):
    results = make_results(n_covariates=4, weighted=weighted, clip=0.1)
    design, p = results.design, np.clip(results.propensity().to_numpy(), 0.1, 0.9)
    treated = design.treatment.codes == 1
    sampling = np.ones(500) if design.weights is None else design.weights
    ipw = sampling / np.where(treated, p, 1 - p)
    table = results.balance()
    for j, name in enumerate(["x1", "x2", "x3"]):
        x = design.X[:, j]
        means = [np.average(x[arm], weights=sampling[arm]) for arm in (~treated, treated)]
        variances = [
            np.average((x[arm] - mean) ** 2, weights=sampling[arm])
            for arm, mean in zip((~treated, treated), means, strict=True)
        ]
        after = [np.average(x[arm], weights=ipw[arm]) for arm in (~treated, treated)]
        scale = np.sqrt(np.mean(variances))
        expected = [(means[1] - means[0]) / scale, (after[1] - after[0]) / scale]
        np.testing.assert_allclose(table.loc[name], expected, rtol=1e-10, atol=1e-12)
    assert table.loc["x4"].tolist() == [0, 0]  # constant
    # x1 confounds, and weighting by the true propensity balances it.
    assert abs(table.loc["x1", "smd_before"]) > 0.5
    assert abs(table.loc["x1", "smd_after"]) < 0.25


def test_balance_ignores_a_constant_that_is_not_a_binary_fraction(make_results):
    results = make_results(n_covariates=4)
    X = results.design.X.copy()
    X[:, 3] = 0.1
    table = make_results(n_covariates=4, X=X).balance()
    assert table.loc["x4"].tolist() == [0, 0]


def test_balance_in_blocks(make_results):
    """More covariates than a block holds, in float32: every one is there, in its place."""
    p = 1100
    X = np.random.default_rng(5).normal(size=(100, p)).astype(np.float32)
    table = make_results(n=100, n_covariates=p, X=X).balance()
    treated = make_results(n=100).design.treatment.codes == 1
    last = X[:, -1].astype(float)
    scale = np.sqrt((last[treated].var() + last[~treated].var()) / 2)
    expected = (last[treated].mean() - last[~treated].mean()) / scale
    assert len(table) == p
    assert table["smd_before"].iloc[-1] == pytest.approx(expected, rel=1e-10)


def test_weighting_balances_the_confounder(make_results):
    table = make_results(n=20_000).balance()
    assert abs(table.loc["x1", "smd_before"]) > 0.5
    assert (table["smd_after"].abs() < 0.1).all()


# Display ------------------------------------------------------------------------------------------


def test_short_forms(results):
    assert repr(results) == str(results)
    assert len(repr(results)) < 100
    assert "ATE = 1.962 (SE 0.136" in repr(results)
    assert results._repr_html_() == results.summary().as_html()
    assert results.trace is results.networks.trace


def test_effects_survive_pickling(results):
    again = pickle.loads(pickle.dumps(results.effects))
    np.testing.assert_array_equal(again.covariance, results.effects.covariance)
