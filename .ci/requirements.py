"""Print the requirements that pyproject.toml lists, one per line, so that they are listed once.

Usage: ``python .ci/requirements.py build runtime test``, the last being the name of an extra.
"""

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip carries the same parser
    from pip._vendor import tomli as tomllib


def main() -> None:
    """Print the requirements of every group named on the command line."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))
    groups = {
        "build": project["build-system"]["requires"],
        "runtime": project["project"]["dependencies"],
        **project["project"]["optional-dependencies"],
    }
    for group in sys.argv[1:]:
        print(*groups[group], sep="\n")


if __name__ == "__main__":
    main()
