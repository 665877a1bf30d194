"""Counter-based random numbers in Python integers: Philox4x32-10, Box-Muller, shuffles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD, DOUBLE_WORD = 2**32 - 1, 2**64 - 1


class Purpose(IntEnum):
    """What a stream is drawn for."""

    WEIGHTS = 1
    SHUFFLE = 2
    LATENT = 3
    CANDIDATES = 4


def philox(key: Sequence[int], counter: Sequence[int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 of Salmon, Moraes, Dror and Shaw (2011)."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0, c1, c2, c3


def _mix(x: int) -> int:
    """The finalizer of splitmix64."""
    x = (x + 0x9E3779B97F4A7C15) & DOUBLE_WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & DOUBLE_WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & DOUBLE_WORD
    return x ^ (x >> 31)


def stream_key(seed: int, fold: int, start: int, network: int) -> tuple[int, int]:
    """Key of a task's streams; that of network 0 is a function of the other three alone."""
    mixed = _mix(_mix(_mix(seed) ^ fold) ^ start)
    if network:
        mixed = _mix(mixed ^ network)
    return mixed & WORD, mixed >> 32


def bits(key: Sequence[int], counter: Sequence[int], n: int) -> NDArray[np.uint32]:
    """The first n words of a stream; block b has counter (b, *counter)."""
    words = [w for b in range((n + 3) // 4) for w in philox(key, (b, *counter))]
    return np.array(words[:n], dtype=np.uint32)


def normals(key: Sequence[int], counter: Sequence[int], n: int) -> NDArray[Any]:
    """Box-Muller on pairs of words, 24 bits of each; float64."""
    words = bits(key, counter, n + n % 2).reshape(-1, 2) >> 8
    radius = np.sqrt(-2 * np.log((words[:, 0] + 1.0) / 2**24))
    angle = 2 * math.pi * words[:, 1] / 2**24
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).ravel()[:n]


def uniforms(key: Sequence[int], counter: Sequence[int], n: int) -> NDArray[Any]:
    return (bits(key, counter, n) >> 8) / 2.0**24


def shuffle(key: Sequence[int], iteration: int, items: NDArray[Any]) -> NDArray[Any]:
    """Fisher-Yates from the end, word i-1 choosing the partner of place i-1."""
    items = items.copy()
    words = bits(key, (iteration, 0, Purpose.SHUFFLE), len(items))
    for i in range(len(items), 1, -1):
        j = (int(words[i - 1]) * i) >> 32
        items[i - 1], items[j] = items[j], items[i - 1]
    return items
