"""What training and search ask of the covariates, wherever these are.

In memory, or in a file that is mapped into it, the kernel's data set does all of it
(:class:`cstonet._core.Dataset`). Sums over rows are sums of those over parts of the rows, so that
covariates that are spread over machines can be asked where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.errors import NotAvailableError
from cstonet.network.products import Explained, Kind, Products

Stop = Callable[[int], object]


class Covariates(Protocol):
    """Standardised covariates of n rows and p columns."""

    @property
    def rows(self) -> int:
        """Number n of rows."""

    @property
    def columns(self) -> int:
        """Number p of covariates."""

    def gather(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float32]:
        """Some columns of some rows, (m, q)."""

    def square_sums(
        self, rows: NDArray[np.int64], threads: int, progress: Stop | None = None
    ) -> NDArray[np.float64]:
        """Σ x² over some rows, of every covariate; (p,)."""

    def score_sums(
        self,
        rows: NDArray[np.int64],
        products: Products,
        mean_squares: NDArray[np.float64] | None,
        covariates: NDArray[np.int64] | None,
        threads: int,
        progress: Stop | None = None,
        explained: Explained | None = None,
    ) -> NDArray[np.float64]:
        """Sums behind the scores of some covariates, by default of all.

        Parameters
        ----------
        rows : (m,)
            The rows to sum over, ascending.
        products
            Their columns g, k of them.
        mean_squares : (p,), optional
            Mean of x² over all rows that the scores are for. Without it, x alone is scored.
        covariates : (q,), optional
            Which are scored.
        threads, progress
            Threads to use; a function called now and then that may raise to stop.
        explained
            What others explain of the covariates, which is taken out of them first.

        Returns
        -------
        (2, 2, q, k)
            Σ g f and Σ g² f², for f = x and for f = x² - mean x²; (1, 2, q, k) of x alone.
        """

    def score_statistics(
        self,
        rows: NDArray[np.int64],
        products: Products,
        mean_squares: NDArray[np.float64] | None,
        covariates: NDArray[np.int64] | None,
        threads: int,
        progress: Stop | None = None,
        explained: Explained | None = None,
    ) -> NDArray[np.float32]:
        """Scores Σ g f / sqrt(Σ g² f²) of the same sums, (2, q, k) or (1, q, k)."""

    def trained_on(self, inputs: NDArray[np.int64]) -> _core.Dataset:
        """A data set of the kernel with all rows that has these covariates, at their numbers.

        In memory this is the data set itself. The same inputs are asked for again and again.
        """


def at_hand(covariates: Covariates) -> _core.Dataset:
    """The covariates of a fit that imputes some of them, which it must have at hand."""
    if not isinstance(covariates, _core.Dataset):
        raise NotAvailableError(
            "Missing covariates can be imputed only if the data are in memory or mapped into "
            'it. Load them, or leave incomplete rows out by missing="drop".'
        )
    return covariates


class FoldCovariates:
    """The covariates on the rows that a fold looks at, with what is computed once for all tests.

    Parameters
    ----------
    covariates
        Of all rows.
    rows : (m,)
        The fold's, ascending.
    threads, stop
        Threads to use; a function called now and then that may raise to stop.
    """

    def __init__(
        self,
        covariates: Covariates,
        rows: NDArray[np.int64],
        *,
        threads: int = 1,
        stop: Stop | None = None,
    ) -> None:
        self.covariates = covariates
        self.rows = rows
        self._threads = threads
        self._stop = stop

    @property
    def columns(self) -> int:
        """Number p of covariates."""
        return self.covariates.columns

    @cached_property
    def mean_squares(self) -> NDArray[np.float64]:
        """Mean of x² over the rows, of every covariate; (p,)."""
        sums = self.covariates.square_sums(self.rows, self._threads, self._stop)
        mean: NDArray[np.float64] = sums / len(self.rows)
        return mean

    def values(self, covariate: int) -> NDArray[np.float64]:
        """A covariate on the rows, (m,)."""
        return self.covariates.gather(self.rows, np.array([covariate]))[:, 0].astype(np.float64)

    def explained(
        self, covariates: NDArray[np.int64], others: NDArray[np.int64]
    ) -> tuple[Explained, NDArray[np.float64]]:
        """What a constant and others (s,) explain of some covariates (q,), by least squares.

        Also the mean squares of all covariates (p,), of these without what is explained.
        """
        one = np.ones((len(self.rows), 1), dtype=np.float32)
        table = [(0, Kind.ONE, 0), *((0, Kind.MEMBER, int(j)) for j in others)]
        basis = Products(
            one, one[:, :0], one[:, :0], None, np.array(table), np.ones(len(table), np.float32)
        )
        wanted = np.concatenate([others, covariates])
        # Σ x, and Σ x x_s of every other: (s + q, s + 1).
        sums = self.covariates.score_sums(
            self.rows, basis, None, wanted, self._threads, self._stop
        )[0, 0]
        own, crossed = sums[: len(others)], sums[len(others) :]
        moments = np.vstack([np.r_[len(self.rows), own[:, 0]], own])
        slopes = np.linalg.lstsq(moments, crossed.T, rcond=None)[0]
        mean_squares = self.mean_squares.copy()
        mean_squares[covariates] -= np.einsum("sq,qs->q", slopes, crossed) / len(self.rows)
        return Explained(others, slopes.astype(np.float32)), mean_squares

    def statistics_beyond(
        self,
        products: Products,
        covariates: NDArray[np.int64],
        others: NDArray[np.int64],
        *,
        squares: bool = True,
    ) -> NDArray[np.float32]:
        """Scores (2, q, k) of what other covariates do not explain of some, and of its square.

        Without the squares, (1, q, k).
        """
        explained, mean_squares = self.explained(covariates, others)
        return self.covariates.score_statistics(
            self.rows,
            products,
            mean_squares if squares else None,
            covariates,
            self._threads,
            self._stop,
            explained,
        )

    def statistics(
        self, products: Products, covariates: NDArray[np.int64], *, squares: bool = True
    ) -> NDArray[np.float32]:
        """Scores z of some covariates, (2, q, k): of x and of x²; of x alone, (1, q, k)."""
        return self.covariates.score_statistics(
            self.rows,
            products,
            self.mean_squares if squares else None,
            covariates,
            self._threads,
            self._stop,
        )

    def sums(self, products: Products, covariates: NDArray[np.int64]) -> NDArray[np.float64]:
        """Σ g x and Σ g² x² of some covariates x with every column g, (2, q, k)."""
        sums = self.covariates.score_sums(
            self.rows, products, None, covariates, self._threads, self._stop
        )
        own: NDArray[np.float64] = sums[0]
        return own

    def moments(self, products: Products) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and variances of the columns of products, (k,) each."""
        data = self.covariates.trained_on(products.covariates)
        mean, variance = _core.product_moments(products, data, self.rows, self._threads)
        return mean, variance

    def evaluate(self, products: Products) -> NDArray[np.float64]:
        """The columns themselves, (m, k)."""
        data = self.covariates.trained_on(products.covariates)
        columns = _core.product_values(products, data, self.rows, self._threads)
        return columns.astype(np.float64)
