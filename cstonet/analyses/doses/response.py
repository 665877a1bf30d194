"""A dose-response curve with its intervals and uniform band, as a table and as a plot."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from cstonet.data.caller import caller_stacklevel
from cstonet.data.columns import is_number, listing
from cstonet.data.native import inferred
from cstonet.errors import DoseRangeError, OptionError, ThinSupportWarning
from cstonet.estimators.dose_curve import FEWEST, DoseCurve, dose_support, estimate_curve
from cstonet.estimators.dose_nuisances import DoseNuisances
from cstonet.estimators.nuisances import FloatArray
from cstonet.reporting.inference import check_alpha
from cstonet.reporting.numbers import plain
from cstonet.reporting.simultaneous import largest_quantile_by_influence
from cstonet.settings.checks import is_real
from cstonet.shown import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Doses of the curve if nobody says which.
_POINTS = 50
# Units that a point of the curve should rest on if the user sets its bandwidth.
_FEW = 10.0
# Least bandwidth as a share of the doses' range: below it distances are rounding errors.
_NARROWEST = 1e-6


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DoseResponse:
    """An estimated dose-response curve θ(a): the mean outcome had every unit received dose a.

    Parameters
    ----------
    table : DataFrame
        One row per dose, ascending: `dose`, `estimate`, `se`, pointwise limits `lower`, `upper`,
        and `uniform_lower`, `uniform_upper`, between which the curve lies at all these doses with
        the level's probability; `effective`, the number of units near the dose by kernel and
        row weights alone (``overlap()`` tells about the weights that balance the covariates).
        Below three of them there is no standard error (NaN).
    bandwidth : float
        Standard deviation of the gaussian kernel, in units of the dose.
    support : (float, float)
        Doses between which a curve is estimated.
    n_bounded : int
        Units whose density was raised to the bound.
    alpha : float
        One minus the level.
    outcome_name, dose_name : str
        Names for the axes.
    """

    table: pd.DataFrame
    bandwidth: float
    support: tuple[float, float]
    n_bounded: int
    alpha: float
    outcome_name: str
    dose_name: str

    def __repr__(self) -> str:
        low, high = self.support
        return (
            f"<DoseResponse: {len(self.table)} doses within {plain(low)} to {plain(high)}, "
            f"bandwidth {plain(self.bandwidth, 3)}; .table, .plot()>"
        )

    def _repr_html_(self) -> str:
        html: str = self.table.to_html(index=False)
        return html

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve, its pointwise intervals (dark) and its uniform band (light).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        Axes
        """
        from cstonet.plotting.dose_response import dose_response_curve

        return dose_response_curve(
            self.table,
            alpha=self.alpha,
            dose_name=self.dose_name,
            outcome_name=self.outcome_name,
            ax=ax,
        )


@dataclass(frozen=True, slots=True, eq=False)
class CurveSource:
    """What a curve is estimated from.

    Attributes
    ----------
    nuisances
        Averaged over the repetitions of the cross-fitting.
    repetitions
        Those of each.
    clip
        Bound of the densities.
    seed
        Seed of the draws behind the uniform band.
    outcome_name, dose_name
        Names for the axes.
    """

    nuisances: DoseNuisances
    repetitions: Sequence[DoseNuisances]
    clip: float
    seed: int
    outcome_name: str
    dose_name: str

    def curve(
        self, doses: FloatArray, support: tuple[float, float], bandwidth: float | None
    ) -> DoseCurve:
        """The curve at doses within the support, with errors of a single repetition."""
        curve = estimate_curve(
            self.nuisances, doses, support=support, clip=self.clip, bandwidth=bandwidth
        )
        if len(self.repetitions) < 2:
            return curve
        singles = [
            estimate_curve(one, doses, support=support, clip=self.clip, bandwidth=curve.bandwidth)
            for one in self.repetitions
        ]
        return curve.over_repetitions(singles)


def dose_response(
    source: CurveSource,
    grid: ArrayLike | None,
    *,
    alpha: float,
    bandwidth: float | None,
    trim: float,
) -> DoseResponse:
    """The curve on a grid, see `cstonet.analyses.doses.results.DoseResults.dose_response`."""
    nuisances = source.nuisances
    check_alpha(alpha)
    if not is_real(trim) or not 0 <= trim < 0.5:
        raise OptionError(f"trim must be at least 0 and below 0.5, not {shown(trim)}")
    if bandwidth is not None:
        least = _NARROWEST * float(nuisances.grid[-1] - nuisances.grid[0])
        if not is_real(bandwidth) or not bandwidth >= least:
            raise OptionError(
                f"bandwidth must be a positive number, at least {least:.3g} for these doses, not "
                f"{shown(bandwidth)}"
            )
    support = dose_support(nuisances, trim)
    if grid is None:
        doses = np.linspace(*support, _POINTS)
    else:
        doses = _within(grid, support, source.dose_name)
    curve = source.curve(doses, support, bandwidth)
    # A chosen bandwidth is to be justified; the automatic one, by what cannot be estimated.
    _warn_if_thin(curve, FEWEST if bandwidth is None else _FEW)
    return DoseResponse(
        table=_table(curve, alpha, source.seed),
        bandwidth=curve.bandwidth,
        support=support,
        n_bounded=curve.n_bounded,
        alpha=alpha,
        outcome_name=source.outcome_name,
        dose_name=source.dose_name,
    )


def read_doses(doses: ArrayLike, what: str) -> FloatArray:
    """Doses that a user gave, as an array (k,)."""
    expected = f"{what} must be a number or a one-dimensional sequence of numbers"
    hidden = np.ma.getmaskarray(doses) if isinstance(doses, np.ma.MaskedArray) else np.False_
    try:
        array = np.atleast_1d(np.asarray(doses))
    except ValueError:
        raise OptionError(f"{expected}; its rows differ in length") from None
    if array.ndim != 1 or len(array) == 0:
        raise OptionError(f"{expected}; its shape is {array.shape}")
    series = inferred(pd.Series(array, dtype=object if array.dtype.kind == "U" else None), what)
    if not is_number(series.dtype):
        raise OptionError(f"{expected}; it holds {listing(series.tolist(), 3)}")
    values = series.to_numpy(dtype=np.float64)
    unknown = hidden | ~np.isfinite(values)
    if unknown.any():
        raise OptionError(
            f"{what} holds {int(unknown.sum())} values that are not finite; leave them out"
        )
    return values


def _warn_if_thin(curve: DoseCurve, enough: float) -> None:
    """Say where fewer units than enough decide."""
    thin = curve.effective < enough
    if not thin.any():
        return
    fewest = int(np.argmin(curve.effective))
    nothing = int((curve.effective < FEWEST).sum())
    without = f", and none are given at {nothing} of them" if nothing else ""
    warnings.warn(
        f"bandwidth={curve.bandwidth:.3g}: at {int(thin.sum())} of {len(thin)} doses the curve "
        f"rests on fewer than {enough:g} units (fewest: {curve.effective[fewest]:.1f} at "
        f"{curve.doses[fewest]:.6g}). Standard errors are not to be relied on there{without}; see "
        "the column `effective`. Use a wider bandwidth=, or leave these doses out.",
        ThinSupportWarning,
        stacklevel=caller_stacklevel(),
    )


def _within(grid: ArrayLike, support: tuple[float, float], dose_name: str) -> FloatArray:
    """The doses of a grid inside the support, with a warning that names the others."""
    values = read_doses(grid, "grid")
    low, high = support
    inside = (values >= low) & (values <= high)
    said = f"the support of {dose_name!r}, {low:.6g} to {high:.6g}"
    if not inside.any():
        raise DoseRangeError(
            f"grid: none of the {len(values)} doses lies within {said}, so the data say nothing "
            "about them. Choose doses from this range; a smaller trim= widens it."
        )
    if not inside.all():
        outside = [float(f"{value:.6g}") for value in values[~inside]]
        warnings.warn(
            f"grid: {len(outside)} of {len(values)} doses are left out because they are outside "
            f"{said}: {listing(outside)}. A smaller trim= widens it.",
            stacklevel=caller_stacklevel(),
        )
    return np.sort(values[inside])


def _table(curve: DoseCurve, alpha: float, seed: int) -> pd.DataFrame:
    errors = curve.standard_errors
    freedom, fewest = curve.freedom, None
    pointwise = float(-ndtri(alpha / 2)) * errors
    known = np.isfinite(errors)
    if freedom is not None:
        pointwise = -stdtrit(freedom, alpha / 2) * errors
        fewest = float(freedom[known].min(initial=np.inf))
    largest = largest_quantile_by_influence(
        curve.influence[:, known], alpha, seed, curve.clusters, fewest
    )
    uniform = largest * errors
    return pd.DataFrame(
        {
            "dose": curve.doses,
            "estimate": curve.estimates,
            "se": errors,
            "lower": curve.estimates - pointwise,
            "upper": curve.estimates + pointwise,
            "uniform_lower": curve.estimates - uniform,
            "uniform_upper": curve.estimates + uniform,
            "effective": curve.effective,
        }
    )
