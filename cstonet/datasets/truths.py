"""What every simulated data set can say about itself: the truths of its rows and its effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import pandas as pd

from cstonet.estimators.aipw import Effects

# What something is called, and its value as text.
Line: TypeAlias = tuple[str, str]


class Simulated(Protocol):
    """A data set with all its truths, whatever its treatment."""

    @property
    def data(self) -> pd.DataFrame:
        """The rows to fit."""

    @property
    def formula(self) -> str:
        """The formula to fit."""

    def row_truths(self) -> pd.DataFrame:
        """The true nuisances of every row."""

    def describe(self) -> str:
        """Formula, true effects, and what the variables depend on: one per line."""


def one_effect(name: str, rows: float, population: float, oracle: Line) -> list[Line]:
    """The truths of the only effect of a data set, and what an oracle estimates."""
    return [
        (f"{name}, these rows", f"{rows:.6f}"),
        (f"{name}, population", f"{population:.6f}"),
        oracle,
    ]


def several_effects(
    rows: Mapping[str, float], population: Mapping[str, float], oracle: Effects
) -> list[Line]:
    """The truths of several effects, by name, each with what an oracle estimates.

    Parameters
    ----------
    rows, population
        Means over the rows, and in the population.
    oracle
        Estimates with the true nuisances, perhaps of further effects.
    """
    lines = []
    for name, truth in population.items():
        estimate = oracle_line(f"{name}, oracle", oracle, name)
        lines += one_effect(name, rows[name], truth, estimate)
    return lines


def oracle_line(label: str, oracle: Effects, name: str) -> Line:
    """The estimate of the effect of this name, with its standard error."""
    position = oracle.names.index(name)
    estimate, error = oracle.estimates[position], oracle.standard_errors[position]
    return label, f"{estimate:.6f} (standard error {error:.6f})"


def dependencies(treatment: Sequence[str], outcome: Sequence[str]) -> list[Line]:
    """The covariates that treatment and outcome depend on."""
    return [
        ("treatment depends on", " ".join(treatment)),
        ("outcome depends on", " ".join(outcome)),
    ]


def as_text(lines: Sequence[Line]) -> str:
    """Labels and values in two columns."""
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:{width}} {value}" for label, value in lines)
