"""Mediation from end to end: small fits, their tables, their invariances."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import cstonet as cs
from cstonet.analyses.mediation.networks import HELD_WITHOUT_TEST
from cstonet.analyses.mediation.results import MediationResults
from cstonet.errors import NotAvailableError, OptionError, UncertainShareWarning
from cstonet.estimators import estimate_mediation

# An interval of this level misses once in 16 000 fits.
FAR = 4.0


def draw(n: int, seed: int, *, on_outcome: float = 0.8) -> pd.DataFrame:
    """One confounder; a gaussian and a binary mediator, of which only the first may do anything."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    treat = rng.binomial(1, expit(0.5 * x[:, 0]))
    m = 0.7 * treat + 0.5 * x[:, 0] + rng.normal(size=n)
    b = rng.random(n) < expit(0.5 * treat + 0.5 * (m - 0.7 * treat) - 0.2)
    y = 0.5 * treat + on_outcome * m + 0.7 * x[:, 0] + rng.normal(size=n)
    frame = pd.DataFrame(x, columns=["x1", "x2", "x3"])
    return frame.assign(treat=treat, m=m, b=np.where(b, "yes", "no"), y=y)


@pytest.fixture(scope="module")
def frame():
    return draw(240, seed=1)


@pytest.fixture(scope="module")
def options(quick_options):
    return quick_options("search", starts=1)


@pytest.fixture(scope="module")
def results(frame, options):
    return cs.fit("y ~ treat | . | m + b", frame, options=options, seed=1, n_jobs=1)


def test_effects_and_their_inference(results):
    assert isinstance(results, MediationResults)
    assert list(results.params.index) == ["TE", "NDE", "NIE"]
    assert results.params["TE"] == results.params["NDE"] + results.params["NIE"]
    assert (results.bse > 0).all()
    assert results.conf_int().shape == (3, 2)
    assert results.conf_int(simultaneous=True).shape == (3, 2)
    one = results.wald_test("NDE = 0")
    assert float(one.statistic) == pytest.approx(results.tvalues["NDE"] ** 2)
    assert results.wald_test("NDE = 0, NIE = 0").df_denom == 2
    with pytest.raises(OptionError, match=r"TE is NDE \+ NIE"):
        results.wald_test("TE = 0, NDE = 0, NIE = 0")
    with pytest.raises(OptionError, match="no sampling variation"):
        results.t_test("TE - NDE - NIE = 0")
    assert list(results.influence.columns) == ["TE", "NDE", "NIE"]


def test_proportion_mediated(results):
    assert not results.estimated.uncertain_total
    share = results.effect("NIE/TE")
    assert share.estimate == pytest.approx(results.params["NIE"] / results.params["TE"])
    assert share.lower < share.estimate < share.upper


def test_proportion_of_next_to_nothing_warns(frame, options):
    nothing = frame.assign(y=np.random.default_rng(0).normal(size=240))
    res = cs.fit("y ~ treat | . - b | m", nothing, options=options, seed=1, n_jobs=1)
    with pytest.warns(UncertainShareWarning, match="within three standard errors"):
        res.proportion_mediated()
    assert "Proportion mediated not shown" in res.summary().as_text().replace("\n    ", " ")


def test_what_makes_no_sense_says_what_to_do(results):
    for name in ("ATE", "ATT", "POM[1]"):
        with pytest.raises(NotAvailableError, match="without its mediators"):
            results.effect(name)
    with pytest.raises(NotAvailableError, match=r"potential_outcomes.*without its mediators"):
        results.dose_response()
    with pytest.raises(NotAvailableError, match=r"wald_test\('TE = 0'\)"):
        results.test_equal_arms()


def test_tables(results, frame):
    table = results.mediators
    assert list(table.index) == ["m", "b"]
    assert list(table["family"]) == ["gaussian", "binomial"]
    assert (table["outcome_count"] == table.attrs["fits"]).all()  # few mediators are always held
    assert (table[["effect_se", "indirect_se"]] > 0).all().all()
    assert results.selection.index.tolist() == ["x1", "x2", "x3"]
    for model in ("treatment", "mediator", "outcome"):
        assert results.selection[model].dtype == bool
        assert results.selection[f"{model}_frequency"].between(0, 1).all()
    assert set(results.trace["network"]) == {"outcome", "mediator"}
    # The mediators must not explain the treatment.
    search = results.networks.search
    assert not search.query("model == 'treatment'")["covariate"].isin(["m", "b"]).any()


def test_path_of_the_only_mediator_is_the_nie_over_repetitions(frame, quick_options):
    """Estimate and standard error: those of the table follow the same rule as the effects'."""
    options = quick_options("search", starts=1, repeats=3)
    res = cs.fit("y ~ treat | . - b | m", frame, options=options, seed=1, n_jobs=1)
    assert res.estimated.n_bounded == res.effects.n_clipped == 0  # else ratios are bounded apart
    path = res.mediators.loc["m"]
    # The table averages density ratios over the repetitions, the effects their logarithms.
    assert path["indirect"] == pytest.approx(res.params["NIE"], rel=0.01)
    assert path["indirect_se"] == pytest.approx(res.bse["NIE"], rel=0.01)
    alone = estimate_mediation(res.mediation, clip=res.plan.clip).effects.standard_errors
    assert path["indirect_se"] > 1.5 * alone[2]  # what averaged nuisances would claim


def test_predictions(results, frame):
    assert results.potential_outcomes().shape == (240, 2)
    new = frame.head(7).drop(columns=["m", "b", "y"])  # mediators of new units are not needed
    outcomes = results.potential_outcomes(new)
    np.testing.assert_allclose(outcomes[1] - outcomes[0], results.cate(new))
    assert results.propensity(new).between(0, 1).all()
    assert len(results.predict(new)) == 7
    assert results.potential_outcomes(new.head(0)).shape == (0, 2)
    assert results.overlap().shape[0] == 3  # both arms, and all units
    assert results.balance().shape[0] == 3


def test_summary(results):
    text = results.summary().as_text()
    assert max(map(len, text.splitlines())) <= 78
    for words in ("sequential ignorability", "Mediator", "mediator", "EIF", "NIE"):
        assert words in text
    for form in ("as_html", "as_latex", "as_csv"):
        assert "NDE" in getattr(results.summary(), form)()
    assert repr(results).startswith("<MediationResults: TE")


def test_level_of_every_interval_in_the_summary(results):
    text = " ".join(results.summary(alpha=0.1).as_text().split())
    share = results.proportion_mediated(alpha=0.1)
    assert f"90% interval {share.lower:.3f} to {share.upper:.3f}" in text
    assert "95%" not in text
    for wrong in (None, "5%", 1.0):
        with pytest.raises(OptionError, match="alpha must lie"):
            results.summary(alpha=wrong)


def test_the_level_that_is_coded_one_is_shown(results, frame, options):
    assert list(results.mediators["level"]) == ["", "yes"]
    assert "of which 1 stands for: b = yes (not no)" in " ".join(
        results.summary().as_text().split()
    )
    plain = frame.assign(b=frame["b"] == "yes")
    other = cs.fit("y ~ treat | . | m + b", plain, options=options, seed=1, n_jobs=1)
    assert list(other.mediators["level"]) == ["", True]
    assert "stands for" not in other.summary().as_text()


def same_bits(one, other):
    np.testing.assert_array_equal(one.params, other.params)
    np.testing.assert_array_equal(one.cov_params(), other.cov_params())
    np.testing.assert_array_equal(one.mediation.eta, other.mediation.eta)
    pd.testing.assert_frame_equal(one.mediators, other.mediators, check_exact=True)


def test_number_of_threads_does_not_matter(results, frame, options):
    same_bits(results, cs.fit("y ~ treat | . | m + b", frame, options=options, seed=1, n_jobs=3))


def test_arrays_and_formula_agree(results, frame, options):
    model = cs.CausalStoNet(
        frame["y"], frame["treat"], frame[["x1", "x2", "x3"]], mediators=frame[["m", "b"]]
    )
    same_bits(results, model.fit(options=options, seed=1, n_jobs=2))


def test_units_of_the_mediators(results, frame, options):
    """As for covariates: standardised columns agree to the last bits of float32."""
    changed = frame.assign(m=273.15 + 1.8 * frame["m"], b=frame["b"] == "yes")
    other = cs.fit("y ~ treat | . | m + b", changed, options=options, seed=1, n_jobs=1)
    np.testing.assert_allclose(other.tvalues, results.tvalues, rtol=1e-3)
    expected = np.array([1.8, 1.0]) * results.mediators["effect"]
    np.testing.assert_allclose(other.mediators["effect"], expected, rtol=1e-3)


def test_progress_ends_at_all(frame, options):
    steps: list[tuple[int, int]] = []
    cs.fit(
        "y ~ treat | . | m",
        frame,
        options=options,
        seed=1,
        n_jobs=1,
        progress=lambda done, total: steps.append((done, total)),
    )
    done = [step for step, _ in steps]
    assert done == sorted(done)
    assert steps[-1][0] == steps[-1][1]


def test_weights(frame, options):
    weighted = cs.fit(
        "y ~ treat | . | m", frame, options=options, seed=1, n_jobs=1, weights=np.full(240, 3.0)
    )
    plain = cs.fit("y ~ treat | . | m", frame, options=options, seed=1, n_jobs=1)
    np.testing.assert_allclose(weighted.params, plain.params, rtol=1e-10)


def test_many_mediators_are_selected(quick_options):
    """Of a dozen mediators, only the one that matters is sure to be held."""
    frame = draw(400, seed=2)
    rng = np.random.default_rng(3)
    others = {f"n{j}": rng.normal(size=400) + 0.3 * frame["treat"] for j in range(11)}
    assert len(others) + 1 > HELD_WITHOUT_TEST
    names = " + ".join(["m", *others])
    res = cs.fit(
        f"y ~ treat | x1 + x2 + x3 | {names}",
        frame.assign(**others),
        options=quick_options("search", starts=1, epochs=40),
        seed=1,
        n_jobs=1,
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


def test_golden(make_plan, check_golden):
    simulation = cs.datasets.three_mediators(n=300, p=5, seed=1)
    names, fits = [f"x{j}" for j in range(1, 6)], 12
    chosen = {"treatment": [1, 1, 1, 0, 0], "mediator": [1, 1, 0, 1, 0], "outcome": [1, 0, 1, 0, 1]}
    selection = pd.DataFrame(
        {model: np.array(votes, dtype=bool) for model, votes in chosen.items()}, index=names
    ).assign(
        strength=[0.4, 0.3, 0.2, 0.2, 0.1],
        **{f"{model}_count": fits * np.array(votes) for model, votes in chosen.items()},
    )
    selection.attrs["fits"] = fits
    mediators = pd.DataFrame(
        {
            "family": "gaussian",
            "outcome": [True, True, False],
            "outcome_count": [12, 12, 5],
            "effect": [0.71, 0.52, 0.61],
            "effect_se": [0.051, 0.049, 0.05],
            "effect_pvalue": [0.0, 0.0, 0.0],
            "indirect": [0.51, 0.41, 0.0002],
            "indirect_se": [0.061, 0.058, 0.013],
        },
        index=pd.Index(["m1", "m2", "m3"], name="mediator"),
    )
    mediators.attrs["fits"] = fits
    nuisances = simulation.nuisances()
    results = MediationResults(
        design=cs.CausalStoNet.from_formula(simulation.formula, simulation.data).design,
        plan=make_plan(network_label="8-8-5-1"),
        estimated=estimate_mediation(nuisances, clip=0.01),
        mediation=nuisances,
        mediators=mediators,
        selection=selection,
        networks=SimpleNamespace(n_nonzero=41, n_weights=123),
        notes=(),
        runtime=1.0,
    )
    check_golden("summary_mediation.txt", str(results.summary()))


# Against the truth -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fit_well(quick_options):
    """A few small networks, trained long enough for effects of many standard errors."""
    options = quick_options("search", epochs=60, hidden=(8, 4), starts=1)
    return lambda formula, frame: cs.fit(formula, frame, options=options, seed=1, n_jobs=2)


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


def test_mediators_that_do_nothing(fit_well):
    frame = draw(600, seed=4, on_outcome=0.0)
    res = fit_well("y ~ treat | x1 + x2 + x3 | m + b", frame)
    assert abs(res.params["NIE"]) < FAR * res.bse["NIE"]
    assert 0 < res.bse["NIE"] < 0.2  # the test could see an effect of the usual size
    assert abs(res.params["NDE"] - 0.5) < FAR * res.bse["NDE"]
    assert (np.abs(res.mediators["indirect"]) < FAR * res.mediators["indirect_se"]).all()
