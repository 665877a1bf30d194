"""Which analyses there are, and which one suits the data."""

from __future__ import annotations

from cstonet.analyses.arms.analysis import ArmsAnalysis
from cstonet.analyses.base import AnyAnalysis
from cstonet.analyses.doses.analysis import DoseAnalysis
from cstonet.analyses.mediation.analysis import MediationAnalysis
from cstonet.data.raw import RawData

# In the order in which they are asked whether the data suit them; the last takes what is left.
ANALYSES: list[AnyAnalysis] = [MediationAnalysis(), DoseAnalysis(), ArmsAnalysis()]


def choose_analysis(raw: RawData, kind: str | None) -> AnyAnalysis:
    """The analysis of these variables.

    Parameters
    ----------
    raw : RawData
        The variables, before any check of their values.
    kind : str or None
        The kind of treatment that the user asked for.
    """
    return next(analysis for analysis in ANALYSES if analysis.suits(raw, kind))


def treatment_kinds() -> tuple[str, ...]:
    """Every kind of treatment that some analysis has."""
    kinds = [kind for analysis in reversed(ANALYSES) for kind in analysis.kinds]
    return tuple(dict.fromkeys(kinds))
