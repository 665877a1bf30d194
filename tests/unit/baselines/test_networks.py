"""Networks of the baselines: their training, and identities of their losses and distances."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from baselines.networks import (  # noqa: E402
    cevae,
    cfrnet,
    donut,
    dragonnet,
    ganite,
    layers,
    training,
)
from common import Problem  # noqa: E402


def sample(treat: list[float], y: list[float], p: int = 3) -> training.Sample:
    """Rows with these treatments and outcomes, and any covariates."""
    X = torch.randn(len(y), p, generator=torch.Generator().manual_seed(0))
    return training.Sample(X, torch.tensor(treat), torch.tensor(y))


# Training ----------------------------------------------------------------------------------------


def test_scales_go_there_and_back(linear_problem):
    problem = linear_problem(80)
    problem = replace(problem, data=problem.data.assign(constant=3.0))
    scales = training.Scales.of(problem)
    X, y = scales.inputs(problem.X), scales.outcomes(problem.y)
    assert torch.allclose(X[:, :5].std(dim=0, correction=0), torch.ones(5), atol=1e-5)
    assert (X[:, 5] == 0).all()
    # float32 keeps 24 bits of values of a few units.
    assert np.allclose(scales.original(y), problem.y, atol=1e-5)
    binary = training.Scales.of(linear_problem(80, binary=True))
    assert (binary.y_centre, binary.y_spread) == (0.0, 1.0)


def test_what_cannot_be_learnt_from_is_named(linear_problem):
    problem = linear_problem(80)
    holes = replace(problem, data=problem.data.assign(x0=np.nan))
    with pytest.raises(ValueError, match="not finite"):
        training.Scales.of(holes)
    untreated = problem.data.assign(treat=(np.arange(80) == 0).astype(int))
    with pytest.raises(ValueError, match="arm 1 has 1 rows"):
        cfrnet.learn_cfrnet(replace(problem, data=untreated), 1, 1, distance=None)


def test_a_fifth_of_each_arm_is_held_out(linear_problem):
    problem = linear_problem(600)
    rows, held_out = training.split_rows(problem, training.Scales.of(problem), seed=3)
    for arm in (0, 1):
        members = int((problem.treat == arm).sum())
        assert int((held_out.treat == arm).sum()) == round(members / 5)
        assert int((rows.treat == arm).sum()) == members - round(members / 5)
    together = torch.cat([rows.y, held_out.y]).sort().values
    assert torch.equal(together, training.Scales.of(problem).outcomes(np.sort(problem.y)))


def test_batches_cover_every_row_once_an_epoch():
    stream = training.batches(257, 50)
    epoch = [next(stream) for _ in range(training.pieces_of(257, 50))]
    assert torch.equal(torch.cat(epoch).sort().values, torch.arange(257))
    assert {len(batch) for batch in epoch} == {51, 52}
    assert len(next(training.batches(30, 50))) == 30


def test_training_stops_and_keeps_the_best_weights():
    # The weight moves from 0 to 5; the held-out rows like it best at 1.
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    rows, held_out = sample([0.0] * 10, [5.0] * 10), sample([0.0] * 10, [1.0] * 10)
    losses = training.train(
        model,
        torch.optim.SGD(model.parameters(), lr=0.01),
        lambda part: (part.y - model.weight[0, 0]).square().mean(),
        rows,
        held_out,
        training.Schedule(batch=10, checks=1000, patience=4),
    )
    # A step moves by 0.02 of what is left: after k steps the weight is 5 (1 - 0.98^k).
    path = [5 * (1 - 0.98**k) for k in range(20)]
    best = int(np.argmin([(w - 1) ** 2 for w in path]))
    assert model.weight.item() == pytest.approx(path[best], rel=1e-5)
    assert len(losses) == best + 1 + 4


def test_learning_rate_decays_and_halves():
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    rows = sample([0.0] * 4, [1.0] * 4)
    # A loss that never falls: halved after the second look without a gain, at looks 3 and 5.
    training.train(
        model,
        optimizer,
        lambda part: 0 * model.weight.sum() + 1.0,
        rows,
        rows,
        training.Schedule(batch=4, checks=5, patience=9, decay=0.9, halve_after=2),
    )
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.9**5 / 4)


# Layers ------------------------------------------------------------------------------------------


def test_losses_by_hand():
    both, rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), sample([1.0, 0.0], [2.5, 1.0])
    assert layers.factual(both, rows.treat).tolist() == [2.0, 3.0]
    assert layers.row_losses(torch.tensor([2.0, 3.0]), rows.y, False).tolist() == [0.25, 4.0]
    crossed = layers.row_losses(torch.tensor([2.0]), torch.tensor([1.0]), True)
    assert float(crossed) == pytest.approx(math.log(1 + math.exp(-2.0)))
    chance = float(layers.means_of(torch.tensor(2.0), True))
    assert chance == pytest.approx(1 / (1 + math.exp(-2.0)))
    head = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(head.weight, 3.0)
    assert layers.half_squares([head]).item() == 9.0


def test_both_arms_count_alike():
    rows = sample([1.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0])
    loss = cfrnet.OutcomeLoss(share=0.25, binary=False)(torch.zeros(4, 2), rows)
    assert float(loss) == pytest.approx((1 + (4 + 9 + 16) / 3) / 2)


# CFRNet ------------------------------------------------------------------------------------------


def test_linear_mmd_in_closed_form():
    a = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
    assert float(cfrnet.squared_linear_mmd(a, a)) == 0
    shift = torch.tensor([1.0, -2.0, 2.0])
    # The mean of a in float32 is rounded at 1e-7, the distance is 9.
    assert float(cfrnet.squared_linear_mmd(a + shift, a)) == pytest.approx(9.0, rel=1e-5)


def test_sinkhorn_where_every_plan_costs_the_same():
    line = torch.arange(5.0)[:, None]
    assert float(cfrnet.sinkhorn(line, line + 10)) == pytest.approx(10.0, rel=1e-5)
    cloud = torch.randn(30, 4, generator=torch.Generator().manual_seed(2))
    point = torch.ones(1, 4)
    expected = float((cloud - point).square().sum(dim=1).sqrt().mean())
    assert float(cfrnet.sinkhorn(point, cloud)) == pytest.approx(expected, rel=1e-5)


def test_sinkhorn_is_near_the_least_cost():
    a = torch.tensor([[0.0], [10.0], [20.0]])
    b = a[[2, 0, 1]] + 1  # every point moves by 1
    mean_cost = float((a - b.T).abs().mean())
    for sharpness in (10.0, 100.0):
        excess = float(cfrnet.sinkhorn(a, b, sharpness, iterations=500)) - 1.0
        # The entropies of two plans differ by log 3 at most.
        assert -1e-5 < excess <= mean_cost / sharpness * math.log(3) + 1e-5


def test_sinkhorn_has_gradients_where_points_coincide():
    a = torch.zeros(4, 2, requires_grad=True)
    distance = cfrnet.sinkhorn(a, torch.zeros(3, 2))
    distance.backward()
    assert distance.item() == pytest.approx(0.0, abs=2e-5)  # √(smallest square)
    assert torch.isfinite(a.grad).all()


def test_representations_have_unit_length_and_a_missing_arm_is_no_distance():
    network = cfrnet.CFRNet(3)
    rows = sample([1.0, 1.0], [0.0, 1.0])
    lengths = network.represent(rows.X).norm(dim=1)
    assert torch.allclose(lengths, torch.ones(2), atol=1e-6)
    outcome = cfrnet.OutcomeLoss(share=0.5, binary=False)
    loss = partial(cfrnet.objective, network, rows, outcome=outcome, weight=1.0)
    assert torch.equal(loss(distance=cfrnet.sinkhorn), loss(distance=None))


# DragonNet and DONUT -----------------------------------------------------------------------------


def gradient_in_epsilon(loss, epsilon: float) -> float:
    """Derivative of a loss of ε."""
    at = torch.tensor(epsilon, dtype=torch.float64, requires_grad=True)
    loss(at).backward()
    return float(at.grad)


def fixed_predictions() -> tuple[training.Sample, torch.Tensor, torch.Tensor]:
    """Rows, predictions (n, 2) and propensities (n,) in float64."""
    rng = torch.Generator().manual_seed(4)
    y, treat = torch.randn(50, generator=rng).double(), (torch.rand(50, generator=rng) > 0.6)
    both = torch.randn(50, 2, generator=rng).double()
    propensity = torch.rand(50, generator=rng).double()
    return training.Sample(both, treat.double(), y), both, propensity


def test_epsilon_solves_the_score_equation():
    rows, both, propensity = fixed_predictions()
    predicted = layers.factual(both, rows.treat)
    g = (propensity + 0.01) / 1.02
    h = rows.treat / g - (1 - rows.treat) / (1 - g)
    loss = partial(dragonnet.targeted_loss, predicted, propensity, rows=rows, binary=False)
    score = float((h * (rows.y - predicted - 0.3 * h)).sum())
    assert gradient_in_epsilon(loss, 0.3) == pytest.approx(-2 * score)
    solution = float((h * (rows.y - predicted)).sum() / h.square().sum())
    scale = float(h.square().sum())
    assert gradient_in_epsilon(loss, solution) == pytest.approx(0.0, abs=1e-12 * scale)


def test_epsilon_scores_binary_outcomes_on_log_odds():
    rows, both, propensity = fixed_predictions()
    rows = replace(rows, y=(rows.y > 0).double())
    predicted = layers.factual(both, rows.treat)
    h = dragonnet.clever_covariate(rows.treat, propensity)
    loss = partial(dragonnet.targeted_loss, predicted, propensity, rows=rows, binary=True)
    score = float((h * (rows.y - torch.sigmoid(predicted + 0.1 * h))).sum())
    assert gradient_in_epsilon(loss, 0.1) == pytest.approx(-score)


def test_targeted_means_by_hand():
    network = dragonnet.DragonNet(3)
    torch.nn.init.zeros_(network.treatment.weight)  # every propensity is a half
    torch.nn.init.constant_(network.epsilon, 0.25)
    X = sample([0.0] * 4, [0.0] * 4).X
    with torch.no_grad():
        plain, _ = network(X)
        shifted = dragonnet.targeted_means(network, X, binary=False) - plain
    # h is 1 / (1/2) for the treated and -1 / (1/2) for the others.
    assert torch.allclose(shifted, torch.tensor([-0.5, 0.5]).expand(4, 2), atol=1e-6)


def test_treatment_loss_by_hand():
    loss = dragonnet.treatment_loss(torch.tensor([0.0, 0.5]), torch.tensor([1.0, 0.0]))
    assert float(loss) == pytest.approx(-math.log(0.001 / 1.002) - math.log(0.5), rel=1e-5)


def test_orthogonality_is_solved_by_epsilon():
    rows, both, propensity = fixed_predictions()
    residual = rows.treat - (propensity + 0.01) / 1.02
    effect = (both[:, 1] - both[:, 0]).mean()
    remaining = rows.y - effect * rows.treat - both[:, 0]
    loss = partial(donut.orthogonal_loss, both, propensity, rows=rows)
    inner = float((residual * (remaining - 0.2 * residual)).sum())
    assert gradient_in_epsilon(loss, 0.2) == pytest.approx(-2 * inner)
    solution = float((residual * remaining).sum() / residual.square().sum())
    assert gradient_in_epsilon(loss, solution) == pytest.approx(0.0, abs=1e-12 * len(rows))


# CEVAE -------------------------------------------------------------------------------------------


def test_divergence_from_the_prior_in_closed_form():
    mean, spread = torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 1.0]])
    divergence = float(cevae.kl_from_standard_normal(mean, spread))
    assert divergence == pytest.approx((1 + 4 - 1) / 2 - math.log(2))
    mean = torch.randn(6, 3, generator=torch.Generator().manual_seed(5))
    spread = mean.exp()
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(normal(mean, spread), normal(0.0, 1.0))
    assert torch.allclose(cevae.kl_from_standard_normal(mean, spread), expected.sum(dim=1))


def test_normal_density_without_its_constant():
    x = torch.linspace(-2, 2, 5)
    density = cevae.normal_log_density(x, torch.tensor(0.5), torch.tensor(2.0))
    expected = torch.distributions.Normal(0.5, 2.0).log_prob(x) + math.log(2 * math.pi) / 2
    assert torch.allclose(density, expected, atol=1e-6)


def test_columns_with_two_values_are_binary():
    X = np.array([[0.0, 1.0, 7.0, 0.1], [1.0, 2.0, 7.0, 0.2], [1.0, 1.0, 7.0, 0.3]])
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=[0.0, 1.5, 2.0], treat=[0, 1, 0])
    scales = training.Scales.of(Problem(frame, sample_ate=0.0))
    columns = cevae.Columns.of(X, scales)
    assert columns.binary.tolist() == [0, 1]
    assert columns.continuous.tolist() == [2, 3]
    is_high = scales.inputs(X)[:, columns.binary] > columns.thresholds
    assert is_high.tolist() == [[False, False], [True, True], [True, False]]


def test_bound_is_that_of_its_parts(linear_problem):
    problem = linear_problem(40, binary=True)
    problem = replace(problem, data=problem.data.assign(b=np.arange(40) % 2))
    scales = training.Scales.of(problem)
    rows, _ = training.split_rows(problem, scales, seed=1)
    model = cevae.CEVAE(6, cevae.Columns.of(problem.X, scales), binary=True)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        # Everything is predicted alike: q(z) is N(0, s²) with s = softplus(0) = log 2, x has the
        # spread log 2 + 0.1, the odds of the binary column, t and y are even.
        s, spread = math.log(2), math.log(2) + 0.1
        prior = 20 * ((s**2 - 1) / 2 - math.log(s))
        squares = rows.X[:, :5].square().sum().item() / (2 * spread**2)
        # b, t and y in the model, t and y in the guesses: five fair coins.
        expected = len(rows) * (prior + 5 * math.log(spread) + 5 * math.log(2)) + squares
        assert cevae.objective(model, rows).item() == pytest.approx(expected, rel=1e-5)


# GANITE ------------------------------------------------------------------------------------------


def test_outcomes_are_completed_with_generated_ones():
    rows = sample([1.0, 0.0], [5.0, 6.0])
    both = ganite.completed(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), rows)
    assert both.tolist() == [[1.0, 5.0], [6.0, 4.0]]


def test_losses_of_networks_that_say_nothing():
    rows = sample([1.0, 0.0, 0.0], [5.0, 6.0, 1.0])
    generator, inference = ganite.TwoOutcomes(5), ganite.TwoOutcomes(3)
    discriminator = layers.perceptron([5, 4, 1], torch.nn.init.zeros_)
    for network in (generator, inference):
        for weight in network.parameters():
            torch.nn.init.zeros_(weight)
    guess = ganite.discriminator_loss(discriminator, torch.zeros(3, 2), rows)
    assert guess.item() == pytest.approx(math.log(2))
    # The completed outcomes are (0, 5), (6, 0), (1, 0).
    loss = ganite.inference_loss(inference, generator, rows, binary=False)
    assert loss.item() == pytest.approx((36 + 1) / 3 + 25 / 3)
