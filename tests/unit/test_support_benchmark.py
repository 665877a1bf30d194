"""The data of benchmarks/support.py, what it records of a fit, and its tables."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(ROOT / "benchmarks"))

import common  # noqa: E402
import peers  # noqa: E402
import support  # noqa: E402
import support_data  # noqa: E402
import support_twins  # noqa: E402
from pages import support as support_page  # noqa: E402

DATA = Path(os.environ.get("CSTONET_DATA", ROOT.parent / "shared" / "data"))
DETERMINED = ("category", "threshold", "jointly")
RARE = {"rare-9": 9, "rare-1pct": 30, "rare-2pct": 60, "rare-50pct": 1500}


def load(name: str, seed: int) -> support_data.SupportProblem:
    if name in support_twins.TWINS and not (DATA / support.FOLDER).is_dir():
        pytest.skip("LaLonde's data are not here; set CSTONET_DATA to the folder of all data")
    return support.SupportCase(name, seed, DATA).load()


every_design = pytest.mark.parametrize("name", [*support_data.DESIGNS, *support_twins.TWINS])


@every_design
def test_a_seed_is_a_data_set(name):
    one, again, other = load(name, 1), load(name, 1), load(name, 2)
    pd.testing.assert_frame_equal(one.data, again.data)
    assert (one.y != other.y).any()
    assert list(one.data.columns[:2]) == ["y", "treat"]
    assert set(one.treat) == {0, 1}
    assert one.truths == other.truths


@every_design
def test_truths_agree_with_each_other(name):
    problem = load(name, 1)
    tau = problem.mu[:, 1] - problem.mu[:, 0]
    assert problem.sample_ate == problem.sample_truths["ATE"] == pytest.approx(tau.mean())
    assert problem.ate == problem.truths["ATE"]
    for truths in (problem.truths, problem.sample_truths):
        assert truths["ATE"] == pytest.approx(truths["POM[1]"] - truths["POM[0]"])
    treated = problem.treat == 1
    assert problem.sample_truths["ATT"] == pytest.approx(tau[treated].mean())
    # Rows are drawn from the population: their means differ by sampling error only.
    for index, truth in enumerate(("POM[0]", "POM[1]")):
        error = problem.mu[:, index].std() / math.sqrt(len(tau))
        assert abs(problem.sample_truths[truth] - problem.truths[truth]) < 5 * error
    error = tau[treated].std() / math.sqrt(treated.sum())
    assert abs(problem.sample_truths["ATT"] - problem.truths["ATT"]) <= 5 * error + 1e-9


@every_design
def test_outcomes_have_the_means_they_should(name):
    problem = load(name, 3)
    arm = problem.mu[np.arange(len(problem.y)), problem.treat]
    left = problem.y - arm
    assert abs(left.mean()) < 5 * left.std() / math.sqrt(len(left))
    # Not only on average: no part of the residuals follows the means.
    centred = arm - arm.mean()
    assert abs(left @ centred) < 5 * math.sqrt(np.sum((left * centred) ** 2))


@every_design
def test_treatments_follow_their_propensities(name):
    problem = load(name, 1)
    if name in DETERMINED:
        assert (problem.propensity == problem.treat).all()
        assert problem.oracles == {}
        return
    e = problem.propensity
    if name in RARE:
        assert problem.treat.sum() == RARE[name]
        assert e == pytest.approx(RARE[name] / 3000)
        return
    assert abs(problem.treat.sum() - e.sum()) < 5 * math.sqrt(np.sum(e * (1 - e)))


# Propensities of the twins leave the oracle of the ATE without a normal limit; the ATT's has one.
@pytest.mark.parametrize(
    ("name", "effect"),
    [
        *((name, "ATE") for name in support_data.DESIGNS if name not in DETERMINED),
        *((name, "ATT") for name in support_twins.TWINS),
        *(("arm-slope", arm) for arm in ("POM[0]", "POM[1]")),
    ],
)
def test_the_oracle_is_unbiased(name, effect):
    problems = [load(name, seed) for seed in range(1, 7)]
    errors = [problem.oracles[effect][0] - problem.truths[effect] for problem in problems]
    variance = np.mean([problem.oracles[effect][1] ** 2 for problem in problems])
    assert abs(np.mean(errors)) < 4 * math.sqrt(variance / len(problems))


def test_sizes_and_kinds():
    assert load("thirty", 1).data.shape == (2000, 2 + 100)
    assert load("approx-sparse", 1).data.shape == (1000, 2 + 200)
    problem = load("arm-slope", 1)
    assert np.corrcoef(problem.tau, problem.data["z"])[0, 1] == pytest.approx(1)
    assert load("rich-binary", 1).binary


def test_neighbours_are_correlated_as_said():
    X = support_data.normals(np.random.default_rng(1), 40_000, 4, 0.5)
    expected = 0.5 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    # The standard error of a correlation ρ is (1 - ρ²) / √n.
    assert np.abs(np.corrcoef(X.T) - expected).max() < 5 / math.sqrt(40_000)


def test_expected_earnings_are_those_of_the_mixture():
    rng = np.random.default_rng(2)
    working = np.array([[0.5, 0.9]])
    law = support_twins.Earnings(working, np.array([[8.0, 8.5]]), np.array([-0.4, 0.1, 0.9]))
    rows, m = np.zeros(100_000, np.int64), 100_000
    for arm in (0, 1):
        drawn = law.draw(rng, rows, np.full(m, arm))
        assert abs(drawn.mean() - law.means[0, arm]) < 5 * drawn.std() / math.sqrt(m)
        zeros = 1 - working[0, arm]
        assert abs(np.mean(drawn == 0) - zeros) < 5 * math.sqrt(zeros * (1 - zeros) / m)


@pytest.mark.parametrize("name", support_twins.TWINS)
def test_twins_have_the_thin_overlap_of_the_original(name):
    problem = load(name, 1)
    controls = problem.propensity[problem.treat == 0]
    assert np.mean(controls < 0.005) > 0.6
    assert 130 < problem.treat.sum() < 240  # 185 ± 4 standard deviations
    assert list(problem.data.columns[2:]) == support_twins.COVARIATES
    assert 0.05 < np.mean(problem.y == 0) < 0.25
    # Helps participants, harms the population; without adjustment both look much worse.
    assert problem.truths["ATT"] > 0 > problem.truths["ATE"]


# Methods -----------------------------------------------------------------------------------------


def test_least_squares_by_hand():
    problem = load("seven-weak", 1)
    found = peers.ols(problem, 1, 0)
    n, design = len(problem.y), np.column_stack([problem.treat, np.ones(500), problem.X])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ problem.y
    scores = design * (problem.y - design @ beta)[:, None]
    covariance = inverse @ (scores.T @ scores) @ inverse * n / (n - design.shape[1])
    assert found.ate == pytest.approx(beta[0])
    assert found.se == pytest.approx(math.sqrt(covariance[0, 0]))
    with pytest.raises(ValueError, match="determine the treatment"):
        peers.ols(load("category", 1), 1, 0)


class Results(SimpleNamespace):
    """What `findings` asks of a fit's results."""

    def effect(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(estimate=1.0, se=0.5, lower=0.0, upper=2.0)


def test_findings_with_and_without_support():
    problem = load("arm-slope", 1)
    plain = support.findings(Results(), problem)
    assert plain["estimable"] is None
    assert list(plain["effects"]) == ["ATE", "ATT", "POM[0]", "POM[1]"]
    assert plain["effects"]["POM[1]"]["truth"] == problem.truths["POM[1]"]
    assert plain["effects"]["ATT"]["oracle"] == problem.oracles["ATT"]
    mask = problem.data["z"].to_numpy() > 0
    region = SimpleNamespace(
        condition="z > 0", share=mask.mean(), mask=mask, effect=Results().effect("ATE")
    )
    found = support.findings(Results(estimable=np.False_, support=lambda: region), problem)
    assert found["estimable"] is False
    assert found["condition"] == "z > 0"
    assert found["effects"]["support"]["truth"] == pytest.approx(problem.tau[mask].mean())
    assert json.loads(json.dumps(found))["share"] == pytest.approx(mask.mean())


# Tables ------------------------------------------------------------------------------------------


def record(seed: int, estimate: float, **changes: object) -> common.Record:
    """A result with an interval of ± 0.2 around the estimate and a truth of 1."""
    return {
        "group": "thirty",
        "seed": seed,
        "method": "calibrated",
        "seconds": 1.0,
        "estimate": estimate,
        "se": 0.1,
        "lower": estimate - 0.2,
        "upper": estimate + 0.2,
        "sample_ate": 1.0,
        "ate": 1.0,
        "oracle": [1.1, 0.1],
        "y_sd": 2.0,
        "selection": None,
        "pehe": None,
    } | changes


def refusal(seed: int, error: str) -> common.Record:
    head = {"group": "thirty", "seed": seed, "method": "calibrated", "seconds": 1.0}
    return head | {"error": f"{error}: why"}


def test_claims_are_counted():
    records = [
        record(1, 1.1, estimable=True),
        record(2, 1.5),
        record(3, 1.5, estimable=False),
        refusal(4, "SeparationError"),
        refusal(5, "TimeoutError"),
    ]
    claims = support_page.Honesty.of(records)
    assert (claims.n_sets, claims.n_failed) == (4, 1)
    assert (claims.refused, claims.not_estimable, claims.narrow_and_wrong) == (0.25, 0.25, 0.25)
    assert math.isnan(support_page.Honesty.of([records[4]]).refused)
    # The oracle's line comes from a record of another method, whose verdict is not its own.
    assert support_page.Honesty.of([record(1, 1.5, method="oracle", estimable=False)]) == (
        support_page.Honesty(1, 0, 0.0, 0.0, 1.0)
    )


def test_ratios_are_over_common_data_sets():
    mine = [record(1, 1.3), record(2, 1.4), record(3, 9.0)]
    other = [record(1, 1.1), record(2, 1.2), record(4, 9.0), refusal(3, "SeparationError")]
    expected = math.sqrt((0.09 + 0.16) / (0.01 + 0.04))
    ratio = support_page.rmse_ratio(mine, other)
    assert ratio.value == pytest.approx(expected)
    # Half the relative error of the ratio of squares, by the delta method.
    relative = np.array([0.09, 0.16]) / 0.125 - np.array([0.01, 0.04]) / 0.025
    assert ratio.error == pytest.approx(expected * np.std(relative, ddof=1) / np.sqrt(2) / 2)
    assert math.isnan(support_page.rmse_ratio(mine, []).value)


def test_another_effect_takes_the_place_of_the_mean_effect():
    att = {
        "estimate": 3.0,
        "se": 0.3,
        "lower": 2.4,
        "upper": 3.6,
        "truth": 2.5,
        "sample_truth": 2.6,
        "oracle": [2.4, 0.2],
    }
    seen = support_page.of_effect(record(1, 1.0, estimable=False, effects={"ATT": att}), "ATT")
    assert (seen["estimate"], seen["ate"], seen["sample_ate"]) == (3.0, 2.5, 2.6)
    assert seen["estimable"] is None
    assert support_page.of_effect(record(1, 1.0), "ATT") is None


def test_page_leaves_out_what_served_to_choose(tmp_path):
    ours = [record(4000 + seed, 1.0 + error) for seed, error in ((1, 0.1), (2, -0.1), (3, 0.3))]
    ols = [record(r["seed"], 1.1, method="ols", estimable=None) for r in ours]
    used = record(7, 5.0)
    text = support_page.page([*ours, *ols, used], tmp_path)
    assert "## Thirty medium confounders, n=2000, p=100 (`thirty`)" in text
    # RMSE √(0.11 / 3) against 0.1 of both others; two of three intervals hold the truth.
    (line,) = [line for line in text.splitlines() if line.startswith("| calibrated")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    # The mean square's error is 0.08 / 3: by the delta method 0.08 / 3 / (2 · 0.191).
    assert cells[:5] == ["calibrated", "3", "+0.10 ± 0.12", "0.191 ± 0.070", "1.91 ± 0.70"]
    assert cells[5] == "1.91 ± 0.70"
    assert cells[6].startswith("66.7 ±")
    # Agresti and Coull: 3 of 7.
    assert cells[-1] == f"33 ± {100 * math.sqrt(3 / 7 * 4 / 7 / 7):.0f} %"
    assert "All results are of data sets that served" in support_page.page([used], tmp_path)


def test_report_has_the_page(tmp_path):
    pytest.importorskip("matplotlib")
    import report

    lines = [json.dumps(record(4001, 1.1)) + "\n", json.dumps(record(4002, 0.9)) + "\n"]
    (tmp_path / support_page.FILE).write_text("".join(lines), encoding="utf-8")
    assert "(support.md)" in report.write_report(tmp_path).read_text(encoding="utf-8")
    page = (tmp_path / "support.md").read_text(encoding="utf-8")
    assert page.startswith("# Support\n")
