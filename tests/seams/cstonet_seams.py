"""Single formulas and passes of the kernel, which the tests hold against their NumPy twins.

They are an extension of their own, which no wheel carries: ``make test-cpp`` builds it from
``tests/seams/*.cpp`` and the objects of the C++ suite. CSTONET_SEAMS in the environment names the
folder of another build (tests/sanitize).
"""

import os
import sys
from pathlib import Path

_BUILT = Path(os.environ.get("CSTONET_SEAMS", Path(__file__).parents[2] / "build" / "seams"))

sys.path.insert(0, str(_BUILT))
try:
    from _cstonet_seams import *  # noqa: F403
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{_BUILT} holds no seams for this Python: run `make test-cpp`, which builds them"
    ) from error
finally:
    sys.path.remove(str(_BUILT))
