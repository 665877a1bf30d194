from __future__ import annotations

import cstonet_seams
import pytest
import twins

from cstonet.settings.options import PriorOptions, StageOptions

RATES, STEPS = (1e-3, 3e-6, 0.5), (3e-3, 1e-6)


@pytest.mark.parametrize("epoch", [0, 1, 7, 19])
@pytest.mark.parametrize(("decay", "exponent"), [("none", 1.0), ("polynomial", 1.4), ("cosine", 1)])
def test_rates(decay: str, exponent: float, epoch: int) -> None:
    stage = StageOptions(20, rate=RATES, step=STEPS, rate_decay=decay, rate_exponent=exponent)
    expected = twins.decayed(RATES, decay, exponent, epoch, 20)
    assert cstonet_seams.rates_at(stage, epoch) == pytest.approx(expected, rel=1e-13)
    assert cstonet_seams.steps_at(stage, epoch) == list(STEPS)


@pytest.mark.parametrize("epoch", [0, 1, 7, 19])
def test_steps(epoch: int) -> None:
    stage = StageOptions(20, rate=RATES, step=STEPS, step_decay="polynomial", step_exponent=1.2)
    expected = twins.decayed(STEPS, "polynomial", 1.2, epoch, 20)
    assert cstonet_seams.steps_at(stage, epoch) == pytest.approx(expected, rel=1e-13)
    assert cstonet_seams.rates_at(stage, epoch) == list(RATES)


def test_polynomial_decay_counts_epochs_from_one() -> None:
    stage = StageOptions(5, rate=(1.0,), step=(1.0,), rate_decay="polynomial")
    assert cstonet_seams.rates_at(stage, 0) == [0.5]


def test_cosine_starts_at_the_rate_and_nearly_ends_at_zero() -> None:
    stage = StageOptions(1000, rate=(2.0,), step=(1.0,), rate_decay="cosine")
    assert cstonet_seams.rates_at(stage, 0) == [2.0]
    assert 0 < cstonet_seams.rates_at(stage, 999)[0] < 1e-5


@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("epoch", [0, 1, 11, 12, 13, 20])
def test_spike(share: float, epoch: int) -> None:
    prior = PriorOptions(spike_start=1e-2, spike_end=1e-4, anneal_share=share)
    stage = StageOptions(20, prior="mixture", rate=RATES, step=STEPS)
    expected = twins.spike_at(1e-2, 1e-4, share, 20, epoch)
    assert cstonet_seams.spike_at(prior, stage, epoch) == pytest.approx(expected, rel=1e-12)


def test_bic_matches_its_twin_and_charges_log_n_per_weight() -> None:
    assert cstonet_seams.bic(-123.4, 17, 250.0) == pytest.approx(
        twins.bic(-123.4, 17, 250.0), rel=1e-15
    )
    assert cstonet_seams.bic(0.0, 1, 100.0) == pytest.approx(4.605170185988092, rel=1e-15)
    assert cstonet_seams.bic(-5.0, 0, 100.0) == 10.0
