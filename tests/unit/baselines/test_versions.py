"""What tells a result of former settings from one of present ones."""

from __future__ import annotations

import subprocess

import field_peers
import peers
import pytest
import runner
from baselines import BASELINES
from baselines.base import version_recipe


def test_first_versions_have_no_recipe():
    # Results from before there were versions have none.
    assert [version_recipe(version) for version in (1, 2, 12)] == ["", "v2", "v12"]
    assert peers.PEERS["bart"].recipe == ""
    assert BASELINES["dse"].recipe == ""
    assert peers.Peer("name", (), peers.bart, version=3).recipe == "v3"


def test_all_peers_with_the_same_learners_have_the_same_version():
    for name in peers.DOUBLEML:
        assert peers.PEERS[name].recipe == field_peers.TREATED_PEERS[name].recipe
    changed = {
        name
        for name in peers.DOUBLEML
        if field_peers.ARMS_PEERS[name].recipe != peers.PEERS[name].recipe
    }
    assert changed == {"doubleml-lightgbm-slow"}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one commit of a source and of results, as the benchmarks' own."""

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (results / "field.jsonl").write_text("{}\n")
    (tmp_path / "source.py").write_text("a = 1\n")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "RESULTS", results)
    runner.commit.cache_clear()
    yield tmp_path, git("rev-parse", "--short", "HEAD")
    runner.commit.cache_clear()


def test_commit_says_whether_sources_have_changed(repository):
    root, head = repository
    (root / "benchmarks" / "results" / "field.jsonl").write_text("{}\n{}\n")
    (root / "untracked.py").write_text("b = 2\n")
    assert runner.commit() == head
    (root / "source.py").write_text("a = 2\n")
    runner.commit.cache_clear()
    assert runner.commit() == f"{head}+"


def test_there_is_no_commit_outside_a_repository(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "RESULTS", tmp_path / "benchmarks" / "results")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    runner.commit.cache_clear()
    assert runner.commit() == ""
    runner.commit.cache_clear()
