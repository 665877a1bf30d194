"""Saving a fit, and loading it."""

from __future__ import annotations

import json
from importlib.metadata import version
from os import PathLike
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cstonet.errors import (
    FileFormatError,
    NewerFileError,
    NotAvailableError,
    NotEnoughMemoryError,
    OptionError,
)
from cstonet.files.archive import read_archive, write_archive
from cstonet.files.codec import Decoder, Encoder
from cstonet.files.registry import name_of
from cstonet.places import as_path, check_place

# Raised when a file cannot be read by what was there before. A new field that has a default is no
# reason: a version that does not know it says so by itself.
FORMAT = 1
# Names may hold halves of characters, which are no text elsewhere.
_ENCODING = ("utf-8", "surrogatepass")


def save(results: Any, path: str | PathLike[str], *, with_data: bool = False) -> None:
    """Write a fit to a file, see :meth:`cstonet.analyses.results.CausalResults.save`."""
    from safetensors.numpy import save as pack_arrays  # not at the top: only files need it

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
    content = {
        "format": FORMAT,
        "cstonet": version("cstonet"),
        "results": encoder.encode(results),
        "recipe": encoder.encode(results.recipe),
        "facts": encoder.encode({name: getattr(results, name) for name in results.facts}),
        "entries": encoder.entries,
    }
    metadata = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    arrays = pack_arrays({str(place): array for place, array in enumerate(encoder.arrays)})
    write_archive(file, metadata.encode(*_ENCODING), arrays)


def read_results(path: str | PathLike[str]) -> Any:
    """The results in a file, see :func:`cstonet.load`."""
    file = as_path(path)
    metadata, arrays = read_archive(file)
    try:
        return _results(_content(metadata), _arrays(arrays))
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


def _content(metadata: bytes) -> dict[str, Any]:
    """The JSON part, if its format is known."""
    # Decoded here: json would guess the encoding.
    text = metadata.decode(*_ENCODING)
    content: Any = json.loads(text, parse_constant=_no_number)
    number, made_by = content["format"], str(content["cstonet"])
    if type(number) is not int or number < 1:
        raise FileFormatError(f"{number!r} is no format")
    if number > FORMAT:
        raise NewerFileError(
            f"it was made by a newer cstonet, {made_by}, in format {number}; this is cstonet "
            f"{version('cstonet')}, which knows formats up to {FORMAT}. Update cstonet, or refit"
        )
    checked: dict[str, Any] = content
    return checked


def _arrays(packed: bytes) -> list[NDArray[Any]]:
    from safetensors.numpy import load as unpack_arrays

    found = unpack_arrays(packed)
    # Copies, because the others cannot be written to and lie in memory as it comes.
    return [np.array(found[str(place)]) for place in range(len(found))]


def _results(content: dict[str, Any], arrays: list[NDArray[Any]]) -> Any:
    decoder = Decoder(arrays, str(content["cstonet"]))
    decoder.read(content["entries"])
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


def _no_number(text: str) -> NoReturn:
    raise FileFormatError(f"{text} is no number of JSON")
