"""Splitting formulas and resolving their terms."""

from __future__ import annotations

import pytest

from cstonet.data.formula import Term, named_column, parse_formula, select_columns
from cstonet.errors import FormulaError, TreatmentLeakError, UnknownColumnError

COLUMNS = ("y", "a", "x1", "x2", "x3", "BRCA-1", "age at visit")


def selected(part, columns=COLUMNS, **kwargs):
    terms = parse_formula(f"y ~ a | {part}").covariates
    return select_columns(terms, columns, outcome=("y",), treatment=("a",), **kwargs)


# -- splitting -------------------------------------------------------------------------------


def test_parts_and_terms():
    formula = parse_formula("  np.log(y) ~ C(a)|x1 + x2 - x3 ")
    assert formula.text == "  np.log(y) ~ C(a)|x1 + x2 - x3 "
    assert formula.outcome == "np.log(y)"
    assert formula.treatment == "C(a)"
    assert formula.covariates == (Term("x1"), Term("x2"), Term("x3", removed=True))
    assert formula.mediators == ()


def test_mediators_are_the_fourth_part():
    assert parse_formula("y ~ a | x | m1 + m2").mediators == (Term("m1"), Term("m2"))


def test_operators_inside_brackets_and_quotes_do_not_split():
    formula = parse_formula("""y ~ I(a | b) | I(x1 + x2) + Q("p|q ~ r - s") + d[{'+': 1}['+']]""")
    assert formula.treatment == "I(a | b)"
    assert [term.text for term in formula.covariates] == [
        "I(x1 + x2)",
        'Q("p|q ~ r - s")',
        "d[{'+': 1}['+']]",
    ]


def test_escaped_quotes_and_line_breaks():
    formula = parse_formula("y ~ a |\n  Q('it\\'s + more')\n  + x1")
    assert [term.text for term in formula.covariates] == ["Q('it\\'s + more')", "x1"]


def test_leading_sign():
    assert parse_formula("y ~ a | - x1 + .").covariates == (Term("x1", removed=True), Term("."))


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("y", "no '~'"),
        ("", "no '~'"),
        ("y ~ a ~ x | z", "2 times '~'"),
        ("y ~ a + x1", "no '|'"),
        ("y ~ a | x | m | q", "4 parts"),
        ("~ a | x", "outcome .* is empty"),
        ("y ~ | x", "treatment .* is empty"),
        ("y ~ a |", "covariates .* is empty"),
        ("y ~ a || x", "covariates .* is empty"),
        ("y ~ a | x | ", "mediators .* is empty"),
        ("y ~ a | x1 + + x2", "empty term"),
        ("y ~ a | x1 +", "empty term"),
        ("y1 + y2 ~ a | x", "outcome .* one expression.*I\\(y1 \\+ y2\\)"),
        ("y ~ a + b | x", "treatment .* one expression"),
        ("y ~ - a | x", "treatment .* one expression"),
        (". ~ a | x", "outcome .* must be named"),
        ("y ~ . | x", "treatment .* must be named"),
        ("y ~ a | np.log(x", r"'\(' never closed"),
        ("y ~ a | np.log(x]", "']' without its opening"),
        ("y ~ a | x)", r"'\)' without its opening"),
        ("y ~ a | Q('x", "quote that is never closed"),
    ],
)
def test_malformed_formulas(formula, says):
    with pytest.raises(FormulaError, match=says):
        parse_formula(formula)


def test_formula_must_be_text():
    with pytest.raises(FormulaError, match="must be a string, got int"):
        parse_formula(3)


# -- resolving -------------------------------------------------------------------------------


def test_dot_is_every_column_not_named_before():
    assert selected(".").columns == ("x1", "x2", "x3", "BRCA-1", "age at visit")
    assert selected(".").terms == ()


def test_dot_leaves_out_what_is_set_aside():
    assert "x2" not in selected(".", set_aside=("x2",)).columns
    assert selected("x2", set_aside=("x2",)).columns == ("x2",)


def test_dot_mixes_with_terms():
    assert selected("x3 + .").columns == ("x3", "x1", "x2", "BRCA-1", "age at visit")
    assert selected(". - x3 - Q('BRCA-1')").columns == ("x1", "x2", "age at visit")
    assert selected(". - x3 + x3").columns[-1] == "x3"
    mixed = selected(". + np.log(x1)")
    assert mixed.columns == ("x1", "x2", "x3", "BRCA-1", "age at visit")
    assert [term.name() for term in mixed.terms] == ["np.log(x1)"]


def test_removal_of_several_and_of_terms():
    assert selected(". - (x1 + x2)").columns == ("x3", "BRCA-1", "age at visit")
    assert selected("x1*x2 - x1:x2").terms == ()
    assert selected("x1 - x2").columns == ("x1",)


@pytest.mark.parametrize("text", ["Q('BRCA-1')", 'Q("BRCA-1")', 'Q( "BRCA-1" )'])
def test_quoted_names(text):
    assert named_column(text, COLUMNS) == "BRCA-1"
    assert selected(text).columns == ("BRCA-1",)


def test_a_term_that_is_a_column_letter_for_letter_is_that_column():
    assert selected("age at visit + x1").columns == ("age at visit", "x1")
    assert named_column("BRCA", COLUMNS) is None


def test_repeated_terms_count_once():
    assert selected("x1 + x1 + Q('x1') + x1*x2").columns == ("x1", "x2")


def test_star_expands_to_columns_and_one_interaction():
    result = selected("x1*x2")
    assert result.columns == ("x1", "x2")
    assert [term.name() for term in result.terms] == ["x1:x2"]
    assert result.inputs(COLUMNS) == ("x1", "x2")


@pytest.mark.parametrize("intercept", ["x1 - 1", "0 + x1", "x1 + 0", "1 + x1"])
def test_intercepts_change_nothing(intercept):
    assert selected(intercept).columns == ("x1",)


@pytest.mark.parametrize("part", ["x9", "x1 + x9", ". - x9", "Q('x9')", 'x1 + Q("x9")'])
def test_unknown_column(part):
    with pytest.raises(UnknownColumnError, match=r"no column 'x9'.*The columns are 'y', 'a'"):
        selected(part)


def test_unknown_column_suggests_the_nearest_name():
    with pytest.raises(UnknownColumnError, match="Did you mean 'weight'"):
        selected("wieght", columns=("y", "a", "weight"))


def test_unknown_column_suggests_quoting():
    with pytest.raises(UnknownColumnError, match=r'Q\("BRCA-1"\)'):
        selected("BRCA-1")


@pytest.mark.parametrize("part", ["x1 + a", "a", "x1:a", "np.log(a)", "Q('a')", ". + a"])
def test_treatment_among_the_covariates(part):
    with pytest.raises(TreatmentLeakError, match="uses the treatment 'a'"):
        selected(part)


@pytest.mark.parametrize("part", ["y", "x1 + np.exp(y)", "x1:y", "np.sqrt(Q('y'))"])
def test_outcome_among_the_covariates(part):
    with pytest.raises(FormulaError, match="uses the outcome 'y'"):
        selected(part)


@pytest.mark.parametrize("part", ["x1 x2", "(.)**2", ".:x1", "x1 ** x2"])
def test_unreadable_terms(part):
    with pytest.raises(FormulaError, match="cannot be read"):
        selected(part)


def test_thousands_of_computed_terms_can_be_read():
    names = [f"x{j}" for j in range(2000)]
    part = " + ".join(f"np.exp({name})" for name in names)
    assert len(selected(part, columns=("y", "a", *names)).terms) == 2000
