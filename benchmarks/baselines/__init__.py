"""The methods that the paper compares with, by name."""

from __future__ import annotations

from baselines.base import Baseline

BASELINES: dict[str, Baseline] = {}
