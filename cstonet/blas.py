"""Linear algebra of NumPy and SciPy on one thread while a fit runs.

How many threads a library adds up with decides the last bits of its sums, and the answer must not
depend on the machine's cores; a fit has threads of its own, which those of the library only fight.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any


class _Limit:
    """The limit of this process: it holds from the first fit that wants it to the last.

    Each fit for itself would give the threads back while another one still runs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._limiter: Any = None

    def begin(self) -> None:
        """Somebody wants it."""
        with self._lock:
            if self._wanted == 0:
                # Its libraries are tried in a thread, which a system may refuse.
                with suppress(RuntimeError):
                    self._limiter = _libraries().limit(limits=1, user_api="blas")
                    _let_other_threads_set_it()
            self._wanted += 1

    def end(self) -> None:
        """Who wanted it does so no longer."""
        with self._lock:
            self._wanted -= 1
            if self._wanted == 0 and self._limiter is not None:
                self._limiter.restore_original_limits()
                self._limiter = None
                _let_other_threads_set_it()


@cache
def _libraries() -> Any:
    """The libraries that NumPy and SciPy have loaded, each its own."""
    # Not at the top: SciPy's library is loaded by this module, and must be found.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _let_other_threads_set_it() -> None:
    """Newer versions of threadpoolctl leave OpenBLAS to the thread that was the first to set it."""
    from threadpoolctl import OpenBLASController

    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


_limit = _Limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums whose last bits do not depend on the number of threads of the libraries."""
    _limit.begin()
    try:
        yield
    finally:
        _limit.end()
