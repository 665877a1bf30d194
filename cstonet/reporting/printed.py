"""Answers that are printed: in a terminal as text, in a notebook as HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cstonet.reporting.tables import CausalSummary


class Printed(ABC):
    """An answer with a summary, which is what printing it shows."""

    __slots__ = ()

    @abstractmethod
    def summary(self) -> CausalSummary:
        """Tables and notes, to print or to export: as_text, as_html, as_latex, as_csv."""

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()
