"""Run every vignette and render it, with its output, to HTML.

Usage: ``python vignettes/render.py [output folder] [name ...]``; without names, all of them.
A vignette that raises stops the rendering: a document that does not run is a failed test. Only
`SystemExit` is no failure: a vignette raises it to say what it lacks, such as data that are not
part of the repository, and its page ends there, with that sentence.
"""

from __future__ import annotations

import html
import sys
import time
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_output

FOLDER = Path(__file__).resolve().parent


def end_at_exit(notebook: NotebookNode) -> str:
    """Cut a notebook off after the cell that raised `SystemExit`, and give its sentence.

    The cell shows the sentence in place of the traceback.
    """
    for position, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if output.output_type == "error" and output.ename == "SystemExit":
                cell.outputs = [new_output("stream", name="stdout", text=output.evalue)]
                notebook.cells = notebook.cells[: position + 1]
                return str(output.evalue)
    raise ValueError("no cell of this notebook raised SystemExit")


def render(source: Path, output: Path) -> tuple[str, str | None]:
    """Write output/<name>.html; give the vignette's title, and what it lacks, if anything."""
    notebook = jupytext.read(source, fmt="py:percent")
    # The kernel that the running environment installed, whatever the reader's Jupyter has.
    client = NotebookClient(
        notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    )
    lacks = None
    try:
        client.execute()
    except CellExecutionError as error:
        if error.ename != "SystemExit":
            raise
        lacks = end_at_exit(notebook)
    first_line = next(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    title = first_line.splitlines()[0].lstrip("# ")
    body, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": title}})
    (output / f"{source.stem}.html").write_text(body, encoding="utf-8")
    return title, lacks


def write_index(titles: dict[str, str], output: Path) -> None:
    """Write a page that links to the vignettes."""
    links = "\n".join(
        f'<li><a href="{name}.html">{html.escape(title)}</a></li>' for name, title in titles.items()
    )
    page = f'<!doctype html><meta charset="utf-8"><title>cstonet</title><ul>\n{links}\n</ul>\n'
    (output / "index.html").write_text(page, encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Render the vignettes named in the arguments."""
    output = Path(arguments[0] if arguments else "build/docs")
    output.mkdir(parents=True, exist_ok=True)
    names = arguments[1:] or sorted(
        path.stem for path in FOLDER.glob("*.py") if path != Path(__file__).resolve()
    )
    titles = {}
    for name in names:
        start = time.perf_counter()
        titles[name], lacks = render(FOLDER / f"{name}.py", output)
        print(f"{output / name}.html  ({time.perf_counter() - start:.0f} s)", flush=True)
        if lacks is not None:
            print(f"  not run to its end: {lacks}", flush=True)
    write_index(titles, output)


if __name__ == "__main__":
    main(sys.argv[1:])
