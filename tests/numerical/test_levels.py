"""The instruction-set levels: how one is chosen, and that all of them come to the same answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import cstonet as cs
from cstonet import _core

ROOT = Path(__file__).parents[2]
EVERY_FIT = ROOT / "tests" / "sanitize" / "every_fit.py"
sys.path.insert(0, str(EVERY_FIT.parent))
import every_fit  # noqa: E402

Estimates = dict[str, dict[str, list[float]]]
# What is promised: levels round differently, by no more than this in standard errors.
CLOSE = 1e-5
ASKED = (
    "from cstonet import _core; import cstonet_seams; print(_core.level(), cstonet_seams.level())"
)
# Processors without AVX, and without AVX-512, as QEMU knows them.
EMULATED = {"v1": "Nehalem", "v3": "Haswell"}


def python(
    *arguments: str, level: str | None = None, before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run Python with CSTONET_LEVEL as said."""
    environment = {key: value for key, value in os.environ.items() if key != "CSTONET_LEVEL"}
    paths = [str(ROOT), str(ROOT / "tests" / "seams"), environment.get("PYTHONPATH", "")]
    if "CSTONET_SEAMS" in environment:  # the package under test is another
        paths = paths[1:]
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    if level is not None:
        environment["CSTONET_LEVEL"] = level
    return subprocess.run(
        [*before, sys.executable, *arguments],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def fits(*kinds: str, level: str | None = None, before: tuple[str, ...] = ()) -> Estimates:
    """Estimates and standard errors of fits of these kinds; of all kinds, if none is named."""
    done = python(str(EVERY_FIT), *kinds, level=level, before=before)
    assert done.returncode == 0, done.stderr
    found: Estimates = json.loads(done.stdout)
    return found


def distance(one: Estimates, other: Estimates) -> float:
    """How far apart estimates and standard errors are at most, in standard errors."""
    assert one.keys() == other.keys()
    farthest = 0.0
    for kind, effects in one.items():
        assert effects.keys() == other[kind].keys()
        for term, (estimate, error) in effects.items():
            estimate_2, error_2 = other[kind][term]
            gaps = (abs(estimate - estimate_2) / error, abs(error - error_2) / error)
            farthest = max(farthest, *gaps)
    return farthest


@pytest.mark.parametrize("level", ["", *_core.levels()])
def test_the_environment_chooses_the_level(level: str) -> None:
    done = python("-c", ASKED, level=level)
    assert done.stdout.split() == [level or _core.levels()[-1]] * 2, done.stderr


def test_a_level_that_is_not_there_is_an_error_by_name_however_often_it_is_imported() -> None:
    code = f"""
import cstonet as cs
for ask in (lambda: cs.fit, lambda: cs.load, lambda: __import__("cstonet.network.training")):
    try:
        ask()
    except cs.errors.KernelLevelError as error:
        assert "CSTONET_LEVEL" in str(error) and "v9" in str(error), error
        assert {_core.levels()[-1]!r} in str(error), error
    else:
        raise SystemExit("no error")
"""
    done = python("-c", code, level="v9")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def at_level() -> Iterator[None]:
    before = _core.level()
    yield
    _core.use_level(before)


@pytest.mark.usefixtures("at_level")
@pytest.mark.parametrize(
    "kinds", [("gaussian", "mar"), pytest.param((), marks=pytest.mark.slow, id="all")]
)
def test_levels_come_to_the_same_answers(kinds: tuple[str, ...], tmp_path: Path) -> None:
    every = every_fit.Fits(epochs=12, threads=2, folder=tmp_path).kinds()
    answers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.CStoNetWarning)
        for level in _core.levels():
            _core.use_level(level)
            chosen = kinds or tuple(every)
            answers.append({kind: every_fit.estimates(every[kind]()) for kind in chosen})
    for answer in answers[:-1]:
        assert distance(answers[-1], answer) <= CLOSE


@pytest.mark.slow
def test_levels_of_processes_come_to_the_same_answers() -> None:
    best = fits()
    assert distance(best, fits(level=_core.levels()[-1])) == 0
    for level in _core.levels()[:-1]:
        assert distance(best, fits(level=level)) <= CLOSE


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="qemu-x86_64 is not installed")
@pytest.mark.parametrize("level", EMULATED)
def test_older_processors_run_their_level(level: str) -> None:
    processor = ("qemu-x86_64", "-cpu", EMULATED[level])
    done = python("-c", ASKED, before=processor)
    assert done.stdout.split() == [level] * 2, done.stderr
    refused = python("-c", "import cstonet; cstonet.fit", level="v4", before=processor)
    assert "KernelLevelError" in refused.stderr
    kinds = ("gaussian", "dose", "mar")
    assert distance(fits(*kinds, level=level), fits(*kinds, before=processor)) <= CLOSE
