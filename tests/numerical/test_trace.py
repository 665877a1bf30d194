"""What the kernel calls the columns of a trace."""

from __future__ import annotations

import numpy as np
import pytest
from networks import NETWORKS, latent, make_case, observed

from cstonet import _core
from cstonet.network.spec import NetworkSpec
from cstonet.settings.options import SamplerOptions, StageOptions, TrainingOptions

START = ["stage", "epoch", "spike_variance", "nonzero"]


def two_layers(*outcomes: str) -> NetworkSpec:
    treatment = observed("bernoulli", 1, feeds=True)
    last = tuple(observed(family, 1) for family in outcomes)
    return NetworkSpec(3, "tanh", ((latent(2), treatment), last))


def test_names_of_a_treatment_and_an_outcome() -> None:
    assert _core.trace_columns(two_layers("gaussian")) == [
        *START, "log_likelihood_1", "log_likelihood_2",
        "held_out_treatment", "treatment_variance", "held_out_outcome", "outcome_variance",
    ]  # fmt: skip


def test_several_outcomes_are_numbered() -> None:
    assert _core.trace_columns(two_layers("gaussian", "bernoulli", "gaussian"))[6:] == [
        "held_out_treatment", "treatment_variance", "held_out_outcome1", "outcome1_variance",
        "held_out_outcome2", "outcome2_variance", "held_out_outcome3", "outcome3_variance",
    ]  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_every_value_has_a_name_of_its_own(name: str) -> None:
    case = make_case(name)
    rows, columns = case.x.shape
    hidden = (1e-2,) * case.hidden
    options = TrainingOptions(
        stages=(StageOptions(2, rate=(1e-3, *hidden), step=hidden),),
        batch_size=8,
        epoch_rows=rows,
        sampler=SamplerOptions(variance=hidden),
    )
    (result,) = _core.train(
        case.spec,
        options,
        _core.Dataset(case.x, np.zeros(columns), np.ones(columns), np.inf, 0),
        np.arange(columns),
        case.visible,
        case.row_weight,
        [(0, 0, np.arange(rows - 5), np.arange(rows - 5, rows))],
        seed=1,
        threads=1,
    )
    names = _core.trace_columns(case.spec)
    assert result.trace.shape == (2, len(names))
    assert len(set(names)) == len(names)
    trace = dict(zip(names, result.trace.T, strict=True))
    assert trace["stage"].tolist() == [0, 0]
    assert trace["epoch"].tolist() == [0, 1]
    assert trace["nonzero"].tolist() == [sum(w.size for w in case.weights)] * 2
    variances = [value[-1] for column, value in trace.items() if column.endswith("_variance")]
    assert variances[1:] == list(result.variances)  # the first is the spike's
