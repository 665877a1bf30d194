"""``cstonet fit`` and ``cstonet plan``: a file and a formula, as the Python call takes them."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from cstonet.analyses.registry import treatment_kinds
from cstonet.cli.flags import Help, add_flag, is_flag, parameter_docs
from cstonet.cli.reading import check_header, read_data
from cstonet.cli.writing import FORMATS, as_json, check_outputs, write_tables
from cstonet.data.formula import formula_words
from cstonet.data.raw import Missing
from cstonet.data.variables import Family
from cstonet.errors import FormulaError
from cstonet.model import CausalStoNet
from cstonet.places import write_text
from cstonet.reporting.inference import check_alpha
from cstonet.settings.options import FitOptions
from cstonet.settings.presets import PRESETS

if TYPE_CHECKING:
    from cstonet.settings.plan import Plan

# Options that every reader of the help should see; the others are behind --help-all.
_COMMON = ("estimand", "keep")
# Characters of a formula in a file.
_LONGEST_FORMULA = 1_000_000

FIT_EXAMPLES = """\
examples:
  cstonet fit trial.csv "y ~ treat | ."
      the effect of treat on y, adjusted for every other column that matters
  cstonet fit trial.csv "y ~ treat | age + C(region)" --estimand ATT --seed 1
      adjusted for two columns; the effect among those who were treated
  cstonet fit trial.csv "y ~ treat | ." --by region --cluster village --report fit.html
      effects by region, errors for rows of one village, a page to send around
  cstonet fit trial.parquet "y ~ treat | ." --missing mar --out table.tex --save fit.cst
      gaps in the covariates are imputed; a table for the paper; the fit for later
  cstonet fit trial.csv "y ~ treat | ." --checkpoint night --save fit.cst
      after Ctrl-C, or worse, the same command goes on with the folds that are finished
  zcat trial.csv.gz | cstonet fit - "y ~ treat | ." --json | jq .effects
      from one program to the next
  cstonet fit trial.csv @formula.txt
      the formula that a colleague sent, which can run nothing here

Terms of a formula other than names of columns are Python code, which is run with your rights. With
--safe, and if the formula comes from a file, they are limited to plain computations, which are not:
interactions, C(), I() of arithmetic, log, exp, sqrt, ..., center, standardize, bs, cr, cc and te.

exit codes: 0 done, 1 a fault of the program, 2 wrong words or data, 130 interrupted
"""


class HelpAll(argparse.Action):
    """``--help-all``: the help of a parser that hides nothing."""

    def __init__(self, option_strings: list[str], dest: str, **_: Any) -> None:
        super().__init__(
            option_strings, dest, nargs=0, help="show this help with the expert options, and exit"
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Show it and end."""
        everything = argparse.ArgumentParser(prog=parser.prog, formatter_class=Help)
        adding = {"fit": add_fit, "plan": add_plan}[parser.prog.rpartition(" ")[2]]
        adding(everything, everything=True)
        everything.print_help()
        parser.exit()


def add_fit(parser: argparse.ArgumentParser, *, everything: bool = False) -> None:
    """The flags of ``fit``; expert options are in its help only if everything is."""
    parser.description = (
        "Fits a Causal-StoNet to the data of a file and prints the summary: the average effect "
        "with its standard error and interval, and the covariates that mattered."
    )
    parser.epilog = FIT_EXAMPLES
    _add_model(parser, everything)
    parser.add_argument_group("questions").add_argument(
        "--by", metavar="COLUMN", help="also effects by group: a column of the data"
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="write the table, in the format that the name ends with "
        f"({', '.join(FORMATS)}); may be given several times",
    )
    output.add_argument("--report", type=Path, metavar="FILE", help="write a page of HTML")
    output.add_argument("--save", type=Path, metavar="FILE", help="save the fit, as fit.cst")
    output.add_argument("--with-data", action="store_true", help="keep the rows in the saved fit")
    output.add_argument(
        "--selection", type=Path, metavar="FILE", help="write the full selection table as csv"
    )
    output.add_argument("--alpha", type=float, default=0.05, help="one minus the confidence level")
    output.add_argument("--json", action="store_true", help="print JSON instead of the summary")
    output.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(command=fit_file)


def add_plan(parser: argparse.ArgumentParser, *, everything: bool = False) -> None:
    """The flags of ``plan``."""
    parser.description = (
        "Reads the data and says what a fit with the same words would do, in numbers, without "
        "doing it."
    )
    _add_model(parser, everything)
    parser.add_argument("--json", action="store_true", help="print the whole plan as JSON")
    parser.set_defaults(command=plan_file)


def _add_model(parser: argparse.ArgumentParser, everything: bool) -> None:
    """Words that say which data are fitted, and how."""
    parser.add_argument(
        "file", help="CSV, Parquet or Arrow file; - is standard input (CSV or Parquet)"
    )
    parser.add_argument(
        "formula",
        help='such as "y ~ treat | ." or "y ~ treat | x1 + C(region)"; or @FILE that holds it',
    )
    parser.add_argument("--help-all", action=HelpAll)
    model, how = parameter_docs(CausalStoNet), parameter_docs(CausalStoNet.fit)

    data = parser.add_argument_group("data")
    add_flag(data, "family", Family, model["family"])
    data.add_argument("--treatment", choices=treatment_kinds(), help=model["treatment"])
    data.add_argument("--reference", metavar="LEVEL", help=model["reference"])
    add_flag(data, "missing", Missing, model["missing"], default="raise")
    data.add_argument("--weights", metavar="COLUMN", help=model["weights"])
    data.add_argument("--cluster", metavar="COLUMN", help=model["cluster"])

    data.add_argument(
        "--safe",
        action=argparse.BooleanOptionalAction,
        help="limit the formula to plain computations, so that it runs no code (default: only if "
        "it comes from a file)",
    )

    fitting = parser.add_argument_group("fit", "Options not given are those of the preset.")
    docs, hints = parameter_docs(FitOptions), get_type_hints(FitOptions)
    for name in _COMMON:
        add_flag(fitting, name, hints[name], docs[name])
    fitting.add_argument("--seed", type=int, default=0, help=how["seed"])
    fitting.add_argument("--n-jobs", type=int, default=-1, help=how["n_jobs"])
    fitting.add_argument("--preset", choices=PRESETS, default=PRESETS[0], help="named settings")
    fitting.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, help="show how far it is"
    )
    fitting.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FOLDER",
        help="keep finished folds there; after an interruption, the same command goes on from them",
    )
    expert = parser.add_argument_group("expert options") if everything else parser
    hidden = None if everything else argparse.SUPPRESS
    expert.add_argument("--backend", metavar="NAME", help=hidden or how["backend"])
    for name in option_flags():
        if name not in _COMMON:
            add_flag(expert, name, hints[name], hidden or docs[name])


def option_flags() -> list[str]:
    """The options of a fit that one word can express: training and search have options inside."""
    hints = get_type_hints(FitOptions)
    return [field.name for field in dataclasses.fields(FitOptions) if is_flag(hints[field.name])]


def fit_file(chosen: argparse.Namespace) -> None:
    """Fit the data of a file, print the summary, write what was asked for."""
    check_alpha(chosen.alpha)
    check_outputs(chosen.out, chosen.report, chosen.save, chosen.selection)
    results = model_of(chosen).fit(
        chosen.preset,
        seed=chosen.seed,
        n_jobs=chosen.n_jobs,
        backend=chosen.backend,
        checkpoint=chosen.checkpoint,
        progress=False if chosen.quiet else chosen.progress,
        **options_of(chosen),
    )
    if chosen.save is not None:
        results.save(chosen.save, with_data=chosen.with_data)
    groups = None if chosen.by is None else results.gate(chosen.by, alpha=chosen.alpha)
    try:
        write_tables(results, chosen.out, chosen.alpha)
        if chosen.selection is not None:
            write_text(chosen.selection, results.selection.to_csv())
        if chosen.report is not None:
            results.report(chosen.report, by=groups, alpha=chosen.alpha)
    finally:  # a full disk loses no fit, and neither does a reader that went away
        if chosen.json:
            print(as_json(results, chosen.alpha, groups))
        elif not chosen.quiet:
            print(results.summary(alpha=chosen.alpha))
            if groups is not None:
                print(f"\n{groups}")


def plan_file(chosen: argparse.Namespace) -> None:
    """Say what a fit would do."""
    model = model_of(chosen)
    plan = model.plan(chosen.preset, seed=chosen.seed, **options_of(chosen))
    print(plan.to_json() if chosen.json else plan_text(model, plan))


def plan_text(model: CausalStoNet, plan: Plan) -> str:
    """The plan in a few lines."""
    design, clip = model.design, plan.clip
    bounds = clip if isinstance(clip, tuple) else (clip,)
    lines = {
        "outcome": f"{design.outcome_name} ({design.family})",
        "treatment": f"{design.treatment_name} ({design.treatment.label})",
        "rows": str(len(design.y)),
        "covariates": str(len(design.covariates)),
        "network": plan.network_label,
        "folds": f"{plan.folds}, {plan.repeats} times",
        "starts": f"{plan.starts} of each fold",
        "networks in all": str(plan.folds * plan.repeats * plan.starts),
        "search": "none" if plan.search is None else "grows and prunes the covariates of each fold",
        "least propensity": ", ".join(f"{bound:.3g}" for bound in bounds),
        "preset, seed": f"{plan.preset}, {plan.seed}",
    }
    width = max(map(len, lines))
    return "\n".join(f"{label:{width}}  {value}" for label, value in lines.items())


def model_of(chosen: argparse.Namespace) -> CausalStoNet:
    """The model that the words describe."""
    formula, safe = formula_of(chosen.formula, chosen.safe)
    names = formula_words(formula)
    data = read_data(chosen.file, notes=not getattr(chosen, "quiet", False))
    check_header(data, names, chosen.file)
    return CausalStoNet.from_formula(
        formula,
        data,
        family=chosen.family,
        treatment=chosen.treatment,
        reference=as_level(chosen.reference),
        missing=chosen.missing or "raise",
        weights=chosen.weights,
        cluster=chosen.cluster,
        safe=safe,
    )


def formula_of(word: str, safe: bool | None) -> tuple[str, bool]:
    """The formula that a word is or names the file of, and whether it may run no code.

    Parameters
    ----------
    word
        The formula, or ``@`` and the path of a file that holds it.
    safe
        As the user chose; None: what comes from a file is not to be run.

    Raises
    ------
    FormulaError
        If the file holds no formula. Nothing of it is repeated: it may be a secret.
    """
    if not word.startswith("@"):
        return word, bool(safe)
    try:
        with open(word[1:], encoding="utf-8") as file:
            text = file.read(_LONGEST_FORMULA + 1)
    except UnicodeDecodeError:
        text = ""
    if text.count("~") != 1 or "|" not in text or len(text) > _LONGEST_FORMULA:
        raise FormulaError(
            f"{word[1:]} holds no formula. Write it there as 'outcome ~ treatment | covariates'."
        )
    return " ".join(text.split()), safe is not False


def options_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """The options of a fit that were given."""
    given = {name: getattr(chosen, name) for name in option_flags()}
    return {name: value for name, value in given.items() if value is not None}


def as_level(word: str | None) -> object:
    """A level of the treatment from a word, read as from a CSV file: number, boolean or text."""
    if word is None or word in ("True", "False"):
        return {None: None, "True": True, "False": False}[word]
    for read in (int, float):
        try:
            return read(word)
        except ValueError:
            pass
    return word
