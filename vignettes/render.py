"""Run every vignette and render it, with its output, to HTML.

Usage: ``python vignettes/render.py [output folder] [name ...]``; without names, all of them.
A vignette that raises stops the rendering: a document that does not run is a failed test.
"""

from __future__ import annotations

import html
import sys
import time
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from nbconvert import HTMLExporter

FOLDER = Path(__file__).resolve().parent


def render(source: Path, output: Path) -> str:
    """Write output/<name>.html and give the vignette's title."""
    notebook = jupytext.read(source, fmt="py:percent")
    # The kernel that the running environment installed, whatever the reader's Jupyter has.
    client = NotebookClient(
        notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute()
    first_line = next(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    title = first_line.splitlines()[0].lstrip("# ")
    body, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": title}})
    (output / f"{source.stem}.html").write_text(body, encoding="utf-8")
    return title


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
        titles[name] = render(FOLDER / f"{name}.py", output)
        print(f"{output / name}.html  ({time.perf_counter() - start:.0f} s)", flush=True)
    write_index(titles, output)


if __name__ == "__main__":
    main(sys.argv[1:])
