"""Fits from end to end through the public names: what works and what is promised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import errors
from cstonet.analyses.arms.prediction import predict
from cstonet.settings.presets import preset


def assert_same_fit(one, other):
    np.testing.assert_array_equal(one.params.to_numpy(), other.params.to_numpy())
    np.testing.assert_array_equal(one.bse.to_numpy(), other.bse.to_numpy())
    np.testing.assert_array_equal(one.nuisances.mu, other.nuisances.mu)
    np.testing.assert_array_equal(one.nuisances.propensity, other.nuisances.propensity)


def test_a_fit_has_all_its_parts(fitted, frame):
    assert list(fitted.params.index) == ["ATE", "POM[0]", "POM[1]"]
    assert fitted.params["ATE"] == pytest.approx(fitted.params["POM[1]"] - fitted.params["POM[0]"])
    assert (fitted.bse > 0).all()
    assert fitted.nobs == len(frame)
    assert list(fitted.selection.index) == ["x1", "x2", "x3", "x4"]
    assert fitted.n_supports == 2  # the starts of a fold share its support
    assert set(fitted.nuisances.fold) == {0, 1}
    assert fitted.runtime > 0
    for text in ("y ~ treat | .", "2-fold cross-fit", "4-4-3-1", "custom", "2 x 2, 3"):
        assert text in str(fitted.summary())


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
    each = [replace(fitted.networks, folds=(fold,)) for fold in fitted.networks.folds]
    X = new[["x1", "x2", "x3", "x4"]].to_numpy()
    mean = np.mean([predict(networks, X).mu for networks in each], axis=0)
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
    data = cs.datasets.simulation2(n=160, p=5, seed=3, outcome="binomial").data
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
    weights = np.where(np.arange(len(frame)) % 8 == 0, 0.0, 1.0)
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
    weights = np.where(np.arange(len(frame)) % 4 == 0, 1.0, 0.0)
    assert np.isfinite(
        cs.fit("y ~ treat | .", frame, options=options, weights=weights).params
    ).all()


def test_weights_that_vanish_become_zero():
    """Weights that the data do not hold decay without end; below the range of normal floats the
    CPU would be slow, so the kernel takes such numbers for zero."""
    base = preset("calibrated")
    ridge = base.search.training
    stages = (replace(ridge.stages[0], epochs=300),)
    # The noise of a sampler would keep the weights from vanishing.
    cold = replace(ridge.sampler, temperature=0.0)
    results = cs.fit(
        "y ~ treat | .",
        cs.datasets.simulation2(n=1000, p=10, seed=2, outcome="binomial").data,
        training=replace(ridge, stages=stages, sampler=cold),
        search=None,
        starts=1,
        folds=1,
        repeats=1,
    )
    ((network,),) = (fold.networks for fold in results.networks.folds)
    sizes = np.abs(np.concatenate([weights.ravel() for weights in network.weights]))
    assert sizes.min() < 1e-30  # so that the test can fail
    assert not ((sizes > 0) & (sizes < np.finfo(np.float32).tiny)).any()
