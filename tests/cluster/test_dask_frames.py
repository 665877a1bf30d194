"""A Dask DataFrame: supports and estimates of the same data in memory, errors by their names."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import _core, errors

dd = pytest.importorskip("dask.dataframe", reason="needs the extra dask")
pytest.importorskip("distributed", reason="needs the extra dask")

from cstonet.network.partitioned import PartitionedCovariates  # noqa: E402


def spread(frame, parts=3):
    return dd.from_pandas(frame, npartitions=parts)


def test_statistics_are_those_of_memory(client):
    from cstonet.data.partitions import PartitionedColumns
    from cstonet.network.scaling import column_scaling

    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd")).assign(constant=3.0)
    frame.loc[7, "b"] = 1e4  # so wild that its column has a robust scale
    frame = frame.assign(huge=np.ldexp(frame["b"], 900), high=1e12 + frame["c"])
    weights = rng.uniform(0, 2, 200) * (rng.random(200) < 0.9)
    columns = PartitionedColumns.of_frame(spread(frame), list(frame.columns), frame.index)
    rows, some = np.array([3, 150, 80, 81]), np.array([4, 1, 6, 5])
    np.testing.assert_array_equal(columns.matrix[rows, some], frame.to_numpy()[np.ix_(rows, some)])
    for w in (None, weights):
        here, there = (column_scaling(X, 8.0, w) for X in (frame.to_numpy(), columns.matrix))
        # Sums of 200 numbers in another order.
        np.testing.assert_allclose(there.center, here.center, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(there.inverse_scale, here.inverse_scale, rtol=1e-12)
        # The bits of the gathered columns are the kernel's on the same numbers.
        own = _core.Dataset(frame.to_numpy(), there.center, there.inverse_scale, there.limit, 0)
        brought = there.dataset(columns.matrix, 0)
        np.testing.assert_array_equal(brought.gather(rows, some), own.gather(rows, some))
        np.testing.assert_allclose(
            brought.square_sums(np.sort(rows), 1), own.square_sums(np.sort(rows), 1), rtol=1e-12
        )


@pytest.fixture(scope="module")
def networks_alone(short):
    """Options without linear parts and slopes, which in memory are those of all covariates."""
    return short.replace(backbone=False, search=replace(short.search, adjust="union"))


def test_a_fit_is_that_of_memory(client, simulation, networks_alone):
    here, there = (
        cs.fit(simulation.formula, data, options=networks_alone, seed=3)
        for data in (simulation.data, spread(simulation.data))
    )
    chosen = ["treatment", "outcome"]
    assert there.selection[chosen].equals(here.selection[chosen])
    np.testing.assert_allclose(there.params, here.params, rtol=1e-4)
    np.testing.assert_allclose(there.bse, here.bse, rtol=1e-4)
    np.testing.assert_allclose(there.cate(), here.cate(), rtol=1e-3, atol=1e-3)
    new = simulation.data.head(5)
    np.testing.assert_allclose(there.cate(new), here.cate(new), rtol=1e-3, atol=1e-3)
    with pytest.raises(errors.NotAvailableError, match="balance"):
        there.balance()
    with pytest.raises(errors.NotAvailableError, match="support"):
        there.support()


def test_linear_parts_and_slopes_are_those_of_covariates_at_hand(client, simulation, short):
    """In memory all six covariates have them, of partitions those found in a fold.

    Each coefficient of a covariate that does not matter moves an estimate by about 1/√n of its
    standard error; linear parts and slopes have one each.
    """
    here, there = (
        cs.fit(simulation.formula, data, options=short, seed=3)
        for data in (simulation.data, spread(simulation.data))
    )
    chosen = ["treatment", "outcome"]
    assert there.selection[chosen].equals(here.selection[chosen])
    found = there.nuisances.found
    assert there.nuisances.linear.shape[1] == len(found) < here.nuisances.linear.shape[1] == 6
    np.testing.assert_array_equal(found, np.arange(len(here.nuisances.found)))
    moved = np.sqrt(2 * (6 - len(found)) / 240)
    assert (abs(there.params - here.params) < 4 * moved * here.bse).all()
    for fold in there.networks.folds:
        at_hand = {*fold.adjustment.used.outcome, *fold.adjustment.used.treatment}
        assert set(fold.backbone.outcome.columns) <= at_hand
    assert "stay in their partitions" in there.methods()
    assert "stay in their partitions" not in here.methods()
    assert "after weighting" not in there.summary().as_text()


@pytest.mark.parametrize("after", [1, 10])
def test_a_worker_killed_between_two_passes(mortal, simulation, networks_alone, after, monkeypatch):
    """What was sent to it is sent again, its partitions are made again."""
    short = networks_alone
    here = cs.fit(simulation.formula, simulation.data, options=short, seed=3)
    pids = list(mortal.run(os.getpid).values())
    passes = []
    score_sums = PartitionedCovariates.score_sums

    def killing(self, rows, products, *rest):
        passes.append(len(rows))
        if len(passes) == after:
            scatter = self._matrix.client.scatter

            def scatter_and_kill(*given, **options):
                sent = scatter(*given, **options)
                if len(pids) == 2:
                    os.kill(pids.pop(), signal.SIGKILL)
                return sent

            monkeypatch.setattr(self._matrix.client, "scatter", scatter_and_kill)
        return score_sums(self, rows, products, *rest)

    monkeypatch.setattr(PartitionedCovariates, "score_sums", killing)
    there = cs.fit(simulation.formula, spread(simulation.data), options=short, seed=3, n_jobs=1)
    assert len(pids) == 1
    np.testing.assert_allclose(there.params, here.params, rtol=1e-4)


def test_a_backend_that_does_not_exist_is_named(client, simulation, short):
    with pytest.raises(errors.OptionError, match="dusk"):
        cs.fit(simulation.formula, spread(simulation.data), options=short, backend="dusk")


def test_weights_name_a_column(client, simulation, networks_alone):
    frame = simulation.data.assign(w=np.linspace(0.5, 2, len(simulation.data)))
    here, there = (
        cs.fit(simulation.formula, data, weights="w", options=networks_alone, seed=3)
        for data in (frame, spread(frame))
    )
    np.testing.assert_allclose(there.params, here.params, rtol=1e-4)


def test_clusters_name_a_column_or_are_given(client, simulation):
    numbers = np.arange(len(simulation.data)) // 7
    data = simulation.data.assign(village=[f"v{number}" for number in numbers])
    named = cs.CausalStoNet.from_formula(simulation.formula, spread(data), cluster="village")
    frame = spread(simulation.data)
    given = cs.CausalStoNet.from_formula(simulation.formula, frame, cluster=numbers)
    for design in (named.design, given.design):
        np.testing.assert_array_equal(design.clusters, numbers)
        assert "village" not in design.covariates


def test_doses_are_fitted_too(client, quick_options):
    simulation = cs.datasets.dose_curve(n=200, p=6, seed=1)
    options = quick_options(starts=1, epochs=4)
    here, there = (
        cs.fit(simulation.formula, data, options=options, seed=1)
        for data in (simulation.data, spread(simulation.data))
    )
    np.testing.assert_allclose(there.params, here.params, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x2": np.inf}, errors.InfiniteValuesError, "'x2' has infinite values, in 240 of 240"),
        ({"x2": np.nan}, errors.MissingValuesError, r"in 240 of 240 rows; .*x2 \(240\)"),
        ({"x2": "a"}, errors.ColumnTypeError, "'x2' is not. Turn categories into indicators"),
    ],
)
def test_bad_columns_are_named(client, simulation, change, error, message):
    frame = spread(simulation.data.assign(**change))
    with pytest.raises(error, match=message):
        cs.CausalStoNet.from_formula(simulation.formula, frame)


def test_copies_of_treatment_and_outcome_are_refused(client, simulation):
    leak = simulation.data.assign(x2=5.0 - simulation.data.treat)
    with pytest.raises(errors.TreatmentLeakError, match="'x2' is the treatment"):
        cs.CausalStoNet.from_formula(simulation.formula, spread(leak))
    copy = simulation.data.assign(x3=simulation.data.y)
    with pytest.raises(errors.DataError, match="'x3' equals the outcome"):
        cs.CausalStoNet.from_formula(simulation.formula, spread(copy))
    bent = simulation.data.assign(x3=np.exp(-simulation.data.y / 4))
    with pytest.raises(errors.OutcomeLeakError, match="'x3' holds the outcome"):
        cs.CausalStoNet.from_formula(simulation.formula, spread(bent))


def test_a_fit_is_saved_without_its_rows(client, simulation, networks_alone, tmp_path):
    results = cs.fit(simulation.formula, spread(simulation.data), options=networks_alone, seed=3)
    results.save(tmp_path / "fit.cst")
    loaded = cs.load(tmp_path / "fit.cst")
    assert loaded.summary().as_text() == results.summary().as_text()
    assert loaded.methods() == results.methods()
    new = simulation.data.head(20)
    assert loaded.cate(new).equals(results.cate(new))
    with pytest.raises(errors.NotAvailableError, match="Dask DataFrame"):
        results.save(tmp_path / "fit.cst", with_data=True)


def test_what_partitions_cannot_do_is_named(client, simulation):
    frame = spread(simulation.data)
    for formula, message in (
        ("y ~ treat | x1 + np.log(x2)", "plain columns"),
        ("y ~ treat | x1 | x2", "Mediation is not available"),
    ):
        with pytest.raises(errors.NotAvailableError, match=message):
            cs.CausalStoNet.from_formula(formula, frame)
    gaps = simulation.data.assign(x2=simulation.data.x2.where(simulation.data.index > 5))
    with pytest.raises(errors.NotAvailableError, match=r"6 rows have gaps.*dropna"):
        cs.CausalStoNet.from_formula(simulation.formula, spread(gaps), missing="drop")
    with pytest.raises(errors.UnknownColumnError, match="outcome"):
        cs.CausalStoNet.from_formula("outcome ~ treat | .", frame)


def test_a_frame_without_a_cluster_is_named(simulation):
    with pytest.raises(errors.SchedulerError, match="A Dask client is needed"):
        cs.CausalStoNet.from_formula(simulation.formula, spread(simulation.data))
