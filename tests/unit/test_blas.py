"""Threads of the linear algebra: none but one while a fit runs, all of them afterwards."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import cstonet as cs
from cstonet.blas import one_thread


def threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_the_limit_ends_with_the_last_who_wants_it():
    with one_thread():
        pass  # SciPy's library is loaded from now on
    with threadpool_limits(3, user_api="blas"):
        with one_thread():
            assert threads() == {1}
            with one_thread():
                assert threads() == {1}
            assert threads() == {1}
        assert threads() == {3}


def test_an_error_gives_the_threads_back():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), one_thread():
            1 / 0  # noqa: B018
        assert threads() == {2}


def test_fits_side_by_side_do_not_give_back_what_others_need():
    seen, inside, leave = [], threading.Event(), threading.Event()

    def longer():
        with one_thread():
            inside.set()
            leave.wait(30)
            seen.append(threads())

    with threadpool_limits(2, user_api="blas"):
        thread = threading.Thread(target=longer)
        with one_thread():
            thread.start()
            assert inside.wait(30)
        leave.set()
        thread.join()
        assert seen == [{1}]
        assert threads() == {2}


def test_bits_do_not_depend_on_the_libraries_threads(quick_options):
    """Rows and covariates enough that the libraries would share the work."""
    sim = cs.datasets.simulation2(n=2000, p=50, seed=1)
    options = quick_options(starts=1, epochs=3, backbone=True)
    found = []
    for number in (1, 2, 3):
        with threadpool_limits(number, user_api="blas"):
            results = cs.fit(sim.formula, sim.data, options=options, seed=1)
            att = results.effect("ATT").estimate
            found.append((results.effects.influence, results.bse.to_numpy(), att))
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
