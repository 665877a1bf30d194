"""``cstonet predict`` and ``cstonet report``: what a saved fit says."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cstonet.cli.reading import check_header, read_data
from cstonet.places import check_place, write_text

_PREDICT_EXAMPLES = """\
examples:
  cstonet predict fit.cst new.csv > predictions.csv
  cstonet predict fit.cst new.parquet --intervals 0.95 --out predictions.csv
"""


def add_predict(parser: argparse.ArgumentParser) -> None:
    """The flags of ``predict``."""
    parser.description = (
        "Predicts for new units by a saved fit: the outcome under every treatment, the effect, and "
        "the probability of treatment, a row of comma-separated values for each."
    )
    parser.epilog = _PREDICT_EXAMPLES
    _add_fit_file(parser)
    parser.add_argument("data", help="new units, as for fit; - is standard input")
    parser.add_argument(
        "--intervals",
        type=float,
        metavar="LEVEL",
        help="also limits of the effects, such as 0.95; needs a fit that was saved --with-data",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="CSV file to write")
    parser.set_defaults(command=predict)


def add_report(parser: argparse.ArgumentParser) -> None:
    """The flags of ``report``."""
    parser.description = "Writes the page of a saved fit: HTML that needs nothing else."
    _add_fit_file(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="HTML file to write (default: the fit's name)"
    )
    parser.set_defaults(command=report)


def _add_fit_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fit", type=Path, help="a fit that was saved, such as fit.cst")


def predict(chosen: argparse.Namespace) -> None:
    """Predict new units."""
    from cstonet.model import load

    if chosen.out is not None:
        check_place(chosen.out)
    results, data = load(chosen.fit), read_data(chosen.data)
    check_header(data, results.design.spec.columns, chosen.data)
    text = results.predictions(data, intervals=chosen.intervals).to_csv(index=False)
    if chosen.out is None:
        sys.stdout.write(text)
    else:
        write_text(chosen.out, text)


def report(chosen: argparse.Namespace) -> None:
    """Write the page of a fit."""
    from cstonet.model import load

    results = load(chosen.fit)
    results.report(chosen.out or chosen.fit.with_suffix(".html"))
