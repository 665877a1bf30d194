"""A short run of every target, and every input that ever found something.

The long run is ``make fuzz``: it draws from the same targets.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .archives import BOMB, mutated, unzipped, zipped
from .chance import Tape, often, several
from .file_targets import Checkpoints, Saves
from .frame_targets import COLUMNS, Frames
from .option_targets import CLASSES, Options
from .targets import CORPUS, TARGETS, kept, make
from .watch import Finding, only_reading, within_memory

ROOT = Path(__file__).parents[2]
# Inputs that each target is given here; what it costs is a second or two.
EXECUTIONS = {
    "splitter": 400,
    "terms": 40,
    "options": 250,
    "frames": 40,
    "saves": 60,
    "checkpoints": 4,
}


def target_of(name):
    """A target, made in a moment: of one seed where there are several."""
    try:
        return {"saves": lambda: Saves(())}.get(name, lambda: make(name))()
    except NotImplementedError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", params=TARGETS)
def target(request):
    found = target_of(request.param)
    yield request.param, found
    found.close()


def test_every_input_is_taken_or_refused_by_name(target):
    name, fuzzed = target

    @settings(
        max_examples=EXECUTIONS[name],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(chance=st.randoms(use_true_random=False))
    def run(chance):
        fuzzed.run(fuzzed.draw(chance))

    run()


def test_what_was_found_once_is_mended(target):
    name, fuzzed = target
    for path in kept(name):
        fuzzed.run(path.read_bytes())


def test_the_corpus_belongs_to_targets():
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)
    assert any(kept(name) for name in TARGETS)


# The tools ----------------------------------------------------------------------------------------


def test_a_tape_gives_every_choice_and_ends():
    tape = Tape(bytes(range(1, 9)))
    drawn = [tape.randrange(10) for _ in range(40)]
    assert set(drawn) <= set(range(10))
    assert len(set(drawn[:8])) > 3
    assert drawn[-1] == 0
    assert 0 <= Tape(b"\xff" * 4).random() < 1
    # The same tape, the same input: what a fuzzer found can be found again.
    inputs = [Options().draw(Tape(bytes([k]) * 200)) for k in (3, 3, 4)]
    assert inputs[0] == inputs[1] != inputs[2]


def test_choices():
    chance = random.Random(1)
    assert sum(often(chance, 0.25) for _ in range(1000)) in range(200, 300)
    assert {len(several(chance, lambda: 0, 3, least=1)) for _ in range(50)} == {1, 2, 3}


def opens(path, mode):
    with open(path, mode):
        pass


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: opens(folder / "new", "w"),
        lambda folder: opens(folder / "there", "a"),
        lambda folder: opens(folder / "there", "r"),
        lambda folder: os.open(folder / "there", os.O_RDWR),
        lambda folder: os.remove(folder / "there"),
        lambda folder: os.mkdir(folder / "new"),
        lambda folder: os.symlink(folder / "there", folder / "new"),
        lambda folder: os.system("true"),
        lambda folder: subprocess.run(["true"]),
        lambda folder: eval("1 + 1"),
        lambda folder: __import__("cstonet.no_such_module"),
        lambda folder: __import__("socket").socket(),
    ],
)
def test_the_guard_sees_what_is_done(tmp_path, harm):
    """Also where the code under test catches what it is refused."""
    (tmp_path / "there").write_text("untouched")
    with (
        pytest.raises(Finding),
        only_reading(tmp_path / "other"),
        contextlib.suppress(Exception),
    ):
        harm(tmp_path)
    assert os.listdir(tmp_path) == ["there"]
    assert (tmp_path / "there").read_text() == "untouched"


def test_the_guard_lets_read_and_compute(tmp_path):
    (tmp_path / "there").write_text("1 + 1")
    with only_reading(tmp_path / "there", "/dev/null", terms=True):
        assert eval((tmp_path / "there").read_text()) == 2
    with only_reading(within=tmp_path):
        os.rename(tmp_path / "there", tmp_path / "new")
        os.remove(tmp_path / "new")
    with pytest.raises(Finding), only_reading(within=tmp_path / "inside"):
        os.mkdir(tmp_path / "inside" / ".." / "beside")
    opens(tmp_path / "after", "w")  # nothing is watched any more


def test_the_bound_sees_memory():
    with within_memory(2**20):
        pass
    with pytest.raises(Finding, match="bytes of memory"), within_memory(2**20):
        b"\1" * (16 * 2**20)


def test_every_class_of_changes_occurs_and_changes():
    content = (ROOT / "tests" / "golden" / "fit_format_1.cst").read_bytes()
    chance, seen, same = random.Random(1), set(), 0
    for _ in range(300):
        kind, changed = mutated(chance, content)
        seen.add(kind)
        same += changed == content
        assert len(changed) < 2 * BOMB
    assert seen == {"bytes", "cut", "pieces", "members", "bomb", "header", "json", "arrays"}
    assert same < 30
    assert mutated(chance, b'{"a": [1, 2]}')[0] in {"bytes", "cut", "pieces", "json"}
    assert unzipped(zipped(("a", b"1"), ("b", b"2"))) == {"a": b"1", "b": b"2"}


def test_every_kind_of_column_is_made():
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, draw in COLUMNS.items():
            for n in (0, 3):
                assert len(draw(np.random.default_rng(0), n)) == n, kind


def test_a_long_run_counts_what_it_did(tmp_path):
    """The runner itself: engine, executions, outcomes, and an input that finds something."""
    command = [sys.executable, "-m", "tests.fuzz", "--targets", "splitter", "--executions", "200"]
    done = subprocess.run(
        [*command, "--seconds", "60", "--output", tmp_path, "--json", tmp_path / "counts.json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads((tmp_path / "counts.json").read_text())["splitter"]
    assert counts["executions"] >= 200
    assert sum(counts["outcomes"].values()) == counts["executions"]
    assert counts["engine"] in ("atheris", "seeded loop")
    assert counts["findings"] == {}


# Targets that find something, so that those above can be believed ---------------------------------


def test_a_frame_that_is_changed_is_found(monkeypatch):
    from cstonet import CausalStoNet

    frames = Frames()
    content = frames.draw(random.Random(2))

    def changes(formula, frame, **_):
        frame.iloc[:, 0] = 7

    monkeypatch.setattr(CausalStoNet, "from_formula", changes)
    with pytest.raises(AssertionError, match="was changed"):
        frames.run(content)


def test_options_that_raise_anything_else_are_found(monkeypatch):
    monkeypatch.setattr(CLASSES[1], "__post_init__", lambda self: [][0])
    with pytest.raises(IndexError):
        Options().run(b'["SearchOptions", []]')


def test_a_file_that_runs_code_is_found(monkeypatch):
    from cstonet.files import saved

    saves = Saves(())
    try:
        seed = saves.seeds[0]
        assert saves.run(seed) == "read"
        monkeypatch.setattr(saved, "read_archive", lambda path: eval("1 + 1"))
        with pytest.raises(Finding, match="exec"):
            saves.run(seed)
        (saves.folder / "beside").touch()
        with pytest.raises(Finding, match="beside"):
            saves.close()
    finally:
        assert not saves.folder.exists()


def test_a_checkpoint_that_gives_other_bits_is_found():
    checkpoints = target_of("checkpoints")
    try:
        checkpoints.expected = b"other"
        with pytest.raises(Finding, match="other bits"):
            checkpoints.run(checkpoints.seeds[0])
    finally:
        checkpoints.close()
    assert isinstance(checkpoints, Checkpoints)
