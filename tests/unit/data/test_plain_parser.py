"""The parser of plain computations: what Python would compute, or the part that is refused."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

from cstonet.data.plain_code import ELEMENTWISE, NotPlain, columns_of
from cstonet.data.plain_factor import value
from cstonet.data.plain_parser import expression, products

FRAME = pd.DataFrame({"x": [0.5, -1.25, 3.0], "z": [2.0, 0.125, -1.0], "k": [1, 2, 3]})
PYTHON = {"np": np, "I": lambda v: v, **{name: FRAME[name] for name in FRAME}}


def computed(code):
    return value(expression(code), FRAME, None)


def written(chance, depth):
    """Write an expression that people might."""
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(["x", "z", "k", "2", "0.5", "3.", ".25", "1e2", "x"])
    kind = chance.randrange(6)
    inside = written(chance, depth - 1)
    if kind == 0:
        return f"np.{chance.choice(['exp', 'sin', 'sqrt', 'abs', 'log1p', 'sign'])}({inside})"
    if kind == 1:
        return f"{chance.choice(['-', '+', '- -'])}{inside}"
    if kind == 2:
        return f"({inside})"
    if kind == 3:
        return f"np.maximum({inside}, {written(chance, depth - 1)})"
    sign = chance.choice(["+", "-", "*", "/", "**", " - ", " // ", "%"])
    return f"{inside}{sign}{written(chance, depth - 1)}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_expressions_mean_what_they_mean_in_python():
    """Precedence, associativity, signs and powers, on texts without any plan."""
    chance, same = random.Random(1), 0
    for _ in range(1500):
        code = f"x*0 + {written(chance, 4)}"
        try:
            expected = eval(code, dict(PYTHON))
        except (ArithmeticError, ValueError, TypeError):
            continue
        try:
            found = computed(code)
        except (NotPlain, TypeError):
            # Constants that are complex, or too large: (-2)**0.5, 100**100**2.
            continue
        np.testing.assert_array_equal(found, expected, err_msg=code)
        same += 1
    assert same > 1000


@pytest.mark.parametrize(
    "code",
    [
        "x > 0",
        "(x > 0) & (z <= 2) | ~(k == 2)",
        "(x < z) | (k > 1)",
        "(x != 0.5) ^ (z >= 0)",
        "-x**2",
        "2.0**-k",
        "x**k**2",
        "-x**-k",
        "k % 2 == 0",
        "I(x)*I(z)",
        "x+-z",
        "x\n+\tz",
    ],
)
def test_operators(code):
    expected = eval(code.replace("\n", " "), dict(PYTHON))
    np.testing.assert_array_equal(computed(code), expected)


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("x.mean()", "x.mean"),
        ("np.load(x)", "np.load"),
        ("np.linalg.norm(x)", "np.linalg"),
        ("np.matmul(x, x)", "np.matmul"),
        ("f(x)", "f"),
        ("I(x, z)", "I("),
        ("center(x, out=z)", "center(out"),
        ("np.exp(x, out=z)", "=z)"),
        ("np.maximum(x)", "maximum"),
        ("lambda: 0", "lambda"),
        ("x if z else k", "if"),
        ("x and z", "and"),
        ("not x", "not"),
        ("0 < x < 1", "0 < x < 1"),
        ("x[0]", "[0]"),
        ("[x]", "[x]"),
        ("{x}", "{x}"),
        ("f'{x}'", "'{x}'"),
        ("'a' 'b'", "'b'"),
        ("'a\\'b'", "'a\\'b'"),
        ("x @ z", "@ z"),
        ("x := 2", ":= 2"),
        ("x # z", "# z"),
        ("x \\\n", "\\\n"),
        ("x\0", "\0"),
        ("1_000", "1_000"),
        ("1j", "1j"),
        ("0x1f", "0x1f"),
        ("007", "007"),
        ("1e999", "1e999"),
        ("9" * 30, "9" * 30),
        ("9007199254740993", "9007199254740993"),
        ("9**9**9", "9 ** 387420489"),
        ("x + (-9)**99999", "-9 ** 99999"),
        ("x**(9**9**9)", "9 ** 387420489"),
        ("2**-9999", "2 ** -9999"),
        ("(-8)**0.5", "-8 ** 0.5"),
        ("1/0", "1 / 0"),
        ("'a' * 9", "'a' * 9"),
        ("-'a'", "-'a'"),
        ("I(9)", "I()"),
        ("bs(x, df=1000)", "bs(df=1000"),
        ("bs(x, df='4')", "bs(df='4'"),
        ("bs(x, 4, degree=30)", "bs(degree=30"),
        ("bs(x, df=z)", "z)"),
        ("C(k, levels=3)", "C(levels=3"),
        ("C(k, 'Sum')", "C(contrast='Sum'"),
        ("C(k, Sum(1, 2))", "Sum("),
        ("Q(x)", "Q(x"),
        ("Q('x', 'z')", ", 'z')"),
        ("", ""),
        ("x +", "x +"),
        ("x z", "z"),
        ("(x", "(x"),
        ("x)", ")"),
        ("ｅｖａｌ(x)", "ｅｖａｌ"),
    ],
)
def test_what_is_refused_is_named(code, part):
    with pytest.raises(NotPlain) as caught:
        expression(code)
    assert caught.value.part == part
    assert caught.value.reason


def test_a_name_is_a_column_letter_for_letter():
    """Python would take one of these for the other; two columns may be called so."""
    assert columns_of(expression("ﬁ + fi + ｘ + x")) == ("ﬁ", "fi", "ｘ", "x")
    assert columns_of(expression("Q('a b') * Q(\"it's\")")) == ("a b", "it's")


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("I(" * 26 + "x" + ")" * 26, "deep"),
        ("-" * 26 + "x", "deep"),
        ("x" + "**x" * 26, "deep"),
        ("bs(x, knots=" + "[" * 26 + "]" * 26 + ")", "deep"),
        ("bs(x, df=" + "-" * 26 + "4)", "deep"),
        ("x" + " + x" * 200, "words and signs"),
        ("x" * 2001, "characters"),
    ],
)
def test_texts_are_bounded(text, bound):
    with pytest.raises(NotPlain, match=bound):
        expression(text)


def test_long_texts_within_the_bounds_are_read():
    assert columns_of(expression("x" + " + x" * 190)) == ("x",)
    assert columns_of(expression("(" * 25 + "x" + ")" * 25)) == ("x",)


def test_terms_are_factors_joined():
    joined = products("x*z:C(k) * np.exp(x)")
    assert [[code for code, _ in group] for group in joined] == [
        ["x"],
        ["z", "C(k)"],
        ["np.exp(x)"],
    ]
    for text in (
        "x/z",
        "x**2",
        "(x + z)",
        "x:2",
        "x:-z",
        "x::z",
        "x %in% z",
        ":x",
        "*".join("x" * 7),
    ):
        with pytest.raises(NotPlain):
            products(text)


def test_functions_of_the_list_take_single_numbers():
    """Whatever NumPy adds to its functions: one row never sees another."""
    frame = pd.DataFrame({"x": [0.25, 0.5, 0.75], "z": [1.0, 2.0, 3.0]})
    whole_numbers = pd.DataFrame({"x": [1, 2, 3], "z": [3, 1, 2]})
    with np.errstate(all="ignore"):
        for name, function in ELEMENTWISE.items():
            for data in (frame, whole_numbers):
                arguments = [data["x"], data["z"], data["x"]][: function.nin]
                try:
                    whole = function(*arguments)
                except TypeError:
                    continue
                for row in range(3):
                    alone = function(*(a.iloc[[row]] for a in arguments))
                    np.testing.assert_allclose(
                        np.asarray(alone, float),
                        np.asarray(whole, float)[[row]],
                        rtol=4 * np.finfo(np.float64).eps,  # what NumPy promises for any layout
                        err_msg=name,
                    )
