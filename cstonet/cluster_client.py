"""The connection to a Dask cluster, and its failures under this package's names.

Imported only where a cluster is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager

import dask
from distributed import Client, KilledWorker, get_client
from distributed.comm import CommClosedError

from cstonet.errors import SchedulerError, WorkerLostError

# How long to wait for a scheduler, and for a first worker, in seconds.
_PATIENCE = 10.0


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
    with named_errors(address=address):
        return Client(address, timeout=_PATIENCE, set_as_default=False)


def check_workers(client: Client) -> None:
    """Raise SchedulerError unless the cluster has a worker, or gets one soon."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
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
    except (CancelledError, CommClosedError, OSError, TimeoutError) as error:
        raise SchedulerError(
            f"The Dask scheduler {address} cannot be reached, or was lost during the fit. "
            "Nothing of the fit is kept. Check that it runs and that this machine may connect to "
            f"it. Dask says: {error}"
        ) from error
