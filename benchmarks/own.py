"""The package's own methods: its presets, used as anybody would, and what their results depend on.

A preset can be asked about new rows, too: its networks then give the nuisances of rows that they
have not seen, and AIPW makes an effect of these.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from common import FORMULA, Z95, Estimate, Problem

import cstonet as cs
from cstonet.estimators import Nuisances, estimate_target
from cstonet.settings.options import FitOptions, TrainingOptions
from cstonet.settings.presets import PRESETS, preset

# Raised whenever the same options come to give other results: these are then computed anew.
METHOD = 5


# What a method's name may change of its preset, as in "calibrated/folds=1/temperature=0".
CHANGES: dict[str, Callable[[str], float]] = {
    "folds": int,
    "repeats": int,
    "starts": int,
    "screen": int,
    "temperature": float,
}


def at_temperature(options: FitOptions, temperature: float) -> dict[str, Any]:
    """What to change so that latent variables are sampled at this temperature everywhere."""

    def changed(training: TrainingOptions) -> TrainingOptions:
        return replace(training, sampler=replace(training.sampler, temperature=temperature))

    out: dict[str, Any] = {"training": changed(options.training)}
    if options.search is not None:
        out["search"] = replace(options.search, training=changed(options.search.training))
    return out


def recipe_of(name: str) -> str:
    """Version, method and a digest of a preset's options: same recipe, same results."""
    digest = hashlib.sha256(repr(preset(name)).encode()).hexdigest()
    return f"{cs.__version__}-{METHOD}-{digest[:8]}"


def preset_of(method: str) -> str:
    """The preset behind a method's name, such as "mar@stonet/starts=1"; else the default."""
    name = (method.partition("@")[2] or method).partition("/")[0]
    return name if name in PRESETS else "calibrated"


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset of the package, used as anybody would: formula, frame, nothing else.

    Parameters
    ----------
    name : str
        That of a preset, maybe with changes such as "calibrated/folds=2" (see CHANGES).
    """

    name: str

    @property
    def preset(self) -> str:
        """Name of the preset."""
        return self.name.partition("/")[0]

    @property
    def changes(self) -> dict[str, Any]:
        """Options of the fit that are not the preset's."""
        out: dict[str, Any] = {}
        for change in self.name.split("/")[1:]:
            key, _, value = change.partition("=")
            if key not in CHANGES:
                raise ValueError(f"{key!r} cannot be changed, only {', '.join(CHANGES)}")
            out[key] = CHANGES[key](value)
        if "temperature" in out:
            out |= at_temperature(preset(self.preset), out.pop("temperature"))
        return out

    @property
    def recipe(self) -> str:
        """What the results depend on."""
        return recipe_of(self.preset)

    def prepare(self) -> None:
        """Nothing to do: the package is there. An unknown name is refused."""
        preset(self.preset).replace(**self.changes)

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """AIPW with the fitted networks."""
        return self.read(self.fit(problem, threads=threads, seed=seed))

    def learn(self, problem: Problem, threads: int, seed: int) -> FittedPreset:
        """The fit as what can be asked about the same and about other rows."""
        return FittedPreset(self, self.fit(problem, threads=threads, seed=seed), problem)

    def fit(self, problem: Problem, *, threads: int, seed: int) -> Any:
        """The results of the package."""
        return cs.fit(
            FORMULA,
            problem.data,
            missing=problem.missing,
            preset=self.preset,
            seed=seed,
            n_jobs=threads,
            **self.changes,
        )

    def read(self, results: cs.ArmsResults) -> Estimate:
        """What the results say about the mean effect."""
        effect = results.effect("ATE")
        table = results.selection
        return Estimate(
            ate=effect.estimate,
            se=effect.se,
            lower=effect.lower,
            upper=effect.upper,
            cate=results.cate().to_numpy(),
            selected={m: frozenset(table.index[table[m]]) for m in ("outcome", "treatment")},
            extra={"plan": plan_digest(results.plan)},
        )

    def on_new_rows(self, results: cs.ArmsResults, rows: Problem) -> Estimate:
        """AIPW on rows that the networks have not seen, with the nuisances that they predict.

        Parameters
        ----------
        results : ArmsResults
            The fit.
        rows : Problem, m rows
            Their covariates are predicted from, their treatments and outcomes weighted.
        """
        mu = results.potential_outcomes(rows.data)
        propensity = results.propensity(rows.data).to_numpy()
        nuisances = Nuisances(
            y=rows.y,
            treatment=rows.treat,
            mu=mu.to_numpy(),
            propensity=np.column_stack([1 - propensity, propensity]),
            weights=None,
            fold=np.zeros(len(rows.y), np.int64),
        )
        effects = estimate_target(nuisances, "ATE", (1, 0), clip=results.effects.clip, name="ATE")
        ate, se = float(effects.estimates[0]), float(effects.standard_errors[0])
        cate = mu.iloc[:, 1].to_numpy() - mu.iloc[:, 0].to_numpy()
        return Estimate(ate, se, ate - Z95 * se, ate + Z95 * se, cate)


@dataclass(frozen=True, slots=True, eq=False)
class FittedPreset:
    """A fit: of its own rows it says what its results say, of others what its networks predict."""

    preset: Preset
    results: cs.ArmsResults
    problem: Problem

    def on(self, rows: Problem) -> Estimate:
        """The mean effect among these rows."""
        if rows is self.problem:
            return self.preset.read(self.results)
        return self.preset.on_new_rows(self.results, rows)


def plan_digest(plan: Any) -> str:
    """What a fit was done with, in eight characters: every number of its plan but the seed."""
    numbers = plan.to_dict() | {"seed": None}
    return hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()[:8]
