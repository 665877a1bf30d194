"""What a fit says of its units, and of new ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.data.received import Received
from cstonet.data.variables import Vector
from cstonet.errors import (
    DoseRangeError,
    LengthMismatchError,
    MissingValuesError,
    NotAvailableError,
    OptionError,
    UnknownColumnError,
)


def test_outcomes_and_slopes_of_training_rows(fitted):
    nuisances = fitted.dose_nuisances
    outcomes = fitted.potential_outcomes(dose=[4.0, 6.0])
    assert list(outcomes.columns) == [4.0, 6.0]
    assert outcomes.columns.name == "dose"
    contrast = fitted.cate(contrast=(6.0, 4.0))
    np.testing.assert_allclose(contrast, outcomes[6.0] - outcomes[4.0])
    np.testing.assert_array_equal(fitted.cate(), nuisances.slope)
    np.testing.assert_array_equal(fitted.predict(), nuisances.mu)
    step = 1e-4
    ends = fitted.potential_outcomes(dose=[5 - step, 5 + step]).to_numpy()
    np.testing.assert_allclose(
        fitted.cate(dose=5.0), (ends[:, 1] - ends[:, 0]) / (2 * step), atol=1e-5
    )


def test_new_units(simulation, fitted):
    new = simulation.data.head(7)
    step = 1e-4
    doses = [5 - step, 5.0, 5 + step]
    outcomes = fitted.potential_outcomes(new, dose=doses).to_numpy()
    slope = (outcomes[:, 2] - outcomes[:, 0]) / (2 * step)
    np.testing.assert_allclose(fitted.cate(new, dose=5.0), slope, atol=1e-6)
    np.testing.assert_allclose(fitted.cate(new, dose=[5.0] * 7), slope, atol=1e-6)
    np.testing.assert_allclose(
        fitted.cate(new, contrast=(doses[2], doses[0])), outcomes[:, 2] - outcomes[:, 0]
    )
    np.testing.assert_allclose(fitted.predict(new.assign(dose=5.0)), outcomes[:, 1])
    assert list(fitted.cate(new).index) == list(new.index)
    without = new.drop(columns="dose")
    np.testing.assert_array_equal(fitted.cate(without, dose=5.0), fitted.cate(new, dose=5.0))
    for ask in (fitted.predict, fitted.cate):
        assert ask(new.head(0)).empty
        with pytest.raises(UnknownColumnError, match="'dose'"):
            ask(without)
        with pytest.raises(MissingValuesError, match="1 missing"):
            ask(new.assign(dose=[np.nan, *new["dose"][1:]]))
    with pytest.raises(LengthMismatchError, match="2 values but there are 7"):
        fitted.cate(new, dose=[4.0, 5.0])


def test_expressions_of_new_units(simulation, fit_quickly):
    data = simulation.data.rename(columns={"dose": "d"}).assign(d=lambda f: f["d"] - f["d"].min())
    results = fit_quickly("y ~ np.sqrt(d) | .", data)
    new = data.head(5)
    at = results.potential_outcomes(new, dose=np.sqrt(new["d"])).to_numpy()
    np.testing.assert_allclose(results.predict(new), np.diag(at))
    by_name = new.drop(columns="d").assign(**{"np.sqrt(d)": np.sqrt(new["d"])})
    np.testing.assert_array_equal(results.predict(by_name), results.predict(new))
    for ask in (results.predict, results.cate):
        assert len(ask(new)) == 5
        with pytest.raises(UnknownColumnError, match=r"'d' \(for the treatment 'np.sqrt\(d\)'\)"):
            ask(new.drop(columns="d"))
        with pytest.raises(MissingValuesError, match="1 missing"):
            ask(new.assign(d=[np.nan, *new["d"][1:]]))


def test_expressions_that_depend_on_other_rows(simulation, fit_quickly):
    results = fit_quickly("y ~ I(dose - dose.mean()) | .", simulation.data)
    new = simulation.data.head(5)
    with pytest.raises(NotAvailableError, match="depends on all rows"):
        results.predict(new)
    name, mean = "I(dose - dose.mean())", simulation.data["dose"].mean()
    assert len(results.predict(new.assign(**{name: new["dose"] - mean}))) == 5


@pytest.mark.parametrize(
    "code", ["d / d.max()", "d - d.min()", "d.cumsum()", "d.diff().fillna(0)", "d.rank()"]
)
def test_no_expression_of_all_rows_passes_for_one_by_rows(code):
    rng = np.random.default_rng(3)
    for top in (0, 20, 39):  # the largest dose may be anywhere
        d = rng.uniform(1, 2, size=40)
        d[top], d[(top + 7) % 40] = 3, 0.5
        frame = pd.DataFrame({"d": d})
        assert not Received.of(Vector.from_expression(code, frame), frame, safe=False).by_rows
        assert Received.of(Vector.from_expression("np.log(d)", frame), frame, safe=False).by_rows
        assert Received.of(Vector.from_expression("I(d > 1.5)", frame), frame, safe=False).by_rows


def test_expressions_that_use_names_of_the_session(simulation, options):
    middle = 5.0
    model = cs.CausalStoNet.from_formula("y ~ I(dose > middle) | .", simulation.data)
    results = model.fit(options=options, seed=1, n_jobs=1)
    middle = 1.0
    with pytest.raises(NotAvailableError, match=r"uses 'middle', which may have changed"):
        results.predict(simulation.data.head(5))
    assert middle == 1.0


def test_doses_that_no_unit_had(simulation, fitted):
    for ask in (
        lambda: fitted.potential_outcomes(dose=1000),
        lambda: fitted.potential_outcomes(simulation.data.head(2), dose=1000),
        lambda: fitted.cate(dose=1000),
        lambda: fitted.cate(contrast=(1000, 5)),
        lambda: fitted.predict(simulation.data.head(2).assign(dose=[5.0, 1000.0])),
    ):
        with pytest.raises(DoseRangeError, match="extrapolate"):
            ask()


def test_what_a_dose_does_not_have(fitted, make_results):
    with pytest.raises(NotAvailableError, match=r"no effect 'ATT'.*dose_response"):
        fitted.effect("ATT")
    with pytest.raises(NotAvailableError, match=r"no effect 'RR'.*groups of doses"):
        fitted.effect("RR")
    with pytest.raises(NotAvailableError, match="density"):
        fitted.propensity()
    with pytest.raises(NotAvailableError, match="no arms"):
        fitted.test_equal_arms()
    with pytest.raises(OptionError, match="name the doses"):
        fitted.potential_outcomes()
    with pytest.raises(OptionError, match="pair of doses"):
        fitted.cate(contrast=[1, 2, 3])
    with pytest.raises(OptionError, match="one dose for all"):
        fitted.cate(dose=[4.0, 5.0])
    with pytest.raises(NotAvailableError, match="has levels, not doses"):
        make_results().dose_response()
    with pytest.raises(OptionError, match="no sampling variation"):
        fitted.t_test([0.0])


def test_inference(fitted):
    assert fitted.effect().name == "AME"
    assert fitted.effect() == fitted.effect("AME")
    test = fitted.t_test("AME = 0")
    np.testing.assert_allclose(test.tvalue.item(), fitted.tvalues["AME"])
    np.testing.assert_allclose(fitted.conf_int(simultaneous=True), fitted.conf_int(), rtol=1e-12)
    assert "AME" in repr(fitted)
