"""Fits from end to end through the public names: what works and what is promised."""

from __future__ import annotations

import json
import multiprocessing
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import errors
from cstonet.estimators import Effects
from cstonet.model import spread_note
from cstonet.settings.options import FitOptions
from cstonet.settings.presets import PRESETS, preset

N, P = 160, 4


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return cs.datasets.simulation2(n=N, p=5, seed=2).data.drop(columns="x5")


@pytest.fixture(scope="module")
def options(quick_options) -> FitOptions:
    return quick_options()


@pytest.fixture(scope="module")
def fitted(frame, options):
    return cs.fit("y ~ treat | .", frame, options=options, seed=3)


def assert_same_fit(one, other):
    np.testing.assert_array_equal(one.params.to_numpy(), other.params.to_numpy())
    np.testing.assert_array_equal(one.bse.to_numpy(), other.bse.to_numpy())
    np.testing.assert_array_equal(one.nuisances.mu, other.nuisances.mu)
    np.testing.assert_array_equal(one.nuisances.propensity, other.nuisances.propensity)


# What a fit is -----------------------------------------------------------------------------------


def test_a_fit_has_all_its_parts(fitted):
    assert list(fitted.params.index) == ["ATE", "POM[0]", "POM[1]"]
    assert fitted.params["ATE"] == pytest.approx(fitted.params["POM[1]"] - fitted.params["POM[0]"])
    assert (fitted.bse > 0).all()
    assert fitted.nobs == N
    assert list(fitted.selection.index) == ["x1", "x2", "x3", "x4"]
    assert fitted.selection.attrs["fits"] == 2  # the starts of a fold share its support
    assert set(fitted.nuisances.fold) == {0, 1}
    assert fitted.runtime > 0
    for text in ("y ~ treat | .", "2-fold cross-fit", f"{P}-4-3-1", "custom", "2 x 2, 3"):
        assert text in str(fitted.summary())


@pytest.mark.parametrize("ensemble", [1, 2])
def test_nuisances_are_out_of_fold(frame, options, ensemble):
    """Each row is predicted by the networks of the fold that left it out, and by no others."""
    results = cs.fit("y ~ treat | .", frame, options=options, ensemble=ensemble)
    fitted = results.networks
    for number, (split, networks) in enumerate(zip(fitted.splits, fitted.chosen, strict=True)):
        assert [network.fold for network in networks] == [number] * ensemble
        assert not set(split.test) & {*split.fit, *split.validation}
        part = replace(fitted, chosen=(networks,)).predict(results.design.X[split.test])
        np.testing.assert_allclose(part.mu, results.nuisances.mu[split.test], rtol=1e-6)
        np.testing.assert_allclose(
            part.propensity, results.nuisances.propensity[split.test], rtol=1e-6
        )


def test_trace_and_criterion_cover_every_start(frame, options):
    results = cs.fit("y ~ treat | .", frame, options=options, starts=3, ensemble=2, folds=3)
    epochs = sum(stage.epochs for stage in results.plan.training.stages)
    assert len(results.trace) == 3 * 3 * epochs
    bic = results.networks.bic
    assert len(bic) == 9
    worst = bic.loc[bic.groupby("fold")["bic"].idxmax(), "chosen"]
    assert not worst.any()
    assert bic["chosen"].sum() == 3 * 2


def test_formula_class_and_arrays_are_one_model(frame, fitted, options):
    by_class = cs.CausalStoNet.from_formula("y ~ treat | .", frame).fit(options=options, seed=3)
    assert_same_fit(fitted, by_class)
    X = frame[["x1", "x2", "x3", "x4"]]
    by_array = cs.CausalStoNet(frame["y"], frame["treat"], X.to_numpy()).fit(
        options=options, seed=3
    )
    assert_same_fit(fitted, by_array)
    assert by_array.design.formula is None


def test_layout_and_dtype_of_the_covariates_do_not_matter(frame, options, tmp_path):
    single = frame[["x1", "x2", "x3", "x4"]].to_numpy(np.float32)
    path = tmp_path / "x.bin"
    single.tofile(path)
    layouts = [
        np.ascontiguousarray(single),
        np.asfortranarray(single),
        single.astype(np.float64),
        np.memmap(path, dtype=np.float32, mode="r", shape=single.shape),
        np.repeat(single, 2, axis=0)[::2],  # strides that are neither
        pd.DataFrame(single),
    ]
    fits = [cs.CausalStoNet(frame["y"], frame["treat"], X).fit(options=options) for X in layouts]
    in_place = cs.CausalStoNet(frame["y"], frame["treat"], single).fit(
        options=options, pack_bytes=0
    )
    for other in [*fits[1:], in_place]:
        assert_same_fit(fits[0], other)


def test_a_fit_changes_nothing_and_keeps_nothing_of_the_frame(frame, options):
    mine = frame.copy()
    results = cs.fit("y ~ treat | .", mine, options=options)
    pd.testing.assert_frame_equal(mine, frame)
    before = results.params.copy()
    mine.loc[:, "y"] = 0.0
    pd.testing.assert_series_equal(results.params, before)
    assert results.design.y.std() > 0


def test_predictions_for_new_units(fitted, frame):
    new = frame.iloc[:7].set_index(pd.Index(list("abcdefg")))
    outcomes = fitted.potential_outcomes(new)
    assert outcomes.shape == (7, 2)
    np.testing.assert_allclose(fitted.cate(new), outcomes[1] - outcomes[0])
    assert fitted.propensity(new).between(0, 1).all()
    assert list(fitted.predict(new).index) == list("abcdefg")
    each = [replace(fitted.networks, chosen=(nets,)) for nets in fitted.networks.chosen]
    X = new[["x1", "x2", "x3", "x4"]].to_numpy()
    mean = np.mean([networks.predict(X).mu for networks in each], axis=0)
    np.testing.assert_allclose(outcomes, mean)


def test_treatments_by_expression(frame, options):
    results = cs.fit("y ~ I(x1 > 0.1) | x2 + x3", frame, options=options, seed=1, n_jobs=1)
    new = frame.head(6)
    outcomes = results.potential_outcomes(new).to_numpy()
    codes = (new["x1"] > 0.1).to_numpy(dtype=int)
    np.testing.assert_array_equal(results.predict(new), outcomes[np.arange(6), codes])
    with pytest.raises(
        errors.UnknownColumnError, match=r"'x1' \(for the treatment 'I\(x1 > 0.1\)'\)"
    ):
        results.predict(new.drop(columns="x1"))
    gap = new.assign(x1=[np.nan, *new["x1"][1:]])  # not a False
    with pytest.raises(errors.MissingValuesError, match="1 missing"):
        results.predict(gap)


def test_binary_outcome(options):
    data = cs.datasets.simulation2(n=N, p=5, seed=3, outcome="binomial").data
    results = cs.fit("y ~ treat | .", data, options=options)
    assert results.design.family == "binomial"
    assert ((results.nuisances.mu > 0) & (results.nuisances.mu < 1)).all()
    text = str(results.summary())
    assert "risk difference" in text
    assert '"binomial" inferred' in text
    as_numbers = cs.fit("y ~ treat | .", data, options=options, family="gaussian")
    assert as_numbers.design.family == "gaussian"
    assert as_numbers.params["ATE"] != results.params["ATE"]


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
def test_activations(frame, options, activation):
    results = cs.fit("y ~ treat | .", frame, options=options, activation=activation)
    assert np.isfinite(results.params).all()
    assert results.plan.network.activation == activation


def test_whole_weights_are_repeated_rows(quick_options):
    """Weights that favour those who benefit more move the estimate as repeating their rows does."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(600, 2))
    treat = rng.binomial(1, 0.5, size=600)
    y = x[:, 0] + treat * (1 + 3 * (x[:, 1] > 0)) + 0.5 * rng.normal(size=600)
    data = pd.DataFrame({"y": y, "treat": treat, "x1": x[:, 0], "x2": x[:, 1]})
    weight = np.where(x[:, 1] > 0, 3, 1)
    stages = (replace(quick_options().training.stages[0], epochs=80),)
    options = quick_options(hidden=(8, 4), starts=2)
    options = options.replace(training=replace(options.training, stages=stages))
    weighted = cs.fit("y ~ treat | x1 + x2", data, weights=weight, options=options)
    repeated = cs.fit("y ~ treat | .", data.loc[data.index.repeat(weight)], options=options)
    plain = cs.fit("y ~ treat | .", data, options=options)
    # The expected effects are 1 + 3 * 3/4 and 1 + 3 * 1/2: far apart in standard errors. Repeated
    # rows make the error look smaller than it is; that of the weighted fit is the honest one.
    tolerance = 3 * 2**0.5 * weighted.bse["ATE"]
    assert weighted.params["ATE"] - plain.params["ATE"] > 1.5 * tolerance
    assert abs(weighted.params["ATE"] - repeated.params["ATE"]) < tolerance


def test_rows_of_weight_zero_have_no_say(frame, options):
    """Whatever stands in such a row, the fit is that of the others; the row is still predicted."""
    weights = np.where(np.arange(N) % 8 == 0, 0.0, 1.0)
    wild = frame.copy()
    wild.loc[weights == 0, "y"] = 1e6
    wild.loc[weights == 0, "x1"] = -1e8
    fits = [
        cs.fit("y ~ treat | .", data, options=options, weights=weights) for data in (frame, wild)
    ]
    assert fits[0].params["ATE"] == pytest.approx(fits[1].params["ATE"], abs=1e-6)
    assert fits[0].bse["ATE"] == pytest.approx(fits[1].bse["ATE"], rel=1e-6)
    assert fits[1].cate().notna().all()


def test_mostly_weights_of_zero_still_fit(frame, options):
    weights = np.where(np.arange(N) % 4 == 0, 1.0, 0.0)
    assert np.isfinite(
        cs.fit("y ~ treat | .", frame, options=options, weights=weights).params
    ).all()


def test_weights_that_vanish_become_zero():
    """Weights that the data do not hold decay without end; below the range of normal floats the
    CPU would be slow, so the kernel takes such numbers for zero."""
    base = preset("calibrated")
    ridge = base.search.training
    stages = (replace(ridge.stages[0], epochs=300),)
    results = cs.fit(
        "y ~ treat | .",
        cs.datasets.simulation2(n=1000, p=10, seed=2, outcome="binomial").data,
        training=replace(ridge, stages=stages),
        search=None,
        starts=1,
        folds=1,
        repeats=1,
    )
    (network,) = results.networks.networks
    sizes = np.abs(np.concatenate([weights.ravel() for weights in network.weights]))
    assert sizes.min() < 1e-30  # so that the test can fail
    assert not ((sizes > 0) & (sizes < np.finfo(np.float32).tiny)).any()


# Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_makes_a_plan(frame, name):
    plan = cs.CausalStoNet.from_formula("y ~ treat | .", frame).plan(name)
    assert plan.preset == name
    assert "auto" not in plan.to_json()


def test_published_schedule_runs(frame):
    """Preset "paper", with only its epochs cut short: the rest of the schedule as published."""
    published = preset("paper")
    stages = tuple(replace(stage, epochs=3) for stage in published.training.stages)
    short = replace(published.training, stages=stages)
    results = cs.fit("y ~ treat | .", frame, preset="paper", training=short, starts=2)
    assert results.plan.preset == "paper"
    assert results.plan.network_label == "4-8-6-5-1"
    assert results.plan.training.optimizer.rule == "momentum"
    assert list(results.trace["stage"].unique()) == [0, 1, 2]


def test_plan_is_what_fit_does_and_is_plain_data(frame, fitted, options):
    model = cs.CausalStoNet.from_formula("y ~ treat | .", frame)
    plan = model.plan(options=options, seed=3)
    assert plan == fitted.plan
    stored = json.loads(plan.to_json())
    assert stored["folds"] == 2
    assert stored["seed"] == 3
    assert stored["training"]["stages"][0]["epochs"] == 12
    assert model.plan(options=options, seed=3, clip=0.1) != plan


def test_none_can_be_a_value(frame, options):
    model = cs.CausalStoNet.from_formula("y ~ treat | .", frame)
    assert model.plan(options=options).search is not None
    assert model.plan(options=options, search=None).search is None
    assert model.plan(options=options, starts=None, folds=None) == model.plan(options=options)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"clip": None}, "clip must be a number"),
        ({"clip": 0.5}, r"FitOptions.clip must be a number in \[0, 0.5\); got 0.5"),
        ({"clip": "small"}, "got 'small'"),
        ({"starts": 0}, "starts must be a whole number from 1"),
        ({"starts": 2.0}, "starts must be a whole number"),
        ({"folds": -3}, "folds must be a whole number from 1"),
        ({"folds": True}, "folds must be a whole number"),
        ({"hidden": (8, 0)}, "hidden must be a tuple of whole numbers"),
        ({"hidden": [8, 4.0]}, "hidden must be a tuple of whole numbers"),
        ({"treatment_layer": 9}, "treatment_layer=9, but the network has 3 hidden layers"),
        ({"validation_fraction": 0.0}, "no rows to measure the noise on"),
        ({"hidden": (32, 1, 4), "treatment_layer": 3}, "leave the outcome model none"),
        ({"hidden": (4, 1), "treatment_layer": 2}, "needs at least one unit besides"),
        (
            {"hidden": (4,), "treatment_layer": 2},
            "treatment_layer must be a whole number from 1 to 1",
        ),
        ({"activation": "swish"}, "activation must be one of 'tanh', 'sigmoid', 'relu'"),
        ({"variance": "robust"}, "variance must be one of 'auto', 'paper', 'influence'"),
        ({"validation_fraction": 0.9}, r"validation_fraction must be a number in \[0, 0.5\]"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"preset": "best"}, "Unknown preset 'best'. Choose one of calibrated, paper"),
        ({"progress": "bar"}, "progress must be None, True or a function"),
        ({"options": {"folds": 3}}, "options must be a FitOptions"),
        ({"family": "poisson"}, "family='poisson' is not available"),
        ({"missing": "impute"}, "missing='impute' is not available"),
        ({"fold": 3}, "Unknown option 'fold'. Did you mean 'folds'"),
        ({"dropout": 0.5}, "Unknown option 'dropout'. The options of a fit are: training, hidden"),
    ],
)
def test_options_out_of_range(frame, change, says):
    with pytest.raises(errors.OptionError, match=says):
        cs.fit("y ~ treat | .", frame, **change)


# Progress, interruption, processes ---------------------------------------------------------------


def test_progress_is_reported(frame, options, capsys):
    calls = []
    cs.fit("y ~ treat | .", frame, options=options, progress=lambda *call: calls.append(call))
    total = calls[0][1]
    assert calls[-1] == (total, total)
    assert calls == sorted(calls)
    assert {of for _, of in calls} == {total}
    cs.fit("y ~ treat | .", frame, options=options, progress=True)
    assert f"{total}/{total}" in capsys.readouterr().err


def test_exceptions_of_the_callback_reach_the_caller(frame, quick_options):
    class Enough(Exception):
        pass

    def stop(done, total):
        raise Enough(f"{done} of {total}")

    # So many epochs that the callback is called long before the end.
    with pytest.raises(Enough, match=r"\d+ of \d+"):
        cs.fit("y ~ treat | .", frame, options=quick_options(epochs=100_000), progress=stop)


INTERRUPTED_FIT = """
import signal, cstonet as cs
# A shell that runs the tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
from cstonet.settings.options import StageOptions
from cstonet.settings.presets import preset
from dataclasses import replace

options = preset("calibrated")
options = options.replace(
    training=replace(options.training, stages=(StageOptions(epochs=1_000_000),))
)
data = cs.datasets.simulation2(n=500, p=5).data
told = []
def report(done, total):
    if not told:
        told.append(True)
        print("training", flush=True)
try:
    cs.fit("y ~ treat | .", data, options=options, progress=report)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    quick = options.replace(training=replace(options.training, stages=(StageOptions(epochs=2),)))
    cs.fit("y ~ treat | .", data, options=quick)
    print("fitted again", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_interrupts_a_fit():
    """The training would take hours: that the child ends at all is what is tested."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED_FIT], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "training\n"
            child.send_signal(signal.SIGINT)
            rest, _ = child.communicate(timeout=60)
        finally:
            child.kill()
    assert rest == "interrupted\nfitted again\n"
    assert child.returncode == 0


def fit_in_child(frame, options, pipe):
    pipe.send(cs.fit("y ~ treat | .", frame, options=options, seed=3, n_jobs=2).params.to_numpy())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_fork_after_a_fit(frame, options, fitted):
    """Threads that outlive a call would hang a forked child at its first fit."""
    cs.fit("y ~ treat | .", frame, options=options, n_jobs=2)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=fit_in_child, args=(frame, options, sender))
    child.start()
    try:
        assert receiver.poll(60), "the child hangs"
        np.testing.assert_array_equal(receiver.recv(), fitted.params.to_numpy())
        child.join(60)
    finally:
        child.kill()


# What another seed would change ------------------------------------------------------------------


def effects_of(estimate: float) -> Effects:
    return Effects(
        names=("ATE",),
        estimates=np.array([estimate]),
        covariance=np.array([[0.01]]),
        influence=np.zeros((4, 1)),
        n_clipped=0,
        clip=0.01,
        variance_kind="paper",
    )


def test_spread_between_repetitions_is_noted_when_large():
    far, near = [effects_of(2.0), effects_of(2.06)], [effects_of(2.0), effects_of(2.01)]
    # Standard error 0.1; the mean of two that differ by 0.06 has a standard deviation of 0.03.
    (note,) = spread_note(effects_of(2.03), far)
    assert "about 0.30 standard errors" in note
    assert spread_note(effects_of(2.005), near) == ()
    assert spread_note(effects_of(2.0), [effects_of(2.0)]) == ()
    # The errors of the effects contain the spread, and do not hide it.
    wide = replace(effects_of(2.03), covariance=np.array([[1.0]]))
    assert spread_note(wide, far) == (note,)
    # Another seed draws other imputations, too: of nine, with (1 + 1/9) B = 0.009, B/9 = 0.03².
    imputed = replace(effects_of(2.005), between=np.array([[0.009]]), imputations=9)
    assert "about 0.30 standard errors" in spread_note(imputed, near)[0]
