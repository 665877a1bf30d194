"""Checkpoints: whatever interrupts a fit, the same call ends with the same bits."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import cstonet as cs
from cstonet import errors
from cstonet.crossfit import training, workforce
from cstonet.files import checkpoint

from .conftest import FITS, data_of


def fit(kind, folder, quick_options, **changes):
    formula, arguments, recipe, options = FITS[kind]
    given = {"seed": 1, "n_jobs": 1, "checkpoint": folder, **arguments}
    data = changes.pop("data", None)
    return cs.fit(
        formula,
        data_of(kind) if data is None else data,
        **({"options": quick_options(recipe, **options)} | given | changes),
    )


def assert_same(one, other):
    np.testing.assert_array_equal(one.effects.influence, other.effects.influence)
    np.testing.assert_array_equal(one.cov_params(), other.cov_params())
    assert one.selection.equals(other.selection)
    assert one.trace.equals(other.trace)
    assert str(one.summary()) == str(other.summary())


def parts_in(folder):
    return sorted(path.name for path in Path(folder).glob("*.part"))


@pytest.fixture
def training_is_forbidden(monkeypatch):
    def forbid():
        def fails(*_, **__):
            raise AssertionError("a fold is trained that was kept")

        monkeypatch.setattr(training, "train_starts", fails)
        monkeypatch.setattr(training, "_wire", fails)

    return forbid


def test_finished_folds_are_not_trained_again(
    kind, fitted, quick_options, tmp_path, training_is_forbidden
):
    folder = tmp_path / "night"
    assert_same(fit(kind, folder, quick_options, n_jobs=2), fitted(kind))
    networks = 2 if kind == "mediation" else 1
    plan = fitted(kind).plan
    assert len(parts_in(folder)) == plan.folds * plan.repeats * networks
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint.json", *parts_in(folder)]
    training_is_forbidden()
    again = fit(kind, folder, quick_options)
    assert_same(again, fitted(kind))
    data = data_of(kind)
    np.testing.assert_array_equal(again.cate(data), fitted(kind).cate(data))


@pytest.mark.parametrize("kind", ["arms", "mar", "mediation"])
def test_ctrl_c_says_how_to_go_on(kind, fitted, quick_options, tmp_path):
    def interrupt(done, total):
        if done > total // 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"after \d of \d folds; \d are in .*same call"):
        fit(kind, tmp_path, quick_options, progress=interrupt)
    before = parts_in(tmp_path)
    assert_same(fit(kind, tmp_path, quick_options, n_jobs=3), fitted(kind))
    assert set(before) < set(parts_in(tmp_path))


def test_long_starts_are_kept_before_their_fold_is_done(
    fitted, quick_options, tmp_path, monkeypatch
):
    monkeypatch.setattr(workforce, "_LONG", -1.0)
    train, trained = training.train_starts, []

    def second_fails(place, wiring, options, data, starts, **given):
        if len(trained) == 1:
            raise KeyboardInterrupt
        trained.extend(starts)
        return train(place, wiring, options, data, starts, **given)

    monkeypatch.setattr(training, "train_starts", second_fails)
    with pytest.raises(KeyboardInterrupt):
        fit("arms", tmp_path, quick_options)
    assert parts_in(tmp_path) == ["network-0-fold-001-start-1.part"]

    def not_the_first(place, wiring, options, data, starts, **given):
        assert place.split.index > 0 or 0 not in starts
        return train(place, wiring, options, data, starts, **given)

    monkeypatch.setattr(training, "train_starts", not_the_first)
    assert_same(fit("arms", tmp_path, quick_options), fitted("arms"))
    assert not any("start" in name for name in parts_in(tmp_path))


KILLED = """
import os, signal, sys
from pathlib import Path
import cstonet as cs, pandas as pd
from cstonet import places

sys.path.insert(0, {tests!r})
from conftest import options_for_quick_fits

moment, count = {moment!r}, {count}
original, seen = getattr(os, moment), []

def deadly(*given):
    seen.append(given)
    if len(seen) == count and {early}:
        os.kill(os.getpid(), signal.SIGKILL)
    original(*given)
    if len(seen) == count:
        os.kill(os.getpid(), signal.SIGKILL)

setattr(os, moment, deadly)
frame = pd.read_pickle({data!r})
options = options_for_quick_fits(repeats=2, keep=("b",))
cs.fit({formula!r}, frame, options=options, seed=1, n_jobs=2, checkpoint={folder!r})
"""


@pytest.mark.parametrize(
    ("moment", "count", "early"),
    [("fsync", 1, True), ("fsync", 2, True), ("fsync", 3, False), ("replace", 2, True)],
)
def test_killed_while_it_writes(moment, count, early, fitted, quick_options, tmp_path):
    """Before and after a file is synchronised, and before it is put in its place."""
    folder, data = tmp_path / "night", tmp_path / "data.pkl"
    data_of("arms").to_pickle(data)
    script = KILLED.format(
        tests=str(Path(__file__).parents[2]),
        moment=moment,
        count=count,
        early=early,
        data=str(data),
        formula=FITS["arms"][0],
        folder=str(folder),
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert any(path.name.startswith(".") for path in folder.iterdir())
    assert_same(fit("arms", folder, quick_options), fitted("arms"))
    assert not any(path.name.startswith(".") for path in folder.iterdir())


# Another fit -------------------------------------------------------------------------------------


@pytest.fixture
def begun(quick_options, tmp_path):
    """A folder with a fit, and what is in it."""
    fit("arms", tmp_path / "night", quick_options)
    return tmp_path / "night"


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 2}, "options differ (seed was 1 there and is 2 here)"),
        ({"folds": 3}, "folds was 2 there and is 3 here"),
        ({"data": data_of("arms").iloc[::-1]}, "data differ (y, treatment, X)"),
        ({"data": data_of("arms").assign(a=0.5)}, "data differ (X"),
        ({"weights": "w"}, "data differ (weights)"),
        ({"cluster": "village"}, "clusters"),
    ],
)
def test_other_data_or_options_are_refused(changes, said, begun, quick_options):
    before = content_of(begun)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.CStoNetWarning)
        with pytest.raises(errors.CheckpointError) as caught:
            fit("arms", begun, quick_options, **changes)
    assert said in str(caught.value)
    assert "name another folder" in str(caught.value)
    assert content_of(begun) == before


@pytest.mark.parametrize("package", ["cstonet", "numpy", "kernel"])
def test_other_versions_are_refused(package, begun, quick_options):
    manifest = json.loads((begun / "checkpoint.json").read_text())
    manifest["of"]["versions"][package] = "0.0.0"
    (begun / "checkpoint.json").write_text(json.dumps(manifest))
    with pytest.raises(errors.CheckpointError, match=rf"versions differ \({package} was '0.0.0'"):
        fit("arms", begun, quick_options)


def test_mediators_are_data(quick_options, tmp_path):
    fit("mediation", tmp_path, quick_options)
    data = data_of("mediation")
    with pytest.raises(errors.CheckpointError, match=r"data differ \(mediators\)"):
        fit("mediation", tmp_path, quick_options, data=data.assign(m2=data["m2"] + 1e-9))


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b"[" * 10_000,
        b'{"cstonet": "checkpoint", "format": 2, "of": {}}',
        b'{"cstonet": "checkpoint", "format": 1, "of": 3}',
        b'{"cstonet": "certify"}',
    ],
)
def test_what_is_no_manifest_is_refused(manifest, begun, quick_options):
    (begun / "checkpoint.json").write_bytes(manifest)
    with pytest.raises(errors.CheckpointError, match=r"checkpoint: .*ame another folder"):
        fit("arms", begun, quick_options)


@pytest.mark.parametrize("damage", ["cut", "of another fold", "text", "of another kind"])
def test_damaged_parts_are_named(damage, begun, quick_options):
    first, second = (begun / f"network-0-fold-00{k}.part" for k in (1, 2))
    if damage == "cut":
        first.write_bytes(first.read_bytes()[:-100])
    elif damage == "text":
        first.write_text("not a fold")
    elif damage == "of another fold":
        first.write_bytes(second.read_bytes())
    else:
        checkpoint.Checkpoint(begun).keep("network-0-fold-001", ("no", "fold"))
    with pytest.raises(
        errors.CheckpointError, match=r"fold-001.part' is damaged.*Delete this file"
    ):
        fit("arms", begun, quick_options)


@pytest.mark.parametrize("what", ["link", "dangling link", "pipe", "folder"])
def test_what_is_no_plain_file_is_refused(what, begun, quick_options, tmp_path):
    """Nothing is written through a link, and nobody waits for a pipe."""
    outside = tmp_path / "outside"
    if what == "link":
        outside.write_text("untouched")
    for name in ("new.part", "lock", "checkpoint.json", "network-0-fold-001.part"):
        path = begun / name
        path.unlink(missing_ok=True)
        if what == "pipe":
            os.mkfifo(path)
        elif what == "folder":
            path.mkdir()
        else:
            path.symlink_to(outside)
        with pytest.raises(errors.CheckpointError, match=f"{name}.*is a link, a pipe or a folder"):
            fit("arms", begun, quick_options)
        path.rmdir() if what == "folder" else path.unlink()
    assert not outside.exists() or outside.read_text() == "untouched"


def test_what_was_deleted_is_done_anew(begun, fitted, quick_options):
    (begun / "network-0-fold-002.part").unlink()
    assert_same(fit("arms", begun, quick_options), fitted("arms"))


# The place ---------------------------------------------------------------------------------------


def test_folders_of_others_stay_as_they_are(quick_options, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(errors.CheckpointError, match=r"holds other files, such as 'thesis.tex'"):
        fit("arms", tmp_path, quick_options)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("place", ["file", "file/inside", "not/there", 3, "", "nul\0"])
def test_places_that_can_be_no_folder(place, quick_options, tmp_path):
    (tmp_path / "file").touch()
    path = place if place in (3, "", "nul\0") else tmp_path / place
    with pytest.raises(errors.FilePathError):
        fit("arms", path, quick_options)


def test_a_full_disk_costs_no_work(fitted, quick_options, tmp_path, monkeypatch):
    """It is told of once; the next fold brings what there was no room for."""
    sync, refused = os.fsync, []

    def full(file):
        if len(refused) < 2 and (tmp_path / "checkpoint.json").exists():
            refused.append(file)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(errors.CheckpointWarning, match="No space left on device") as told:
        results = fit("arms", tmp_path, quick_options)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert_same(results, fitted("arms"))
    assert len(refused) == 2
    assert len(parts_in(tmp_path)) == 4
    assert not any(path.name.startswith(".") for path in tmp_path.iterdir())


def test_a_full_disk_is_known_before_the_work(quick_options, tmp_path, monkeypatch):
    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(errors.FilePathError, match="No space left on device"):
        fit("arms", tmp_path, quick_options)


def test_a_second_fit_is_told(quick_options, tmp_path):
    told = []

    def second(done, total):
        if told:
            return
        for attempt in (in_this_process, in_another):
            told.append(attempt())

    def in_this_process():
        try:
            fit("arms", tmp_path, quick_options)
        except errors.InUseError as error:
            return str(error)

    def in_another():
        script = f"""
            from cstonet.errors import InUseError
            from cstonet.files.checkpoint import opened
            try:
                with opened({str(tmp_path)!r}, {{}}):
                    print("opened")
            except InUseError as error:
                print(error)
        """
        run = [sys.executable, "-c", textwrap.dedent(script)]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout

    fit("arms", tmp_path, quick_options, progress=second)
    assert len(told) == 2
    assert all("is in use: another fit" in text for text in told)
    fit("arms", tmp_path, quick_options)  # nobody is at it any more


def test_threads_with_folders_of_their_own(fitted, quick_options, tmp_path):
    results = {}

    def work(name):
        results[name] = fit("arms", tmp_path / name, quick_options)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_same(results["one"], fitted("arms"))
    assert_same(results["other"], fitted("arms"))


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "sequential"])
def test_folds_of_other_processes_are_kept(
    backend, fitted, quick_options, tmp_path, training_is_forbidden
):
    finished = []

    def interrupt(done, total):
        finished.append(done)
        if len(finished) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit("arms", tmp_path, quick_options, backend=backend, n_jobs=2, progress=interrupt)
    assert parts_in(tmp_path)
    assert_same(fit("arms", tmp_path, quick_options, backend=backend, n_jobs=2), fitted("arms"))
    training_is_forbidden()
    assert_same(fit("arms", tmp_path, quick_options), fitted("arms"))
