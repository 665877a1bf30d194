"""The benchmarks' report: paired figures, the headline and its misses, pages, provenance."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

pytest.importorskip("matplotlib")

import common
import metrics
import own
import pairs
import report
import tables
import tuning
from field_peers import TREATED_PEERS
from field_protocols import PROTOCOLS
from pages import (
    effects,
    front,
    headline,
    missing,
    protocols,
    provenance,
    shared,
    simulations,
)
from peers import PEERS

PRESENT = own.recipe_of("calibrated")


def record(seed: int, estimate: float, **changes: object) -> common.Record:
    """A result of the default with an interval of ± 0.2, truths 1.0 (rows) and 1.1."""
    return {
        "group": "g",
        "seed": seed,
        "method": metrics.REFERENCE,
        "recipe": PRESENT,
        "seconds": 2.0,
        "n": 800,
        "estimate": estimate,
        "se": 0.1,
        "lower": estimate - 0.2,
        "upper": estimate + 0.2,
        "sample_ate": 1.0,
        "ate": 1.1,
        "oracle": [1.05, 0.1],
        "y_sd": 2.0,
        "selection": None,
        "pehe": 0.5,
    } | changes


def peer(seed: int, estimate: float, method: str = "peer", **changes: object) -> common.Record:
    return record(seed, estimate, method=method, recipe="", **changes)


def write(folder: Path, name: str, records: list[common.Record]) -> None:
    lines = [json.dumps(r) + "\n" for r in records]
    (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def row(records: list[common.Record], file: str = "accuracy.jsonl") -> headline.Row:
    (protocol,) = protocols.protocols_of({file: records})
    return headline.row_of(protocol)


def cells(text: str, beginning: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(beginning)]
    return [cell.strip() for cell in line.strip("|").split("|")]


# Two methods on the same data sets ---------------------------------------------------------------


def group_of(own_values: list[float], other: list[float], first: int = 1) -> pairs.Pairs:
    seeds = np.arange(first, first + len(own_values))
    return pairs.Pairs(seeds, np.array(own_values), np.array(other))


def test_ratio_of_means_by_hand():
    found = pairs.ratio_of_means([group_of([1.0, 3.0, 2.0], [4.0, 4.0, 4.0])])
    assert found.value == pytest.approx(0.5)
    # The other does not vary: what is left is the relative error of the own mean.
    assert found.error == pytest.approx(0.5 * (1.0 / 2.0) / math.sqrt(3))


def test_a_ratio_of_what_moves_together_is_known_exactly():
    found = pairs.ratio_of_means([group_of([1.0, 3.0, 2.0], [2.0, 6.0, 4.0])])
    assert (found.value, found.error) == (pytest.approx(0.5), pytest.approx(0.0, abs=1e-15))


def test_groups_are_averaged_geometrically_and_share_their_seeds():
    one, other = group_of([1.0, 3.0], [2.0, 2.0]), group_of([4.0, 12.0], [2.0, 2.0])
    together = pairs.ratio_of_means([one, other])
    assert together.value == pytest.approx(math.sqrt(1.0 * 4.0))
    # The second group repeats the first's relative errors: nothing is gained by it.
    assert together.error / together.value == pytest.approx(pairs.ratio_of_means([one]).error)
    # With other data sets of the same spread, the relative error is over √2, but for m / (m - 1).
    apart = pairs.ratio_of_means([one, group_of([4.0, 12.0], [2.0, 2.0], first=10)])
    ratio = together.error / apart.error
    assert ratio == pytest.approx(math.sqrt(2) * math.sqrt((2 / 1) / (4 / 3)))


def test_no_ratio_without_pairs_or_with_a_perfect_method():
    assert math.isnan(pairs.ratio_of_means([]).value)
    assert math.isnan(pairs.ratio_of_means([group_of([1.0], [0.0])]).value)
    assert math.isnan(pairs.ratio_of_means([group_of([1.0], [2.0])]).error)


def test_ratio_error_agrees_with_many_draws():
    rng = np.random.default_rng(5)
    draws = []
    for _ in range(2000):
        common_part = rng.exponential(size=50)
        first, second = (common_part + rng.exponential(size=50) for _ in range(2))
        draws.append(pairs.ratio_of_means([pairs.Pairs(np.arange(50), first, second)]))
    spread = np.std([found.value for found in draws])
    claimed = np.mean([found.error for found in draws])
    # A standard deviation of m draws is known to 1 / √(2m); the delta method leaves out terms of
    # the relative variance of a mean, 2 / 4 / 50.
    assert claimed == pytest.approx(spread, rel=4 / math.sqrt(2 * 2000) + 0.01)


def test_only_common_data_sets_with_estimates_are_paired():
    mine = [record(1, 1.2), record(2, 1.3), record(3, 1.4), record(1, 1.5, group="h")]
    failed = {"group": "g", "seed": 2, "method": "peer", "seconds": 1.0, "error": "E: x"}
    theirs = [peer(1, 1.1), failed, peer(4, 1.1), peer(3, math.nan)]
    (pair,) = pairs.paired(mine, theirs, metrics.absolute_error)
    assert pair.seeds.tolist() == [1]
    assert (pair.own[0], pair.other[0]) == (pytest.approx(0.2), pytest.approx(0.1))


def test_intervals_that_cover_together_count_once():
    single = [record(seed, 1.0 if seed % 4 else 5.0) for seed in range(1, 41)]
    both = [r | {"group": group} for r in single for group in ("g: one", "g: two")]
    alone, together = metrics.coverage_of(single), metrics.coverage_of(both)
    assert alone.share == together.share == 0.75
    assert alone.n_independent == together.n_independent == pytest.approx(40)
    assert together.figure.error == pytest.approx(metrics.coverage_error(30, 40))
    # Where all cover, whether they do so together cannot be seen: data sets count.
    always = [r | {"lower": 0.0, "upper": 9.0} for r in both]
    assert metrics.coverage_of(always) == metrics.Coverage(1.0, 40.0)


def test_intervals_apart_count_each():
    # Of two groups one fails where the other holds: less variable than as many independent ones.
    one = [record(seed, 1.0 if seed % 2 else 5.0) for seed in range(1, 21)]
    other = [record(seed, 5.0 if seed % 2 else 1.0, group="h") for seed in range(1, 21)]
    assert metrics.coverage_of([*one, *other]) == metrics.Coverage(0.5, 40.0)


def test_intervals_of_rows_are_asked_about_rows():
    # Rows' effect 1.0, the population's 1.1; intervals from 0.85 to 1.05.
    short = {"lower": 0.85, "upper": 1.05}
    for method, share in (("peer", 0.0), ("bart", 1.0), ("bcf", 1.0), ("econml-forest", 1.0)):
        summary = metrics.summarize([peer(s, 0.95, method, **short) for s in (1, 2)])
        assert (summary.coverage, summary.covers_rows) == (share, share == 1.0)
        assert tables.coverage_text(summary).endswith("§") is summary.covers_rows
    # Where no other truth is known, it is the same question for all.
    alike = metrics.summarize([peer(s, 0.95, "bart", ate=None, **short) for s in (1, 2)])
    assert (alike.coverage, alike.covers_rows) == (1.0, False)


def test_several_effects_are_averaged_within_a_data_set():
    def effect(name: str, seed: int, error: float) -> common.Record:
        return record(seed, 1.0 + error, group=f"g: {name}", data="g")

    errors = {1: (0.1, -0.3), 2: (0.1, 0.1), 3: (0.2, 0.4)}
    records = [effect("ab"[i], s, e[i]) for s, e in errors.items() for i in (0, 1)]
    failed = {"group": "g", "seed": 4, "method": metrics.REFERENCE, "seconds": 1.0, "error": "x"}
    summary = metrics.summarize([*records, failed])
    assert (summary.n_sets, summary.n_failed) == (3, 1)
    # Means of |error| 0.2, 0.1, 0.3, of squares 0.05, 0.01, 0.1, of errors -0.1, 0.1, 0.3.
    assert (summary.mae, summary.mae_error) == pytest.approx((0.2, 0.1 / math.sqrt(3)))
    assert summary.rmse == pytest.approx(math.sqrt(0.16 / 3))
    assert (summary.bias, summary.bias_error) == pytest.approx((0.1, 0.2 / math.sqrt(3)))
    assert summary.oracle_ratio_error == pytest.approx(0.1 / math.sqrt(3) / 0.05)


def test_selection_rates_have_errors():
    def selected(false: int) -> dict[str, dict[str, int]]:
        return {"outcome": {"selected": 4, "false": false, "missed": 0, "true": 4}}

    records = [record(s, 1.0, selection=selected(false)) for s, false in enumerate((0, 1, 2))]
    false, missed = metrics.selection_figures(records, "outcome")
    # With as many selected everywhere it is a mean of shares 0, 1/4, 1/2.
    assert (false.value, false.error) == (pytest.approx(0.25), pytest.approx(0.25 / math.sqrt(3)))
    assert (missed.value, missed.error) == (0.0, 0.0)
    assert math.isnan(metrics.selection_figures(records, "mediator")[0].value)


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        ((0.12345, 0.0123), "0.123 ± 0.012"),
        ((1234.5, 56.7), "1234 ± 57"),
        ((4.0, 0.9999), "4.0 ± 1.0"),
        ((0.5, math.nan), "0.500"),
        ((0.0, 0.0), "0"),
        ((math.nan, 0.1), "–"),
    ],
)
def test_figures_as_text(figure, text):
    assert tables.figure_text(pairs.Figure(*figure)) == text


# The headline ------------------------------------------------------------------------------------


def test_headline_figures_by_hand():
    ours = [record(4000 + s, 1.0 + s / 10, cpu=1.0 + s) for s in (1, 2, 3, 4)]
    theirs = [peer(4000 + s, 1.4, cpu=10.0, pehe=1.0) for s in (1, 2, 3)]
    found = row([*ours, *theirs])
    assert (found.title, found.page, found.n_sets) == ("G", "simulations", 4)
    assert found.oracle.value == pytest.approx(0.25 / 0.05)
    assert found.length.value == pytest.approx(0.4 / (2 * common.Z95 * 0.1))
    # Intervals around 1.1, 1.2 and 1.3 hold 1.1.
    assert found.coverage.share == 0.75
    assert (found.seconds, found.n_peers) == (3.5, 1)
    # On the first three: errors 0.1, 0.2, 0.3 against 0.4.
    assert (found.best.peer, found.best.n_sets) == ("peer", 3)
    assert found.best.error.value == pytest.approx(0.2 / 0.4)
    assert found.best.error.error == pytest.approx(0.5 * 0.1 / 0.2 / math.sqrt(3))
    assert found.best.pehe.value == pytest.approx(0.5)
    assert (found.best.own_seconds, found.best.peer_seconds) == (3.0, 10.0)


def test_the_best_peer_must_have_done_half():
    ours = [record(4000 + s, 1.2) for s in range(1, 7)]
    few = [peer(4000 + s, 1.01, "few") for s in (1, 2)]
    enough = [peer(4000 + s, 1.1, "enough") for s in (1, 2, 3)]
    worse = [peer(4000 + s, 1.9, "worse") for s in range(1, 7)]
    another_preset = [record(4000 + s, 1.0, method="stonet") for s in range(1, 7)]
    found = row([*ours, *few, *worse, *enough, *another_preset])
    assert found.best.peer == "enough"
    assert found.best.error.value == pytest.approx(2.0)
    assert found.n_peers == 2
    alone = row([*ours, *few, *another_preset])
    assert (alone.best, alone.n_peers) == (None, 0)


def test_the_best_peer_is_the_one_that_the_default_does_worst_beside():
    ours = [record(4000 + s, 1.0 + s / 10) for s in (1, 2, 3, 4)]
    # The smaller mean error of the two, 0.1, is on data sets that are easy for the default too.
    easy = [peer(4000 + s, 1.1, "easy") for s in (1, 2)]
    hard = [peer(4000 + s, 1.2, "hard") for s in (3, 4)]
    found = row([*ours, *easy, *hard])
    assert found.best.peer == "hard"
    assert found.best.error.value == pytest.approx(0.35 / 0.2)


def test_time_is_compared_where_processors_were_timed():
    ours = [record(4000 + s, 1.2, cpu=3.0) for s in (1, 2, 3)]
    clocked = [peer(4000 + s, 1.1, seconds=1.0) for s in (1, 2, 3)]
    found = row([*ours, *clocked])
    assert math.isnan(found.best.cost.value)
    assert cells(front.error_table([found], []), "| G")[-1] == "3.00"  # no column of the peer's
    assert "more processor time" not in "\n".join(front.shortfalls([found]))
    once = row([*ours, clocked[0] | {"cpu": 1.0}, *clocked[1:]])
    assert (once.best.own_seconds, once.best.peer_seconds) == (3.0, 1.0)
    assert once.best.cost.value == pytest.approx(3.0)
    # Of the default alone it is the same.
    assert math.isnan(row([record(4000 + s, 1.2) for s in (1, 2)]).seconds)


def test_nobody_is_beaten_where_the_package_has_no_answer():
    head = {"group": "category", "method": metrics.REFERENCE, "recipe": PRESENT, "seconds": 1.0}
    refused = [head | {"seed": 4000 + s, "error": "SeparationError: x"} for s in (1, 2)]
    answered = [record(4000 + s, 1.2, group="category") for s in (3, 4)]
    theirs = [peer(4000 + s, 2.0, group="category") for s in range(1, 5)]
    half = row([*refused, *answered, *theirs], "support.jsonl")
    assert (half.best.peer, half.unanswered) == ("peer", False)
    doubtful = [answered[0], answered[1] | {"estimable": False}]
    most = row([*refused, *doubtful, *theirs], "support.jsonl")
    assert (most.best, most.n_peers, most.unanswered) == (None, 1, True)
    assert "1 protocols, 0 of them beside peers" in front.tally([most])
    words = "\n".join(front.shortfalls([most]))
    assert "No answer to rely on for most data sets, by the package's own word: Cov" in words
    assert "No peer did" not in words


def test_short_cuts_with_the_package_are_no_peers():
    group = {"group": "share 5 %, n=9, p=9"}
    ours = [record(4000 + s, 1.1, method="mar", **group) for s in (1, 2)]
    filled = [record(4000 + s, 1.4, method="mean", **group) for s in (1, 2)]
    found = row([*ours, *filled], "missing.jsonl")
    assert (found.best, found.n_peers) == (None, 0)


def test_field_lines_have_the_truth_and_the_data_sets_of_their_page():
    lines = {line.title: line for source in protocols.SOURCES for line in source.lines}
    assert lines["DoubleML's IRM simulation"].errors == "population"
    assert lines["ACIC 2019, low-dimensional"].scaled
    assert lines["Twins"].numbers == PROTOCOLS["twins"].numbers
    # A draw that is fresh, but none of the protocol's.
    assert not tuning.is_tuning("field.jsonl", {"group": "twins", "seed": 22})
    twins = [record(s, 1.2, group="twins") for s in (22, 101, 102)]
    (protocol,) = protocols.protocols_of({"field.jsonl": twins})
    assert [r["seed"] for r in protocol.records] == [101, 102]
    # Errors 0.1 against the population's 1.1, 0.2 against the rows'.
    irm = row([record(4000 + s, 1.2, group="irm") for s in (1, 2)], "field.jsonl")
    assert irm.oracle.value == pytest.approx(0.1 / 0.05)
    assert "to the population's on: DoubleML's IRM simulation. " in front.notes([irm])


def test_tuning_data_sets_are_left_out_where_there_are_others():
    used, fresh = [record(s, 3.0) for s in (1, 2)], [record(4000 + s, 1.2) for s in (1, 2, 3)]
    found = row([*used, *fresh])
    assert (found.n_sets, found.fresh) == (3, True)
    assert found.oracle.value == pytest.approx(0.2 / 0.05)
    only = row([*used, *(peer(s, 9.0) for s in (1, 2))])
    assert (only.n_sets, only.fresh) == (2, False)
    assert "G †" in front.error_table([only], [])
    # A quarter of the peer's error, and no win.
    assert only.best.error.value == pytest.approx(2 / 8)
    assert "1 protocols, 0 of them beside peers" in front.tally([only])


def test_what_served_to_choose():
    def used(file: str, group: str, seed: int) -> bool:
        return tuning.is_tuning(f"{file}.jsonl", {"group": group, "seed": seed})

    assert used("accuracy", "simulation 1, n=9, p=9", 4000)
    assert not used("accuracy", "simulation 1, n=9, p=9", 4001)
    assert used("accuracy", "simulation 2-binomial, n=9, p=9", 4100)
    assert not used("accuracy", "simulation 2-binomial, n=9, p=9", 4101)
    assert [used("field", "twins", s) for s in (1, 21, 22)] == [True, True, False]
    assert [used("paper", "twins", s) for s in (21, 201)] == [True, False]
    assert [used("field", "acic2019", s) for s in (1, 4, 5)] == [True, True, False]
    assert not used("field", "acic2019-low", 1)
    for group in ("irm", "multi-arm", "tcga-genes"):
        assert [used("field", group, s) for s in (4000, 4001)] == [True, False]
    assert used("field", "lalonde-psid", 9)
    assert used("field", "lalonde-cps", 9)
    assert not used("field", "pension", 1)
    assert used("paper", "varying-n 800", 4000)


def test_what_served_is_said_in_words():
    groups = ("irm", "twins", "acic2016", "nhefs", "tcga-genes", "lalonde-cps")
    assert tuning.looked_at("field.jsonl", groups) == (
        "`irm` and `tcga-genes` up to 4000; `twins` 1 to 21; `acic2016` 1 and 2; "
        "`lalonde-cps` (all there is)"
    )
    note = tuning.tuning_note("field.jsonl", [{"group": "twins", "seed": s} for s in (21, 22)])
    assert note == ["1 of the 2 data sets here served to choose options.\n"]
    # Numbers are fits to one data set: to count them would be to count it thrice.
    fits = [{"group": "lalonde-cps", "seed": s} for s in (1, 2, 3)]
    assert tuning.tuning_note("field.jsonl", fits) == ["These data served to choose options.\n"]


def test_misses_are_bold_and_said_in_words():
    # Twice the peer's error up to ± 10 %, and intervals that never cover.
    ours = [
        record(4000 + s, 1.0 + error, lower=0.0, upper=0.1, cpu=9.0, pehe=1.0)
        for s, error in enumerate((0.2, 0.22, 0.18, 0.2), start=1)
    ]
    theirs = [peer(r["seed"], 1.1, cpu=1.0, pehe=0.5) for r in ours]
    found = row([*ours, *theirs])
    assert found.covers_too_little
    line = cells(front.error_table([found], []), "| G")
    # Four data sets, none covered: the error is that of (0 + 2) / (4 + 4).
    assert line[5:7] == ["**2.000 ± 0.082**", f"**0.0 ± {100 * math.sqrt(1 / 32 * 0.75):.1f} %**"]
    assert line[8:] == ["**9.00**", "1.00"]
    assert "**1.00**" in front.effects_table([found], [])
    words = "\n".join(front.shortfalls([found]))
    assert "G: intervals cover in 0.0 ±" in words
    assert "G: 2.000 ± 0.082 times the error of peer, 4 data sets" in words
    assert "G: 2.00 times the PEHE of peer" in words
    assert "more processor time than the best peer: G (9.00 s, peer 1.00 s)" in words
    assert "larger on 1 (1)" in front.tally([found])


def test_noise_is_no_miss():
    errors = enumerate((0.05, 0.35, 0.02), start=1)
    ours = [record(4000 + s, 1.0 + error, lower=0.9, upper=1.6) for s, error in errors]
    theirs = [peer(r["seed"], 1.1) for r in ours]
    found = row([*ours, *theirs])
    assert found.best.error.value > 1
    assert "**" not in front.error_table([found], [])
    words = "\n".join(front.shortfalls([found]))
    assert "Nowhere by more than two" in words
    assert "within two Monte-Carlo errors: G (1.4" in words


def test_coverage_is_judged_by_the_error_that_95_per_cent_would_have():
    def covering(held: int) -> headline.Row:
        found = [record(4000 + s, 1.1 if s <= held else 5.0) for s in range(1, 101)]
        return row(found)

    # √(0.95 · 0.05 / 100) = 0.0218: 90 of 100 are short by more than two, 91 are not. By the error
    # of Agresti and Coull, 0.031, 90 would not be.
    assert covering(90).covers_too_little
    assert not covering(91).covers_too_little
    assert covering(90).coverage.nominal_error == pytest.approx(math.sqrt(0.95 * 0.05 / 100))
    assert 0.90 + 2 * covering(90).coverage.figure.error > 0.95


def test_refusals_and_failures_are_counted():
    head = {"group": "category", "method": metrics.REFERENCE, "recipe": PRESENT, "seconds": 1.0}
    records = [
        record(4001, 1.1, group="category", estimable=False),
        head | {"seed": 4002, "error": "SeparationError: x"},
        head | {"seed": 4003, "error": "TimeoutError: x"},
    ]
    found = row(records, "support.jsonl")
    assert (found.n_sets, found.refused, found.failed, found.not_estimable) == (3, 1, 1, 1)
    assert found.title == "Covariates determine the treatment"
    assert "| 3, 1 refused, 1 failed, 1 not estimable |" in front.error_table([found], [])


def test_a_single_data_set_has_no_line():
    (protocol,) = protocols.protocols_of({"field.jsonl": [record(1, 1.0, group="ihdp")]})
    assert headline.row_of(protocol) is None


def test_data_without_a_truth_have_no_line():
    seeds = [record(s, 1.0, group="cattaneo") for s in (1, 2, 3)]
    unknown = [record(s, 1.0, sample_ate=math.nan, ate=None) for s in (4001, 4002)]
    assert protocols.protocols_of({"field.jsonl": seeds, "accuracy.jsonl": unknown}) == []


def several(seed: int, error: float, recipe: str = PRESENT) -> common.Record:
    """A result with two effects that err alike."""
    effect = {"estimate": 1.0 + error, "se": 0.1, "lower": 0.8 + error, "upper": 1.2 + error}
    effect |= {"truth": 1.0, "oracle": 1.1, "oracle_se": 0.1}
    head = {"group": "one_mediator, n=9, p=9", "seed": seed, "method": "cstonet"}
    selection = {"selected": 2, "false": 1, "missed": 0, "true": 1}
    models = ("treatment", "mediator", "outcome")
    return head | {
        "recipe": recipe,
        "seconds": 2.0,
        "effects": {"TE": effect, "NDE": effect},
        "selection": dict.fromkeys(models, selection),
    }


def test_several_effects_of_a_data_set_are_one_data_set():
    records = [several(4000 + s, error) for s, error in enumerate((0.1, -0.1, 0.3, 0.1), start=1)]
    found = row(records, "effects.jsonl")
    assert (found.n_sets, found.title) == (4, "One mediator: TE, NDE, NIE")
    assert found.oracle.value == pytest.approx(0.15 / 0.1)
    # The second effect says nothing new.
    assert found.oracle.error == pytest.approx(1.5 * 0.1 / 0.15 / math.sqrt(4))
    assert found.coverage.share == 0.75
    assert found.selection["outcome"][0].value == 0.5


def test_effects_behind_a_leading_one_are_taken_apart_where_a_line_says_so():
    effect = {"estimate": 1.3, "se": 0.1, "lower": 1.1, "upper": 1.5, "truth": 1.0}
    effect |= {"oracle": [1.1, 0.1]}
    arms = [
        record(s, 1.3, group="multi-arm", effects={"ATE[b-a]": effect, "ATE[c-a]": effect})
        for s in (4001, 4002)
    ]
    found = row(arms, "field.jsonl")
    assert (found.n_sets, found.coverage.share) == (2, 0.0)
    # Of the arms' own truth and oracle, not of the record's.
    assert found.oracle.value == pytest.approx(0.3 / 0.1)
    assert len(shared.of_single_effects(arms)) == 2
    assert len(shared.of_single_effects(arms, led=True)) == 4


# Pages -------------------------------------------------------------------------------------------


def test_report_writes_pages_for_what_is_there(tmp_path):
    counts = {"selected": 4, "false": 1, "missed": 2, "true": 5}
    selection = dict.fromkeys(("outcome", "treatment"), counts)
    simulated = [
        record(4000 + s, 1.05 + s / 10, group=f"simulation 1, n={n}, p=9", n=n, selection=selection)
        for n in (800, 1000)
        for s in (1, 2)
    ]
    for name in ("accuracy", "timing"):
        write(tmp_path, name, simulated)
    first = report.write_report(tmp_path).read_text(encoding="utf-8")
    text = (tmp_path / "simulations.md").read_text(encoding="utf-8")
    assert text.index("n=800") < text.index("n=1000") < text.index("## Time")
    # Errors 0.15 and 0.25 over the oracle's 0.05; both intervals hold 1.1.
    line = cells(text.partition("n=1000")[0], "| calibrated | 2 |")
    assert line[2:6] == ["0.200 ± 0.050", "0.206 ± 0.049", "+0.200 ± 0.050", "4.0 ± 1.0"]
    assert line[6:] == ["100.0 ± 19.2 %", "0.400", "0.500", "2.00 (clock)"]
    assert "| calibrated | 0.250 | 0.400 | 0.250 | 0.400 |" in text
    assert text.rstrip().endswith(f"| recipe {PRESENT} | 8 |")
    assert "[Simulation 1, n=800, p=9](simulations.md)" in first
    assert "- [simulations](simulations.md): " in first
    assert not (tmp_path / "cost.md").exists()
    assert "cost.md" not in first
    for picture in ("error_by_n", "coverage", "headline_error", "headline_coverage"):
        assert (tmp_path / f"{picture}.png").stat().st_size > 1000


def test_report_without_results_says_what_to_run(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"accuracy\.py"):
        report.write_report(tmp_path)


def test_peers_are_compared_on_their_own_data_sets():
    ours = [record(s, 1.0 + s / 10) for s in (1, 2, 3)]
    theirs = [peer(s, 1.5) for s in (1, 3)]
    methods = metrics.by_method([*ours, *theirs])
    oracle, reference, there = shared.difference_texts(methods)
    assert (oracle, reference) == ("–", "–")
    assert there == "-0.30 ± 0.10"  # 0.1 - 0.5 and 0.3 - 0.5
    table = shared.summary_table(
        [metrics.summarize(r) for r in methods.values()], ["–", "–", there]
    )
    assert "| method | data sets | MAE | calibrated - it |" in table
    # A peer on other data sets has nothing to be compared with.
    alien = metrics.by_method([*ours, peer(9, 1.5)])
    assert shared.difference_texts(alien)[-1] == "–"


def test_standard_errors_beside_the_spread(monkeypatch):
    # Errors of ± 0.1 around the population's 1.1, and one of 0.3: 1.4 ± 0.2 does not hold it.
    estimates = [1.0, 1.2, 1.0, 1.4]
    records = [record(s, e) for s, e in enumerate(estimates)]
    assert math.isnan(metrics.spread_ratio(records).value)  # too few to tell
    assert simulations.standard_error_section(records) == []
    monkeypatch.setattr(metrics, "MIN_SETS_OF_SPREAD", 4)
    # The sample's variance, Σ(e - ē)² / 3 with ē = 1.15, is 0.11 / 3.
    spread = math.sqrt(0.11 / 3)
    found = metrics.spread_ratio(records)
    assert found.value == pytest.approx(0.1 / spread)
    assert found.error == pytest.approx(0.1 / spread / math.sqrt(8))
    *_, table = simulations.standard_error_section([*records, peer(1, 5.0)])
    line = cells(table, "| g")
    assert line[1:3] == ["4", f"{0.1 / spread:.2f} ± {0.1 / spread / math.sqrt(8):.2f}"]
    assert line[3].startswith("75.0 ±")
    assert len(line) == 4


def test_page_of_several_effects(tmp_path):
    records = [several(4000 + s, error) for s, error in enumerate((0.1, -0.1, 0.1, 0.3), start=1)]
    failed = {"group": records[0]["group"], "seed": 4009, "method": "cstonet", "error": "x"}
    used = several(1001, 9.0)
    dose = record(4001, 1.2, group="dose, n=9, p=9", oracle_curve_rmse=0.5)
    dose |= {"curve": {"rmse": 1.0, "pointwise": 0.96, "uniform": True}}
    dose |= {"heteroscedastic": False, "gaussian": True}
    doses = [dose, dose | {"seed": 4002, "estimate": 1.0}]
    text = effects.page([*records, failed, used], doses, tmp_path)
    assert "## One mediator, n=9, p=9" in text
    assert "Failed: cstonet (x), 1 times." in text
    line = cells(text, "| NDE")
    # Mean absolute error 0.15 over the oracle's 0.1.
    assert line[1:5] == ["4", "+0.100 ± 0.082", "0.150 ± 0.050", "1.50 ± 0.50"]
    assert line[6].startswith("75.0 ±")
    assert cells(text, "| over 25")[1:3] == ["1.00", "2.00"]
    assert "FSR mediator" in text
    assert (tmp_path / "effects_coverage.png").stat().st_size > 1000
    # With nothing else they are shown, and it is said.
    only = effects.page([used, used | {"seed": 1002}], [], tmp_path)
    assert "2 of the 2 data sets here served to choose options." in only


def test_page_of_missing_values_compares_with_the_same_preset(tmp_path):
    counts = {"selected": 2, "false": 1, "missed": 0, "true": 1}
    common_fields = {
        "group": "mcar 10 %, n=9, p=9",
        "selection": dict.fromkeys(("outcome", "treatment"), counts),
    }
    errors = {"complete": 0.1, "mar": 0.2, "complete@stonet": 0.3, "mar@stonet": 0.9}
    records = [
        record(seed, 1.0 + error, method=method, **common_fields)
        for method, error in errors.items()
        for seed in ((4001, 4002) if "@" not in method else (801, 802))
    ]
    text = missing.page(records, tmp_path)
    assert "## A tenth of x1 and of x4 missing at random, 10 %, n=9, p=9" in text
    assert cells(text, "| mar |")[3] == "2.00"
    assert cells(text, "| mar@stonet †")[3] == "3.00"
    assert cells(text, "| complete |")[3] == "–"


# Provenance --------------------------------------------------------------------------------------


def test_provenance_counts_commits_plans_and_former_recipes():
    records = [
        record(1, 1.0, commit="aaa", plan="11111111"),
        record(2, 1.0, commit="aaa", plan="22222222"),
        record(3, 1.0, recipe="older"),
        record(4, 1.0, recipe=f"{PRESENT}-0123abcd", commit="bbb"),
        peer(5, 1.0),
        {"group": "start", "seed": 0, "method": "import", "recipe": "0123abcd", "wall": 0.1},
    ]
    text = provenance.provenance(records)
    assert "Of the package's 4 results on this page, 1 are of a former recipe. 2 carry" in text
    for line in ("| aaa | 2 |", "| not recorded | 1 |", "| plan 11111111 | 1 |"):
        assert line in text
    assert "| recipe older (former) | 1 |" in text
    assert provenance.provenance([peer(1, 1.0)]) == ""
    assert cells(provenance.overview({"field": records}), "| [field]")[1:3] == ["4", "1"]


def test_methods_of_others_have_versions_and_are_no_fits_of_the_package():
    current = PEERS["ols"].recipe
    ours = [record(4000 + s, 1.2) for s in (1, 2)]
    theirs = [peer(4000 + s, 1.1, "ols") | {"recipe": current} for s in (1, 2)]
    assert not any(map(provenance.is_own, theirs))
    assert not any(map(provenance.is_former, theirs))
    other = [r | {"recipe": "v99"} for r in theirs]
    assert not any(map(provenance.is_own, other))
    assert "1 results of peers are of former settings" in provenance.provenance([*ours, other[0]])
    assert row([*ours, *theirs]).best.former == 0
    found = row([*ours, *other])
    assert found.best.former == 2
    assert "| ols ‡ |" in front.error_table([found], [])
    # A peer that answers another question has a version of its own.
    treated = dict.fromkeys(("group", "data"), "lalonde-psid") | {"seed": 1, "method": "ols"}
    treated |= {"recipe": TREATED_PEERS["ols"].recipe, "estimate": 1.0}
    assert not provenance.is_former(treated)


def test_many_plans_are_counted_together():
    plans = [f"{i:08d}" for i in range(provenance.MOST_LISTED + 3)]
    text = provenance.count_table("plan", [plans[0], *plans])
    assert text.splitlines()[2] == f"| {plans[0]} | 2 |"
    assert "| 3 others | 3 |" in text


def test_lines_with_results_of_a_former_recipe_are_marked():
    found = row([record(4001, 1.0), record(4002, 1.2, recipe="older")])
    assert found.former == 1
    assert "| G ‡ |" in front.error_table([found], [])
