"""Small fits of every kind, and all that they say as one number."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from common import ROOT

sys.path.insert(0, str(ROOT))

import cstonet as cs
from cstonet.errors import CStoNetError
from tests.conftest import options_for_quick_fits
from tests.unit.files.conftest import FITS, data_of

# Rows of data that take seconds, to be interrupted in long calls of the kernel as well.
LARGE = 20_000
# Columns of noise of data that take megabytes, which a limit of memory is felt by.
WIDE = 500
FIT_KINDS = ("arms", "dose", "mediation", "mar", "mnar")
# A certificate is twelve fits, or so, of twins of the data.
DRAWS = 12


def fit(kind: str, **more: Any) -> Any:
    """A fit of three folds in two repetitions, each of two starts, which takes a moment."""
    formula, arguments, recipe, changes = FITS["arms" if kind in ("large", "wide") else kind]
    shape = {"folds": 3, "repeats": 2, "starts": 2}
    options = options_for_quick_fits(recipe, **(changes | shape))
    call = {"options": options, "seed": 1, "progress": False} | arguments | more
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of so few rows, or of so many covariates
        # Made anew: pandas remembers the views of a frame for a while after they have gone.
        return cs.fit("y ~ treat | ." if kind == "wide" else formula, _data(kind), **call)


def _data(kind: str) -> pd.DataFrame:
    if kind == "large":
        return data_of("arms", LARGE)
    if kind != "wide":
        return data_of(kind)
    noise = np.random.default_rng(1).normal(size=(2000, WIDE))
    columns = pd.DataFrame(noise, columns=[f"z{j}" for j in range(WIDE)])
    return pd.concat([data_of("arms", len(noise))[["y", "treat", "a", "b"]], columns], axis=1)


def digest(results: Any) -> str:
    """All numbers of a fit as one: estimates, covariances, what is said of every unit."""
    whole = hashlib.sha256()
    whole.update(np.ascontiguousarray(results.params.to_numpy()).tobytes())
    whole.update(np.ascontiguousarray(results.effects.covariance).tobytes())
    whole.update(np.ascontiguousarray(results.effects.influence).tobytes())
    for name in ("propensity", "cate"):
        try:
            found = getattr(results, name)()
        except CStoNetError:  # not of this kind of fit
            continue
        whole.update(np.ascontiguousarray(found.to_numpy()).tobytes())
    return whole.hexdigest()


@cache
def _certified() -> Any:
    return fit("arms", n_jobs=1)


def certificate(**more: Any) -> Any:
    """A certificate of the fit with arms."""
    return _certified().certify(DRAWS, seed=1, progress=False, **more)


def certificate_digest(found: Any) -> str:
    """All numbers of a certificate as one."""
    numbers = np.ascontiguousarray(found.draws.to_numpy(dtype=np.float64))
    return hashlib.sha256(numbers.tobytes()).hexdigest()


def work_of(kind: str) -> Callable[..., str]:
    """What computes the number of a kind of fit, or of a certificate."""
    if kind == "certify":
        return lambda **more: certificate_digest(certificate(**more))
    return lambda **more: digest(fit(kind, **more))


def warm(kinds: Mapping[str, Any] | tuple[str, ...]) -> None:
    """Import whatever these fits need, so that forked processes need not."""
    for kind in kinds:
        work_of(kind)(n_jobs=1)
