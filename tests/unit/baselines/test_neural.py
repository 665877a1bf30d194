"""The neural baselines: seeds, new rows, easy problems, and published figures."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[3]
# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(ROOT / "benchmarks"))

import loaders  # noqa: E402
from baselines import neural  # noqa: E402
from baselines.networks import cevae, cfrnet, dragonnet, ganite, training  # noqa: E402
from common import Problem  # noqa: E402

DATA = Path(os.environ.get("CSTONET_DATA", ROOT.parent / "shared" / "data"))
BY_NAME = {baseline.name: baseline for baseline in neural.NEURAL_BASELINES}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few steps of each network: enough to see that it runs, not to learn."""
    few = training.Schedule(batch=50, checks=2, patience=2, steps_per_check=3)
    for module in (cfrnet, cevae, ganite):
        monkeypatch.setattr(module, "SCHEDULE", few)
    monkeypatch.setattr(dragonnet, "ADAM_SCHEDULE", few)
    monkeypatch.setattr(dragonnet, "DESCENT_SCHEDULE", few)
    monkeypatch.setattr(ganite, "ADVERSARIAL_STEPS", 3)
    monkeypatch.setattr(cevae, "DRAWS", 2)


def test_names_are_known_without_pytorch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from baselines.neural import NEURAL_BASELINES\n"
        "print(','.join(b.name for b in NEURAL_BASELINES))\n"
        "try: NEURAL_BASELINES[0].prepare()\n"
        "except ImportError: print('missing')"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT / "benchmarks")},
        capture_output=True,
        text=True,
        check=True,
    )
    names = "tarnet,cfrnet-mmd,cfrnet-wass,dragonnet,donut,cevae,ganite"
    assert run.stdout.split() == [names, "missing"]


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("binary", [False, True])
def test_a_seed_decides_and_new_rows_can_be_asked_about(
    name: str, binary: bool, short: None, linear_problem: Callable[..., Problem]
):
    problem, new = linear_problem(120, binary=binary), linear_problem(50, seed=2, binary=binary)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    fitted = BY_NAME[name].learn(problem, 1, 7)
    first, elsewhere = fitted.on(problem), fitted.on(new)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    again = BY_NAME[name].learn(problem, 1, 7).on(problem)
    other = BY_NAME[name].learn(problem, 1, 8).on(problem)
    assert np.array_equal(first.cate, again.cate)
    assert not np.array_equal(first.cate, other.cate)
    assert first.cate.shape == (120,)
    assert elsewhere.cate.shape == (50,)
    for estimate in (first, elsewhere):
        assert all(math.isnan(value) for value in (estimate.se, estimate.lower, estimate.upper))
        if name != "dragonnet":  # whose mean effect is the targeted one
            assert estimate.ate == pytest.approx(estimate.cate.mean())
        if binary:
            assert np.abs(estimate.cate).max() < 1


@pytest.mark.parametrize("name", ["tarnet", "cfrnet-mmd", "dragonnet", "donut"])
@pytest.mark.slow
def test_linear_effect_is_found(name: str, linear_problem: Callable[..., Problem]):
    problem = linear_problem()
    truth, error = problem.oracle
    y, treat = problem.y, problem.treat
    # A fifth of the rows is held out. Within three errors of the best estimate from the others.
    tolerance = 3 * error / math.sqrt(1 - training.HELD_OUT_SHARE)
    assert y[treat == 1].mean() - y[treat == 0].mean() > truth + 2 * tolerance
    estimate = BY_NAME[name].estimate(problem, threads=1, seed=1)
    assert estimate.ate == pytest.approx(truth, abs=tolerance)


def test_loss_falls_to_the_noise(linear_problem):
    problem = linear_problem()
    scales = training.Scales.of(problem)
    rows, held_out = training.split_rows(problem, scales, seed=1)
    with training.session(threads=1, seed=1):
        network = cfrnet.CFRNet(5)
        outcome = cfrnet.OutcomeLoss(float(rows.treat.mean()), binary=False)
        loss = partial(cfrnet.objective, network, outcome=outcome, distance=None, weight=0.0)
        optimizer = torch.optim.Adam(network.parameters(), lr=cfrnet.LEARNING_RATE)
        schedule = replace(cfrnet.SCHEDULE, checks=12)  # enough here, and quick
        losses = training.train(network, optimizer, loss, rows, held_out, schedule)
    # Predictions of zero leave the whole variance of the outcome, the truth that of the noise.
    # The latter is estimated from m held-out rows, with an error of √(2 / m) of itself.
    noise = 1.0 / scales.y_spread**2
    assert losses[0] > 3 * noise
    assert min(losses) < noise * (1 + 3 * math.sqrt(2 / len(held_out)))


def test_weight_of_the_distance_is_the_one_with_the_least_held_out_loss(
    monkeypatch, linear_problem
):
    problem = linear_problem(200)
    monkeypatch.setattr(cfrnet, "SCHEDULE", replace(cfrnet.SCHEDULE, checks=2))
    effects = {}
    for weights in ((1000.0,), (0.0,), (1000.0, 0.0)):
        monkeypatch.setattr(cfrnet, "IMBALANCE_WEIGHTS", weights)
        effects[weights] = BY_NAME["cfrnet-mmd"].estimate(problem, threads=1, seed=1).cate
    # Arms that must look alike hide the confounders, which most of the outcome comes from.
    assert np.array_equal(effects[1000.0, 0.0], effects[0.0,])
    assert not np.array_equal(effects[1000.0,], effects[0.0,])


# Published figures -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """Figures of the literature for IHDP, within sample, each with its standard error.

    They are means over up to 1000 replications of the same process. √PEHE is NaN where it is not
    given.
    """

    name: str
    sets: tuple[int, ...]
    pehe: float
    pehe_error: float
    ate: float
    ate_error: float


# Sets whose effects differ between rows by more than the noise: a constant effect, without any
# error of its mean, has a √PEHE between 1.5 and 8.9 there. The ninth, with 27, is left out.
UNEVEN = (4, 5, 8, 10, 12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "published",
    [
        Published("tarnet", UNEVEN, 0.88, 0.02, 0.26, 0.01),
        Published("cfrnet-mmd", UNEVEN[:3], 0.73, 0.02, 0.30, 0.01),
        Published("cfrnet-wass", UNEVEN[:3], 0.71, 0.02, 0.25, 0.01),
        Published("dragonnet", UNEVEN, math.nan, math.nan, 0.14, 0.01),
        Published("cevae", UNEVEN[:2], 2.7, 0.1, 0.34, 0.01),
        Published("ganite", UNEVEN[:3], 1.9, 0.4, 0.43, 0.05),
    ],
    ids=lambda published: published.name,
)
def test_errors_are_not_above_the_published_ones(published: Published):
    """Not above by more than three Monte-Carlo errors.

    Only from above: the published means hold rare sets with errors in the tens, a few sets do not.
    """
    if not (DATA / "ihdp").is_dir():
        pytest.skip("the ihdp data are not here; set CSTONET_DATA to their folder")
    pehe, constant, ate = [], [], []
    for number in published.sets:
        problem = loaders.load_ihdp(DATA / "ihdp", number)
        estimate = BY_NAME[published.name].estimate(problem, threads=1, seed=number)
        pehe.append(np.sqrt(np.mean((estimate.cate - problem.tau) ** 2)))
        constant.append(problem.tau.std())
        ate.append(abs(estimate.ate - problem.sample_ate))
    # A constant effect without any error of its mean would have this √PEHE: what is learnt is more.
    assert np.mean(pehe) < np.mean(constant)
    assert np.mean(ate) <= upper_limit(published.ate, published.ate_error, ate)
    if not math.isnan(published.pehe):
        assert np.mean(pehe) <= upper_limit(published.pehe, published.pehe_error, pehe)


def upper_limit(published: float, error: float, values: list[float]) -> float:
    """A published mean and three errors of the difference from the mean of these values."""
    own = np.std(values, ddof=1) / math.sqrt(len(values))
    return published + 3 * math.hypot(error, own)
