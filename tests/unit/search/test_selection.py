"""Selection by paths of kept weights, on networks small enough to follow with a finger."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from cstonet.network.structure import Structure
from cstonet.network.trained import OUTCOME, TREATMENT, TrainedNetwork
from cstonet.search.inclusion import Inclusion
from cstonet.search.scope import Adjustment
from cstonet.search.selection import select

COVARIATES = ("x1", "x2", "x3")

# Adjustments without and with a search.
PRUNED = Adjustment()
SEARCHED = Adjustment(found=Structure(treatment=(1,), outcome=(0,)))


@dataclass(frozen=True)
class FakeFold:
    """The chosen networks of a fold and all its starts."""

    networks: tuple[TrainedNetwork, ...]
    starts: tuple[TrainedNetwork, ...]
    adjustment: Adjustment = PRUNED
    inclusion: Inclusion | None = None


def selection_of(networks, chosen):
    """The selection of these networks; those in `chosen` are one per fold."""
    folds = [
        FakeFold((net,), tuple(other for other in networks if other.fold == net.fold))
        for net in chosen
    ]
    return select(COVARIATES, folds)


def test_paths_through_latent_units_count(network):
    net = network()
    for block, selected in ((OUTCOME, [True, False, False]), (TREATMENT, [False, True, False])):
        assert PRUNED.selects(net, block).tolist() == selected


def test_a_path_through_the_treatment_is_no_path_to_the_outcome(network):
    """x2 explains who is treated, and the treatment the outcome: x2 itself is not selected."""
    net = network()
    assert net.weights[2][1, 0] == 7.0  # the treatment's weight on the outcome is kept
    assert not PRUNED.selects(net, OUTCOME)[1]
    assert net.path_strength(OUTCOME)[1] == 0


def test_strength_is_the_share_of_the_paths_weight(network):
    both = network(second=[[0.5, 2.0], [1.0, 1.0]])
    # To the outcome: x1 by 2 · 0.5 · 4 = 4, x2 by 3 · 1 · 4 = 12. To the treatment: 4 and 3.
    np.testing.assert_allclose(both.path_strength(OUTCOME), [4 / 16, 12 / 16, 0])
    np.testing.assert_allclose(both.path_strength(TREATMENT), [4 / 7, 3 / 7, 0])


def test_strength_without_any_path_is_zero(network):
    empty = network(last=[[0.0], [7.0]])
    np.testing.assert_array_equal(empty.path_strength(OUTCOME), 0)


def test_table_counts_all_networks_and_decides_by_the_chosen(network):
    plain = [network(fold=fold) for fold in range(4)]
    other = [network(first=[[0, 0], [0, -3], [2, 0]], fold=fold, start=1) for fold in range(4)]
    # Chosen: three times the plain network, once the other, in which x3 takes the place of x1.
    selection = selection_of([*plain, *other], [*plain[:3], other[3]])
    table = selection.table
    assert selection.supports == 8
    assert table["outcome"].tolist() == [True, False, False]
    assert table["treatment"].tolist() == [False, True, False]
    assert table["outcome_count"].tolist() == [4, 0, 4]
    assert table["treatment_count"].tolist() == [0, 8, 0]
    assert table["outcome_frequency"].tolist() == [0.5, 0, 0.5]
    np.testing.assert_allclose(table["outcome_strength"], [3 / 4, 0, 1 / 4])
    np.testing.assert_allclose(table["strength"], [3 / 4, 1, 1 / 4])


def test_averaged_networks_of_a_fold_vote_one_by_one(network):
    plain, other = network(), network(first=[[0, 0], [0, -3], [2, 0]], start=1)
    more = [network(start=start) for start in (2, 3)]
    nets = (plain, other, *more)
    table = select(COVARIATES, [FakeFold(nets, nets)]).table
    assert table["outcome"].tolist() == [True, False, False]
    np.testing.assert_allclose(table["outcome_strength"], [3 / 4, 0, 1 / 4])


def test_two_thirds_of_the_chosen_are_too_few(network):
    nets = [network(), network(fold=1), network(first=[[0, 0], [0, -3], [2, 0]], fold=2)]
    table = selection_of(nets, nets).table
    assert table["outcome"].tolist() == [False, False, False]
    np.testing.assert_allclose(table["outcome_frequency"], [2 / 3, 0, 1 / 3])


def test_networks_know_their_covariates_by_position(network):
    """After pruning a network holds connected covariates only."""
    net = network()
    small = replace(
        net,
        spec=net.spec.with_inputs(1),
        inputs=np.array([2]),
        weights=(net.weights[0][:1], *net.weights[1:]),
        masks=(net.masks[0][:1], *net.masks[1:]),
        reaches_treatment=net.reaches_treatment[:1],
        reaches_outcome=net.reaches_outcome[:1],
    )
    table = selection_of([small], [small]).table
    assert table["outcome"].tolist() == [False, False, True]
    assert table["strength"].tolist() == pytest.approx([0, 0, 1])


def test_starts_that_share_a_searched_support_count_once(network):
    folds = [tuple(network(fold=fold, start=start) for start in range(3)) for fold in range(2)]
    selection = select(COVARIATES, [FakeFold(nets, nets, SEARCHED) for nets in folds])
    assert selection.supports == 2
    assert selection.table["outcome_count"].tolist() == [2, 0, 0]
