"""What the results on a page were computed with: commits, plans, recipes, versions of peers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from baselines import BASELINES
from common import Method, Record
from field_peers import ARMS_PEERS, TREATED_PEERS
from field_protocols import PROTOCOLS
from metrics import data_set_of
from own import preset_of, recipe_of
from peers import PEERS
from tables import DASH, markdown_table

# Kinds of results that are listed one by one; the others are counted.
MOST_LISTED = 8
UNKNOWN = "not recorded"
# What methods of others have for a recipe, see `baselines.base.version_recipe`.
VERSION = re.compile(r"(v\d+)?")
# Methods of others by what a protocol asks; elsewhere it is the ATE.
METHODS: dict[str, Mapping[str, Method]] = {
    "ATE": {**PEERS, **BASELINES},
    "ATT": TREATED_PEERS,
    "arms": ARMS_PEERS,
}
QUESTIONS = {
    group: protocol.question for protocol in PROTOCOLS.values() for group in protocol.groups
}


def is_own(record: Record) -> bool:
    """Whether a result is of a fit of the package: others have a version for a recipe."""
    fitted = any(key in record for key in ("estimate", "effects", "questions", "error"))
    return fitted and VERSION.fullmatch(record.get("recipe", "")) is None


def is_former(record: Record) -> bool:
    """Whether a result is of a recipe or version before the present one."""
    recipe = record.get("recipe", "")
    if not is_own(record):
        question = QUESTIONS.get(data_set_of(record)[0], "ATE")
        method = METHODS[question].get(record["method"])
        return method is not None and recipe != method.recipe
    # A recipe may go on with a digest of the sources.
    return not f"{recipe}-".startswith(f"{_present_recipe(preset_of(record['method']))}-")


@cache
def _present_recipe(preset: str) -> str:
    return recipe_of(preset)


def provenance(records: Sequence[Record]) -> str:
    """The end of a page: the package's results counted by commit, and by plan or recipe.

    Of others' results those are counted whose settings here have changed since.
    """
    own = [r for r in records if is_own(r)]
    if not own:
        return ""
    former, former_others = (
        sum(is_former(r) for r in records if is_own(r) is ours) for ours in (True, False)
    )
    planned = sum("plan" in r for r in own)
    text = [
        "## Provenance\n",
        f"Of the package's {len(own)} results on this page, {former} are of a former recipe. "
        f"{planned} carry the digest of their plan, the others that of their preset's options "
        "within the recipe."
        + (f" {former_others} results of peers are of former settings." if former_others else "")
        + "\n",
        count_table("commit", [r.get("commit") or UNKNOWN for r in own]),
        count_table("plan or recipe", [plan_of(r) for r in own]),
    ]
    return "\n".join(text)


def plan_of(record: Record) -> str:
    """Digest of the plan; the recipe of older results, which have none."""
    if "plan" in record:
        return f"plan {record['plan']}"
    return f"recipe {record['recipe']}" + (" (former)" if is_former(record) else "")


def count_table(title: str, names: Sequence[str]) -> str:
    """How often each name occurs, the frequent ones first; the rest in one row."""
    counts = Counter(names).most_common()
    rows = [[name, str(count)] for name, count in counts[:MOST_LISTED]]
    rest = counts[MOST_LISTED:]
    if rest:
        rows.append([f"{len(rest)} others", str(sum(count for _, count in rest))])
    return markdown_table([title, "results"], rows)


def overview(results: Mapping[str, Sequence[Record]]) -> str:
    """One row per page: how many results of the package, of which commits and recipes.

    Parameters
    ----------
    results : dict of list of dict
        All results of each page, by the page's name.
    """
    rows = []
    for page, records in results.items():
        own = [r for r in records if is_own(r)]
        commits = Counter(r.get("commit") or UNKNOWN for r in own)
        plans = {r["plan"] for r in own if "plan" in r}
        named = [name for name, _ in commits.most_common(3)]
        more = f", {len(commits) - 3} more" if len(commits) > 3 else ""
        rows.append(
            [
                f"[{page}]({page}.md)",
                str(len(own)),
                str(sum(map(is_former, own))),
                ", ".join(named) + more if named else DASH,
                str(len(plans)),
            ]
        )
    header = ["page", "results of the package", "of a former recipe", "commits", "plans"]
    return markdown_table(header, rows)
