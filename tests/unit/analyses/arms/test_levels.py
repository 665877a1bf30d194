"""What the results of a treatment with more than two levels can be asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cstonet.errors import NotAvailableError, OptionError, UnknownLevelError
from cstonet.estimators import clip_propensity

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


def test_all_arms_equal(exact):
    test = exact.test_equal_arms()
    contrasts, block = exact.params[:2].to_numpy(), exact.cov_params().to_numpy()[:2, :2]
    # Student's t has F for a sibling: over the number of hypotheses.
    statistic = contrasts @ np.linalg.solve(block, contrasts) / 2
    assert exact.use_t
    np.testing.assert_allclose(test.statistic, statistic, rtol=1e-9)
    same = exact.wald_test("POM[low] = POM[placebo], POM[high] = POM[placebo]")
    np.testing.assert_allclose(same.statistic, statistic, rtol=1e-9)
    with pytest.raises(OptionError, match=r"ATE\[low-placebo\] is POM\[low\] - POM\[placebo\]"):
        exact.wald_test("ATE[low-placebo] = 0, POM[low] = POM[placebo]")


def test_simultaneous_intervals_are_wider_and_seeded(exact):
    joint = exact.conf_int(simultaneous=True)
    critical = ((joint[1] - joint[0]) / (2 * exact.bse)).to_numpy()
    freedom = exact.effects.freedom
    for family, size in ((slice(2), 2), (slice(2, None), 3)):
        # Between no correction and Bonferroni's, the same within a family, by its fewest units.
        least = freedom[family].min()
        np.testing.assert_allclose(critical[family], critical[family][0], rtol=1e-12)
        assert stats.t.isf(0.025, least) < critical[family][0] < stats.t.isf(0.025 / size, least)
    pd.testing.assert_frame_equal(joint, exact.conf_int(simultaneous=True))


def test_effects_of_any_pair(exact, simulation):
    table = exact.effect("ATE[high-placebo]")
    assert table.estimate == exact.params["ATE[high-placebo]"]
    tau = simulation.mu[:, 2] - simulation.mu[:, 0]
    members = {"ATT": simulation.treatment == 2, "ATC": simulation.treatment == 0}
    for target, rows in members.items():
        effect = exact.effect(f"{target}[high-placebo]")
        # The rows' own effects are averaged without error: what is left is the outcome's noise.
        assert abs(effect.estimate - tau[rows].mean()) < FOUR * effect.se
    for name in ("ATE", "ATT", "ATT[low-low]", "ATT[low-none]"):
        with pytest.raises(NotAvailableError, match=r"available: ATE\[low-placebo\].*ATE\[placebo"):
            exact.effect(name)


@pytest.mark.parametrize("variance", ["paper", "influence"])
def test_pairs_without_the_reference_are_tested_differences(variance, with_truth):
    results = with_truth(variance)
    pair = results.effect("ATE[high-low]")
    test = results.t_test("POM[high] - POM[low] = 0")
    np.testing.assert_allclose(pair.estimate, test.effect[0], rtol=1e-12)
    np.testing.assert_allclose(pair.se, test.sd[0, 0], rtol=1e-12)
    assert pair.pvalue == pytest.approx(np.asarray(test.pvalue).item(), rel=1e-9)


def test_conditional_effects_and_probabilities(exact, simulation):
    mu = simulation.mu
    cate = exact.cate()
    assert list(cate.columns) == ["CATE[low-placebo]", "CATE[high-placebo]"]
    np.testing.assert_array_equal(cate.to_numpy(), mu[:, 1:] - mu[:, :1])
    pair = exact.cate(contrast=("low", "high"))
    np.testing.assert_array_equal(pair, mu[:, 1] - mu[:, 2])
    assert list(exact.propensity().columns) == list(simulation.levels)
    np.testing.assert_array_equal(exact.propensity(), simulation.propensity)
    new = exact.propensity(simulation.data.head(3))
    assert new.shape == (3, 3)
    np.testing.assert_allclose(new.sum(axis=1), 1, rtol=1e-6)
    predicted = exact.predict(simulation.data.head(3))
    potential = exact.potential_outcomes(simulation.data.head(3))
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
def test_impossible_contrasts(exact, contrast, error):
    with pytest.raises(error, match="contrast"):
        exact.cate(contrast=contrast)


def test_overlap_of_every_level_in_every_arm(exact, simulation):
    table = exact.overlap()
    assert table.index.names == ["propensity", "arm"]
    assert len(table) == 3 * 4
    own = simulation.propensity[simulation.treatment == 2, 1]
    row = table.loc[("low", "high")]
    np.testing.assert_allclose(row[["min", "50%", "max"]], np.quantile(own, [0, 0.5, 1]))
    assert row["n"] == len(own)
    total = clip_propensity(simulation.propensity, 0.02).n_clipped
    assert (table.xs("all", level="arm")["n_clipped"] == total).all()


def test_balance_of_every_arm_against_the_reference(exact, simulation):
    table = exact.balance()
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
