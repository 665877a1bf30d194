from __future__ import annotations

import cstonet_seams
import numpy as np
import pytest
import twins

KINDS = ["tanh", "sigmoid", "relu"]


def signed(magnitudes: np.ndarray) -> np.ndarray:
    return np.concatenate([-magnitudes, [0], magnitudes]).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_value_has_relative_accuracy(kind: str, level: str) -> None:
    z = signed(np.geomspace(1e-20, 80, 4000))
    value, _ = cstonet_seams.activation(kind, z, np.zeros_like(z))
    expected = twins.ACTIVATIONS[kind].value(z.astype(float))
    # csrc/kernels/math.hpp promises two units in the last place of its functions, four roundings;
    # 1/(1 + e^-z) adds two.
    twins.assert_close(value, expected, roundings=6, scale=np.abs(expected))


@pytest.mark.parametrize("kind", ["tanh", "sigmoid"])
def test_value_saturates(kind: str, level: str) -> None:
    z = np.array([-1e30, -200, 200, 1e30], dtype=np.float32)
    value, change = cstonet_seams.activation(kind, z, np.ones_like(z))
    np.testing.assert_allclose(value, twins.ACTIVATIONS[kind].value(z.astype(float)), atol=1e-37)
    np.testing.assert_allclose(change, 0, atol=1e-37)


@pytest.mark.parametrize("kind", KINDS)
def test_change_does_not_cancel(kind: str, level: str) -> None:
    rng = np.random.default_rng(2)
    d = signed(np.geomspace(1e-15, 8, 3000))
    z = rng.normal(scale=2, size=d.shape).astype(np.float32)
    _, change = cstonet_seams.activation(kind, z, d)
    psi = twins.ACTIVATIONS[kind]
    expected = psi.change(z.astype(float), d.astype(float))
    # The change is tanh(d) or tanh(d/2)/2 or d, accurate, times 1 - ψψ' of absolute accuracy: it
    # errs in proportion to |d|, however large |z| is in comparison. 4 + 4 + 4 roundings of the
    # three values, 4 of the arithmetic.
    twins.assert_close(change, expected, roundings=16, scale=np.minimum(np.abs(d), 1 + np.abs(z)))


@pytest.mark.parametrize("kind", ["tanh", "sigmoid"])
def test_the_plain_difference_would_cancel(kind: str) -> None:
    z = np.linspace(-1, 1, 201, dtype=np.float32)
    d = np.full_like(z, 1e-7)
    expected = twins.ACTIVATIONS[kind].change(z.astype(float), d.astype(float))
    at_z, change = cstonet_seams.activation(kind, z, d)
    shifted, _ = cstonet_seams.activation(kind, z + d, d)
    assert np.max(np.abs((shifted - at_z) / expected - 1)) > 0.1
    assert np.max(np.abs(change / expected - 1)) < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_change_of_nothing_is_nothing(kind: str, level: str) -> None:
    z = signed(np.geomspace(1e-6, 20, 100))
    _, change = cstonet_seams.activation(kind, z, np.zeros_like(z))
    assert np.all(change == 0)
