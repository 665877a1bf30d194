"""Rendering of vignettes: lacking data are said on the page, failures are failures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("jupytext", reason="vignettes are rendered with jupytext")
pytest.importorskip("nbclient", reason="vignettes are run with nbclient")
pytest.importorskip("nbconvert", reason="vignettes are rendered with nbconvert")
nbformat = pytest.importorskip("nbformat")

VIGNETTES = Path(__file__).parents[2] / "vignettes"
# The vignettes' folder is no package.
sys.path.insert(0, str(VIGNETTES))

import render  # noqa: E402


def notebook_of(*cells: tuple[str, list[dict[str, object]]]) -> object:
    v4 = nbformat.v4
    return v4.new_notebook(
        cells=[v4.new_code_cell(source, outputs=outputs) for source, outputs in cells]
    )


def error(name: str, message: str) -> dict[str, object]:
    return nbformat.v4.new_output("error", ename=name, evalue=message, traceback=["frames"])


def test_a_notebook_ends_where_it_left_off():
    notebook = notebook_of(
        ("a = 1", []), ("raise", [error("SystemExit", "Get the data.")]), ("a + 1", [])
    )
    assert render.end_at_exit(notebook) == "Get the data."
    assert [cell.source for cell in notebook.cells] == ["a = 1", "raise"]
    assert [(o.output_type, o.text) for o in notebook.cells[1].outputs] == [
        ("stream", "Get the data.")
    ]


def test_other_errors_are_no_exit():
    with pytest.raises(ValueError, match="SystemExit"):
        render.end_at_exit(notebook_of(("1 / 0", [error("ZeroDivisionError", "division")])))


def write_vignette(folder: Path, name: str, statement: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(f'# %% [markdown]\n# # A title\n\n# %%\n{statement}\n\n# %%\nprint("later")\n')
    return path


@pytest.mark.slow
def test_a_page_of_a_vignette_without_data(tmp_path):
    pytest.importorskip("ipykernel")
    source = write_vignette(tmp_path, "lacking", 'raise SystemExit("Get the data.")')
    assert render.render(source, tmp_path) == ("A title", "Get the data.")
    page = (tmp_path / "lacking.html").read_text(encoding="utf-8")
    assert "later" not in page
    assert "Traceback" not in page


@pytest.mark.slow
def test_a_vignette_that_fails_is_a_failure(tmp_path):
    pytest.importorskip("ipykernel")
    from nbclient.exceptions import CellExecutionError

    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        render.render(write_vignette(tmp_path, "failing", "1 / 0"), tmp_path)
    assert not (tmp_path / "failing.html").exists()


@pytest.mark.slow
def test_a_page_without_gaps(tmp_path):
    pytest.importorskip("ipykernel")
    assert render.render(write_vignette(tmp_path, "whole", "a = 1"), tmp_path) == ("A title", None)
    assert "later" in (tmp_path / "whole.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["twins_known_effect", "six_thousand_genes"])
def test_vignettes_on_data_that_are_not_here_name_what_to_get(name, tmp_path, monkeypatch):
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("CSTONET_DATA", str(tmp_path))
    _, lacks = render.render(VIGNETTES / f"{name}.py", tmp_path)
    assert lacks is not None
    assert "CSTONET_DATA" in lacks
    assert ".csv.gz" in lacks
