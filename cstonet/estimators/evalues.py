"""E-values: how strong confounding of a risk ratio would have to be to explain it away.

To move a risk ratio RR > 1 to one, an unmeasured confounder would have to be associated with
treatment and with outcome by a risk ratio of RR + √(RR (RR - 1)) each, above and beyond the
covariates (VanderWeele and Ding 2017, "Sensitivity analysis in observational research: introducing
the E-value"). Of a ratio below one, the inverse counts.
"""

from __future__ import annotations

import math


def evalue(ratio: float) -> float:
    """The E-value of a risk ratio above zero; one for no effect."""
    larger = max(ratio, 1 / ratio)
    return larger + math.sqrt(larger * (larger - 1))


def evalue_of_limits(lower: float, upper: float) -> float:
    """The E-value of the confidence limit nearer to one; one if the interval holds one."""
    if lower <= 1 <= upper:
        return 1.0
    return evalue(lower if lower > 1 else upper)
