"""Files of objects as entries and arrays, in an archive: what saved fits and checkpoints share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cstonet.errors import FileFormatError, NewerFileError
from cstonet.files.archive import write_archive
from cstonet.files.codec import Decoder, Encoder
from cstonet.versions import version_of

# Raised when a file cannot be read by what was there before. A new field that has a default is no
# reason: a version that does not know it says so by itself.
FORMAT = 1
# Names may hold halves of characters, which are no text elsewhere.
_ENCODING = ("utf-8", "surrogatepass")


def write_document(path: Path, encoder: Encoder, values: Mapping[str, Any]) -> None:
    """Write values that an encoder has encoded, with the objects that they refer to.

    Raises
    ------
    FilePathError
        If there is no such folder, the path is a folder, or the disk refuses.
    """
    from safetensors.numpy import save as pack_arrays  # not at the top: only files need it

    content = {
        "format": FORMAT,
        "cstonet": version_of("cstonet"),
        **values,
        "entries": encoder.entries,
    }
    metadata = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    arrays = pack_arrays({str(place): array for place, array in enumerate(encoder.arrays)})
    write_archive(path, metadata.encode(*_ENCODING), arrays)


def open_document(metadata: bytes, arrays: bytes) -> tuple[dict[str, Any], Decoder]:
    """What `write_document` wrote, from both members of its archive: values, and their decoder.

    Errors may be of any kind: the parts of a wrong file do what they like to each other.
    """
    content = _content(metadata)
    decoder = Decoder(_arrays(arrays), str(content["cstonet"]))
    decoder.read(content["entries"])
    return content, decoder


def _content(metadata: bytes) -> dict[str, Any]:
    """The JSON part, if its format is known."""
    # Decoded here: of bytes, json would guess the encoding.
    content: Any = json.loads(metadata.decode(*_ENCODING), parse_constant=_no_number)
    number, made_by = content["format"], str(content["cstonet"])
    if type(number) is not int or number < 1:
        raise FileFormatError(f"{number!r} is no format")
    if number > FORMAT:
        raise NewerFileError(
            f"it was made by a newer cstonet, {made_by}, in format {number}; this is cstonet "
            f"{version_of('cstonet')}, which knows formats up to {FORMAT}. Update cstonet, or refit"
        )
    checked: dict[str, Any] = content
    return checked


def _arrays(packed: bytes) -> list[NDArray[Any]]:
    from safetensors.numpy import load as unpack_arrays

    found = unpack_arrays(packed)
    # Copies, because the others cannot be written to and lie in memory as it comes.
    return [np.array(found[str(place)]) for place in range(len(found))]


def _no_number(text: str) -> NoReturn:
    raise FileFormatError(f"{text} is no number of JSON")
