"""Protocols that others publish, with peers on the same rows in the same run.

Everything, two fits at a time, and the page of what is there::

    python benchmarks/field.py --data path/to/data
    python benchmarks/field.py --report

Protocols are chosen by name, methods and data sets as everywhere::

    python benchmarks/field.py --protocol irm --methods calibrated,ols --seeds 4001:4100
    python benchmarks/field.py --protocol lalonde,pension --data path/to/data
    python benchmarks/field.py --quick --data path/to/data

Results are appended to ``field.jsonl`` in the output folder, and what is there already is not
computed again. The simulations ``irm`` and ``multi-arm`` need no data; what the others need is
said where it is missing. Seeds up to 4000 of simulations served to choose options of the package.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from accuracy import add_run_arguments, run_cases
from common import number_range
from field_peers import for_question
from field_protocols import PROTOCOLS, FieldCase, Protocol
from peers import parse_methods
from runner import read_records

FILE = "field.jsonl"


def cases_of(
    name: str, data: Path | None, sets: list[int] | None = None, *, quick: bool = False
) -> list[FieldCase]:
    """The data sets of a protocol.

    Parameters
    ----------
    name : str
        Its name in `PROTOCOLS`.
    data : Path or None
        Folder of all data.
    sets : list of int or None
        Only these; others than the protocol's own are taken too, where they can be drawn.
    quick : bool
        Only the first one or two.

    Raises
    ------
    FileNotFoundError
        If files are missing, with what to get.
    """
    protocol = PROTOCOLS[name]
    if protocol.source is not None:
        protocol.source.check(name, data)
    numbers = list(protocol.numbers) if sets is None else sets
    if quick:
        numbers = numbers[: protocol.quick]
    folder = Path() if data is None else data.resolve()
    return [
        FieldCase(name, group, number, folder) for number in numbers for group in protocol.groups
    ]


def methods_text(protocol: Protocol, *, quick: bool) -> str:
    """Names of the methods that a protocol runs unless told otherwise."""
    return protocol.quick_methods if quick else protocol.methods


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocol", default=",".join(PROTOCOLS), help="names, split by commas")
    parser.add_argument("--data", type=Path, help="folder with one folder per source of data")
    parser.add_argument(
        "--seeds", "--sets", dest="sets", type=number_range, help="only these, 4001:4100 or 1,2"
    )
    parser.add_argument("--quick", action="store_true", help="few data sets, cheap methods")
    parser.add_argument("--report", action="store_true", help="only print the page of the results")
    add_run_arguments(parser)
    parser.set_defaults(methods=None)
    arguments = parser.parse_args()
    if arguments.report:
        # Plotting is needed here only.
        from field_report import page

        print(page(read_records(arguments.out / FILE), arguments.out))
        return
    names = arguments.protocol.split(",")
    for name in names:
        if name not in PROTOCOLS:
            parser.error(f"no protocol {name!r}; there are {', '.join(PROTOCOLS)}")
    try:
        cases = {
            name: cases_of(name, arguments.data, arguments.sets, quick=arguments.quick)
            for name in names
        }
    except FileNotFoundError as missing:
        parser.error(str(missing))
    asked = arguments.methods
    for name in names:
        protocol = PROTOCOLS[name]
        methods = asked or parse_methods(methods_text(protocol, quick=arguments.quick))
        arguments.methods = for_question(methods, protocol.question)
        print(f"{name}: ", end="", flush=True)
        run_cases(cases[name], arguments, FILE)


if __name__ == "__main__":
    main()
