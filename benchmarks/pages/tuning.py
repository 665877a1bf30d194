"""Data sets that were looked at while the package's options and constants were chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence

from common import Record

# Seeds of simulated data up to this one.
LAST_TUNING_SEED = 4000
SIMULATED = range(LAST_TUNING_SEED + 1)
EVERY = range(2**31)

# By results file and name of the group; the first that fits counts. What fits none was not used.
TUNING: tuple[tuple[str, str, range], ...] = (
    ("accuracy|timing", r".*2-binomial.*", range(4101)),
    ("accuracy|timing|missing|effects|dose|support|scale", r".*", SIMULATED),
    ("paper", r"(varying-n|missing) .*", SIMULATED),
    # Each number is a split of the same data set.
    ("paper", r".*testdataset[1-4]", EVERY),
    ("field|paper", r"twins", range(1, 3)),
    ("field", r"acic2016", range(1, 3)),
    ("field", r"acic2019", range(1, 5)),
    ("field", r"ihdp", range(1, 3)),
)


def is_tuning(file: str, record: Record) -> bool:
    """Whether a result of ``file`` is of a data set that served to choose.

    Parameters
    ----------
    file : str
        Name of the results file, such as "field.jsonl".
    record : dict
        The result.
    """
    for files, groups, numbers in TUNING:
        if re.fullmatch(files, file.removesuffix(".jsonl")) and re.fullmatch(
            groups, record["group"]
        ):
            return record["seed"] in numbers
    return False


def without_tuning(file: str, records: Sequence[Record]) -> tuple[list[Record], bool]:
    """The results on data sets that did not serve, and whether there are any; else all."""
    fresh = [r for r in records if not is_tuning(file, r)]
    return (fresh, True) if fresh else (list(records), False)


def tuning_note(file: str, records: Sequence[Record]) -> list[str]:
    """Say how many of the data sets served to choose the package's options, if any did."""
    sets = {(r["group"], r["seed"]) for r in records}
    used = {(r["group"], r["seed"]) for r in records if is_tuning(file, r)}
    if not used:
        return []
    return [f"{len(used)} of the {len(sets)} data sets here served to choose options.\n"]
