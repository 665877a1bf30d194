"""Saving a fit, and loading it."""

from __future__ import annotations

from os import PathLike
from typing import Any

from cstonet.errors import (
    FileFormatError,
    NewerFileError,
    NotAvailableError,
    NotEnoughMemoryError,
    OptionError,
)
from cstonet.files.archive import read_archive
from cstonet.files.codec import Decoder, Encoder
from cstonet.files.document import open_document, write_document
from cstonet.files.registry import name_of
from cstonet.places import as_path, check_place


def save(results: Any, path: str | PathLike[str], *, with_data: bool = False) -> None:
    """Write a fit to a file, see :meth:`cstonet.analyses.results.CausalResults.save`."""
    name_of(results)  # refuses results of other makers before any work is done
    if not isinstance(with_data, bool):
        raise OptionError(f"with_data must be True or False, not {with_data!r}.")
    file = as_path(path)
    check_place(file)
    if with_data and not results.in_memory:
        raise NotAvailableError(
            "The rows of a fit to a Dask DataFrame are not in memory: save it without them, "
            "with_data=False."
        )
    encoder = Encoder(with_data=with_data)
    if with_data:
        encoder.replace(results.design, results.design.with_formula_alone())
    write_document(
        file,
        encoder,
        {
            "results": encoder.encode(results),
            "recipe": encoder.encode(results.recipe),
            "facts": encoder.encode({name: getattr(results, name) for name in results.facts}),
        },
    )


def read_results(path: str | PathLike[str]) -> Any:
    """The results in a file, see :func:`cstonet.load`."""
    file = as_path(path)
    packed = read_archive(file)
    try:
        return _results(*open_document(*packed))
    except (NewerFileError, FileFormatError) as error:
        raise type(error)(f"{str(file)!r} cannot be read: {error}.") from error
    except MemoryError as error:
        raise NotEnoughMemoryError(f"There is not enough memory to load {str(file)!r}.") from error
    except Exception as error:
        # Whatever the parts of a wrong file do to each other, the file is what is wrong.
        raise FileFormatError(
            f"{str(file)!r} is damaged, or no fit that res.save() wrote ({error!r}). Copy or "
            "download it again, or refit."
        ) from error


def _results(content: dict[str, Any], decoder: Decoder) -> Any:
    results, recipe = decoder.decode(content["results"]), decoder.decode(content["recipe"])
    if not hasattr(results, "ingredients"):
        raise FileFormatError("it holds no results")
    facts = decoder.decode(content["facts"])
    unknown = [name for name in facts if name not in results.facts]
    if unknown:
        raise FileFormatError(f"it says {unknown[0]!r} of its rows")
    _check(results)
    vars(results).update(facts)
    results.recipe = recipe
    return results


def _check(results: Any) -> None:
    """Refuse parts that do not belong together, before they are asked for anything."""
    design, effects, k = results.design, results.effects, len(results.effects.names)
    if design.spec.names != design.covariates or effects.covariance.shape != (k, k):
        raise FileFormatError("its parts do not belong together")
    results.networks.check()
