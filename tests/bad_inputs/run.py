"""Every bad input, counted by class and outcome: ``python -m tests.bad_inputs.run``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import pandas as pd

from tests.bad_inputs.cases import all_cases
from tests.bad_inputs.outcome import DEFECTS, OUTCOMES, Case, Judged, judge


def judged(cases: Iterable[Case] | None = None) -> list[Judged]:
    """What becomes of each case; by default of all there are."""
    return [judge(case) for case in (all_cases() if cases is None else cases)]


def table(found: Sequence[Judged]) -> pd.DataFrame:
    """Number of cases by class (rows) and outcome (columns), with their sum in the last row."""
    seen = pd.DataFrame(
        {"class": [j.case.kind for j in found], "outcome": [j.outcome for j in found]}
    )
    counts = pd.crosstab(seen["class"], seen["outcome"]).reindex(columns=list(OUTCOMES))
    counts = counts.fillna(0).astype(int)
    counts.loc["all"] = counts.sum()
    return counts.assign(cases=counts.sum(axis=1))


def defects(found: Iterable[Judged]) -> list[Judged]:
    """The cases that did not end as they should."""
    return [j for j in found if j.outcome in DEFECTS]


def main() -> int:
    """Print the table and every defect; the exit code is 1 if there are any."""
    found = judged()
    print(table(found).to_string())
    wrong = defects(found)
    for one in wrong:
        print(ascii(str(one)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
