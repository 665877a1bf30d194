"""Data sets that were looked at while the package's options and constants were chosen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from common import Record

# Seeds of simulated data up to this one.
LAST_TUNING_SEED = 4000
SIMULATED = range(LAST_TUNING_SEED + 1)
EVERY = range(2**31)
NONE = range(0)

# By results file and name of the group; the first that fits counts. What fits none was not used.
TUNING: tuple[tuple[str, str, range], ...] = (
    ("accuracy|timing", r".*2-binomial.*", range(4101)),
    ("accuracy|timing|missing|effects|dose|support|workbench|scale", r".*", SIMULATED),
    ("paper", r"(varying-n|missing) .*", SIMULATED),
    # Each number is a split of the same data set.
    ("paper", r".*testdataset[1-4]", EVERY),
    ("field", r"irm|multi-arm|tcga-genes", SIMULATED),
    ("field|paper", r"twins", range(1, 22)),
    ("field", r"acic2016", range(1, 3)),
    ("field", r"acic2019", range(1, 5)),
    ("field", r"ihdp", range(1, 3)),
    # Each number is a fit to the same data.
    ("field", r"lalonde-(psid|cps)", EVERY),
)


def tuning_numbers(file: str, group: str) -> range:
    """Numbers of the data sets of a group that served to choose.

    Parameters
    ----------
    file : str
        Name of the results file, such as "field.jsonl".
    group : str
        Name of the group.
    """
    for files, groups, numbers in TUNING:
        if re.fullmatch(files, file.removesuffix(".jsonl")) and re.fullmatch(groups, group):
            return numbers
    return NONE


def is_tuning(file: str, record: Record) -> bool:
    """Whether a result of ``file`` is of a data set that served to choose."""
    return record["seed"] in tuning_numbers(file, record["group"])


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
    if all(tuning_numbers(file, group) is EVERY for group, _ in sets):
        return ["These data served to choose options.\n"]
    return [f"{len(used)} of the {len(sets)} data sets here served to choose options.\n"]


def looked_at(file: str, groups: Iterable[str]) -> str:
    """The data sets of these groups that served to choose, in words; groups alike together."""
    found: dict[range, list[str]] = {}
    for group in groups:
        numbers = tuning_numbers(file, group)
        if numbers:
            found.setdefault(numbers, []).append(f"`{group}`")
    return "; ".join(f"{_joined(names)} {_in_words(n)}" for n, names in found.items())


def _joined(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _in_words(numbers: range) -> str:
    if numbers is EVERY:
        return "(all there is)"
    if numbers.start == 0:
        return f"up to {numbers[-1]}"
    return " and ".join(map(str, numbers)) if len(numbers) < 3 else f"{numbers[0]} to {numbers[-1]}"
