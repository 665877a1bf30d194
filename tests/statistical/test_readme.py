"""The README's example prints what the README says it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
EXAMPLE = re.compile(r"```python\n(import cstonet as cs\n.*?)```\n\n```\n(.*?)\n```", re.DOTALL)


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
