"""The covariate that weighting leaves least balanced."""

from __future__ import annotations

import pandas as pd

from cstonet.reporting.balance_note import LargestImbalance, note_balance


def test_largest_imbalance_of_a_table():
    table = pd.DataFrame(
        {
            "smd_before": [0.5, -0.05, 0.12, 0.0, -0.3],
            "smd_after": [0.01, -0.2, 0.13, 0.15, 0.09],
        },
        index=["age", "sex", "income", "region", "height"],
    )
    assert LargestImbalance.of(table) == LargestImbalance(
        after=0.2, covariate="sex", before=0.05, worse=("sex", "region")
    )


def test_several_pairs_count_by_the_largest():
    table = pd.DataFrame(
        {
            "smd_before[b-a]": [0.1, 0.2],
            "smd_after[b-a]": [0.01, 0.02],
            "smd_before[c-a]": [-0.4, 0.1],
            "smd_after[c-a]": [-0.05, 0.03],
        },
        index=["x1", "x2"],
    )
    found = LargestImbalance.of(table)
    assert found == LargestImbalance(after=0.05, covariate="x1", before=0.4, worse=())


def test_note():
    calm = LargestImbalance(after=0.04, covariate="x3", before=0.3, worse=())
    assert note_balance(calm, "difference") == "Largest difference after weighting: 0.04 (x3)."
    seven = tuple(f"x{k}" for k in range(7))
    loud = LargestImbalance(after=0.25, covariate="x0", before=0.11, worse=seven)
    note = note_balance(loud, "correlation with dose")
    assert note.startswith("Largest correlation with dose after weighting: 0.25 (x0). It was 0.11")
    assert "above 0.1" in note
    assert note.endswith("Worse than without weights: x0, x1, x2, x3, x4 and 2 more.")
