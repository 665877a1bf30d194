"""What the analysis of data with known effects says about it: coverage, bias, power."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.estimators.nuisances import FloatArray
from cstonet.reporting.numbers import count, level, plain, with_error
from cstonet.reporting.printed import Printed

if TYPE_CHECKING:
    from cstonet.reporting.tables import CausalSummary

POWER = 0.8  # of the smallest effect that is likely to be found

# Effects of the power table without any asked for: so many standard errors, and the estimate.
_STEPS = (0.0, 1.0, 2.0, 3.0, 4.0)
_SURE = 0.05  # one minus the level of the interval of the coverage itself
_HALVES = 36, 3, 39
_FOUND_WIDTHS, _POWER_WIDTHS = (38, 12, 13, 12), (38, 12, 13)


@dataclass(frozen=True, slots=True, eq=False)
class Certificate(Printed):
    """How the analysis does on twins of the data, whose effects are known. Print it.

    Attributes
    ----------
    name : str
        The effect.
    estimate : float
        The fit's own estimate of it.
    alpha : float
        One minus the level of the intervals.
    draws : DataFrame
        One row per twin: `truth`, `estimate`, `se`, `lower`, `upper`, `covered`.
    effects : tuple of float
        Effects whose power is asked for.
    refused : tuple of str
        Errors by which the analysis refused other twins.
    notes : tuple of str
        What twins are.
    """

    name: str
    estimate: float
    alpha: float
    draws: pd.DataFrame
    effects: tuple[float, ...]
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        draws: Mapping[int, tuple[float, float, float, float]],
        *,
        estimate: float,
        effects: tuple[float, ...] | None,
        alpha: float,
        refused: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Certificate:
        """The certificate of draws.

        Parameters
        ----------
        name, estimate, alpha, refused, notes
            See the class.
        draws
            By number: truth, estimate, standard error, half the length of the interval.
        effects
            Effects whose power is asked for; None: zero to four standard errors in the direction
            of the estimate, and the estimate.
        """
        columns = ["truth", "estimate", "se", "half"]
        table = pd.DataFrame.from_dict(dict(draws), orient="index", columns=columns).sort_index()
        half = table.pop("half")
        table = table.assign(lower=table["estimate"] - half, upper=table["estimate"] + half)
        table["covered"] = table["truth"].between(table["lower"], table["upper"])
        table.index.name = "draw"
        if effects is None:
            unit = math.copysign(float(table["se"].mean()), estimate)
            effects = tuple(sorted({*(unit * step for step in _STEPS), estimate}, key=abs))
        return cls(name, estimate, alpha, table, effects, refused, notes)

    @property
    def coverage(self) -> float:
        """Share of the intervals that cover the truth."""
        return float(self.draws["covered"].mean())

    @property
    def coverage_se(self) -> float:
        """Monte-Carlo error of the coverage.

        That of a share with one success and one failure more, which is not zero where all of them
        cover.
        """
        n = len(self.draws)
        share = (self.draws["covered"].sum() + 1) / (n + 2)
        return math.sqrt(share * (1 - share) / (n + 2))

    @property
    def coverage_interval(self) -> tuple[float, float]:
        """Exact 95 % limits of the coverage in infinitely many draws (Clopper and Pearson)."""
        from scipy.special import betaincinv

        n, covered = len(self.draws), int(self.draws["covered"].sum())
        lower = 0.0 if covered == 0 else betaincinv(covered, n - covered + 1, _SURE / 2)
        upper = 1.0 if covered == n else betaincinv(covered + 1, n - covered, 1 - _SURE / 2)
        return float(lower), float(upper)

    @property
    def bias_in_se(self) -> float:
        """Mean error of the estimates over their mean standard error."""
        return float(self._errors.mean() / self.draws["se"].mean())

    @property
    def bias_in_se_error(self) -> float:
        """Monte-Carlo error of `bias_in_se`."""
        spread = self._errors.std(ddof=1) / math.sqrt(len(self.draws))
        return float(spread / self.draws["se"].mean())

    @property
    def se_ratio(self) -> float:
        """Mean standard error over the standard deviation of the errors: one, if they are right."""
        return float(self.draws["se"].mean() / self._errors.std(ddof=1))

    @property
    def se_ratio_error(self) -> float:
        """Monte-Carlo error of `se_ratio`, that of the standard deviation of normal errors."""
        return self.se_ratio / math.sqrt(2 * (len(self.draws) - 1))

    @property
    def power(self) -> pd.DataFrame:
        """Share of the draws that would find each of `effects`: `effect`, `power`, `power_se`."""
        shares = np.array([np.mean(self._found(effect)) for effect in self.effects])
        errors = np.sqrt(shares * (1 - shares) / len(self.draws))
        return pd.DataFrame({"effect": self.effects, "power": shares, "power_se": errors})

    @property
    def smallest_effect(self) -> float:
        """Smallest effect, in the direction of the estimate, that is found with power 80 %."""
        sign = math.copysign(1.0, self.estimate)
        # An effect is found in a draw if it exceeds what noise takes away, and half the interval.
        needed = np.sort(self._half - sign * self._errors)
        return sign * max(float(needed[math.ceil(POWER * len(needed)) - 1]), 0.0)

    @property
    def _errors(self) -> FloatArray:
        errors: FloatArray = (self.draws["estimate"] - self.draws["truth"]).to_numpy()
        return errors

    @property
    def _half(self) -> FloatArray:
        half: FloatArray = (self.draws["upper"] - self.draws["lower"]).to_numpy() / 2
        return half

    def _found(self, effect: float) -> NDArray[np.bool_]:
        """Draws whose interval would not hold zero, were the truth this effect."""
        found: NDArray[np.bool_] = np.abs(self._errors + effect) > self._half
        return found

    @property
    def verdict(self) -> str:
        """What the coverage says, in a sentence."""
        lower, upper = self.coverage_interval
        confidence = level(self.alpha)
        limits = f"(95 % limits {100 * lower:.1f} % to {100 * upper:.1f} %)"
        found = f"{self.draws['covered'].sum()} of {len(self.draws)} intervals cover the truth"
        if upper < 1 - self.alpha:
            return f"{found} {limits}: {confidence} intervals are too short for data like these."
        if lower > 1 - self.alpha:
            return f"{found} {limits}: {confidence} intervals are longer than they need be."
        return f"{found} {limits}, which agrees with their level of {confidence}."

    def summary(self) -> CausalSummary:
        """Tables and notes, to print or to export: as_text, as_html, as_latex, as_csv."""
        from cstonet.reporting.tables import CausalSummary, Table, halves, table_with_headers

        confidence = level(self.alpha)
        drawn = count(len(self.draws) + len(self.refused))
        if self.refused:
            drawn += f" ({len(self.refused)} refused)"
        spread = float(self.draws["se"].mean())
        estimate, error = with_error(self.estimate, spread)
        rows = [
            (("Effect:", self.name), ("Twins:", drawn)),
            (("Estimate of the fit:", estimate), ("Mean standard error:", error)),
        ]
        header = Table(
            [[*left, *right] for left, right in rows],
            [line for left, right in rows for line in halves(left, right, _HALVES)],
            aligns="lrlr",
            title="Certificate: Twins of the Data with Known Effects",
        )
        found = [
            _row(
                f"Coverage of {confidence} intervals",
                self.coverage,
                self.coverage_se,
                1 - self.alpha,
            ),
            _row("Bias, in standard errors", self.bias_in_se, self.bias_in_se_error, 0),
            _row("Mean standard error / true spread", self.se_ratio, self.se_ratio_error, 1),
        ]
        power = [
            [with_error(effect, spread)[0], f"{share:.2f}", f"{error:.3f}"]
            for effect, share, error in self.power.itertuples(index=False)
        ]
        smallest = with_error(self.smallest_effect, spread)[0]
        tables = [
            header,
            table_with_headers(found, ["", "found", "MC error", "aim"], _FOUND_WIDTHS),
            table_with_headers(
                power,
                [f"True {self.name}", "power", "MC error"],
                _POWER_WIDTHS,
                f"Smallest effect with power {POWER:g}: {smallest}",
            ),
        ]
        refused = [f"Refused, the first: {self.refused[0]}"] if self.refused else []
        return CausalSummary(tables, [self.verdict, *refused, *self.notes])

    def __repr__(self) -> str:
        return (
            f"<Certificate of {self.name}: coverage {self.coverage:.3f} (MC error "
            f"{self.coverage_se:.3f}), bias {self.bias_in_se:.2f} SE, SE / spread "
            f"{self.se_ratio:.2f}; print it for more>"
        )


def _row(label: str, value: float, error: float, aim: float) -> list[str]:
    return [label, f"{value:.3f}", f"{error:.3f}", plain(aim)]
