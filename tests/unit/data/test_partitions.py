"""Dask DataFrames where no cluster can be reached; those on one are in `tests/cluster`."""

from __future__ import annotations

import pandas as pd
import pytest

from cstonet.data.partitions import PartitionedColumns
from cstonet.errors import MissingPackageError


def test_without_the_package_of_clusters_it_is_named(monkeypatch):
    monkeypatch.setattr("cstonet.data.partitions.find_spec", lambda _: None)
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    with pytest.raises(MissingPackageError, match=r"cstonet\[dask\]"):
        PartitionedColumns.of_frame(frame, ("x",), frame.index)
