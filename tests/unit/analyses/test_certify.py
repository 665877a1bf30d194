"""Certificates: known coverage is found, draws are the same by any way, files are kept and safe."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import cstonet as cs
from cstonet import errors
from cstonet.analyses.identity import fit_digest
from cstonet.analyses.ledger import Ledger
from cstonet.crossfit.progress import Reporter
from cstonet.crossfit.workforce import Stopped
from cstonet.estimators import clip_propensity, estimate_effects


class OracleRecipe:
    """Analyses twins of `known_nuisances` with the true ones: its intervals are right.

    Parameters
    ----------
    results
        Of the fit.
    fails
        Called with the number of fits begun before every fit.
    """

    def __init__(self, results, fails=lambda fits: None):
        self._results, self._fails = results, fails
        self.fits, self.seeds = 0, []

    def fit(self, design, seed, workforce):
        self.fits += 1
        self.seeds.append(seed)
        self._fails(self.fits)
        known = self._results.nuisances
        propensity = clip_propensity(known.propensity, self._results.effects.clip).values
        nuisances = replace(
            known, y=design.y, treatment=design.treatment.codes, propensity=propensity
        )
        effects = estimate_effects(
            nuisances, levels=(0, 1), clip=self._results.effects.clip, variance="influence"
        )
        return type("Fitted", (), {"effects": effects})


@pytest.fixture
def known(make_results):
    def results(fails=lambda fits: None, **options):
        found = make_results(**options)
        found.recipe = OracleRecipe(found, fails)
        return found

    return results


def test_right_intervals_are_certified(known):
    """Effects differ by x and outcomes vary little: that units are a sample is most of the error.

    Against a truth that stood still, standard errors would be twice the spread.
    """
    results = known(n=400)
    mu, treatment = results.nuisances.mu, results.nuisances.treatment
    expected = mu[np.arange(400), treatment]
    y = expected + 0.2 * (results.nuisances.y - expected)
    results.nuisances = replace(results.nuisances, y=y)
    tau = mu @ [-1, 1]
    found = results.certify(400, n_jobs=1)
    spread = found.draws["estimate"].to_numpy() - tau.mean()
    assert found.draws["se"].mean() > 2 * spread.std()
    assert found.se_ratio == pytest.approx(1, abs=4 * found.se_ratio_error)
    assert found.coverage == pytest.approx(0.95, abs=4 * found.coverage_se)
    assert found.bias_in_se == pytest.approx(0, abs=4 * found.bias_in_se_error)
    assert found.power["power"][0] == pytest.approx(0.05, abs=4 * found.coverage_se)


def test_binary_outcomes(known):
    found = known(n=400, family="binomial").certify(200, n_jobs=1)
    assert found.coverage == pytest.approx(0.95, abs=4 * found.coverage_se)
    assert "the variance of these outcomes depends on their means" in " ".join(str(found).split())


def test_any_effect_and_level(known):
    results = known()
    found = results.certify(20, name="POM[1]", alpha=0.5, n_jobs=1)
    assert found.name == "POM[1]"
    half = (found.draws["upper"] - found.draws["lower"]) / 2
    # The quantile of the normal law, or a little more: few units decide some of the estimates.
    assert (half / found.draws["se"]).between(0.6744, 0.70).all()
    ate = results.certify(20, alpha=0.5, n_jobs=1)
    assert (ate.draws["truth"] != found.draws["truth"]).all()
    assert (ate.draws["truth"] != results.certify(20, n_jobs=1, seed=1).draws["truth"]).all()


def test_a_fit_is_certified(fit_quickly, quick_options):
    """The whole way, with the same bits for any number of threads."""
    data = cs.datasets.simulation2(n=160, p=5, seed=2)
    fitted = fit_quickly(data.formula, data.data, options=quick_options(epochs=4, starts=1))
    one = fitted.certify(2, n_jobs=1)
    assert one.draws.equals(fitted.certify(2, n_jobs=2).draws)
    assert one.draws["estimate"].nunique() == 2
    text = " ".join(str(one).split())
    assert "share their blind spots: confounding that was not measured" in text


def test_doses_and_gaps(fit_quickly, quick_options):
    brief = quick_options(epochs=4, starts=1)
    doses = cs.datasets.dose_curve(n=200, p=5, seed=1)
    fitted = fit_quickly(doses.formula, doses.data, options=brief)
    found = fitted.certify(2, n_jobs=1)
    assert found.name == "AME"
    assert np.isfinite(found.draws.to_numpy(dtype=float)).all()
    data = cs.datasets.simulation2(n=160, p=5, seed=2).data
    data.loc[::7, "x1"] = np.nan
    fitted = fit_quickly("y ~ treat | .", data, options=brief.replace(imputations=2), missing="mar")
    assert "Twins have the gaps of the data" in str(fitted.certify(2, n_jobs=1))


# Files -------------------------------------------------------------------------------------------


def test_draws_are_resumed(known, tmp_path):
    path = tmp_path / "draws.jsonl"
    results = known()
    first = results.certify(5, n_jobs=1, path=path)
    again = results.certify(8, n_jobs=1, path=path)
    assert results.recipe.fits == 8
    assert again.draws.head(5).equals(first.draws)
    assert again.draws.equals(known().certify(8, n_jobs=2).draws)
    assert results.certify(5, n_jobs=1, path=str(path)).draws.equals(first.draws)
    assert results.recipe.fits == 8
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["draw"] for line in lines[1:]] == list(range(8))
    assert list(tmp_path.iterdir()) == [path]


def test_every_fit_has_a_file_of_its_own_in_a_folder(known, tmp_path):
    known().certify(2, n_jobs=1, path=tmp_path)
    known(n=300).certify(2, n_jobs=1, path=tmp_path)
    results = known()
    results.certify(2, n_jobs=1, path=tmp_path)
    assert results.recipe.fits == 0
    assert len(list(tmp_path.glob("certify-*.jsonl"))) == 2


def test_files_of_others_are_refused(known, tmp_path):
    path = tmp_path / "draws.jsonl"
    known().certify(2, n_jobs=1, path=path)
    before = path.read_bytes()
    for other, options in ((known(n=300), {}), (known(), {"seed": 1}), (known(), {"alpha": 0.1})):
        with pytest.raises(errors.ForeignFileError, match="holds draws of another fit"):
            other.certify(2, n_jobs=1, path=path, **options)
    assert path.read_bytes() == before
    for text in ("", "a,b\n1,2\n", "[1]\n", '{"cstonet": "certify"}\n', '{"digest": "1"}\n{"draw"'):
        path.write_text(text)
        with pytest.raises(errors.ForeignFileError, match=r"is no file of certify\(\)"):
            known().certify(2, n_jobs=1, path=path)
        assert path.read_text() == text
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(errors.ForeignFileError, match=r"is no file of certify\(\)"):
        known().certify(2, n_jobs=1, path=path)
    with pytest.raises(errors.FilePathError, match="There is no folder"):
        known().certify(2, n_jobs=1, path=tmp_path / "nowhere" / "draws.jsonl")
    with pytest.raises(errors.FilePathError, match="is no path"):
        known().certify(2, n_jobs=1, path=3)


def test_a_place_that_refuses_a_file_says_so_before_the_work(known, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    results = known()
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(errors.FilePathError, match="cannot be written: No space left"):
        results.certify(2, n_jobs=1, path=tmp_path)
    assert results.recipe.fits == 0
    assert list(tmp_path.iterdir()) == []


def test_other_work_has_other_files(tmp_path):
    path = tmp_path / "draws.jsonl"
    Ledger("certify", "1", path, whole=bool).add(0, {"estimate": 1.0})
    assert Ledger("certify", "1", path, whole=bool).draws == {0: {"estimate": 1.0}}
    with pytest.raises(errors.ForeignFileError, match="another fit"):
        Ledger("placebo", "1", path, whole=bool)


def test_the_digest_knows_data_and_plan(make_results, make_plan):
    results = make_results(n=50)
    design, plan = results.design, results.plan
    X = np.array(design.X)
    X[7, 1] += 1e-9
    weights = np.ones(50)
    weights[3] = 2
    others = [
        fit_digest(replace(design, X=X), plan),
        fit_digest(replace(design, y=design.y + 1e-9), plan),
        fit_digest(replace(design, weights=weights), plan),
        fit_digest(design, make_plan(seed=2)),
        fit_digest(design, plan, 1),
    ]
    assert len({fit_digest(design, plan), *others}) == 6
    assert fit_digest(replace(design, X=np.asfortranarray(design.X.copy())), plan)


# What goes wrong ---------------------------------------------------------------------------------


def interrupts(fits):
    if fits >= 4:
        raise KeyboardInterrupt


def test_an_interruption_says_how_to_go_on(known, tmp_path):
    path = tmp_path / "draws.jsonl"
    with pytest.raises(KeyboardInterrupt, match=r"after 3 of 6 draws\. They are in .*draws\.jsonl"):
        known(interrupts).certify(6, n_jobs=1, path=path)
    rest = known()
    found = rest.certify(6, n_jobs=1, path=path)
    assert rest.recipe.fits == 3
    assert found.draws.equals(known().certify(6, n_jobs=1).draws)
    with pytest.raises(KeyboardInterrupt, match="Nothing of them is kept; with path="):
        known(interrupts).certify(6, n_jobs=1)


def test_an_interruption_stops_fits_at_work(known):
    """A fit that tells its progress hears of it within moments."""
    stopped = []

    class Patient(OracleRecipe):
        def fit(self, design, seed, workforce):
            if self.fits:
                raise KeyboardInterrupt
            self.fits += 1
            try:
                workforce.run([lambda threads, monitor: monitor.stop.wait(30)])
            except Stopped:
                stopped.append(True)
                raise

    results = known()
    results.recipe = Patient(results)
    with pytest.raises(KeyboardInterrupt):
        results.certify(2, n_jobs=2)
    assert stopped == [True]


def test_twins_that_are_refused_are_counted(known):
    def refuses(fits):
        if fits % 2:
            raise errors.OneArmedError("Too few.")

    found = known(refuses).certify(10, n_jobs=1)
    assert len(found.draws) == 5
    assert found.refused == ("OneArmedError: Too few.",) * 5
    assert "10 (5 refused)" in str(found)

    def always(fits):
        raise errors.OneArmedError("Too few.")

    with pytest.raises(errors.NumericalError, match=r"10 of 10 twins .* OneArmedError: Too few"):
        known(always).certify(10, n_jobs=1)


def test_other_errors_are_not_hidden(known):
    def breaks(fits):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        known(breaks).certify(10, n_jobs=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"draws": 1}, "draws must be a whole number of at least 2; got 1"),
        ({"draws": True}, "draws must be"),
        ({"draws": 2.0}, "draws must be"),
        ({"effects": []}, "effects must be finite numbers"),
        ({"effects": [1, np.nan]}, "effects must be finite numbers"),
        ({"effects": "many"}, "effects must be finite numbers"),
        ({"alpha": 0}, "alpha must lie between"),
        ({"seed": -1}, "seed must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"progress": "bar"}, "progress must be"),
    ],
)
def test_options_are_checked(known, options, words):
    with pytest.raises(errors.OptionError, match=words):
        known().certify(**options)


def test_what_cannot_be_certified_says_why(known, make_results, fit_quickly, quick_options):
    with pytest.raises(errors.NotAvailableError, match=r"no effect 'ATX'.*ATE, POM"):
        known().certify(2, name="ATX")
    with pytest.raises(errors.NotAvailableError, match="does not know how it was made"):
        make_results().certify(2)
    data = cs.datasets.one_mediator(n=200, p=5, seed=1)
    mediation = fit_quickly(data.formula, data.data, options=quick_options(epochs=4, starts=1))
    with pytest.raises(errors.NotAvailableError, match="by a fit without mediators"):
        mediation.certify(2)


def test_progress_counts_draws(known, tmp_path):
    class Kept(Reporter):
        def __init__(self):
            self.standings = []

        def __call__(self, standing):
            self.standings.append(standing)

    results, path = known(), tmp_path / "draws.jsonl"
    results.certify(2, n_jobs=1, path=path)
    report = Kept()
    results.certify(5, n_jobs=1, path=path, progress=report)
    assert str(report.standings[-1]) == "draw 5/5"
    assert report.standings[-1].done == report.standings[-1].total
    assert all(standing.finished >= 2 for standing in report.standings)
