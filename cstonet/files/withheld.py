"""What stands in a loaded fit where the rows would be, if the file has none."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from cstonet.errors import RowsNotSavedError


class Withheld(np.lib.mixins.NDArrayOperatorsMixin):
    """Rows that a file does not hold: their shape is known at most, and any other use is refused.

    Parameters
    ----------
    what : str
        What it was, such as "Design.y".
    shape : tuple of int, or None
        Shape of an array; None for anything else.
    """

    __slots__ = ("_shape", "_what")

    def __init__(self, what: str, shape: tuple[int, ...] | None = None) -> None:
        self._what = what
        self._shape = shape

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.refuse() if self._shape is None else self._shape

    @property
    def known_shape(self) -> tuple[int, ...] | None:
        """Shape of an array; None for anything else."""
        return self._shape

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, matrix: np.ndarray[Any, Any]) -> Withheld:
        """Combinations of columns that are not there: so an effect can be combined of others."""
        return Withheld(self._what, (*self.shape[:-1], *matrix.shape[1:]))

    def __getattr__(self, name: str) -> NoReturn:
        # Whoever asks what kind of object this is gets the answer that it is none of theirs.
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    def __getitem__(self, rows: object) -> NoReturn:
        self.refuse()

    def __iter__(self) -> NoReturn:
        self.refuse()

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        self.refuse()

    def __array_ufunc__(self, *args: object, **kwargs: object) -> NoReturn:
        self.refuse()

    def __array_function__(self, *args: object, **kwargs: object) -> NoReturn:
        self.refuse()

    def __repr__(self) -> str:
        return f"<{self._what}: not in the file>"

    def __reduce__(self) -> tuple[type[Withheld], tuple[str, tuple[int, ...] | None]]:
        return Withheld, (self._what, self._shape)

    def refuse(self) -> NoReturn:
        """Raise RowsNotSavedError."""
        raise RowsNotSavedError(
            f"This needs the rows of the data ({self._what}), and the fit was saved without its "
            "rows: save it again with save(path, with_data=True), or refit."
        )
