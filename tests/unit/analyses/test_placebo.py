"""Placebo checks of a fit: what is replaced, what comes of it, and what cannot be checked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.analyses.placebo import permutation, strongest_term
from cstonet.errors import (
    ConstantOutcomeError,
    DataError,
    EmptyDataError,
    LengthMismatchError,
    MissingValuesError,
    NotAvailableError,
    NotOfThisFitError,
    OptionError,
    UnknownColumnError,
)
from cstonet.reporting.inference import Effect
from cstonet.reporting.placebo import Checked, Placebo


@pytest.fixture(scope="module")
def data():
    """A covariate with levels, a measurement before the treatment, and what is no outcome."""
    rng = np.random.default_rng(5)
    n = 240
    x = rng.normal(size=(n, 3))
    group = rng.choice(["a", "b", "c"], n)
    treat = rng.binomial(1, 1 / (1 + np.exp(-x[:, 0])))
    before = x[:, 0] + rng.normal(size=n)
    y = treat + 2 * x[:, 0] + (group == "c") + rng.normal(size=n)
    frame = pd.DataFrame(x, columns=["x1", "x2", "x3"])
    return frame.assign(
        g=group, treat=treat, y=y, before=before, one=1.0, gappy=np.where(x[:, 1] > 1, np.nan, 1.0)
    )


@pytest.fixture(scope="module")
def fitted(data, fit_quickly):
    return fit_quickly("y ~ treat | x1 + x2 + x3 + g", data)


def test_every_check_is_a_row_and_the_fit_comes_first(fitted):
    heard = []
    placebo = fitted.placebo(
        outcome="before",
        drop="x1",
        draws=2,
        n_jobs=1,
        progress=lambda done, total: heard.append((done, total)),
    )
    table = placebo.table
    assert list(table.index) == [
        "as fitted",
        "permuted 1",
        "permuted 2",
        "outcome before",
        "without x1",
    ]
    columns = ["effect", "estimate", "se", "lower", "upper", "pvalue", "verdict"]
    assert list(table.columns) == columns
    effect = fitted.effect()
    assert table.loc["as fitted", "estimate"] == effect.estimate
    # Permuted treatments differ, and so do their effects, none of which is four errors from zero.
    permuted = table.loc[["permuted 1", "permuted 2"]]
    assert permuted["estimate"].nunique() == 2
    assert (np.abs(permuted["estimate"]) < 4 * permuted["se"]).all()
    assert abs(table.loc["outcome before", "estimate"]) < 4 * table.loc["outcome before", "se"]
    # Without the confounder the estimate takes up its effect: upwards, as both slopes are positive.
    assert table.loc["without x1", "estimate"] > effect.upper
    assert table.loc["without x1", "verdict"] == "moves"
    assert heard[-1][0] == heard[-1][1]
    text = str(placebo)
    assert max(map(len, text.splitlines())) <= 78
    assert "shows no effect" in " ".join(text.split()) or not placebo.passed


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(fitted):
    one, two, other = (
        fitted.placebo(draws=1, drop=False, seed=seed, n_jobs=jobs).table["estimate"]
        for seed, jobs in ((7, 1), (7, 2), (8, 1))
    )
    pd.testing.assert_series_equal(one, two, check_exact=True)
    assert one.iloc[1] != other.iloc[1]


def test_covariates_made_of_the_outcome_go(data, fit_quickly):
    fitted = fit_quickly("y ~ treat | x1 + x2 + before", data)
    placebo = fitted.placebo(permute=False, drop=False, outcome="before", n_jobs=1)
    alone = fit_quickly("before ~ treat | x1 + x2", data)
    assert placebo.table["estimate"].iloc[1] == alone.effect().estimate


def test_values_can_be_an_outcome_but_no_copy_of_a_covariate(fitted, data):
    placebo = fitted.placebo(permute=False, drop=False, outcome=data["before"].to_numpy(), n_jobs=1)
    assert list(placebo.table.index) == ["as fitted", "outcome placebo"]
    with pytest.raises(DataError, match=r"'x2' is the placebo outcome .* in other units"):
        fitted.placebo(outcome=data["x2"].to_numpy())
    with pytest.raises(DataError, match=r"'x2' is the placebo outcome .* in other units"):
        fitted.placebo(outcome=3 * data["x2"].to_numpy() + 1)


def test_what_cannot_be_checked_says_why(fitted, data):
    with pytest.raises(UnknownColumnError, match="befor"):
        fitted.placebo(outcome="befor")
    with pytest.raises(UnknownColumnError, match="drop names 'x9'"):
        fitted.placebo(drop="x9")
    with pytest.raises(ConstantOutcomeError, match="'one'"):
        fitted.placebo(outcome="one")
    with pytest.raises(MissingValuesError, match="value in every row"):
        fitted.placebo(outcome="gappy")
    with pytest.raises(LengthMismatchError, match="240 rows"):
        fitted.placebo(outcome=[1.0, 2.0])
    with pytest.raises(OptionError, match="is the treatment"):
        fitted.placebo(outcome="treat")
    with pytest.raises(OptionError, match="is the outcome"):
        fitted.placebo(outcome="y")
    with pytest.raises(EmptyDataError, match="no covariate left"):
        fitted.placebo(drop=["x1", "x2", "x3", "g"])
    with pytest.raises(OptionError, match="nothing to check"):
        fitted.placebo(permute=False, drop=False)
    with pytest.raises(OptionError, match="see draws="):
        fitted.placebo(permute=3)
    with pytest.raises(OptionError, match="draws must be"):
        fitted.placebo(draws=0)
    with pytest.raises(OptionError, match="drop must be"):
        fitted.placebo(drop=[1])


def test_results_that_do_not_know_how_they_were_made_are_refused(make_results):
    with pytest.raises(NotAvailableError, match="placebo\\(\\) repeats the fit"):
        make_results().placebo()


def test_interruption_ends_all_fits(fitted):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted.placebo(draws=3, n_jobs=1, progress=interrupt)


def test_the_strongest_confounder_is_strong_in_both_models(fitted):
    names = list(fitted.design.covariates)
    selection = pd.DataFrame(
        {
            "treatment_strength": [0.3, 0.6, 0.0, 0.2, 0.2],
            "outcome_strength": [0.3, 0.0, 0.9, 0.2, 0.3],
            "strength": [0.3, 0.6, 0.9, 0.2, 0.3],
        },
        index=names,
    )
    # The indicators of g together: 0.4 and 0.5, which is more than x1 has.
    assert names[3:] == ["g[T.b]", "g[T.c]"]
    assert strongest_term(fitted.design, selection) == "g"
    assert strongest_term(fitted.design, selection.assign(treatment_strength=0.0)) == "x3"
    assert strongest_term(fitted.design, 0 * selection) == ""


def test_nothing_selected_means_nothing_to_leave_out(fitted, monkeypatch):
    monkeypatch.setattr(fitted, "selection", fitted.selection * 0)
    placebo = fitted.placebo(draws=1, n_jobs=1)
    assert "without" not in " ".join(placebo.table.index)
    assert "none was selected" in " ".join(str(placebo).split())


@pytest.mark.parametrize("weights", [None, np.array([1.0, 0.0, 2.0, 1.0, 1.0, 1.0])])
def test_units_are_dealt_each_others_treatments(weights):
    order = permutation(np.arange(6), None, weights, np.random.default_rng(1))
    assert sorted(order) == list(range(6))
    assert (order != np.arange(6)).any()
    assert weights is None or order[1] == 1


def test_clusters_are_dealt_as_a_whole_if_they_were_treated_as_a_whole():
    clusters = np.repeat([3, 5, 9, 11], [2, 3, 4, 1])
    whole = np.repeat([0, 1, 1, 0], [2, 3, 4, 1])
    seen = set()
    for seed in range(20):
        dealt = whole[permutation(whole, clusters, None, np.random.default_rng(seed))]
        by_cluster = [dealt[clusters == code] for code in (3, 5, 9, 11)]
        assert all(len(set(own)) == 1 for own in by_cluster)
        assert sum(own[0] for own in by_cluster) == 2
        seen.add(tuple(own[0] for own in by_cluster))
    assert len(seen) > 2


def test_units_are_dealt_treatments_of_their_cluster_if_these_differ():
    clusters = np.repeat([0, 1], 10)
    treatment = np.arange(20) % 2
    order = permutation(treatment, clusters, None, np.random.default_rng(1))
    assert sorted(order[:10]) == list(range(10))
    assert sorted(order[10:]) == list(range(10, 20))


def test_too_many_effects_of_permuted_treatments_are_not_put_down_to_chance():
    def effect(estimate):
        return Effect("ATE", estimate, 1.0, estimate - 2, estimate + 2, 0.5, 0.05)

    def placebo(*estimates, outcome=0.0):
        permuted = [
            Checked("permuted", f"permuted {k}", effect(e)) for k, e in enumerate(estimates)
        ]
        outcomes = [Checked("outcome", "outcome before", effect(outcome))]
        return Placebo((Checked("fitted", "as fitted", effect(5.0)), *permuted, *outcomes))

    # One of five by chance: 1 - 0.95^5 = 0.23; two: 0.023.
    assert placebo(0, 0, 3, 0, 0).passed
    assert not placebo(0, 3, 3, 0, 0).passed
    assert "too many for chance" in str(placebo(0, 3, 3, 0, 0))
    assert not placebo(0, outcome=3.0).passed
    assert "seems to have an effect" in str(placebo(0, outcome=3.0))
    assert list(placebo(0, 3).table["verdict"]) == ["", "zero", "not zero", "zero"]


def test_villages_are_permuted_as_a_whole(data, fit_quickly, monkeypatch):
    village = np.arange(len(data)) // 6
    treated = data.assign(treat=village % 2)
    fitted = fit_quickly("y ~ treat | x1 + x2", treated, cluster=village)
    dealt = []
    original = type(fitted.recipe).fit

    def remembered(recipe, design, seed, workforce):
        dealt.append(design.treatment.codes.reshape(-1, 6))
        return original(recipe, design, seed, workforce)

    monkeypatch.setattr(type(fitted.recipe), "fit", remembered)
    fitted.placebo(draws=1, drop=False, n_jobs=1)
    assert (dealt[0] == dealt[0][:, :1]).all()
    assert (dealt[0][:, 0] != np.arange(40) % 2).any()


def test_doses_are_permuted_too(fit_quickly):
    simulation = cs.datasets.dose_curve(n=200, p=5, seed=3)
    fitted = fit_quickly(simulation.formula, simulation.data)
    table = fitted.placebo(draws=1, drop="x1", n_jobs=1).table
    assert list(table["effect"]) == ["AME"] * 3
    assert abs(table["estimate"].iloc[1]) < 4 * table["se"].iloc[1]


def test_a_mediation_is_told_where_to_go(make_results):
    from cstonet.analyses.mediation.results import MediationResults

    results = MediationResults.__new__(MediationResults)
    vars(results)["design"] = make_results().design
    with pytest.raises(NotOfThisFitError, match="without its mediators"):
        _ = results.placebo
