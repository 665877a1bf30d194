"""Pictures without a screen, and a look at whether they leave matplotlib as it was."""

from __future__ import annotations

import matplotlib as mpl
import pytest


@pytest.fixture(autouse=True)
def untouched(tmp_path, monkeypatch):
    """Draw without a screen; no setting may change, no file may appear."""
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    assert not list(tmp_path.iterdir())
    plt.close("all")


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure(figsize=(4, 3)).subplots()
