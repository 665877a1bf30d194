"""The README's example prints what the README says it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import cstonet as cs

README = Path(__file__).parents[2] / "README.md"
EXAMPLE = re.compile(r"```python\n(import cstonet as cs\n.*?)```\n\n```\n(.*?)\n```", re.DOTALL)
MEDIATION = re.compile(
    r"```python\n(sim = cs.datasets.three_med.*?)```\n\n```\n(.*?)\n```", re.DOTALL
)

GROUPS = re.compile(r"```python\n(print\(res.gate.*?)```\n\n```\n(.*?)\n```", re.DOTALL)


@pytest.mark.slow
def test_example_prints_its_output(request):
    text = README.read_text(encoding="utf-8")
    code, shown = EXAMPLE.search(text).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    actual = printed.getvalue().rstrip()
    if request.config.getoption("--regenerate-golden"):
        README.write_text(text.replace(shown, actual), encoding="utf-8")
    else:
        assert actual == shown


@pytest.mark.slow
def test_groups_print_their_output():
    text = README.read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    code, shown = GROUPS.search(text).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(EXAMPLE.search(text).group(1), scope)
        printed.truncate(0)
        printed.seek(0)
        exec(code, scope)
    assert printed.getvalue().rstrip() == shown


@pytest.mark.slow
def test_mediation_example_prints_its_output():
    text = README.read_text(encoding="utf-8")
    code, shown = MEDIATION.search(text).groups()
    scope: dict[str, object] = {"cs": cs}
    exec(code, scope)
    summary = str(scope["res"].summary()).splitlines()
    for line in shown.splitlines():
        assert line in summary


FIGURES = {
    "cs.datasets.dose_curve": lambda scope: [
        str(scope["res"].effect()),
        f"true AME {scope['sim'].ame:.3f}",
        f"oracle says {scope['sim'].oracle().estimates[0]:.3f}",
    ],
    "cs.datasets.simulation2": lambda scope: [
        str(scope["res"].effect()),
        f"truth is {scope['sim'].sample_ate:.3f}",
        f"{100 * scope['res'].effects.missing_information[0]:.1f} %",
        f"{scope['holes'].data.isna().sum().sum()} values",
        f"{scope['holes'].data.isna().any(axis=1).sum()} rows",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("source", FIGURES)
def test_comments_tell_the_figures(source):
    """What the comments beside the code say is what the code gives."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = [block for block in blocks if block.startswith(f"sim = {source}")]
    scope: dict[str, object] = {"cs": cs}
    exec(code.replace(", curve.plot()", ""), scope)  # plots need an extra
    for figure in FIGURES[source](scope):
        assert figure in code
