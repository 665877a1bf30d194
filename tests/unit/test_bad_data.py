"""Data and trainings that cannot be used: a named error that helps, and nothing changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import errors


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


@pytest.fixture
def exploding(options):
    """Training options with a learning rate beyond all bounds."""
    return replace(
        options.training,
        stages=(replace(options.training.stages[0], epochs=5, rate=(1e38,) * 3),),
        optimizer=replace(options.training.optimizer, rule="momentum"),
    )


def test_training_that_breaks_down_says_so(frame, options, exploding):
    with pytest.raises(errors.NumericalError, match=r"Every start of a fold diverged.*calibrated"):
        cs.fit("y ~ treat | .", frame, options=options, training=exploding)


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
