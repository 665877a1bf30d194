"""Doses that cannot be used, or not without a warning."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.analyses.doses.reading import dose_values
from cstonet.data.treatment import Arms, Dose
from cstonet.data.variables import Vector
from cstonet.errors import (
    ConstantTreatmentError,
    MissingValuesError,
    OptionError,
    OutlyingDoseWarning,
    PointMassWarning,
    TooFewRowsError,
    TreatmentLeakError,
)


def test_bad_doses(simulation):
    data = simulation.data
    with pytest.raises(ConstantTreatmentError, match="'dose' is 3 in all"):
        cs.fit(simulation.formula, data.assign(dose=3.0))
    weights = np.where(np.arange(500) < 100, 1.0, 0.0)
    with pytest.raises(ConstantTreatmentError, match="is 3 in all 100 rows with positive weight"):
        cs.fit(
            simulation.formula,
            data.assign(dose=np.where(weights > 0, 3.0, data["dose"])),
            weights=weights,
        )
    with pytest.raises(TooFewRowsError, match=r"at least 20 units .* there are 15"):
        cs.fit(simulation.formula, data.head(15))
    with pytest.raises(OptionError, match=r"reference=2: .*no reference level"):
        cs.fit(simulation.formula, data, reference=2)
    with pytest.raises(TreatmentLeakError, match=r"'grams' is the treatment 'dose'.*other units"):
        cs.fit(simulation.formula, data.assign(grams=(2 + data["dose"] / 1000).astype("float32")))
    # A covariate far from zero is not a copy because its digits are few.
    far = (1e7 + data["x6"]).astype("float32")
    assert cs.CausalStoNet.from_formula(
        simulation.formula, data.assign(x6=far)
    ).design.treatment.values.size


@pytest.mark.parametrize("column", ["dose", "y", "x1"])
def test_advice_on_gaps_works(simulation, column):
    data = simulation.data.copy()
    data.loc[3, column] = np.nan
    with pytest.raises(MissingValuesError, match=r"'drop'.*continuous treatment") as caught:
        cs.CausalStoNet.from_formula(simulation.formula, data)
    assert "'mar'" not in str(caught.value)
    with pytest.raises(MissingValuesError, match=r"'mar' is not available .*missing='drop'"):
        cs.CausalStoNet.from_formula(simulation.formula, data, missing="mar")
    model = cs.CausalStoNet.from_formula(simulation.formula, data, missing="drop")
    assert len(model.design.treatment.values) == 499


def test_outlying_doses_are_named(simulation):
    data = simulation.data.assign(dose=simulation.data["dose"].where(np.arange(500) > 0, 1e6))
    with pytest.warns(OutlyingDoseWarning, match=r"in 1 rows \(1000000.0\)") as caught:
        cs.CausalStoNet.from_formula(simulation.formula, data)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without = (np.arange(500) > 0).astype(float)
        cs.CausalStoNet.from_formula(simulation.formula, data, weights=without)
        cs.CausalStoNet.from_formula(simulation.formula, simulation.data)


def outliers_named(dose):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dose_values(Vector.from_values(dose, "d", pd.RangeIndex(len(dose))), None)
    return [str(w.message) for w in caught if w.category is OutlyingDoseWarning]


@pytest.mark.parametrize(("n", "far"), [(100, 1), (300, 3), (2000, 25)])
@pytest.mark.parametrize("value", [1e9, -1e9, 1e40])
def test_outliers_do_not_hide_behind_each_other(n, far, value):
    rng = np.random.default_rng(n)
    normal, positive = rng.normal(size=n), rng.exponential(size=n)
    normal[:far] = positive[:far] = value
    (said,) = outliers_named(normal)
    assert f"in {far} rows" in said
    assert "np.log" not in said
    (said,) = outliers_named(positive)
    assert ("np.log(d)" in said) == (value > 0)
    # No range in the middle: most have the same dose.
    normal[far : int(0.95 * n)] = 0.5
    if n - int(0.95 * n) > 2 * far:
        assert len(outliers_named(normal)) == 1


@pytest.mark.parametrize("seed", range(5))
def test_long_tails_are_no_outliers(seed):
    rng = np.random.default_rng(seed)
    for n in (100, 5000):
        mixed = np.where(rng.random(n) < 0.4, rng.normal(size=n), 1e3 + rng.normal(size=n))
        few = np.where(rng.random(n) < 0.93, 0.0, rng.exponential(size=n))
        for dose in (rng.exponential(size=n), rng.lognormal(size=n), mixed, few):
            assert outliers_named(dose) == []


def test_a_dose_that_is_the_outcome(simulation):
    data = simulation.data.assign(dose=3 - 2 * simulation.data["y"])
    with pytest.raises(TreatmentLeakError, match="'dose' is the outcome 'y'"):
        cs.CausalStoNet.from_formula(simulation.formula, data)


def test_a_code_that_dose_and_outcome_share_makes_no_copy(simulation):
    data = simulation.data.copy()
    data.loc[7, ["dose", "y"]] = 99999999.0
    with pytest.warns(OutlyingDoseWarning):
        cs.CausalStoNet.from_formula(simulation.formula, data)
    data["dose"] = 3 - 2 * data["y"]
    with (
        pytest.warns(OutlyingDoseWarning),
        pytest.raises(TreatmentLeakError, match="'dose' is the outcome 'y'"),
    ):
        cs.CausalStoNet.from_formula(simulation.formula, data)


def test_a_point_mass_is_named(simulation, options):
    data = simulation.data
    for share in (0.08, 0.4):
        zero = data.assign(dose=data["dose"].where(np.arange(500) >= share * 500, 0.0))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = cs.CausalStoNet.from_formula(simulation.formula, zero)
        assert len(caught) == (share == 0.4)
    assert caught[0].category is PointMassWarning
    assert caught[0].filename == __file__
    said = str(caught[0].message)
    assert "'dose' is 0 for 40% of the units" in said
    assert "treatment='multilevel'" in said
    assert "I(dose != 0)" in said
    text = " ".join(model.fit(options=options, seed=1, n_jobs=1).summary().as_text().split())
    assert "40% of the units have the dose 0" in text
    # Rows of weight zero do not make a mass, nor does a single unit.
    heavy = np.where(np.arange(500) == 7, 100.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cs.CausalStoNet.from_formula(simulation.formula, data, weights=heavy)
        twin = data.assign(dose=data["dose"].where(np.arange(500) != 8, data["dose"][7]))
        heavy[8] = 0.0
        cs.CausalStoNet.from_formula(simulation.formula, twin, weights=heavy)
    weights = (zero["dose"] != 0).to_numpy(dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cs.CausalStoNet.from_formula(simulation.formula, zero, weights=weights)


@pytest.mark.parametrize("name", ["dose (mg)", 'a "b"', "class", "np.arctan(dose)"])
def test_advice_on_a_point_mass_works(simulation, name):
    value = 0.1234567891
    data = simulation.data.assign(dose=simulation.data["dose"].where(np.arange(500) >= 200, value))
    if name == "np.arctan(dose)":
        formula = f"y ~ {name} | x1 + x2"
    else:
        data = data.rename(columns={"dose": name})
        formula = f"y ~ Q({name!r}) | x1 + x2"
    with pytest.warns(PointMassWarning, match="for 40% of the units") as caught:
        cs.CausalStoNet.from_formula(formula, data)
    advised = re.search(r"two parts: (I\(.*\)) as a", str(caught[0].message))[1]
    design = cs.CausalStoNet.from_formula(f"y ~ {advised} | x1 + x2", data).design
    assert design.treatment.kind == "binary"
    np.testing.assert_array_equal(np.asarray(design.treatment.codes) == 0, np.arange(500) < 200)


def test_kinds_of_treatment(simulation):
    def kind(values, **options):
        data = simulation.data.assign(dose=values)
        return cs.CausalStoNet.from_formula(simulation.formula, data, **options).design.treatment

    few = np.resize(np.arange(6), 500)
    assert kind(few).kind == "multilevel"
    assert isinstance(kind(few), Arms)
    with pytest.warns(PointMassWarning, match="for 17% of the units"):
        counted = kind(few, treatment="continuous")
    assert counted.kind == "continuous"
    assert isinstance(counted, Dose)  # which has values, and no levels
    np.testing.assert_array_equal(counted.values, few)
    assert kind(np.resize(np.arange(11), 500)).kind == "continuous"
