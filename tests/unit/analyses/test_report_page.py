"""The page of a fit: complete, self-contained, honest about what it lacks, shown by a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.errors import FilePathError, UnknownColumnError

pytest.importorskip("matplotlib")

SECTIONS = [
    "Summary",
    "Overlap",
    "Balance",
    "Selection",
    "Heterogeneity",
    "Sensitivity",
    "Methods",
    "How it was made",
]


class Reader(HTMLParser):
    """Tags, their attributes and the headings of a page; tags must be closed in order."""

    VOID = ("meta", "img", "br", "link", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


@pytest.fixture(scope="module")
def results(quick_options):
    frame = cs.datasets.simulation2(n=300, p=5, seed=1).data
    frame = frame.rename(columns={"x1": "<b>age & more</b>"})
    return cs.fit("y ~ treat | .", frame, options=quick_options(starts=1), seed=1, n_jobs=1)


@pytest.fixture(scope="module")
def page(results):
    return results.report()


@pytest.fixture(scope="module")
def read(page):
    reader = Reader()
    reader.feed(page)
    return reader


def test_the_page_has_all_sections_and_is_well_formed(read):
    assert read.headings == SECTIONS
    assert read.open == []
    targets = {attributes["href"] for tag, attributes in read.tags if tag == "a"}
    anchors = {f"#{attributes['id']}" for tag, attributes in read.tags if tag == "section"}
    assert targets == anchors


def test_groups_have_a_section_on_request(results):
    reader = Reader()
    sides = np.where(results.design.X[:, 1] > 0, "right side", "left side")
    page = results.report(by=sides)
    reader.feed(page)
    assert reader.headings.index("Groups") == reader.headings.index("Heterogeneity") - 1
    assert "right side" in page
    assert results.report(by=results.gate(sides)) == page
    with pytest.raises(UnknownColumnError):
        results.report(by="nowhere")


def test_nothing_is_loaded_from_elsewhere(read, page):
    sources = [attributes["src"] for tag, attributes in read.tags if tag == "img"]
    assert len(sources) >= 6
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in read.tags}
    assert not re.search(r"url\(|@import|https?://", page)


def test_the_page_has_the_numbers_and_the_call(page, results):
    assert str(results.effect()) in page
    assert "cs.fit(" in page
    assert cs.__version__ in page
    assert "<b>age" not in page
    assert "&lt;b&gt;age &amp; more&lt;/b&gt;" in page


def test_the_page_is_written_whole_or_not(results, tmp_path):
    path = tmp_path / "page.html"
    assert results.report(path) == path.read_text(encoding="utf-8")
    with pytest.raises(FilePathError, match="no folder"):
        results.report(tmp_path / "missing" / "page.html")
    with pytest.raises(FilePathError, match="folder"):
        results.report(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_a_fit_without_its_rows_says_what_is_missing(results, tmp_path):
    results.save(tmp_path / "fit.cst")
    page = cs.load(tmp_path / "fit.cst").report()
    assert "class='absent'" in page
    assert str(results.effect()) in page
    assert "cs.fit(" in page


@pytest.mark.parametrize("kind", ["dose", "mediation", "arms"])
def test_other_analyses_have_pages(kind, quick_options):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 3))
    frame = pd.DataFrame(x, columns=["x1", "x2", "x3"])
    frame["a"] = {
        "dose": x[:, 0] + rng.normal(size=240),
        "mediation": rng.integers(2, size=240),
        "arms": rng.integers(3, size=240).astype(str),
    }[kind]
    frame["m"] = rng.normal(size=240)
    frame["y"] = x[:, 0] + rng.normal(size=240)
    formula = "y ~ a | x1 + x2 + x3" + (" | m" if kind == "mediation" else "")
    page = cs.fit(formula, frame, options=quick_options(starts=1), n_jobs=1).report()
    reader = Reader()
    reader.feed(page)
    assert reader.headings[0] == "Summary"
    assert reader.headings[-2:] == ["Methods", "How it was made"]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium to show the page")
def test_a_browser_shows_it_without_a_network(results, tmp_path):
    path, picture = tmp_path / "page.html", tmp_path / "page.png"
    results.report(path)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}"]
    shown = subprocess.run(
        [*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, check=True
    ).stdout
    assert shown.count("<img") == path.read_text().count("<img")
    assert "Causal-StoNet Results" in shown
    subprocess.run(
        [*command, f"--screenshot={picture}", "--window-size=900,1200", path.as_uri()],
        capture_output=True,
        check=True,
    )
    assert picture.stat().st_size > 20_000
