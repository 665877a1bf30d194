"""The parser of plain computations: from a text to a tree, or a refusal that names the part.

It reads from left to right, once, by the precedence of Python's operators. A text is bounded in its
characters, tokens and depth before anything is made of it.
"""

from __future__ import annotations

import keyword
import math
import re
from dataclasses import dataclass
from typing import Any

from cstonet.data.plain_code import (
    BINARY,
    COMPARISONS,
    CONTRASTS,
    ELEMENTWISE,
    FUNCTIONS,
    MOST_FACTORS,
    UNARY,
    Call,
    Column,
    Contrast,
    Elementwise,
    Literal,
    Node,
    NotPlain,
    Operation,
    columns_of,
)

# Bounds of a text, and of its lists of knots or levels. A term of people has some dozen tokens.
_MOST_CHARACTERS = 2000
_MOST_TOKENS = 400
_MOST_DEEP = 25
# Of splines; FITPACK knows degrees up to 5.
_MOST_WIDE = 200
_HIGHEST_DEGREE = 5
# Whole numbers that a float holds exactly.
_LARGEST = 2**53
# Of a computation on constants: far inside what floats hold. Beyond machine integers it is one.
_MOST_BITS = 1000
_MACHINE_BITS = 63
# From the loosest to the tightest, as in Python; powers bind tighter still, to the right.
_LEVELS = (COMPARISONS, ("|",), ("^",), ("&",), ("+", "-"), ("*", "/", "//", "%"))
_SIGNS = ("+", "-", "~")
_WORDS = {"True": True, "False": False, "None": None}
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f]+)
      | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?!\w)
      | (?P<name>[^\W0-9]\w*)
      | (?P<text>'[^'\\\x00-\x1f\ud800-\udfff]*'|"[^"\\\x00-\x1f\ud800-\udfff]*")
      | (?P<sign>\*\*|//|<=|>=|==|!=|[-+*/%&|^~<>(),=\[\].:])""",
    re.VERBOSE,
)


def on_one_line(code: str) -> str:
    """The code with blanks for line breaks and the like; texts stay as they are."""
    return _TOKEN.sub(lambda token: " " if token.lastgroup == "space" else token[0], code)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


def expression(code: str) -> Node:
    """Read one expression, such as ``np.log(x1 + 1)`` or ``dose > 0``.

    Raises
    ------
    NotPlain
        If it is anything else than a plain computation.
    """
    parser = _Parser(code)
    node = parser.expression()
    parser.end()
    return node


def products(code: str) -> list[list[tuple[str, Node]]]:
    """Read a term of a formula: factors with ``:`` and ``*`` between them.

    Returns
    -------
    list of list of (code, node)
        The factors that ``*`` joins, from left to right; of each, the factors that ``:`` joins.

    Raises
    ------
    NotPlain
        If it is anything else.
    """
    parser = _Parser(code)
    found: list[list[tuple[str, Node]]] = [[parser.factor()]]
    while (sign := parser.accept(":", "*")) is not None:
        if sign == "*":
            found.append([])
        found[-1].append(parser.factor())
    if sum(map(len, found)) > MOST_FACTORS:
        raise NotPlain(code, f"joins more than {MOST_FACTORS} factors")
    parser.end()
    return found


class _Parser:
    """Reads tokens from left to right; each method reads one kind of thing, or refuses it."""

    def __init__(self, code: str) -> None:
        if len(code) > _MOST_CHARACTERS:
            raise NotPlain(code, f"has more than {_MOST_CHARACTERS} characters")
        self._code = code
        self._tokens = _tokens(code)
        if len(self._tokens) > _MOST_TOKENS:
            raise NotPlain(code, f"has more than {_MOST_TOKENS} words and signs")
        self._next, self._depth, self._learning = 0, 0, 0

    def accept(self, *signs: str) -> str | None:
        """The next token, taken, if it is one of these signs."""
        token = self._token
        if token.kind != "sign" or token.text not in signs:
            return None
        self._next += 1
        return token.text

    def end(self) -> None:
        """Refuse whatever is left."""
        if self._token.kind != "end":
            raise self._refused(self._token)

    def factor(self) -> tuple[str, Node]:
        """A factor of a term: a column, or a function of columns."""
        start = self._token.start
        node = self._operand()
        code = self._code[start : self._token.start].strip()
        if not isinstance(node, Column | Elementwise | Call):
            raise NotPlain(code, "is neither a column nor a function of columns")
        return code, node

    def expression(self, level: int = 0) -> Node:
        """Operators of a level and of those that bind tighter."""
        if level == len(_LEVELS):
            return self._signed()
        node = self.expression(level + 1)
        while (operator := self.accept(*_LEVELS[level])) is not None:
            node = _operation(operator, node, self.expression(level + 1))
            if level == 0 and self._token.text in COMPARISONS:
                raise NotPlain(
                    self._code, "compares twice; write (0 < x) & (x < 1) instead of 0 < x < 1"
                )
        return node

    def _signed(self) -> Node:
        """Signs before an operand, which may have a power."""
        sign = self.accept(*_SIGNS)
        if sign is not None:
            with _Deeper(self):
                return _operation(sign, self._signed())
        node = self._operand()
        if self.accept("**") is not None:
            with _Deeper(self):
                return _operation("**", node, self._signed())
        return node

    def _operand(self) -> Node:
        """A column, a constant, a call, or an expression in brackets."""
        token = self._take()
        if token.kind in ("number", "text"):
            return Literal(_constant(token))
        if token.kind == "name":
            return self._named(token)
        if token.text == "(":
            with _Deeper(self):
                node = self.expression()
            self._expect(")")
            return node
        raise self._refused(token)

    def _named(self, token: _Token) -> Node:
        """What begins with a name."""
        name = token.text
        if name in _WORDS:
            return Literal(_WORDS[name])
        if name == "np" and self.accept(".") is not None:
            function = self._take()
            if function.kind == "name" and function.text in ELEMENTWISE:
                self._expect("(")
                return self._elementwise(function.text, of_numpy=True)
            raise NotPlain(f"np.{function.text}", "is no NumPy function of single numbers")
        if self.accept("(") is None:
            _check_word(name)
            if self._token.text == ".":
                self._next += 1
                raise NotPlain(f"{name}.{self._token.text}", "looks inside of something")
            return Column(name)
        if name == "Q":
            return self._quoted()
        if name in FUNCTIONS:
            return self._call(name)
        if name in ELEMENTWISE:
            return self._elementwise(name, of_numpy=False)
        raise NotPlain(name, "is no function of the list")

    def _quoted(self) -> Column:
        token = self._take()
        if token.kind != "text":
            raise NotPlain(f"Q({token.text}", 'is not Q("name of a column")')
        self._expect(")")
        return Column(token.text[1:-1])

    def _elementwise(self, name: str, *, of_numpy: bool) -> Elementwise:
        with _Deeper(self):
            arguments = [self.expression()]
            while self.accept(",") is not None:
                arguments.append(self.expression())
        self._expect(")")
        wanted = ELEMENTWISE[name].nin
        if len(arguments) != wanted:
            raise NotPlain(name, f"takes {wanted} argument{'s' * (wanted > 1)} here")
        return Elementwise(name, tuple(arguments), of_numpy)

    def _call(self, name: str) -> Call:
        signature = FUNCTIONS[name]
        place = self._learning
        self._learning += signature.learns
        least, most = signature.computed
        arguments: list[Node] = []
        settings: dict[str, Any] = {}
        with _Deeper(self):
            while not self._closed(arguments or settings):
                setting = self._setting_name()
                if setting is None and not settings and len(arguments) < most:
                    arguments.append(self.expression())
                    continue
                if setting is None:
                    setting = next((s for s in signature.settings if s not in settings), "")
                if setting not in signature.settings or setting in settings:
                    raise NotPlain(f"{name}({setting}", f"is no argument of {name}()")
                settings[setting] = self._setting(name, setting)
        if len(arguments) < least:
            raise NotPlain(f"{name}()", "has no argument")
        if not all(map(columns_of, arguments)):
            raise NotPlain(f"{name}()", "has an argument without any column in it")
        return Call(name, tuple(arguments), tuple(settings.items()), place)

    def _closed(self, begun: Any) -> bool:
        """Whether the brackets of a call close; else its next argument follows."""
        if self.accept(")") is not None:
            return True
        if begun:
            self._expect(",")
            return self.accept(")") is not None
        return False

    def _setting_name(self) -> str | None:
        """The name before an equals sign, taken."""
        here, after = self._token, self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        if here.kind != "name" or after.kind != "sign" or after.text != "=":
            return None
        self._next += 2
        return here.text

    def _setting(self, function: str, name: str) -> Any:
        """The value of an argument that is not computed, within its bounds."""
        if name == "contrast" and self._token.text in CONTRASTS:
            return self._contrast()
        value = self._literal()
        _check_setting(f"{function}({name}=", name, value)
        return value

    def _contrast(self) -> Contrast:
        name = self._take().text
        if self.accept("(") is None:
            return Contrast(name, None)
        arguments: dict[str, Any] = {}
        while not self._closed(arguments):
            argument = self._setting_name()
            if argument is None:
                argument = next((a for a in CONTRASTS[name] if a not in arguments), "")
            if argument not in CONTRASTS[name] or argument in arguments:
                raise NotPlain(f"{name}({argument}", f"is no argument of {name}()")
            arguments[argument] = self._literal()
        return Contrast(name, tuple(arguments.items()))

    def _literal(self) -> Any:
        """A number, text, truth value, None, or a list or tuple of such."""
        token = self._take()
        if token.kind in ("number", "text"):
            return _constant(token)
        if token.kind == "name" and token.text in _WORDS:
            return _WORDS[token.text]
        if token.text in ("-", "+"):
            with _Deeper(self):
                value = self._literal()
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value if token.text == "-" else value
        if token.text == "[":
            return self._listed("]")[0]
        if token.text == "(":
            values, commas = self._listed(")")
            return values if commas or not values else values[0]
        raise self._refused(token, "; a number, a text or a list of these belongs here")

    def _listed(self, closing: str) -> tuple[tuple[Any, ...], int]:
        """The values up to a bracket, and how many commas there were."""
        values: list[Any] = []
        commas = 0
        with _Deeper(self):
            while self.accept(closing) is None:
                values.append(self._literal())
                if self.accept(closing) is not None:
                    break
                self._expect(",")
                commas += 1
        return tuple(values), commas

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        if token.kind == "end":
            raise self._refused(token)
        self._next += 1
        return token

    def _expect(self, sign: str) -> None:
        if self.accept(sign) is None:
            raise self._refused(self._token, f"; {sign!r} belongs here")

    def _refused(self, token: _Token, instead: str = "") -> NotPlain:
        if token.kind == "end":
            return NotPlain(self._code, f"ends where more is expected{instead}")
        _check_word(token.text)
        return NotPlain(self._code[token.start :], f"cannot be read{instead}")

    def deeper(self, by: int) -> None:
        """Count brackets and signs that are open."""
        self._depth += by
        if self._depth > _MOST_DEEP:
            raise NotPlain(self._code, f"is nested more than {_MOST_DEEP} deep")


class _Deeper:
    """A stretch of the code inside of brackets, or behind a sign."""

    __slots__ = ("_parser",)

    def __init__(self, parser: _Parser) -> None:
        self._parser = parser

    def __enter__(self) -> None:
        self._parser.deeper(1)

    def __exit__(self, *_: object) -> None:
        self._parser.deeper(-1)


def _operation(sign: str, *operands: Node) -> Node:
    """An operator with its operands; that of constants is computed here, within bounds.

    9**9**9 is refused before anybody computes it, and later no operation is one of Python's whole
    numbers or texts, which have no size of their own.
    """
    if not all(isinstance(operand, Literal) for operand in operands):
        return Operation(sign, operands)
    values = [operand.value for operand in operands if isinstance(operand, Literal)]
    written = f" {sign} ".join(map(repr, values)) if len(values) == 2 else f"{sign}{values[0]!r}"
    if not all(isinstance(value, int | float) for value in values):
        raise NotPlain(written, "is no computation on numbers")
    if sign == "**" and values[0] and abs(values[1] * math.log2(abs(values[0]))) > _MOST_BITS:
        raise NotPlain(written, "is too large a number, or too small a one")
    try:
        result = BINARY[sign](*values) if len(values) == 2 else UNARY[sign](*values)
    except (ArithmeticError, TypeError) as error:
        raise NotPlain(written, f"cannot be computed: {error}") from error
    if isinstance(result, complex) or abs(result) > 2**_MOST_BITS:
        raise NotPlain(written, "is no real number, or too large a one")
    whole = isinstance(result, int) and result.bit_length() > _MACHINE_BITS
    return Literal(float(result) if whole else result)


def _tokens(code: str) -> list[_Token]:
    """Names, numbers, texts and signs, with an end behind them."""
    found, place = [], 0
    while place < len(code):
        match = _TOKEN.match(code, place)
        if match is None:
            raise NotPlain(code[place:], "cannot be read")
        kind = str(match.lastgroup)
        if kind != "space":
            found.append(_Token(kind, match[0], place))
        if kind == "name" and not match[0].isidentifier():
            raise NotPlain(match[0], "is no name")
        place = match.end()
    return [*found, _Token("end", "", len(code))]


def _check_word(name: str) -> None:
    """Refuse words of Python's grammar."""
    if name in ("and", "or", "not"):
        raise NotPlain(name, "is not for columns; write &, | and ~, with brackets around each side")
    if keyword.iskeyword(name) and name not in _WORDS:
        raise NotPlain(name, "is a word of Python's grammar and no column")


def _constant(token: _Token) -> int | float | str:
    """The value of a number or a text."""
    text = token.text
    if token.kind == "text":
        return text[1:-1]
    whole = text.isdecimal()
    if whole and len(text) > 1 and text[0] == "0" and text.strip("0"):
        raise NotPlain(text, "is no number: it begins with 0")
    # Text of many digits is not made a whole number, which would take long.
    value = int(text) if whole and len(text) < 20 else float(text)
    if not math.isfinite(value) or (whole and value > _LARGEST):
        raise NotPlain(text, "is too large a number")
    return value


def _check_setting(where: str, name: str, value: Any) -> None:
    """Refuse widths and degrees of splines that would fill any memory, and what is no coding."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "contrast" and value is not None:
        raise NotPlain(f"{where}{value!r}", f"is none of {', '.join(CONTRASTS)}")
    if name == "levels" and not isinstance(value, tuple | None):
        raise NotPlain(f"{where}{value!r}", "must be a list of levels")
    if name == "df" and value is not None and not (number and 0 < value <= _MOST_WIDE):
        raise NotPlain(f"{where}{value!r}", f"must be a number from 1 to {_MOST_WIDE}")
    if name == "degree" and not (number and 0 <= value <= _HIGHEST_DEGREE):
        raise NotPlain(f"{where}{value!r}", f"must be a number from 0 to {_HIGHEST_DEGREE}")
