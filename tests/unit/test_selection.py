"""Selection by paths of kept weights, on networks small enough to follow with a finger.

The network: 3 covariates, hidden layers of 2 units (both latent) and 2 units (one latent, then the
treatment), then the outcome.
"""

from __future__ import annotations

from types import SimpleNamespace

import cstonet_seams
import numpy as np
import pytest

from cstonet.network import causal_network
from cstonet.networks import OUTCOME, TREATMENT, TrainedNetwork
from cstonet.selection import selection_table

SPEC = causal_network(3, (2, 2), 2, outcome="gaussian")

# x1 reaches only the first hidden unit, x2 only the second, x3 none. The first hidden unit feeds
# the latent unit of layer 2, and so the outcome; the second feeds the treatment.
FIRST = [[2.0, 0.0], [0.0, -3.0], [0.0, 0.0]]
SECOND = [[0.5, 0.0], [0.0, 1.0]]
LAST = [[4.0], [7.0]]

# Plans of which only one thing matters here: whether a search found the supports.
PRUNED, SEARCHED = SimpleNamespace(search=None), SimpleNamespace(search=object())


def network(first=FIRST, second=SECOND, last=LAST, *, fold=0, start=0, bic=0.0):
    """A trained network with these weights, its paths traced by the kernel."""
    weights = [np.array(w, dtype=np.float32) for w in (first, second, last)]
    biases = [np.zeros(w.shape[1], dtype=np.float32) for w in weights]
    masks, reaches = cstonet_seams.prune_and_trace(SPEC, weights, biases, 0.0)
    return TrainedNetwork(
        fold=fold,
        start=start,
        spec=SPEC,
        inputs=np.arange(3),
        weights=tuple(weights),
        masks=tuple(masks),
        biases=tuple(biases),
        variance=1.0,
        log_likelihood=np.zeros(2),
        bic=bic,
        selects_treatment=np.array(reaches[TREATMENT]),
        selects_outcome=np.array(reaches[OUTCOME]),
    )


def table_of(networks, chosen):
    """The table of these networks; those in `chosen` are one per fold."""
    fitted = SimpleNamespace(networks=networks, chosen=[(net,) for net in chosen], plan=PRUNED)
    return selection_table(("x1", "x2", "x3"), fitted)


def test_paths_through_latent_units_count():
    net = network()
    assert net.selects_outcome.tolist() == [True, False, False]
    assert net.selects_treatment.tolist() == [False, True, False]


def test_a_path_through_the_treatment_is_no_path_to_the_outcome():
    """x2 explains who is treated, and the treatment the outcome: x2 itself is not selected."""
    net = network()
    assert net.weights[2][1, 0] == 7.0  # the treatment's weight on the outcome is kept
    assert not net.selects_outcome[1]
    assert net.path_strength(OUTCOME)[1] == 0


def test_strength_is_the_share_of_the_paths_weight():
    both = network(second=[[0.5, 2.0], [1.0, 1.0]])
    # To the outcome: x1 by 2 · 0.5 · 4 = 4, x2 by 3 · 1 · 4 = 12. To the treatment: 4 and 3.
    np.testing.assert_allclose(both.path_strength(OUTCOME), [4 / 16, 12 / 16, 0])
    np.testing.assert_allclose(both.path_strength(TREATMENT), [4 / 7, 3 / 7, 0])


def test_strength_without_any_path_is_zero():
    empty = network(last=[[0.0], [7.0]])
    np.testing.assert_array_equal(empty.path_strength(OUTCOME), 0)


def test_table_counts_all_networks_and_decides_by_the_chosen():
    plain = [network(fold=fold) for fold in range(4)]
    other = [network(first=[[0, 0], [0, -3], [2, 0]], fold=fold, start=1) for fold in range(4)]
    # Chosen: three times the plain network, once the other, in which x3 takes the place of x1.
    table = table_of([*plain, *other], [*plain[:3], other[3]])
    assert table.attrs["fits"] == 8
    assert table["outcome"].tolist() == [True, False, False]
    assert table["treatment"].tolist() == [False, True, False]
    assert table["outcome_count"].tolist() == [4, 0, 4]
    assert table["treatment_count"].tolist() == [0, 8, 0]
    assert table["outcome_frequency"].tolist() == [0.5, 0, 0.5]
    np.testing.assert_allclose(table["outcome_strength"], [3 / 4, 0, 1 / 4])
    np.testing.assert_allclose(table["strength"], [3 / 4, 1, 1 / 4])


def test_averaged_networks_of_a_fold_vote_one_by_one():
    plain, other = network(), network(first=[[0, 0], [0, -3], [2, 0]], start=1)
    more = [network(start=start) for start in (2, 3)]
    nets = [plain, other, *more]
    fitted = SimpleNamespace(networks=nets, chosen=[tuple(nets)], plan=PRUNED)
    table = selection_table(("x1", "x2", "x3"), fitted)
    assert table["outcome"].tolist() == [True, False, False]
    np.testing.assert_allclose(table["outcome_strength"], [3 / 4, 0, 1 / 4])


def test_two_thirds_of_the_chosen_are_too_few():
    nets = [network(), network(fold=1), network(first=[[0, 0], [0, -3], [2, 0]], fold=2)]
    table = table_of(nets, nets)
    assert table["outcome"].tolist() == [False, False, False]
    np.testing.assert_allclose(table["outcome_frequency"], [2 / 3, 0, 1 / 3])


def test_networks_know_their_covariates_by_position():
    """After pruning a network holds connected covariates only."""
    net = network()
    small = TrainedNetwork(
        **{name: getattr(net, name) for name in net.__slots__}
        | {
            "spec": SPEC.with_inputs(1),
            "inputs": np.array([2]),
            "weights": (net.weights[0][:1], *net.weights[1:]),
            "masks": (net.masks[0][:1], *net.masks[1:]),
            "selects_treatment": net.selects_treatment[:1],
            "selects_outcome": net.selects_outcome[:1],
        }
    )
    table = table_of([small], [small])
    assert table["outcome"].tolist() == [False, False, True]
    assert table["strength"].tolist() == pytest.approx([0, 0, 1])


def test_starts_that_share_a_searched_support_count_once():
    nets = [network(fold=fold, start=start) for fold in range(2) for start in range(3)]
    fitted = SimpleNamespace(
        networks=nets, chosen=[tuple(nets[:3]), tuple(nets[3:])], plan=SEARCHED
    )
    table = selection_table(("x1", "x2", "x3"), fitted)
    assert table.attrs["fits"] == 2
    assert table["outcome_count"].tolist() == [2, 0, 0]
