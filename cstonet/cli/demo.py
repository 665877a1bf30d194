"""``cstonet demo``: a simulated data set, its summary, and the truth below it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cstonet import datasets
from cstonet.model import fit

if TYPE_CHECKING:
    from cstonet.analyses.results import CausalResults


def add_demo(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.description = (
        "Fits the paper's second simulation and prints the truth below the summary."
    )
    parser.add_argument("--n", type=int, default=2000, help="units (default: %(default)s)")
    parser.add_argument("--p", type=int, default=50, help="covariates (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=1, help="of data and fit (default: %(default)s)"
    )
    parser.set_defaults(command=demo)


def demo(chosen: argparse.Namespace) -> None:
    """Fit simulation 2 and print the summary and, below it, the truth."""
    simulation = datasets.simulation2(n=chosen.n, p=chosen.p, seed=chosen.seed)
    results = fit(simulation.formula, simulation.data, seed=chosen.seed)
    print(results.summary())
    print()
    print(truth_table(simulation, results))
    print(f"\nFitted in {results.runtime:.1f} s.")


def truth_table(simulation: datasets.Simulation, results: CausalResults) -> str:
    """What the fit says beside what is true, as text of 78 columns."""
    from cstonet.reporting.tables import table_with_headers

    ate, error = float(results.params["ATE"]), float(results.bse["ATE"])
    oracle, oracle_error = simulation.oracle_ate()
    rows = [
        ("this fit", ate, error),
        ("oracle: AIPW with the true nuisances", oracle, oracle_error),
        ("true mean effect over these rows", simulation.sample_ate, None),
        ("true mean effect in the population", simulation.ate, None),
    ]
    effects = table_with_headers(
        [
            [
                name,
                f"{value:.4f}",
                "" if se is None else f"{se:.3f}",
                f"{value - simulation.sample_ate:+.4f}",
            ]
            for name, value, se in rows
        ],
        ["Truth: ATE", "value", "std err", "minus truth"],
        (40, 11, 11, 13),
    )
    supports = {"treatment": simulation.treatment_support, "outcome": simulation.outcome_support}
    cells = []
    for model, support in supports.items():
        selected = results.selection.index[results.selection[model]]
        found = [name for name in support if name in selected]
        others = str(len(selected) - len(found))
        cells.append([model, " ".join(support), f"{len(found)} of {len(support)}", others])
    selection = table_with_headers(
        cells, ["Truth: covariates", "true ones", "found", "others kept"], (20, 31, 11, 13)
    )
    # As in the summary, the tables share the rule between them.
    return "\n".join([effects.as_text().rsplit("\n", 1)[0], selection.as_text()])
