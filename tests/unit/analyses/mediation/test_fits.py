"""Mediation from end to end: small fits, their tables, their invariances."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.analyses.mediation.networks import HELD_WITHOUT_TEST
from cstonet.analyses.mediation.results import MediationResults
from cstonet.errors import (
    NotAvailableError,
    NotOfThisFitError,
    OptionError,
    UncertainShareWarning,
)
from cstonet.estimators import estimate_mediation

# An interval of this level misses once in 16 000 fits.
FAR = 4.0


def test_effects_and_their_inference(fitted):
    assert isinstance(fitted, MediationResults)
    assert list(fitted.params.index) == ["TE", "NDE", "NIE"]
    assert fitted.params["TE"] == fitted.params["NDE"] + fitted.params["NIE"]
    assert (fitted.bse > 0).all()
    assert fitted.conf_int().shape == (3, 2)
    assert fitted.conf_int(simultaneous=True).shape == (3, 2)
    one = fitted.wald_test("NDE = 0")
    assert float(one.statistic) == pytest.approx(fitted.tvalues["NDE"] ** 2)
    assert fitted.wald_test("NDE = 0, NIE = 0").df_denom == 2
    with pytest.raises(OptionError, match=r"TE is NDE \+ NIE"):
        fitted.wald_test("TE = 0, NDE = 0, NIE = 0")
    with pytest.raises(OptionError, match="no sampling variation"):
        fitted.t_test("TE - NDE - NIE = 0")
    assert list(fitted.influence.columns) == ["TE", "NDE", "NIE"]


def test_proportion_mediated(fitted):
    assert not fitted.estimated.uncertain_total
    share = fitted.effect("NIE/TE")
    assert share.estimate == pytest.approx(fitted.params["NIE"] / fitted.params["TE"])
    assert share.lower < share.estimate < share.upper


def test_proportion_of_next_to_nothing_warns(mediated, fit_briefly):
    nothing = mediated.assign(y=np.random.default_rng(0).normal(size=240))
    res = fit_briefly("y ~ treat | . - b | m", nothing)
    with pytest.warns(UncertainShareWarning, match="within three standard errors"):
        res.proportion_mediated()
    assert "Proportion mediated not shown" in res.summary().as_text().replace("\n    ", " ")


def test_what_makes_no_sense_says_what_to_do(fitted):
    for name in ("ATE", "ATT", "POM[1]", "RR"):
        with pytest.raises(NotAvailableError, match="without its mediators"):
            fitted.effect(name)
    with pytest.raises(NotAvailableError, match=r"potential_outcomes.*without its mediators"):
        fitted.dose_response()
    with pytest.raises(NotAvailableError, match=r"wald_test\('TE = 0'\)"):
        fitted.test_equal_arms()


def test_tables(fitted, mediated):
    table = fitted.mediators
    assert list(table.index) == ["m", "b"]
    assert list(table["family"]) == ["gaussian", "binomial"]
    assert (table["outcome_count"] == fitted.n_supports).all()  # few mediators are always held
    assert (table[["effect_se", "indirect_se"]] > 0).all().all()
    assert fitted.selection.index.tolist() == ["x1", "x2", "x3"]
    for model in ("treatment", "mediator", "outcome"):
        assert fitted.selection[model].dtype == bool
        assert fitted.selection[f"{model}_frequency"].between(0, 1).all()
    assert set(fitted.trace["network"]) == {"outcome", "mediator"}
    # The mediators must not explain the treatment.
    search = fitted.networks.search
    assert not search.query("model == 'treatment'")["covariate"].isin(["m", "b"]).any()


def test_path_of_the_only_mediator_is_the_nie_over_repetitions(mediated, fit_briefly):
    """Estimate and standard error: those of the table follow the same rule as the effects'."""
    res = fit_briefly("y ~ treat | . - b | m", mediated, repeats=3)
    assert res.estimated.n_bounded == res.effects.n_clipped == 0  # else ratios are bounded apart
    path = res.mediators.loc["m"]
    # The table averages density ratios over the repetitions, the effects their logarithms: a gap of
    # second order in what the repetitions differ by, which is itself a part of the standard error.
    assert abs(path["indirect"] - res.params["NIE"]) < 0.1 * res.bse["NIE"]
    assert path["indirect_se"] == pytest.approx(res.bse["NIE"], rel=0.02)
    alone = estimate_mediation(res.mediation, clip=res.plan.clip).effects.standard_errors
    assert path["indirect_se"] > 1.2 * alone[2]  # what averaged nuisances would claim


def test_predictions(fitted, mediated):
    assert fitted.potential_outcomes().shape == (240, 2)
    new = mediated.head(7).drop(columns=["m", "b", "y"])  # mediators of new units are not needed
    outcomes = fitted.potential_outcomes(new)
    np.testing.assert_allclose(outcomes[1] - outcomes[0], fitted.cate(new))
    with pytest.raises(NotAvailableError, match="fits without mediators only"):
        fitted.cate(new, intervals=0.95)
    with pytest.raises(NotAvailableError, match="those of everyone"):
        fitted.gate("x1")
    assert fitted.propensity(new).between(0, 1).all()
    assert len(fitted.predict(new)) == 7
    assert fitted.potential_outcomes(new.head(0)).shape == (0, 2)
    assert fitted.overlap().shape[0] == 3  # both arms, and all units
    assert fitted.balance().shape[0] == 3


def same_bits(one, other):
    np.testing.assert_array_equal(one.params, other.params)
    np.testing.assert_array_equal(one.cov_params(), other.cov_params())
    np.testing.assert_array_equal(one.mediation.eta, other.mediation.eta)
    pd.testing.assert_frame_equal(one.mediators, other.mediators, check_exact=True)


def test_number_of_threads_does_not_matter(fitted, mediated, fit_briefly):
    same_bits(fitted, fit_briefly("y ~ treat | . | m + b", mediated, n_jobs=3))


def test_arrays_and_formula_agree(fitted, mediated, quick_options):
    X, mediators = mediated[["x1", "x2", "x3"]], mediated[["m", "b"]]
    model = cs.CausalStoNet(mediated["y"], mediated["treat"], X, mediators=mediators)
    same_bits(fitted, model.fit(options=quick_options(starts=1), seed=1, n_jobs=2))


def test_units_of_the_mediators(fitted, mediated, fit_briefly):
    """As for covariates: standardised columns agree to the last bits of float32."""
    changed = mediated.assign(m=273.15 + 1.8 * mediated["m"], b=mediated["b"] == "yes")
    other = fit_briefly("y ~ treat | . | m + b", changed)
    np.testing.assert_allclose(other.tvalues, fitted.tvalues, rtol=1e-3)
    expected = np.array([1.8, 1.0]) * fitted.mediators["effect"]
    np.testing.assert_allclose(other.mediators["effect"], expected, rtol=1e-3)


def test_progress_ends_at_all(mediated, fit_briefly):
    steps: list[tuple[int, int]] = []
    fit_briefly(
        "y ~ treat | . | m",
        mediated,
        progress=lambda done, total: steps.append((done, total)),
    )
    done = [step for step, _ in steps]
    assert done == sorted(done)
    assert steps[-1][0] == steps[-1][1]


def test_weights(mediated, fit_briefly):
    weighted = fit_briefly("y ~ treat | . | m", mediated, weights=np.full(240, 3.0))
    plain = fit_briefly("y ~ treat | . | m", mediated)
    np.testing.assert_allclose(weighted.params, plain.params, rtol=1e-10)


def test_many_mediators_are_selected(draw, fit_briefly, quick_options):
    """Of a dozen mediators, only the one that matters is sure to be held."""
    frame = draw(400, seed=2)
    rng = np.random.default_rng(3)
    others = {f"n{j}": rng.normal(size=400) + 0.3 * frame["treat"] for j in range(11)}
    assert len(others) + 1 > HELD_WITHOUT_TEST
    names = " + ".join(["m", *others])
    res = fit_briefly(
        f"y ~ treat | x1 + x2 + x3 | {names}",
        frame.assign(**others),
        options=quick_options(starts=1, epochs=40),
    )
    assert res.mediators.loc["m", "outcome"]
    assert res.mediators["outcome"].sum() <= 3
    # Those that no model holds have an effect of the treatment on them, but no path.
    left = res.mediators[res.mediators["outcome_count"] == 0]
    assert len(left) >= 6
    assert (left["effect_se"] > 0).all()
    assert (left["indirect"] == 0).all()
    assert (np.abs(left["effect"] - 0.3) < FAR * left["effect_se"]).all()
    assert len(res.summary().as_text()) > 0


# Against the truth -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fit_well(fit_quickly, quick_options):
    """A few small networks, trained long enough for effects of many standard errors."""
    options = quick_options(epochs=60, hidden=(8, 4), starts=1)
    return partial(fit_quickly, options=options, n_jobs=2)


def test_linear_gaussian_case(fit_well):
    from statsmodels.regression.linear_model import OLS
    from statsmodels.stats.mediation import Mediation

    simulation = cs.datasets.linear_mediation(n=1000, p=5, seed=1)
    res = fit_well(simulation.formula, simulation.data)
    truth = pd.Series(simulation.effects)
    assert (np.abs(res.params - truth) < FAR * res.bse).all()
    assert (res.params[["NDE", "NIE"]] > FAR * res.bse[["NDE", "NIE"]]).all()
    data = simulation.data.assign(one=1.0)
    columns = ["one", "treat", "m1", "x1", "x2"]
    outcome = OLS(data["y"].to_numpy(), data[columns].to_numpy())
    mediator = OLS(data["m1"].to_numpy(), data[[*columns[:2], *columns[3:]]].to_numpy())
    table = Mediation(outcome, mediator, (1, 1), 2).fit(n_rep=100).summary()
    peers = table["Estimate"][["Total effect", "ADE (control)", "ACME (treated)"]].to_numpy()
    # Least squares is efficient here, so the difference of the two varies less than this fit; the
    # hundred draws of the peer add a hundredth of its own variance.
    assert (np.abs(res.params - peers) < FAR * res.bse).all()


def test_mediators_that_do_nothing(draw, fit_well):
    frame = draw(600, seed=4, on_outcome=0.0)
    res = fit_well("y ~ treat | x1 + x2 + x3 | m + b", frame)
    assert abs(res.params["NIE"]) < FAR * res.bse["NIE"]
    assert 0 < res.bse["NIE"] < 0.2  # the test could see an effect of the usual size
    assert abs(res.params["NDE"] - 0.5) < FAR * res.bse["NDE"]
    assert (np.abs(res.mediators["indirect"]) < FAR * res.mediators["indirect_se"]).all()


def test_sensitivity_of_a_mediation_is_that_of_the_fit_without_mediators(fitted):
    with pytest.raises(NotOfThisFitError, match="without its mediators"):
        fitted.sensitivity()
