"""What tells one fit from any other: its data, its plan, and what computes it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from cstonet import _core
from cstonet.data.design import AnyDesign
from cstonet.data.matrix import dense_part, is_partitioned, is_sparse, parts
from cstonet.network.scaling import column_scaling
from cstonet.settings.plan import Plan
from cstonet.versions import version_of

# What a design says beside its data: how they were read, and where more can be looked up.
_BESIDE = ("spec", "received", "lookup", "index", "formula", "n_dropped")
# Packages that have a say in the last bits.
_COMPUTING = ("cstonet", "numpy", "scipy")


def data_digests(design: AnyDesign) -> dict[str, str]:
    """A digest of every part of a design that its fit depends on, by name."""
    return {
        field.name: _digest([getattr(design, field.name)])
        for field in dataclasses.fields(design)
        if field.name not in _BESIDE
    }


def versions() -> dict[str, str]:
    """What computes a fit: packages, and the kernel's instruction-set level."""
    return {name: version_of(name) for name in _COMPUTING} | {"kernel": _core.level()}


def fit_identity(design: AnyDesign, plan: Plan, analysis: str) -> dict[str, dict[str, Any]]:
    """Data, options and versions of a fit, by name.

    Parameters
    ----------
    design, plan
        Of the fit.
    analysis
        Name of what is estimated of them.
    """
    return {
        "data": data_digests(design),
        "options": {"analysis": analysis, **json.loads(plan.to_json())},
        "versions": versions(),
    }


def fit_digest(design: AnyDesign, plan: Plan, *more: object) -> str:
    """A digest of all that, and of what else tells some work from other.

    Parameters
    ----------
    design, plan
        Of the fit.
    more
        Such as a seed: anything whose text says all of it.
    """
    return _digest([data_digests(design), plan.to_json(), versions(), more])


def _digest(values: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for value in values:
        _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Take a value with all that it is made of."""
    digest.update(type(value).__name__.encode())
    if dataclasses.is_dataclass(value) and not is_partitioned(value):
        for field in dataclasses.fields(value):
            _add(digest, getattr(value, field.name))
    elif is_partitioned(value):
        # The workers have the numbers; moments of all columns stand for them.
        moments = column_scaling(value, np.inf)
        _add(digest, (value.shape, moments.center, moments.inverse_scale))
    elif isinstance(value, np.ndarray) or is_sparse(value):
        _add(digest, (value.shape, str(value.dtype)))
        if value.dtype == object:
            _add(digest, tuple(value.tolist()))
        elif value.ndim < 2:
            digest.update(np.ascontiguousarray(value).tobytes())
        else:
            for rows, columns in parts(value):
                digest.update(np.ascontiguousarray(dense_part(value, rows, columns)).tobytes())
    elif isinstance(value, pd.Index | pd.Series):
        _add(digest, tuple(value.tolist()))
    elif isinstance(value, tuple | list):
        _add(digest, len(value))
        for item in value:
            _add(digest, item)
    elif isinstance(value, dict):
        _add(digest, tuple(value.items()))
    else:
        digest.update(repr(value).encode("utf-8", "surrogatepass"))
