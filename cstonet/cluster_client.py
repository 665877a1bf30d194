"""The connection to a Dask cluster, and its failures under this package's names.

Imported only where a cluster is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import cache
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, get_client
from distributed.comm import CommClosedError

from cstonet.errors import SchedulerError, WorkerLostError

# How long to wait for a scheduler, and for a first worker, in seconds.
_PATIENCE = 10.0
# How often data that were lost with a worker are sent again.
ATTEMPTS = 3


def connected_client() -> Client:
    """The client of this process, or one of the scheduler in Dask's configuration."""
    try:
        return get_client()
    except ValueError:
        address = dask.config.get("scheduler-address", None)
    if address is None:
        raise SchedulerError(
            "A Dask client is needed, and there is none. Make one before the fit, with "
            "distributed.Client(address of the scheduler), or name the scheduler in the "
            "environment variable DASK_SCHEDULER_ADDRESS."
        )
    if _client_of(address).status != "running":  # of a scheduler that has been started again
        _client_of.cache_clear()
    return _client_of(address)


@cache
def _client_of(address: str) -> Client:
    """One connection to a scheduler, for all fits of this process."""
    with named_errors(address=address):
        return Client(address, timeout=_PATIENCE, set_as_default=False)


def check_workers(client: Client) -> None:
    """Raise SchedulerError unless the cluster has a worker, or gets one soon."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except (TimeoutError, asyncio.TimeoutError):  # two kinds before Python 3.11
        address = _address(client)
        raise SchedulerError(
            f"The Dask scheduler {address} had no worker for {_PATIENCE:.0f} seconds. Start "
            f"workers (dask worker {address})."
        ) from None


def _address(client: Client) -> str:
    """Of the scheduler; a client that has lost it knows no address any more."""
    return "" if client.scheduler is None else str(client.scheduler.address)


def lost_for_good(reason: str) -> WorkerLostError:
    """The error of a task that no worker survives."""
    return WorkerLostError(
        f"A worker was lost for good: {reason}. It may have run out of memory. Nothing of the fit "
        "is kept. See the workers' logs; give them more memory, or fewer threads each, and fit "
        "again."
    )


@contextmanager
def named_errors(client: Client | None = None, address: str = "") -> Iterator[None]:
    """Errors of Dask under this package's names.

    Parameters
    ----------
    client
        The connection, if there is one already.
    address
        Of the scheduler, if there is none.
    """
    if client is not None:
        address = _address(client)
    try:
        yield
    except KilledWorker as error:
        raise lost_for_good(str(error)) from error
    except SchedulerError:
        raise
    except (CancelledError, CommClosedError, OSError, asyncio.TimeoutError) as error:
        raise SchedulerError(
            f"The Dask scheduler {address} cannot be reached, or was lost during the fit. "
            "Nothing of the fit is kept. Check that it runs and that this machine may connect to "
            f"it. Dask says: {error}"
        ) from error


def gathered(client: Client, submit: Callable[[], list[Future]]) -> list[Any]:
    """Values of futures, which are made again if what they were sent is lost with a worker.

    Parameters
    ----------
    client
        The connection.
    submit
        Makes the futures.
    """
    with named_errors(client):
        for _ in range(ATTEMPTS):
            check_workers(client)
            try:
                values: list[Any] = client.gather(submit())
                return values
            except (CancelledError, CommClosedError):
                # What was sent, or the worker it was for, is lost, unless the connection is gone.
                if client.status != "running":
                    raise
    raise lost_for_good(f"data sent to workers were lost with them {ATTEMPTS} times")
