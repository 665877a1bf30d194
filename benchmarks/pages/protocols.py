"""The lines of the headline table: which results each is made of."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from common import Record
from field_protocols import PROTOCOLS
from metrics import REFERENCE, Truth, truth_of
from tuning import without_tuning

from pages.shared import groups_of, of_single_effects
from pages.support import of_effect


@dataclass(frozen=True, slots=True)
class Line:
    """What a line is made of.

    Parameters
    ----------
    title : str
        First cell.
    groups : str
        Pattern of the names of its groups.
    method : str
        The package's default for these data.
    effect : str
        Name of the effect; empty: the one of the record, or all of several.
    led : bool
        Whether results are of several effects, of which one leads the others.
    errors : {"sample", "population"}
        The truth that errors are measured against.
    scaled : bool
        Whether errors are in standard deviations of the outcome.
    oracle : bool
        Whether the oracle is of use.
    numbers : range or None
        Data sets that it is about; None: all.
    """

    title: str
    groups: str
    method: str = REFERENCE
    effect: str = ""
    led: bool = False
    errors: Truth = "sample"
    scaled: bool = False
    oracle: bool = True
    numbers: range | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What the lines of a results file are.

    Parameters
    ----------
    file, page : str
        Names of the file and of its page.
    lines : tuple of Line
        Lines of several groups, or with a title of their own. Every other group is a line, too.
    method : str
        The package's default in these.
    skipped : str
        Pattern of groups that have no line.
    """

    file: str
    page: str
    lines: tuple[Line, ...] = ()
    method: str = REFERENCE
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Protocol:
    """A line and its results.

    Parameters
    ----------
    line : Line
        What it is made of.
    page : str
        Name of the page with all about it.
    records : list of dict
        Results of all methods, one effect each; without data sets that served to choose options,
        where there are others.
    fresh : bool
        Whether there are others.
    """

    line: Line
    page: str
    records: list[Record] = field(repr=False)
    fresh: bool


def field_line(title: str, name: str) -> Line:
    """The line of a field protocol: its data sets and truth are those of its page."""
    protocol = PROTOCOLS[name]
    return Line(
        title,
        "|".join(map(re.escape, protocol.groups)),
        led=protocol.question == "arms",
        errors=protocol.errors,
        scaled=protocol.scaled,
        numbers=protocol.numbers,
    )


def effects_line(title: str, simulation: str) -> Line:
    """The line of a simulation of effects.py, whose truths are the population's."""
    return Line(title, f"{simulation}.*", OWN, errors="population")


# What effects.py calls the package.
OWN = "cstonet"
_DETERMINED = "category|threshold|jointly"
_CONFOUNDERS = "thirty|approx-sparse|seven-weak|linear-.*|arm-slope"
_TWINS = "psid-twin|cps-twin"

SOURCES = (
    Source("accuracy.jsonl", "simulations"),
    Source(
        "paper.jsonl",
        "paper",
        (
            Line("Paper: simulation 1 by n", r"varying-n .*"),
            Line("Paper: complete data and missing values", r"missing (complete|mar|mnar).*"),
            # The oracle makes no error against the rows there.
            Line("Paper: complete data without noise", r"missing noise-free.*", oracle=False),
            Line("Paper: Twins in thirds", r"twins"),
        ),
        # Splits of one data set have no Monte-Carlo error, and TCGA has no truth.
        skipped=r"(acic-ate|acic-cate|tcga).*",
    ),
    Source(
        "field.jsonl",
        "field",
        (
            field_line("DoubleML's IRM simulation", "irm"),
            field_line("DoubleML's simulation of several arms", "multi-arm"),
            field_line("Twins", "twins"),
            field_line("ACIC 2019, high-dimensional", "acic2019"),
            field_line("ACIC 2019, low-dimensional", "acic2019-low"),
            field_line("ACIC 2016", "acic2016"),
            field_line("IHDP", "ihdp"),
            field_line("Simulated on TCGA's genes", "tcga-genes"),
        ),
        # Real data without a truth, each fitted with several seeds.
        skipped="|".join(
            re.escape(group)
            for protocol in PROTOCOLS.values()
            if protocol.benchmark != "truth"
            for group in protocol.groups
        ),
    ),
    Source(
        "missing.jsonl",
        "missing",
        (
            Line("Missing at random, 10 %", r"mcar .*", "mar"),
            Line("Missing by treatment and outcome, 5 to 40 %", r"share .*", "mar"),
            Line("Missing in twenty columns", r"many .*", "mar"),
            Line("Missing not at random", r"paper .*", "mnar"),
        ),
    ),
    Source(
        "effects.jsonl",
        "effects",
        (
            effects_line("Three arms, both contrasts", "three_arms"),
            effects_line("One mediator: TE, NDE, NIE", "one_mediator"),
            effects_line("Three mediators: TE, NDE, NIE", "three_mediators"),
            effects_line("Linear mediation: TE, NDE, NIE", "linear_mediation"),
        ),
        method=OWN,
    ),
    Source(
        "dose.jsonl",
        "effects",
        (
            Line("Dose, marginal effect", r"dose, n.*", errors="population"),
            Line("Dose, uneven spread", r"dose, heteroscedastic.*", errors="population"),
        ),
    ),
    Source(
        "support.jsonl",
        "support",
        (
            Line("Rare arms, 9 to 1500 of 3000", r"rare-.*", errors="population"),
            Line("Many or weak confounders", _CONFOUNDERS, errors="population"),
            Line("Rich outcome surfaces, n=500", r"rich-.*", errors="population"),
            Line("Covariates determine the treatment", _DETERMINED, errors="population"),
            Line("LaLonde's twins, ATT", _TWINS, effect="ATT", errors="population"),
            # The oracle's weights explode there, see the page.
            Line("LaLonde's twins, ATE", _TWINS, errors="population", oracle=False),
        ),
    ),
)


def protocols_of(results: Mapping[str, Sequence[Record]]) -> list[Protocol]:
    """All lines for which there are results of the package's default.

    Parameters
    ----------
    results : dict of list of dict
        Results by name of their file.
    """
    protocols = []
    for source in SOURCES:
        records = list(results.get(source.file, ()))
        for line in (*source.lines, *lines_of_rest(source, records)):
            found = [
                r
                for r in records
                if re.fullmatch(line.groups, r["group"])
                and (line.numbers is None or r["seed"] in line.numbers)
            ]
            # A data set that only other methods have tried says nothing about the default.
            sets = {(r["group"], r["seed"]) for r in found if r["method"] == line.method}
            found = [r for r in found if (r["group"], r["seed"]) in sets]
            chosen, fresh = without_tuning(source.file, found)
            single = single_effects(chosen, line)
            if any("error" not in r for r in single if r["method"] == line.method):
                protocols.append(Protocol(line, source.page, single, fresh))
    return protocols


def lines_of_rest(source: Source, records: Sequence[Record]) -> list[Line]:
    """A line for each group that no line of the source is about."""
    taken = [source.skipped, *(line.groups for line in source.lines)]
    return [
        Line(f"{group[0].upper()}{group[1:]}", re.escape(group), source.method)
        for group in groups_of(records)
        if not any(re.fullmatch(known, group) for known in taken)
    ]


def single_effects(records: Sequence[Record], line: Line) -> list[Record]:
    """Results of one effect each, those of the line; what has no known truth is left out."""
    if line.effect:
        found = [r for r in (of_effect(record, line.effect) for record in records) if r is not None]
    else:
        found = of_single_effects(records, led=line.led)
    return [r for r in found if "error" in r or math.isfinite(truth_of(r, line.errors))]
