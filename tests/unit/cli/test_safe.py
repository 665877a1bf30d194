"""Formulas on the command line: those from files run nothing, unless somebody says they may."""

from __future__ import annotations

import subprocess
import sys

import pytest

import cstonet as cs
from cstonet.cli import main
from cstonet.cli.fitting import formula_of
from cstonet.errors import FormulaError

CODE = "y ~ treat | x1.clip(-9, 9) + x2"
PLAIN = "y ~ treat | np.exp(x1) + x2:x3"


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "data.csv"
    cs.datasets.simulation2(n=120, p=5, seed=3).data.to_csv(path, index=False)
    return path


def plan(csv, *words):
    return main(["plan", str(csv), *map(str, words)])


def test_a_formula_in_a_file_is_safe(csv, tmp_path, capsys):
    formula = tmp_path / "formula.txt"
    formula.write_text(f"{PLAIN.replace('|', '|' + chr(10))}\n")
    assert plan(csv, f"@{formula}") == 0
    from_file = capsys.readouterr().out
    assert plan(csv, PLAIN) == 0
    assert capsys.readouterr().out == from_file
    formula.write_text(CODE)
    assert plan(csv, f"@{formula}") == 2
    assert "'x1.clip' looks inside of something" in capsys.readouterr().err
    assert plan(csv, f"@{formula}", "--no-safe") == 0


def test_a_formula_in_words_is_code_unless_it_is_not_to_be(csv, capsys):
    assert plan(csv, CODE) == 0
    assert plan(csv, CODE, "--safe") == 2
    assert plan(csv, PLAIN, "--safe") == 0
    assert "safe formula" in capsys.readouterr().err


def test_who_decides(tmp_path):
    file = tmp_path / "formula"
    file.write_text(PLAIN)
    assert formula_of(PLAIN, None) == (PLAIN, False)
    assert formula_of(PLAIN, True) == (PLAIN, True)
    assert formula_of(f"@{file}", None) == (PLAIN, True)
    assert formula_of(f"@{file}", False) == (PLAIN, False)


@pytest.mark.parametrize(
    "content",
    [b"secret: hunter2", b"\xff\xfe\x00y~a|x", b"a ~ b ~ c | d", b"y ~ a", b"~" * 2_000_000],
)
def test_what_is_no_formula_is_not_repeated(csv, tmp_path, capsys, content):
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(FormulaError, match="holds no formula"):
        formula_of(f"@{file}", None)
    assert plan(csv, f"@{file}") == 2
    assert "hunter2" not in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(csv, tmp_path, capsys):
    assert plan(csv, f"@{tmp_path / 'absent'}") == 2
    assert "absent" in capsys.readouterr().err


def test_nothing_runs_in_a_process_of_its_own(csv, tmp_path):
    formula = tmp_path / "formula.txt"
    formula.write_text(f"y ~ treat | x1 + open(r'{tmp_path / 'escaped'}', 'w').name.count(x2)")
    words = [sys.executable, "-m", "cstonet", "fit", str(csv), f"@{formula}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "'open' is no function of the list" in done.stderr
    assert not (tmp_path / "escaped").exists()
