"""Data and trainings that cannot be used: a named error that helps, and nothing changed."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import errors
from cstonet.crossfit import training
from cstonet.network.training import train_starts


def with_value(frame, column, value):
    changed = frame.astype({column: np.float64})
    changed.loc[changed.index[3], column] = value
    return changed


BAD_DATA = {
    "unknown column": (
        lambda f: f,
        "y ~ treat | x1 + xx",
        {},
        errors.UnknownColumnError,
        "no column 'xx'",
    ),
    "constant treatment": (
        lambda f: f.assign(treat=1),
        "y ~ treat | .",
        {},
        errors.ConstantTreatmentError,
        "'treat'",
    ),
    "one-armed data": (
        lambda f: f.assign(treat=(np.arange(len(f)) == 0).astype(int)),
        "y ~ treat | .",
        {},
        errors.OneArmedError,
        "arm treat = 1 has 1 unit",
    ),
    "one-armed fold": (
        lambda f: f.assign(treat=(np.arange(len(f)) < 4).astype(int)),
        "y ~ treat | .",
        {"folds": 5},
        errors.OneArmedError,
        "Treatment arm 1 has 4 unit.*with 5 fold.*at least 5",
    ),
    "not binary though declared so": (
        lambda f: f.assign(treat=np.arange(len(f)) % 3),
        "y ~ treat | .",
        {"treatment": "binary"},
        errors.TreatmentTypeError,
        "'treat'",
    ),
    "NaN in y": (
        lambda f: with_value(f, "y", np.nan),
        "y ~ treat | .",
        {},
        errors.MissingValuesError,
        r"per column: y \(1\).*missing='drop'",
    ),
    "NaN in treat": (
        lambda f: with_value(f, "treat", np.nan),
        "y ~ treat | .",
        {},
        errors.MissingValuesError,
        r"per column: treat \(1\)",
    ),
    "NaN in X": (
        lambda f: with_value(f, "x2", np.nan),
        "y ~ treat | .",
        {},
        errors.MissingValuesError,
        r"per column: x2 \(1\)",
    ),
    "inf in y": (
        lambda f: with_value(f, "y", np.inf),
        "y ~ treat | .",
        {},
        errors.InfiniteValuesError,
        "'y'",
    ),
    "inf in X": (
        lambda f: with_value(f, "x2", -np.inf),
        "y ~ treat | .",
        {},
        errors.InfiniteValuesError,
        "'x2'",
    ),
    "empty frame": (
        lambda f: f.iloc[:0],
        "y ~ treat | .",
        {},
        errors.EmptyDataError,
        "empty",
    ),
    "fewer rows than folds": (
        lambda f: f.iloc[:12],
        "y ~ treat | .",
        {"folds": 13},
        errors.TooFewRowsError,
        "13 folds need at least 13 rows, but there are 12",
    ),
    "duplicate column names": (
        lambda f: f.rename(columns={"x2": "x1"}),
        "y ~ treat | .",
        {},
        errors.DuplicateColumnError,
        "'x1'",
    ),
    "object column without levels": (
        lambda f: f.assign(x2=[{"a": 1}, *[3.0] * (len(f) - 1)]),
        "y ~ treat | .",
        {},
        errors.ColumnTypeError,
        "'x2'",
    ),
    "covariate equal to the treatment": (
        lambda f: f.assign(x2=3 - 2 * f["treat"]),
        "y ~ treat | .",
        {},
        errors.TreatmentLeakError,
        "'x2'",
    ),
    "weights of wrong length": (
        lambda f: f,
        "y ~ treat | .",
        {"weights": np.ones(3)},
        errors.LengthMismatchError,
        "3",
    ),
    "unreadable formula": (lambda f: f, "y ~ treat", {}, errors.FormulaError, "covariates"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_have_named_errors_and_change_nothing(frame, case):
    spoil, formula, arguments, error, says = BAD_DATA[case]
    bad = spoil(frame.copy())
    before = bad.copy()
    with pytest.raises(error, match=says) as caught:
        cs.fit(formula, bad, **arguments)
    assert isinstance(caught.value, errors.CStoNetError)
    pd.testing.assert_frame_equal(bad, before)


def with_momentum(training, rate):
    """Options whose updates no rate is too large for."""
    return replace(
        training,
        stages=(replace(training.stages[0], epochs=5, rate=rate),),
        optimizer=replace(training.optimizer, rule="momentum"),
    )


@pytest.fixture
def exploding(options):
    """Training options with a learning rate beyond all bounds."""
    return with_momentum(options.training, 1e38)


def test_training_that_breaks_down_says_so(frame, options, exploding):
    with pytest.raises(
        errors.NumericalError,
        match=r"Every start of a fold diverged.*again with 1/4 and 1/16 of the steps.*calibrated",
    ):
        cs.fit("y ~ treat | .", frame, options=options, training=exploding)


def test_networks_that_diverge_are_trained_with_smaller_steps_and_reported(frame, options):
    plain = cs.fit("y ~ treat | .", frame, options=options, seed=3)
    wild = with_momentum(options.training, 4.0)
    res, again = (
        cs.fit("y ~ treat | .", frame, options=options, training=wild, seed=3, n_jobs=n_jobs)
        for n_jobs in (1, 3)
    )
    (warning,) = res.warnings
    said = (
        r"\d networks diverged with the planned steps and converged with smaller ones \(first: fold"
    )
    assert re.match(said, warning)
    assert "tried again with 1/4" in warning
    assert warning in " ".join(" ".join(res.summary().notes).split())
    pd.testing.assert_series_equal(res.params, again.params, check_exact=True)
    assert again.warnings == res.warnings
    # Starts differ by less than the noise of the data, and so do those with smaller steps.
    assert abs(res.params["ATE"] - plain.params["ATE"]) < plain.bse["ATE"]


def test_networks_that_diverge_with_all_steps_are_left_out_and_reported(
    frame, options, monkeypatch
):
    def train(*arguments, **more):
        """Give up the second start of each fold, and what is beside the linear parts."""
        (start,) = train_starts(*arguments, **more)
        (number,) = arguments[4]
        return [start if number == 0 else replace(start, broke_down=("it broke",) * 3)]

    monkeypatch.setattr(training, "train_starts", train)
    res = cs.fit("y ~ treat | .", frame, options=options, seed=3, n_jobs=1)
    assert res.warnings == (
        "4 of 6 networks diverged and were left out (first: fold 1, start 2: it broke; tried again "
        "with 1/4 and 1/16 of the steps).",
    )
    folds = res.networks.folds
    assert [[net.start for net in fold.networks] for fold in folds] == [[0], [0]]
    assert [len(fold.starts) for fold in folds] == [1, 1]
    assert [fold.beside for fold in folds] == [(), ()]
    assert "fold 1, beside the linear parts: it broke" in folds[0].failures[1]


@pytest.mark.parametrize("coupled", [True, False])
def test_latent_variables_that_diverge_name_their_layer(frame, options, coupled):
    hot = replace(options.training.sampler, temperature=1e30, coupled=coupled)
    with pytest.raises(
        errors.NumericalError,
        match=r"latent variables of layer 2 diverged \(.*temperature 1e\+30.*lower temperature",
    ):
        cs.fit(
            "y ~ treat | .",
            frame,
            options=options,
            training=replace(options.training, sampler=hot),
        )


def test_search_that_breaks_down_says_so(frame, options, exploding):
    search = replace(options.search, training=exploding)
    with pytest.raises(errors.NumericalError, match=r"structure search diverged.*smaller rates"):
        cs.fit("y ~ treat | .", frame, options=options, search=search)


def test_search_whose_networks_diverge_goes_on_with_smaller_steps(frame, options):
    wild = replace(options.search, training=with_momentum(options.search.training, 4.0))
    res = cs.fit("y ~ treat | .", frame, options=options, search=wild, seed=3)
    assert "fold 1, structure search: its errors are" in res.warnings[0]
    assert np.isfinite(res.params).all()
    assert np.isfinite(res.bse).all()
