"""Fits of treatments with more than two levels, and what their results can be asked."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import cstonet as cs
from cstonet.analyses.arms.results import CausalResults
from cstonet.errors import NotAvailableError, OptionError, UnknownLevelError
from cstonet.estimators import clip_propensity, estimate_effects
from cstonet.reporting import diagnostics

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5
# Two fits of the same rows err by at most this many standard errors in total, both being within
# three of the truth except with probability 0.005.
MONTE_CARLO = 3 * 2**0.5


# Fits ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulation():
    return cs.datasets.three_arms(n=600, p=8, seed=3)


@pytest.fixture(scope="module")
def options(quick_options):
    return quick_options(epochs=40, hidden=(8, 6), starts=1)


@pytest.fixture(scope="module")
def fitted(simulation, options):
    model = cs.CausalStoNet.from_formula(simulation.formula, simulation.data)
    return model.fit(options=options, seed=1, n_jobs=1)


def test_fit_finds_the_contrasts(simulation, fitted):
    assert list(fitted.params.index[:2]) == list(simulation.contrasts)
    for name, truth in simulation.contrasts.items():
        assert abs(fitted.params[name] - truth) < FOUR * fitted.bse[name]
        assert fitted.params[name] > 5 * fitted.bse[name]
    np.testing.assert_allclose(fitted.propensity().sum(axis=1), 1, rtol=1e-6)
    own = np.take_along_axis(simulation.propensity, simulation.treatment[:, None], axis=1)
    got = np.take_along_axis(fitted.propensity().to_numpy(), simulation.treatment[:, None], axis=1)
    assert np.log(got).mean() > np.log(1 / 3)  # better than knowing nothing
    assert np.log(got).mean() < np.log(own).mean() + 0.1


@pytest.mark.parametrize("recipe", ["search", "prune"])
def test_multilevel_with_two_levels_is_binary(quick_options, recipe):
    """The block is the same, so the bits are; only names and shapes differ."""
    rng = np.random.default_rng(6)
    X = pd.DataFrame(rng.normal(size=(200, 4))).rename(columns=str)
    treat = rng.binomial(1, expit(X["0"]))
    frame = X.assign(y=X["0"] + treat + rng.normal(size=200), treat=treat)
    fits = [
        cs.CausalStoNet.from_formula("y ~ treat | .", frame, treatment=kind).fit(
            options=quick_options(recipe), seed=2, n_jobs=1
        )
        for kind in ("binary", "multilevel")
    ]
    binary, multilevel = fits
    np.testing.assert_array_equal(binary.params, multilevel.params)
    np.testing.assert_array_equal(binary.cov_params(), multilevel.cov_params())
    np.testing.assert_array_equal(binary.nuisances.propensity, multilevel.nuisances.propensity)
    np.testing.assert_array_equal(binary.selection, multilevel.selection[binary.selection.columns])
    np.testing.assert_array_equal(binary.cate(), multilevel.cate()["CATE[1-0]"])
    np.testing.assert_array_equal(binary.propensity(), multilevel.propensity()[1])
    np.testing.assert_array_equal(binary.balance(), multilevel.balance())
    np.testing.assert_array_equal(binary.overlap(), multilevel.overlap().loc[1])
    assert binary.effect("ATO").estimate == multilevel.effect("ATO[1-0]").estimate
    assert list(multilevel.params.index) == ["ATE[1-0]", "POM[0]", "POM[1]"]
    assert (multilevel.selection["treatment"] == multilevel.selection["treatment[1]"]).all()


@pytest.mark.parametrize("recipe", ["search", "prune"])
def test_risks_in_weighted_arms(simulation, quick_options, recipe):
    """A binary outcome with weights: effects are risk differences, and means are risks."""
    data = simulation.data.assign(y=(simulation.data["y"] > 1).astype(int))
    weights = np.random.default_rng(0).uniform(0.5, 2, size=len(data))
    model = cs.CausalStoNet.from_formula("y ~ treat | .", data, weights=weights, reference="high")
    results = model.fit(options=quick_options(recipe, epochs=30), seed=1, n_jobs=1)
    assert list(results.params.index[:2]) == ["ATE[placebo-high]", "ATE[low-high]"]
    assert results.nuisances.mu.min() >= 0
    assert results.nuisances.mu.max() <= 1
    assert (results.params[:2] < -3 * results.bse[:2]).all()  # higher doses push y above 1
    assert "risk difference" in results.summary().as_text()
    np.testing.assert_allclose(results.influence.mean(), 0, atol=1e-12)


def test_relabelling_permutes_the_table(simulation, options, fitted):
    names = {"placebo": "z", "low": "x", "high": "y"}
    data = simulation.data.assign(treat=simulation.data["treat"].astype(str).map(names))
    model = cs.CausalStoNet.from_formula(simulation.formula, data)
    other = model.fit(options=options, seed=1, n_jobs=1)
    assert list(other.params.index[:2]) == ["ATE[y-x]", "ATE[z-x]"]
    for old, new in names.items():
        pom, renamed = f"POM[{old}]", f"POM[{new}]"
        error = max(fitted.bse[pom], other.bse[renamed])
        assert abs(fitted.params[pom] - other.params[renamed]) < MONTE_CARLO * error
    error = max(fitted.bse["ATE[low-placebo]"], other.bse["ATE[z-x]"])
    difference = fitted.params["ATE[low-placebo]"] + other.params["ATE[z-x]"]
    assert abs(difference) < MONTE_CARLO * error


@pytest.mark.parametrize("reference", ["a", "b", "c"])
def test_search_does_not_depend_on_the_reference(reference, quick_options):
    """x1 moves the chance of one arm only, and is found whichever arm is the reference."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 40))
    p = np.column_stack([expit(X[:, 0]), *2 * [expit(-X[:, 0]) / 2]])
    arm = (rng.random((400, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    frame = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(40)])
    frame = frame.assign(y=3 * X[:, 1] + rng.normal(size=400), arm=np.array(list("abc"))[arm])
    model = cs.CausalStoNet.from_formula("y ~ arm | .", frame, reference=reference)
    results = model.fit(options=quick_options(starts=1), seed=0, n_jobs=1)
    moves = results.networks.search.query("model == 'treatment' and move == 'grow'")
    # The first covariate that each fold admits to the treatment's model, with the same score:
    # without covariates all arms are equally likely for everyone, up to the training of the biases.
    first = moves.groupby("fold").first()
    assert set(first["covariate"]) == {"x1"}
    z = X[:, 0] * ((arm == 0) - np.mean(arm == 0))
    expected = z.sum() / np.sqrt((z**2).sum()) * np.sqrt(0.5)  # two folds: half of the rows
    assert abs(first["score"] - expected).max() < 4 * np.sqrt(0.5)


# Results around the true nuisances ----------------------------------------------------------------


@pytest.fixture
def results(simulation, fitted):
    """Results whose nuisances are the true ones, so that numbers do not depend on a training."""
    effects = estimate_effects(
        simulation.nuisances(),
        levels=simulation.levels,
        clip=0.02,
        variance="influence",
        kind="multilevel",
    )
    return CausalResults(
        design=fitted.design,
        plan=fitted.plan,
        effects=effects,
        nuisances=simulation.nuisances(),
        selection=fitted.selection,
        networks=fitted.networks,
        notes=(),
        runtime=1.0,
    )


def test_all_arms_equal(results):
    test = results.test_equal_arms()
    contrasts, block = results.params[:2].to_numpy(), results.cov_params().to_numpy()[:2, :2]
    statistic = contrasts @ np.linalg.solve(block, contrasts)
    np.testing.assert_allclose(test.statistic, statistic, rtol=1e-9)
    same = results.wald_test("POM[low] = POM[placebo], POM[high] = POM[placebo]")
    np.testing.assert_allclose(same.statistic, statistic, rtol=1e-9)
    with pytest.raises(OptionError, match=r"ATE\[low-placebo\] is POM\[low\] - POM\[placebo\]"):
        results.wald_test("ATE[low-placebo] = 0, POM[low] = POM[placebo]")


def test_simultaneous_intervals_are_wider_and_seeded(results):
    plain, joint = results.conf_int(), results.conf_int(simultaneous=True)
    width, joint_width = (limits[1] - limits[0] for limits in (plain, joint))
    ratio = joint_width / width
    # Between no correction and Bonferroni's, the same within a family.
    assert ((ratio > 1) & (ratio < 2.394 / 1.96)).all()
    assert ratio.iloc[:2].nunique() == 1 or np.ptp(ratio.iloc[:2]) < 1e-12
    pd.testing.assert_frame_equal(joint, results.conf_int(simultaneous=True))


def test_effects_of_any_pair(results, simulation):
    table = results.effect("ATE[high-placebo]")
    assert table.estimate == results.params["ATE[high-placebo]"]
    pair = results.effect("ATE[high-low]")
    test = results.t_test("POM[high] - POM[low] = 0")
    np.testing.assert_allclose(pair.estimate, test.effect[0], rtol=1e-12)
    np.testing.assert_allclose(pair.se, test.sd[0, 0], rtol=1e-12)
    tau = simulation.mu[:, 2] - simulation.mu[:, 0]
    members = {"ATT": simulation.treatment == 2, "ATC": simulation.treatment == 0}
    for target, rows in members.items():
        effect = results.effect(f"{target}[high-placebo]")
        # The rows' own effects are averaged without error: what is left is the outcome's noise.
        assert abs(effect.estimate - tau[rows].mean()) < FOUR * effect.se
    for name in ("ATE", "ATT", "ATT[low-low]", "ATT[low-none]"):
        with pytest.raises(NotAvailableError, match=r"available: ATE\[low-placebo\].*ATE\[placebo"):
            results.effect(name)


def test_conditional_effects_and_probabilities(results, simulation):
    mu = simulation.mu
    cate = results.cate()
    assert list(cate.columns) == ["CATE[low-placebo]", "CATE[high-placebo]"]
    np.testing.assert_array_equal(cate.to_numpy(), mu[:, 1:] - mu[:, :1])
    pair = results.cate(contrast=("low", "high"))
    np.testing.assert_array_equal(pair, mu[:, 1] - mu[:, 2])
    assert list(results.propensity().columns) == list(simulation.levels)
    np.testing.assert_array_equal(results.propensity(), simulation.propensity)
    new = results.propensity(simulation.data.head(3))
    assert new.shape == (3, 3)
    np.testing.assert_allclose(new.sum(axis=1), 1, rtol=1e-6)
    predicted = results.predict(simulation.data.head(3))
    potential = results.potential_outcomes(simulation.data.head(3))
    expected = [potential.loc[i, level] for i, level in enumerate(simulation.data["treat"][:3])]
    np.testing.assert_array_equal(predicted, expected)


@pytest.mark.parametrize(
    ("contrast", "error"),
    [
        (("low", "none"), UnknownLevelError),
        (("low", "low"), OptionError),
        ("low", OptionError),
        (("low",), OptionError),
    ],
)
def test_impossible_contrasts(results, contrast, error):
    with pytest.raises(error, match="contrast"):
        results.cate(contrast=contrast)


def test_overlap_of_every_level_in_every_arm(results, simulation):
    table = results.overlap()
    assert table.index.names == ["propensity", "arm"]
    assert len(table) == 3 * 4
    own = simulation.propensity[simulation.treatment == 2, 1]
    row = table.loc[("low", "high")]
    np.testing.assert_allclose(row[["min", "50%", "max"]], np.quantile(own, [0, 0.5, 1]))
    assert row["n"] == len(own)
    total = clip_propensity(simulation.propensity, 0.02).n_clipped
    assert (table.xs("all", level="arm")["n_clipped"] == total).all()


def test_separated_arm_is_reported(results, simulation):
    """One arm whose units all are likelier to receive it than any other unit."""
    assert diagnostics.arm_separation(results.nuisances) < 0.8
    own = simulation.treatment == 1
    p = np.where(own[:, None], [0.1, 0.8, 0.1], [0.4, 0.2, 0.4])
    assert diagnostics.arm_separation(replace(results.nuisances, propensity=p)) == 1


def test_balance_of_every_arm_against_the_reference(results, simulation):
    table = results.balance()
    assert [name.split("[")[1] for name in table.columns[::2]] == ["low-placebo]", "high-placebo]"]
    x, A = simulation.data["x3"].to_numpy(), simulation.treatment
    yardstick = np.sqrt((x[A == 0].var() + x[A == 2].var()) / 2)
    before = (x[A == 2].mean() - x[A == 0].mean()) / yardstick
    np.testing.assert_allclose(table.loc["x3", "smd_before[high-placebo]"], before, rtol=1e-9)
    p = clip_propensity(simulation.propensity, 0.02).values
    after = np.average(x[A == 2], weights=1 / p[A == 2, 2])
    after -= np.average(x[A == 0], weights=1 / p[A == 0, 0])
    got = table.loc["x3", "smd_after[high-placebo]"]
    np.testing.assert_allclose(got, after / yardstick, rtol=1e-9)
    assert abs(got) < abs(before)


def test_selection_per_level(fitted):
    selection = fitted.selection
    for level in ("low", "high"):
        assert selection[f"treatment[{level}]"].dtype == bool
        assert (selection["treatment"] >= selection[f"treatment[{level}]"]).all()
        np.testing.assert_allclose(selection[f"treatment_strength[{level}]"].sum(), 1)
    assert "treatment[placebo]" not in selection
    assert selection.loc[["x1", "x3"], "treatment"].all()


def test_summary(results):
    text = results.summary().as_text()
    assert max(map(len, text.splitlines())) <= 78
    assert "ATE[high-placebo]" in text
    assert "placebo (reference)" in text
    assert repr(results).count("ATE[") == 2
    for form in ("as_html", "as_latex", "as_csv"):
        assert "reference" in getattr(results.summary(), form)()


def test_golden(make_plan, check_golden):
    simulation = cs.datasets.three_arms(n=300, p=5, seed=1)
    plan, names = make_plan(network_label="5-8-5-1"), [f"x{j}" for j in range(1, 6)]
    selected = np.array([True, False, True, False, True])
    selection = pd.DataFrame(
        {"treatment": selected, "outcome": [True] * 4 + [False], "strength": 0.2}, index=names
    ).assign(treatment_count=12 * selected, outcome_count=[12, 11, 12, 9, 0])
    selection.attrs["fits"] = 12
    nuisances = simulation.nuisances()
    results = CausalResults(
        design=cs.CausalStoNet.from_formula(simulation.formula, simulation.data).design,
        plan=plan,
        effects=estimate_effects(
            nuisances,
            levels=simulation.levels,
            clip=plan.clip,
            variance="paper",
            kind="multilevel",
        ),
        nuisances=nuisances,
        selection=selection,
        networks=SimpleNamespace(n_nonzero=41, n_weights=123),
        notes=(),
        runtime=1.0,
    )
    check_golden("summary_multilevel.txt", str(results.summary()))


def test_long_labels_do_not_overflow(results, simulation):
    labels = tuple(f"a rather long label of the arm {level}" for level in simulation.levels)
    effects = estimate_effects(
        results.nuisances, levels=labels, clip=0.02, variance="paper", kind="multilevel"
    )
    long = CausalResults(
        design=replace(results.design, treatment_levels=labels),
        plan=results.plan,
        effects=effects,
        nuisances=results.nuisances,
        selection=results.selection,
        networks=results.networks,
        notes=(),
        runtime=1.0,
    )
    assert max(map(len, long.summary().as_text().splitlines())) <= 78
