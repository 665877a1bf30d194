"""The printed summary: golden files, widths, number formats, exports."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from statsmodels.iolib.summary import Summary


def lines_of(results, alpha=0.05):
    return results.summary(alpha).as_text().split("\n")


def effect_rows(results, alpha=0.05):
    """Cells of the effect table as printed, one list per row, header first."""
    lines = lines_of(results, alpha)
    top = next(i for i, line in enumerate(lines) if line.split()[:1] == ["coef"])
    return [line.split() for line in (lines[top], *lines[top + 2 : top + 5])]


# Golden files -------------------------------------------------------------------------------------


def test_golden_gaussian(make_results, check_golden):
    check_golden("summary_gaussian.txt", str(make_results().summary()))


def test_golden_binomial(make_results, check_golden):
    results = make_results(
        family="binomial", family_inferred=True, clip=0.15, treatment_levels=("placebo", "drug")
    )
    check_golden("summary_binomial.txt", str(results.summary()))


def test_golden_high_dimensional(make_results, check_golden):
    p = 20_000
    formula = "y ~ treat | " + " + ".join(f"x{j + 1}" for j in range(p))
    notes = ("Fold 3: the best of 4 starts had not converged after its last epoch.",)
    results = make_results(
        n=200, n_covariates=p, n_selected=35, formula=formula, notes=notes, weighted=True
    )
    check_golden("summary_high_dimensional.txt", str(replaced(results, n_dropped=7).summary(0.1)))


def test_golden_in_sample(make_results, make_plan, check_golden):
    results = make_results(
        plan=make_plan(folds=1, starts=1, preset="paper"),
        variance="influence",
        n_selected=0,
        formula=None,
    )
    check_golden("summary_in_sample.txt", str(results.summary()))


def replaced(results, **fields):
    results.design = replace(results.design, **fields)
    return results


# Layout -------------------------------------------------------------------------------------------


LONG = "systolic_blood_pressure_at_the_second_follow_up_visit_in_mm_hg"


@pytest.mark.parametrize("scale", [1e-140, 1e-12, 1e-5, 1.0, 1e4, 1e7, 1e12, 1e140])
def test_never_wider_than_78(make_results, scale):
    results = make_results(
        n_covariates=4,
        n_selected=4,
        scale=scale,
        outcome_name=LONG,
        treatment_name=LONG,
        treatment_levels=(f"not_{LONG}", LONG),
        formula=f"{LONG} ~ {LONG} | .",
        notes=("x" * 200, "many words " * 30),
    )
    results.selection.index = [f"{LONG}_{j}" for j in range(4)]
    assert max(map(len, lines_of(results))) == 78


def test_rules_and_columns_line_up(make_results):
    lines = lines_of(make_results(n_covariates=20, n_selected=20))
    body = lines[1 : lines.index("Notes:")]
    assert {len(line) for line in body if set(line) <= {"="} or set(line) <= {"-"}} == {78}
    table = [line for line in body if line.startswith(("ATE", "POM", " " * 20))]
    assert {len(line) for line in table} == {78}
    header = [line for line in body if line.startswith(("Outcome", "Treatment", "Network"))]
    assert {
        line.index(right) for line, right in zip(header, ("Est", "Obs", "Non"), strict=True)
    } == {39}


def test_long_names_go_on_in_further_lines(make_results):
    results = make_results(outcome_name=LONG, treatment_levels=("a" * 30, "b" * 30))
    results.selection.index = [LONG, "x2", "x3"]
    lines = lines_of(results)
    place = next(i for i, line in enumerate(lines) if line.startswith("Outcome:"))
    assert lines[place].strip() + lines[place + 1].strip() == f"Outcome: {LONG} (gaussian)"
    assert lines[place + 2].startswith(" " * 39 + "Estimator:")
    place = next(i for i, line in enumerate(lines) if line.startswith("POM[aaaaa"))
    assert lines[place].split()[0] + lines[place + 1].strip() == f"POM[{'a' * 30}]"
    place = next(i for i, line in enumerate(lines) if line.startswith("systolic_blood_pressure"))
    shown = lines[place][:28].strip() + lines[place + 1].strip() + lines[place + 2].strip()
    assert shown == LONG
    assert lines[place].endswith("0.40")


def test_names_are_cut_only_where_three_lines_do_not_hold_them(make_results):
    results = make_results(treatment_levels=("a" * 90, "b" * 90), outcome_name="y" * 100)
    text = results.summary().as_text()
    assert f"POM[{'a' * 10}\n" not in text  # numbers stand beside the first line
    assert "aaaaaaaaaa…]\n" in text
    assert "…" not in make_results(treatment_levels=("a" * 30, "b" * 30)).summary().as_text()
    assert max(map(len, text.split("\n"))) == 78


def test_a_long_estimand_is_wrapped(make_results):
    results = make_results(treatment_levels=(f"not {LONG}", LONG), treatment_name="t")
    lines = lines_of(results)
    assert lines[2] == f"Estimand: ATE, {LONG}"
    assert lines[3] == " " * 10 + "against not"
    assert lines[4] == " " * 10 + LONG


def test_names_with_line_breaks_stay_on_one_line(make_results):
    lines = lines_of(make_results(outcome_name="weight\nat birth", formula="y ~\n treat\n| ."))
    assert "Formula: y ~ treat | ." in lines
    assert any("weight at birth (gaussian)" in line for line in lines)


def test_levels_other_than_the_default(make_results):
    for alpha, limits in ((0.05, ["[0.025", "0.975]"]), (0.01, ["[0.005", "0.995]"])):
        assert effect_rows(make_results(), alpha)[0][-2:] == limits


def test_selection_is_sorted_and_cut(make_results):
    results = make_results(n_covariates=30, n_selected=20)
    results.selection["strength"] = results.selection["strength"].to_numpy()[::-1].copy()
    results.selection["outcome"] = results.selection["strength"] > 0
    text = results.summary().as_text()
    rows = [line for line in text.split("\n") if line.startswith("x")]
    assert [row.split()[0] for row in rows] == [f"x{j}" for j in range(30, 18, -1)]
    total = int((results.selection["treatment"] | results.selection["outcome"]).sum())
    assert f"... {total} of 30 covariates selected; all of them in res.selection" in text


def test_a_covariate_of_one_model_only(make_results):
    text = str(make_results(n_covariates=4, n_selected=4).summary())
    row = next(line for line in text.split("\n") if line.startswith("x4"))
    assert row.split() == ["x4", "-", "(", "3/12)", "0.07", "yes", "(12/12)", "0.10"]


# Numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-140, -30, -9, -6, -5, -4, -2, 0, 2, 4, 5, 7, 9, 30, 140])
def test_every_scale_shows_two_digits_of_the_error(make_results, exponent):
    results = make_results(scale=10.0**exponent)
    for row, name in zip(effect_rows(results)[1:], results.params.index, strict=True):
        _, coef, error, z, _, low, high = row
        assert float(error) == pytest.approx(results.bse[name], rel=0.02)
        assert "e" not in error or not 3e-6 <= results.bse[name] <= 1e6
        # Estimate and limits are shown to within a tenth of a standard error.
        limits = results.conf_int().loc[name]
        for shown, value in ((coef, results.params[name]), (low, limits[0]), (high, limits[1])):
            assert abs(float(shown) - value) < 0.1 * results.bse[name]
        assert float(z) == pytest.approx(results.tvalues[name], abs=5e-3)


def test_estimates_have_the_decimals_of_their_errors(make_results):
    row = effect_rows(make_results())[1]
    assert [len(cell.split(".")[1]) for cell in row[1:4] + row[5:]] == [3, 3, 2, 3, 3]
    thousands = effect_rows(make_results(scale=10_000.0))[1]
    assert not any("." in cell or "e" in cell for cell in thousands[1:3] + thousands[5:])


def test_zero_standard_errors_print(make_results):
    results = make_results()
    results.effects = replace(results.effects, covariance=np.zeros((3, 3)))
    assert effect_rows(results)[1][3:5] == ["inf", "<0.001"]
    assert max(map(len, lines_of(results))) == 78


def test_huge_z_fits(make_results):
    results = make_results()
    results.effects = replace(results.effects, covariance=1e-12 * results.effects.covariance)
    assert effect_rows(results)[1][3] == "1.44e+07"


# Notes --------------------------------------------------------------------------------------------


def notes_of(results):
    return " ".join(results.summary().notes)


def test_binomial_says_risk_difference(make_results):
    assert "risk difference" in notes_of(make_results(family="binomial"))
    assert "risk" not in notes_of(make_results())


def test_notes_name_the_direction_of_the_effect(make_results):
    notes = notes_of(make_results(treatment_levels=("placebo", "drug")))
    assert "ATE = POM[drug] - POM[placebo]" in notes


def test_notes_appear_only_when_they_apply(make_results, make_plan):
    plain = notes_of(make_results())
    for word in ("inferred", "dropped", "Weighted", "cross-fitting", "poor", "Warning", "units ("):
        assert word not in plain
    assert "inferred" in notes_of(make_results(family_inferred=True))
    assert "7 rows" in notes_of(make_results(n_dropped=7))
    assert "Weighted" in notes_of(make_results(weighted=True))
    assert "No cross-fitting" in notes_of(make_results(plan=make_plan(folds=1)))


def test_overlap_note(make_results):
    mild, poor = make_results(clip=0.08), make_results(clip=0.3)
    assert 0 < mild.effects.n_clipped < 25  # under 5 % of 500
    assert f"{mild.effects.n_clipped} units (" in notes_of(mild)
    assert mild.warnings == ()
    assert notes_of(poor).startswith(f"[1] Warning: {poor.warnings[0]} [2]")
    assert "Overlap is poor" in poor.warnings[0]
    extreme = make_results()
    extreme.nuisances.propensity[0] = [0.0, 1.0]
    assert "to >0.999" in notes_of(extreme)


def test_warnings_come_first_and_the_way_to_the_methods_last(make_results):
    results = make_results(notes=("Converged.",), warnings=("A start diverged.", "Two did."))
    notes = results.summary().notes
    assert notes[:2] == ["[1] Warning: A start diverged.", "[2] Warning: Two did."]
    assert notes[-2] == "[7] Converged."
    assert notes[-1].startswith("[8] Methods: AIPW, 3-fold cross-fit; ")
    assert notes[-1].endswith("; res.methods() has the full text.")
    assert results.warnings == ("A start diverged.", "Two did.")


def test_the_header_leads_with_the_estimand_in_words(make_results):
    def first(**kwargs):
        return lines_of(make_results(**kwargs))[2]

    assert first() == "Estimand: ATE, treat = 1 against 0"
    assert first(treatment_levels=("placebo", "drug")) == "Estimand: ATE, drug against placebo"
    assert first(treatment_levels=(False, True)) == "Estimand: ATE, treat = True against False"


def test_what_cannot_be_estimated_says_so_in_the_header(make_results):
    assert make_results().estimable
    results = make_results()
    # Of the first 200 units, all but those of the first arm have no counterpart in it.
    overlap = results._cross_fits.overlap
    overlap.probabilities[:200] = 0.001, 0.999
    lost = np.count_nonzero(results.nuisances.treatment[:200] == 1) / 500
    assert lost > 0.1
    assert results.lost_share == pytest.approx(lost)
    assert not results.estimable
    assert lines_of(results)[2] == "Estimand: ATE, treat = 1 against 0: not estimable"
    first, second, *_ = results.summary().notes
    assert first.startswith("[1] Warning: The ATE is not estimable with these data")
    assert 'estimand="ATO" asks for less' in first
    assert "Warning" not in second
    # Who says why needs no other sentence.
    results.warnings = ("The ATE is not estimable: 300 of 500 units have no counterpart.",)
    assert results.summary().notes[0] == f"[1] Warning: {results.warnings[0]}"
    assert "Warning" not in results.summary().notes[1]


# Exports ------------------------------------------------------------------------------------------


@pytest.fixture
def awkward(make_results):
    """Names that every format would trip over."""
    results = make_results(outcome_name="a<b>&_c", treatment_levels=("50%, low", 'x "y"'))
    results.selection.index = ["x_1 {~^}", "<script>", "[x|3]"]
    results.selection["outcome"] = True
    return results


def test_is_a_statsmodels_summary(make_results):
    summary = make_results().summary()
    assert isinstance(summary, Summary)
    assert str(summary) == summary.as_text()
    assert len(summary.tables) == 3


def test_html_holds_the_numbers_and_escapes_names(awkward):
    html = awkward.summary().as_html()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "a&lt;b&gt;&amp;_c" in html
    assert html.count("<table") == html.count("</table>") == 3
    assert html.count("<td ") == html.count("</td>") > 20
    assert f">{awkward.params['ATE']:.3f}</td>" in html


def test_html_table_reads_back(make_results):
    results = make_results()
    table = ET.fromstring(results.summary().tables[1].as_html())
    header, *rows = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    assert header[1:3] == ["coef", "std err"]
    assert [row[0] for row in rows] == results.params.index.tolist()
    np.testing.assert_allclose([float(row[1]) for row in rows], results.params, atol=5e-4)


def test_latex_escapes_names(awkward):
    latex = awkward.summary().as_latex()
    assert r"x\_1 \{\textasciitilde{}\textasciicircum{}\}" in latex
    assert r"50\%, low" in latex
    assert r"{[}x\textbar{}3]" in latex
    assert r"\textless{}script\textgreater{}" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 3
    body = [line for line in latex.split("\n") if line.startswith(("ATE", "POM"))]
    assert len(body) == 3
    assert all(line.count("&") == 6 and line.endswith(r"\\") for line in body)


def test_csv_reads_back(awkward):
    rows = list(csv.reader(io.StringIO(awkward.summary().as_csv())))
    by_name = {row[0]: row for row in rows if row}
    assert by_name["Outcome:"][1] == "a<b>&_c (gaussian)"
    assert by_name["Treatment:"][1] == 'treat (50%, low, x "y")'
    assert float(by_name["ATE"][1]) == pytest.approx(awkward.params["ATE"], abs=5e-4)
    assert by_name['POM[x "y"]'][0] == awkward.params.index[2]
    assert len(by_name["<script>"]) == 5


def test_exports_do_not_cut_names(make_results):
    summary = make_results(outcome_name=LONG).summary()
    for text in (summary.as_html(), summary.as_csv()):
        assert LONG in text
