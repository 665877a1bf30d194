"""A loaded fit answers as the saved one did, to the last bit, or says that its rows are missing."""

from __future__ import annotations

import copy
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import cstonet as cs
from cstonet.errors import NotAvailableError, RowsNotSavedError
from cstonet.files.archive import ARRAYS, METADATA
from cstonet.files.codec import Decoder, Encoder

from .conftest import ROWS, data_of, simulated

pytestmark = pytest.mark.filterwarnings("ignore::cstonet.errors.CStoNetWarning")


def stored(results, tmp_path, **options):
    path = tmp_path / "fit.cst"
    results.save(path, **options)
    return cs.load(path)


def named(target, results):
    """The name of an effect of the second level against the first."""
    return target + "".join(results.effects.names[0].partition("[")[1:])


def same_predictions(loaded, results, new):
    at = at_doses(results)
    pd.testing.assert_frame_equal(
        loaded.potential_outcomes(new, **at),
        results.potential_outcomes(new, **at),
        check_exact=True,
    )
    assert loaded.cate(new).equals(results.cate(new))
    assert loaded.predict(new).equals(results.predict(new))
    if not at:
        assert loaded.propensity(new).equals(results.propensity(new))


@pytest.mark.parametrize("with_data", [False, True])
def test_predictions_and_texts_have_the_same_bits(fitted, kind, tmp_path, with_data):
    results = fitted(kind)
    loaded = stored(results, tmp_path, with_data=with_data)
    assert type(loaded) is type(results)
    new = data_of(kind).iloc[::3]
    same_predictions(loaded, results, new)
    assert loaded.summary().as_text() == results.summary().as_text()
    assert loaded.methods() == results.methods()
    assert repr(loaded) == repr(results)
    for name in ("params", "bse", "pvalues", "selection"):
        assert getattr(loaded, name).equals(getattr(results, name)), name
    for answer in ("conf_int", "cov_params"):
        assert getattr(loaded, answer)().equals(getattr(results, answer)())
    simultaneous = results.conf_int(simultaneous=True)
    assert loaded.conf_int(simultaneous=True).equals(simultaneous)
    for name in ("notes", "warnings", "runtime", "kept", "nobs", "version", "recipe"):
        assert (getattr(loaded, name) == getattr(results, name)) or name == "recipe"
    assert loaded.recipe.options == results.recipe.options
    assert loaded.call == results.call
    assert loaded.networks.search.equals(results.networks.search)
    exact = results.trace if with_data else results.trace.astype(loaded.trace.dtypes)
    assert loaded.trace.equals(exact)


@pytest.mark.parametrize("kind", ["arms", "dose", "mediation"])
def test_tables_and_pictures_need_no_rows(fitted, kind, tmp_path):
    matplotlib = pytest.importorskip("matplotlib", reason="needs the extra plot")
    matplotlib.use("Agg")
    results = fitted(kind)
    loaded = stored(results, tmp_path)
    for answer in ("tidy", "glance"):
        assert getattr(loaded, answer)().equals(getattr(results, answer)())
    assert loaded.to_json() == results.to_json()
    assert str(cs.compare({"fit": loaded})) == str(cs.compare({"fit": results}))
    for picture in ("effects", "selection", "network", "trace"):
        assert getattr(loaded.plot, picture)().get_title() is not None
    with pytest.raises(RowsNotSavedError):
        loaded.plot.overlap()
    matplotlib.pyplot.close("all")


def test_rows_are_missed_by_name(fitted, kind, tmp_path):
    loaded = stored(fitted(kind), tmp_path)
    questions = [loaded.overlap, loaded.balance, loaded.cate, loaded.predict]
    questions += [lambda: loaded.influence, lambda: loaded.design.variables(["secret"])]
    questions += [lambda: loaded.design.variables(["a"]), lambda: np.mean(loaded.design.y)]
    if isinstance(loaded, cs.ArmsResults):
        ate = named("ATE", loaded)
        questions += [loaded.support, lambda: loaded.effect(ate, where="a > 0")]
        questions += [lambda: loaded.effect(named("ATO", loaded)), lambda: loaded.nuisances.mu]
    if isinstance(loaded, cs.DoseResults):
        questions.append(loaded.dose_response)
    for question in questions:
        with pytest.raises(RowsNotSavedError, match=r"without its rows.*with_data=True.*refit"):
            question()


def test_no_row_is_in_the_file_unless_it_was_asked_for(fitted, kind, tmp_path):
    path = tmp_path / "fit.cst"
    fitted(kind).save(path)
    for array in arrays_of(path):
        assert not {ROWS, ROWS + 1} & {*array.shape}
    text = zipfile.ZipFile(path).read(METADATA).decode()
    assert "not in the formula" not in text
    assert "secret" not in text


def arrays_of(path):
    from safetensors.numpy import load

    return list(load(zipfile.ZipFile(path).read(ARRAYS)).values())


def test_with_its_rows_a_fit_answers_everything(fitted, kind, tmp_path):
    results = fitted(kind)
    loaded = stored(results, tmp_path, with_data=True)
    for answer in ("overlap", "balance", "cate", "predict"):
        assert getattr(loaded, answer)().equals(getattr(results, answer)()), answer
    assert loaded.influence.equals(results.influence)
    for name in ("a", "g"):
        assert loaded.design.variables([name]).equals(results.design.variables([name]))
    with pytest.raises(cs.errors.UnknownColumnError):
        loaded.design.variables(["secret"])
    if isinstance(results, cs.ArmsResults):
        name, ate = named("ATO", results), named("ATE", results)
        assert loaded.effect(name) == results.effect(name)
        assert str(loaded.support()) == str(results.support())
        assert loaded.effect(ate, where="a > 0") == results.effect(ate, where="a > 0")
    if isinstance(results, cs.DoseResults):
        curve = results.dose_response([0.9, 1.1]).table
        assert loaded.dose_response([0.9, 1.1]).table.equals(curve)


def test_a_loaded_fit_is_saved_to_the_same_bytes(fitted, kind, tmp_path):
    first, second = tmp_path / "first.cst", tmp_path / "second.cst"
    fitted(kind).save(first, with_data=True)
    cs.load(first).save(second, with_data=True)
    loaded = cs.load(second)
    assert loaded.summary().as_text() == fitted(kind).summary().as_text()
    assert loaded.influence.equals(fitted(kind).influence)


def test_without_rows_a_loaded_fit_is_saved_again_but_not_with_them(fitted, tmp_path):
    loaded = stored(fitted("arms"), tmp_path)
    again = stored(loaded, tmp_path)
    assert again.summary().as_text() == fitted("arms").summary().as_text()
    with pytest.raises(RowsNotSavedError):
        loaded.save(tmp_path / "other.cst", with_data=True)


def test_a_long_history_shows_its_course(quick_options, tmp_path):
    results = cs.fit(
        "y ~ treat | a + b", simulated(80), options=quick_options(epochs=250), seed=1, n_jobs=1
    )
    loaded = stored(results, tmp_path)
    for (fold, start), whole in results.trace.groupby(["fold", "start"]):
        own = (loaded.trace["fold"] == fold) & (loaded.trace["start"] == start)
        thin = loaded.trace[own]
        assert 50 <= len(thin) <= 101 < len(whole)
        assert thin["epoch"].iloc[0] == whole["epoch"].iloc[0]
        assert thin["epoch"].iloc[-1] == whole["epoch"].iloc[-1]
        of_whole = whole.set_index("epoch")["outcome_variance"].loc[thin["epoch"]]
        np.testing.assert_allclose(thin["outcome_variance"], of_whole, rtol=1e-6)
    again = stored(loaded, tmp_path)
    assert again.trace.equals(loaded.trace)


def test_refit_from_a_file_gives_the_same_bits(fitted, tmp_path):
    from cstonet.crossfit.workforce import Workforce

    results = fitted("arms")
    loaded = stored(results, tmp_path, with_data=True)
    again = loaded.recipe.fit(loaded.design, 1, Workforce(1))
    assert again.params.equals(results.params)
    assert again.bse.equals(results.bse)


def test_chosen_networks_are_those_of_the_starts(fitted, tmp_path):
    loaded = stored(fitted("arms"), tmp_path)
    assert loaded.networks.bic.equals(fitted("arms").networks.bic)
    assert loaded.networks.plan is loaded.plan


@pytest.mark.parametrize("with_data", [False, True])
def test_results_and_loaded_ones_are_copied_and_pickled(fitted, tmp_path, with_data):
    loaded = stored(fitted("arms"), tmp_path, with_data=with_data)
    text = fitted("arms").summary().as_text()
    for other in (copy.copy(loaded), copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        assert other.summary().as_text() == text
    assert pickle.loads(pickle.dumps(fitted("arms"))).summary().as_text() == text


TERMS = "a*g + np.log(b**2 + 1) + center(c):g + bs(d, df=4) + e.clip(-1, 1)"


@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize(
    ("formula", "arguments"),
    [
        (f"yes ~ arm | {TERMS}", {}),
        (f"np.exp(y / 9) ~ np.exp(dose / 4) | {TERMS}", {}),
        (f"y ~ treat | {TERMS} | I(m1 / 2) + standardize(m2)", {}),
        (f"y ~ treat | {TERMS} + f", {"missing": "mar"}),
    ],
    ids=["levels", "dose", "mediation", "gaps"],
)
def test_fits_with_terms_are_copied_and_pickled(quick_options, formula, arguments, safe):
    formula = formula.replace(" + e.clip(-1, 1)", "") if safe else formula
    frame = simulated()
    if arguments:
        frame["f"] = frame["f"].mask(np.arange(ROWS) % 11 == 3)
    results = cs.fit(
        formula, frame, options=quick_options(), seed=1, n_jobs=1, safe=safe, **arguments
    )
    others = [copy.copy(results), copy.deepcopy(results), cloudpickled(results)]
    others += [pickle.loads(pickle.dumps(results, protocol)) for protocol in (2, 3, 4, 5)]
    new = simulated(31, seed=5)
    expected = pickle.dumps(results.potential_outcomes(new, **at_doses(results)).to_numpy())
    for other in others:
        assert other.summary().as_text() == results.summary().as_text()
        found = other.potential_outcomes(new, **at_doses(other)).to_numpy()
        assert pickle.dumps(found) == expected


def at_doses(results):
    return {"dose": [0.8, 1.1]} if isinstance(results, cs.DoseResults) else {}


def cloudpickled(results):
    cloudpickle = pytest.importorskip("cloudpickle")
    return cloudpickle.loads(cloudpickle.dumps(results))


def test_arrays_and_sparse_covariates(quick_options, tmp_path):
    frame = simulated()
    dense = np.asfortranarray(frame[list("abcdef")].to_numpy())
    for X in (dense, sparse.csc_array(dense * (np.abs(dense) > 0.5))):
        model = cs.CausalStoNet(frame["y"].to_numpy(), frame["treat"].to_numpy(), X)
        results = model.fit(options=quick_options(), seed=1, n_jobs=1)
        loaded = stored(results, tmp_path)
        assert loaded.cate(X[:20]).equals(results.cate(X[:20]))
        loaded = stored(results, tmp_path, with_data=True)
        assert loaded.balance().equals(results.balance())
        assert type(loaded.design.X) is type(results.design.X)


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([f"unit {i}" for i in range(ROWS)], name="unit"),
        pd.DatetimeIndex(np.arange(ROWS) * 86_400_000_000_000),
        pd.DatetimeIndex(np.arange(ROWS) * 3_600_000_000_000, tz="Europe/Berlin"),
        pd.MultiIndex.from_arrays([np.arange(ROWS) % 7, np.arange(ROWS)], names=["a", "b"]),
        pd.CategoricalIndex(np.where(np.arange(ROWS) % 2, "odd", "even")),
        pd.Index(np.arange(ROWS) / 2),
    ],
    ids=["text", "dates", "zoned dates", "two levels", "categories", "numbers"],
)
def test_indexes_come_back(index):
    encoder = Encoder(with_data=True)
    reference = encoder.encode(index)
    decoder = Decoder(encoder.arrays, "0")
    decoder.read(json.loads(json.dumps(encoder.entries)))
    pd.testing.assert_index_equal(decoder.decode(reference), index, exact=True)


def test_frames_come_back():
    frame = pd.DataFrame(
        {
            "count": [1, 2, 3],
            "number": [0.1, np.nan, np.inf],
            "text": ["a", "b", "a"],
            "gap": ["a", None, "b"],
            "mixed": pd.Series([1, "a", None], dtype=object),
            "masked": pd.array([1, None, 3], dtype="Int64"),
            "truth": [True, False, True],
            "since": pd.to_timedelta([1, 2, 3], unit="h"),
            "ordered": pd.Categorical(["lo", "hi", "lo"], ["lo", "hi"], ordered=True),
        }
    )
    encoder = Encoder(with_data=True)
    reference = encoder.encode(frame)
    decoder = Decoder(encoder.arrays, "0")
    decoder.read(json.loads(json.dumps(encoder.entries)))
    pd.testing.assert_frame_equal(decoder.decode(reference), frame, check_exact=True)


def test_names_in_any_script(quick_options, tmp_path):
    frame = simulated()[["y", "treat", "a"]].assign(**{"Größe 📏": 1.0 * np.arange(ROWS)})
    results = cs.fit("y ~ treat | .", frame, options=quick_options(), seed=1, n_jobs=1)
    loaded = stored(results, tmp_path)
    assert loaded.design.covariates == results.design.covariates
    assert loaded.cate(frame).equals(results.cate(frame))


def test_sessions_do_not_go_into_files(quick_options, tmp_path):
    def halved(x):
        return x / 2

    results = cs.fit(
        "y ~ treat | a + halved(b)", simulated(), options=quick_options(), seed=1, n_jobs=1
    )
    with pytest.raises(NotAvailableError, match="halved"):
        results.save(tmp_path / "fit.cst")
    assert list(tmp_path.iterdir()) == []


def test_results_of_others_are_refused(make_results, tmp_path):
    with pytest.raises(NotAvailableError, match="KnownResults cannot be saved"):
        make_results().save(tmp_path / "fit.cst")


def test_treatments_that_are_more_than_computations_are_not_evaluated(quick_options, tmp_path):
    results = cs.fit(
        "y ~ dose.clip(-9, 9) | a + b", simulated(), options=quick_options(), seed=1, n_jobs=1
    )
    loaded = stored(results, tmp_path)
    new = simulated().iloc[:9]
    with pytest.raises(NotAvailableError, match="plain computation"):
        loaded.predict(new)
    column = new.assign(**{"dose.clip(-9, 9)": new["dose"]})
    assert loaded.predict(column).equals(results.predict(column))
