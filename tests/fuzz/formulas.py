"""Hostile formulas, and a watch over what safe reading does with them.

``hostile(chance)`` writes one formula of an attacker: known attacks, put where a formula has terms,
arguments, names or texts, then changed letter by letter. ``python -m tests.fuzz.formulas --count
1000000 --jobs 2`` lets `CausalStoNet.from_formula(..., safe=True)` read as many, in processes that
allow no audit event of Python's but looks at the stack and at how much memory is left: no code is
compiled or run, nothing is imported or written, no process and no socket is made. Ends with 1 if
anything was found.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cstonet import CausalStoNet
from cstonet.errors import CStoNetError, NotEnoughMemoryError

ROOT = Path(__file__).parents[2]
# What reading does, of all that Python tells its auditors: the caller's frame is looked up, numbers
# of objects are (by inspect), and how much memory there is.
ALLOWED = frozenset({"sys._getframe", "builtins.id"})
_OF_THE_SYSTEM = ("/proc/meminfo", "/proc/self/", "/sys/fs/cgroup/")
# Bytes of address space beside what a worker begins with, and seconds for one formula.
ROOM, PATIENCE = 2**30, 10.0
_EXAMPLES = 20

COLUMNS = ("y", "treat", "x1", "x2", "k", "g", "h", "flag", "when", 'Q("x 1")', "np", "log")
# What an attacker would like to have run, or to fill memory or time with.
ATTACKS = (
    "__import__('os').system('touch escaped')", "__import__('subprocess').run(['true'])",
    "().__class__.__bases__[0].__subclasses__()", "x1.__class__.__mro__[-1].__subclasses__()",
    "(lambda: 0)()", "(lambda f: f(f))(lambda f: f(f))", "[v for v in x1]", "{v for v in x1}",
    "{k: 1 for k in x1}", "(v for v in x1)", "[__import__('os') for _ in [0]][0]",
    "f'{x1.__class__}'", "f\"{__import__('os').getcwd()}\"", "'{0.__class__}'.format(x1)",
    "'%s' % x1", "(z := __import__('os'))", "eval('1')", "exec('1')", "compile('1', '', 'eval')",
    "open('escaped', 'w')", "open(0).read()", "input()", "breakpoint()", "help()", "exit()",
    "getattr(x1, '__class__')", "setattr(np, 'log', 0)", "vars(np)", "globals()", "locals()",
    "type('X', (), {})()", "object.__subclasses__()", "print(x1)", "__builtins__",
    "__builtins__['eval']('1')", "__loader__.load_module('os')", "np.load('escaped')",
    "np.save('escaped', x1)", "np.memmap('escaped', mode='w+', shape=9)",
    "np.fromfile('escaped')", "np.loadtxt('/etc/passwd')", "np.genfromtxt('http://127.0.0.1:9')",
    "x1.tofile('escaped')", "np.lib.format.open_memmap('escaped')",
    "np.frompyfunc(eval, 1, 1)('1')", "np.log.__self__", "np.vectorize(eval)('1')",
    "np.testing.measure('1')", "np.f2py.compile('')", "np.ctypeslib",
    "np.random.normal(size=10**12)", "np.zeros(10**12)", "np.ones((10**6, 10**6))",
    "np.matmul(x1, x1)", "np.log(x1, out=x1)", "np.add.reduce(x1)", "np.log(x1, dtype=object)",
    "np.einsum('i->', x1)", "x1.to_csv('escaped')", "x1.to_pickle('escaped')", "x1.eval('1')",
    "x1.pipe(print)", "x1.apply(eval)", "x1.map(exec)", "x1.array", "x1.values.data",
    "g.str.repeat(10**9)", "pd.read_pickle('escaped')", "pd.eval('1')", "patsy.dmatrix('x1')",
    "dmatrix('x1')", "EvalFactor('1')", "patsy.eval.EvalFactor('1')", "I.__globals__",
    "Q.__globals__['EvalEnvironment']", "bs.__wrapped__", "C.__code__",
    "Treatment.__init__.__globals__", "center.__closure__", "9**9**9", "9**9**9**9",
    "x1**9**9**9", "(-9)**99999", "2**-9999", "1<<10**9", "10**10**10", "'a'*10**9", "g*10**9",
    "g*1000000000", "[0]*10**9", "(0,)*1000000000", "k**99999999", "1e999", "1e-999", "9" * 400,
    "1_000", "0x7fffffff", "0b1", "1j", "nan", "inf", "1" + "0" * 5000, "bs(x1, df=10**9)",
    "bs(x1, df=1000000000)", "bs(x1, 4, degree=99)", "bs(x1, 4, degree=-1)",
    "bs(x1, knots=[0]*10**9)", "bs(x1, df=4.5)", "bs(x1, 'x')", "bs(x1, knots=x2)", "bs(g, 4)",
    "bs(x1, df=4, lower_bound=9, upper_bound=-9)", "cr(x1, df=99999)",
    "cr(x1, 3, constraints=[[]])", "cr(x1, df=3, constraints='center')", "cc(x1, 200)",
    "cr(x1, 200)", "bs(x1, 200)", "te(" + ", ".join(["bs(x1, 200)"] * 6) + ")", "te()",
    "te(cr(x1, 3), cr(x2, 3), constraints=9)", "C(g, levels=9)", "C(g, levels=['u'])",
    "C(g, Treatment('z'))", "C(g, Treatment)", "C(g, 'x')", "C(g, ContrastMatrix([[1]], ['a']))",
    "C(g, Poly(scores=['a']))", "C(g, contrast=eval)", "C()", "C(__builtins__)", "C(C(C(g)))",
    "C(x1)", "C(when)", "C(center(x1))", "C(g, Poly(scores=[1e999]))", "Q('__class__')",
    "Q('x1').__class__", "Q(\"x1\\\")\")", "Q('x1' 'x2')", "Q(x1)", "Q()", "Q('')", "Q('\0')",
    "Q('''x1''')", "Q(\"x'1\")", "Q('x1', 'x2')", "Q(f'x1')", "Q(b'x1')",
    "standardize(x1, ddof=10**9)", "scale(x1, 1, 1, 1, 1)", "center(center(center(x1)))",
    "center(np.log(center(x1)))", "I(1)", "I()", "I(x1, x2)", "I(x1; x2)", "I(x1 = 1)",
    "I(g + h)", "I(g + g + g)", "I(x1 @ x2)", "x1[0]", "x1[::-1]", "x1[x1 > 0]", "*x1", "**x1",
    "I(*x1)", "I(**x1)", "x1 if x2 else k", "x1 and x2", "not x1", "x1 in x2", "x1 is None",
    "await x1", "yield x1", "x1 # comment", "x1 \\\n + x2", "x1\n+x2", "x1\0x2", "\ufeffx1",
    "x1;import os", "ｘ１", "ｅｖａｌ('1')", "__ｉｍｐｏｒｔ__('os')", "x1․__class__", "ﬁ",
    "х1", "\u202ex1",
    "x1\u200b", "é", "\ud800", "x1 ** (1 / 3)", "I(x1 / 0)", "I(1 / 0 * x1)", "np.log(-x1)",
    "np.power(k, -1)", "np.left_shift(k, 999999999)", "np.maximum(x1)", "np.maximum(g, h)",
    "np.isnat(when)", "np.", "np.log", "log", "log(x1)", "abs(x1)", "expm1(x2)", "when",
    "I(when > '2020')", "I(g < 'v')", "I(flag - flag)", "I(-flag)", "I(~flag)", "I(~x1)",
    "I((x1 > 0) & flag)", "I(0 < x1 < 1)", "x1:x2:k:g:h:flag:log", "*".join(COLUMNS[2:8]),
    "C(k):C(k):C(g):C(g)", "C(x1):C(x2)", "C(x1)*C(x2)*C(k)", "(" * 300 + "x1" + ")" * 300,
    "I(" * 40 + "x1" + ")" * 40, "-" * 300 + "x1", "I(" + "~" * 3000 + "x1)",
    "I(" + "x1+" * 150 + "x1)", "I(" + "x1**" * 150 + "x1)", "x" * 3000,
    "Q('" + "x" * 1500 + "')", "[" * 200 + "]" * 200, "bs(x1, knots=" + "[" * 60 + "]" * 60 + ")",
    "C(g, levels=[" + ",".join(map(str, range(900))) + "])", "{" * 50, "'" * 7, '"""', "\\",
    "`x1`", "!x1", "$x1", "@x1", "x1 -> x2", "x1 := 2", "x1 <> x2", "x1 === x2", "…", "x1..x2",
    "1.x1",
)  # fmt: skip
# Where an attack is put; the marks stand for it.
PLACES = (
    "{}", "I({})", "C({})", "Q({})", "np.log({})", "log({})", "center({})", "bs({}, 4)",
    "bs(x1, {})", "bs(x1, df={})", "bs(x1, knots=[{}])", "cr(x1, 3, constraints={})",
    "te({}, x2)", "{}:x2", "x1*{}", "C(g, {})", "C(g, levels=[{}])", "C(g, Treatment({}))",
    "I(x1 + {})", "I({} > 0)", "-{}", "({})", "standardize(x1, ddof={})", "np.maximum(x1, {})",
    "{}({})", "{}.{}", "{}[{}]", "{} {}", "x1 + {}", "I(x1 ** {})", "Q('{}')", "np.{}",
    "I(center({}) * x1)", "{}\n", "({}, x1)", "scale({})",
)  # fmt: skip
FORMULAS = (
    "y ~ treat | {}", "y ~ treat | x1 + {}", "y ~ {} | x1", "{} ~ treat | x1",
    "y ~ treat | . - {}", "y ~ treat | x1 | {}", "y ~ treat | {} | x2",
    "np.log(k + 1) ~ treat | {}", "{}", "y ~ I(x2 > {}) | x1", "y ~ treat | x1:{} + C(g)",
    "y ~ treat | . + {}", "y ~ treat | {} + {}",
)  # fmt: skip
# Letters that mean something to some reader, or look like those that do.
LETTERS = (
    *"()[]{}.,:;+-*/%&|^~<>=!@#$?`'\"\\_ 019exyQCI\n\t\r\0", "**", "//", "__", "'''", "ａ", "．",
    "（", "\u2028", "\u200b", "\u202e", "\ud83d", "ﬀ", "²", "٣", "ı", "np.", "lambda ", " if ",
    " for ", " in ", ":=", "x1", "g", "1e9",
)  # fmt: skip


def hostile(chance: random.Random) -> str:
    """One formula of an attacker."""
    attack = _attack(chance, 2)
    formula = chance.choice(FORMULAS)
    while "{}" in formula:
        formula = formula.replace("{}", attack, 1)
        attack = _attack(chance, 1) if chance.random() < 0.5 else chance.choice(COLUMNS)
    for _ in range(chance.choice((0, 0, 0, 0, 1, 3))):
        formula = _changed(formula, chance)
    return formula


def _attack(chance: random.Random, depth: int) -> str:
    """A known attack or a column, within up to so many calls."""
    text = chance.choice(ATTACKS if chance.random() < 0.75 else COLUMNS)
    for _ in range(chance.randint(0, depth)):
        place = chance.choice(PLACES)
        first, *rest = place.split("{}")
        others = [chance.choice(COLUMNS) for _ in rest[1:]]
        chance.shuffle(whole := [text, *others])
        text = first + "".join(a + b for a, b in zip(whole, rest, strict=True))
    return text


def _changed(text: str, chance: random.Random) -> str:
    """A text with a stretch taken out, doubled, replaced, or with its quotes changed."""
    at = chance.randint(0, len(text))
    to = min(len(text), at + chance.choice((0, 1, 1, 3, 9)))
    kind = chance.randrange(6)
    if kind <= 2:
        return text[:at] + chance.choice(LETTERS) + text[to:]
    if kind == 3:
        return text[:to] + text[at:]
    if kind == 4:
        return text[:at] + chance.choice(ATTACKS) + text[to:]
    return text.replace("'", '"') if "'" in text else text[:at] + text[to:]


class Watch:
    """Python's audit events while it is on; each that is not allowed is refused and remembered."""

    def __init__(self) -> None:
        self.on = False
        self.heard: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on or event in ALLOWED:
            return
        looks = event == "open" and str(arguments[0]).startswith(_OF_THE_SYSTEM)
        if not looks or arguments[1] != "r":
            self.heard.append(f"{event} {arguments!r:.200}")
            raise PermissionError(event)


def small_frame(n: int = 14) -> pd.DataFrame:
    """Columns of every kind, two of them with names of functions."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "y": rng.normal(size=n),
            "treat": np.resize([0, 1], n),
            "x1": rng.normal(size=n),
            "x2": rng.uniform(0.5, 2, size=n).astype(np.float32),
            "k": np.resize(np.arange(4), n),
            "g": np.resize(["u", "v", "w"], n).astype(object),
            "h": pd.Categorical(np.resize(["lo", "hi"], n)),
            "flag": np.resize([True, False, False], n),
            "when": pd.date_range("2020-01-01", periods=n, freq="D"),
            "x 1": rng.normal(size=n),
            "np": rng.normal(size=n),
            "log": rng.normal(size=n),
        }
    )


# What loads every library that a term may need, and fills the caches of patsy and pandas.
WARM = (
    "y ~ treat | . - when",
    "y ~ treat | C(g)*x1 + h:flag + Q('x 1') + bs(x1, 4) + cr(x1, 3) + cc(x1, 3) + C(k, Poly)",
    "np.log(k + 1) ~ I(x2 > 1) | te(cr(x1, 3), cr(x2, 3)) + standardize(x1) | x2",
    "y ~ x2 | C(g, Sum) + C(k, Treatment(1)) + C(h, Diff) + C(k, Helmert) + I(when > '2020-01-03')",
)


def read(formula: str, frame: pd.DataFrame, *, safe: bool = True) -> str:
    """The name of the error that a formula ends in, or ``"read"``; others than ours are raised."""
    try:
        design = CausalStoNet.from_formula(formula, frame, safe=safe).design
        design.spec.transform(frame.iloc[:3])
    except NotEnoughMemoryError as error:
        if isinstance(error.__cause__, MemoryError):  # found out too late
            raise
        return type(error).__name__
    except CStoNetError as error:
        return type(error).__name__
    return "read"


def attack(seed: int, count: int, *, examples: int = _EXAMPLES) -> dict[str, Any]:
    """Read so many hostile formulas under watch.

    Returns
    -------
    dict
        How many there were, how they ended, what was found, and the largest time and memory.
    """
    warnings.simplefilter("ignore")
    frame, chance = small_frame(), random.Random(seed)
    for formula in WARM:
        read(formula, frame)
    for _ in range(300):  # the paths of errors load libraries, too
        read(hostile(random.Random(f"warm {_}")), frame)
    watch = Watch()
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
    ends: Counter[str] = Counter()
    found: list[dict[str, str]] = []
    slowest, slow = 0.0, ""
    for _ in range(count):
        formula = hostile(chance)
        start, end = time.perf_counter(), ""
        watch.on = True
        try:
            end = read(formula, frame)
        except BaseException as error:
            end = f"{type(error).__name__}: {error}"[:200]
            found.append({"formula": formula, "what": end})
        finally:
            watch.on = False
        took = time.perf_counter() - start
        if took > slowest:
            slowest, slow = took, formula
        if watch.heard:
            found.append({"formula": formula, "what": "; ".join(watch.heard)})
            watch.heard.clear()
        ends[end] += 1
    if slowest > PATIENCE:
        found.append({"formula": slow, "what": f"took {slowest:.1f} s"})
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "count": count,
        "seconds": time.perf_counter() - began,
        "ends": dict(ends),
        "findings": len(found),
        "found": found[:examples],
        "slowest": slowest,
        "slowest_formula": slow[:300],
        "memory_mb": (after - before) / 1024,
    }


def main() -> int:
    """Read hostile formulas in several processes, print what became of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.jobs == 1:
        result = attack(chosen.seed, chosen.count)
        print(json.dumps(result, indent=1))
        return 1 if result["findings"] else 0
    each = -(-chosen.count // chosen.jobs)
    words = [sys.executable, "-m", "tests.fuzz.formulas", "--count", str(each), "--seed"]
    workers = [
        subprocess.Popen(
            [*words, str(chosen.seed + j)], stdout=subprocess.PIPE, cwd=ROOT, text=True
        )
        for j in range(chosen.jobs)
    ]
    outputs = [worker.communicate()[0] for worker in workers]
    for output in outputs:
        print(output)
    return max(abs(worker.returncode) for worker in workers)


if __name__ == "__main__":
    sys.exit(main())
