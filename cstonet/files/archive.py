"""The container: a zip of exactly two members, read within bounds and written whole or not at all.

Nothing is ever unpacked to the disk, and nothing is read before its size is known to be in
proportion to the file's.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO

from cstonet.errors import (
    FileFormatError,
    FilePathError,
    NotAvailableError,
    NotEnoughMemoryError,
)
from cstonet.memory import available_bytes
from cstonet.places import write_at_once
from cstonet.shown import shown

METADATA, ARRAYS = "metadata.json", "arrays.safetensors"
# Bytes that may be unpacked whatever the size of the file, and how much larger than their packed
# form bytes beyond these may be. What packs better than this is stored as it is.
_ALWAYS, _MOST_PACKED = 2**20, 100
# Bytes of the JSON part: room for the names of more than a million covariates.
_MOST_METADATA = 2**26
# Bytes of memory that a byte may need at worst: an empty list in the JSON part; copies of arrays.
_NEEDED = {METADATA: 24, ARRAYS: 3}
# A date that every file has: the same fit gives the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
_ENCRYPTED = 0x1  # flag of a member
# What Python's readers of zip files raise at bytes that are not what they should be.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    IndexError,
)


def write_archive(path: Path, metadata: bytes, arrays: bytes) -> None:
    """Write both members to a file; one that exists is replaced, at once.

    Raises
    ------
    FilePathError
        If there is no such folder, the path is a folder, or the disk refuses.
    NotAvailableError
        If the metadata are more than would be read again.
    """
    if len(metadata) > _MOST_METADATA:
        raise NotAvailableError("The fit has more names and levels than a file can hold.")
    write_at_once(path, lambda file: _pack(file, metadata, arrays))


def read_archive(path: Path) -> tuple[bytes, bytes]:
    """Both members of a file, metadata and arrays.

    Raises
    ------
    FilePathError
        If the file is not there, or cannot be read.
    FileFormatError
        If it is no saved fit, or damaged.
    NotEnoughMemoryError
        If there is no room for it.
    """
    try:
        if not path.is_file():
            what = "is no file" if path.exists() else "does not exist"
            raise FilePathError(f"{str(path)!r} {what}: name a file that res.save() wrote.")
        with path.open("rb") as file:
            return _unpack(path, file)
    except FilePathError:
        raise
    except OSError as error:
        if error.errno == errno.EINVAL:  # a place that no file has
            raise _damaged(path, error) from error
        reason = error.strerror or str(error)
        raise FilePathError(f"{shown(str(path))} cannot be read: {reason}.") from error


def _pack(file: IO[bytes], metadata: bytes, arrays: bytes) -> None:
    """Write both members, deflated unless that would make them look like a bomb."""
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        file.seek(0)
        file.truncate()
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in ((METADATA, metadata), (ARRAYS, arrays)):
                member = zipfile.ZipInfo(name, _DATE)
                member.compress_type = method
                archive.writestr(member, content)
            if not any(_packed_too_well(member) for member in archive.infolist()):
                return


def _unpack(path: Path, file: IO[bytes]) -> tuple[bytes, bytes]:
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if [member.filename for member in members] != [METADATA, ARRAYS]:
                raise FileFormatError(f"{str(path)!r} is no fit that res.save() wrote.")
            for member in members:
                _check_member(path, member, os.fstat(file.fileno()).st_size)
            room = available_bytes()
            needed = sum(_NEEDED[member.filename] * member.file_size for member in members)
            if room is not None and needed > room:
                raise NotEnoughMemoryError(
                    f"{str(path)!r} needs more memory than there is: load it on a larger machine."
                )
            metadata, arrays = (_content(archive, member) for member in members)
    except FileFormatError:
        raise
    except _DAMAGED as error:
        raise _damaged(path, error) from error
    return metadata, arrays


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member, of which no more is unpacked than it claims to be."""
    with archive.open(member) as packed:
        # Asked for a number, zipfile unpacks so many; asked for all, whatever there is.
        return packed.read(max(member.file_size, 1))


def _damaged(path: Path, error: Exception) -> FileFormatError:
    return FileFormatError(
        f"{str(path)!r} is damaged, or no fit that res.save() wrote ({error}). Copy or download "
        "it again, or refit."
    )


def _check_member(path: Path, member: zipfile.ZipInfo, whole: int) -> None:
    """Refuse what res.save() does not write: links, other methods, sizes out of proportion."""
    stored = member.compress_type == zipfile.ZIP_STORED
    known = stored or member.compress_type == zipfile.ZIP_DEFLATED
    link = stat.S_ISLNK(member.external_attr >> 16)
    if link or not known or member.flag_bits & _ENCRYPTED:
        raise FileFormatError(
            f"{str(path)!r} is no fit that res.save() wrote: it holds {member.filename} as a link, "
            "encrypted, or packed in another way."
        )
    too_large = member.filename == METADATA and member.file_size > _MOST_METADATA
    unequal = stored and member.file_size != member.compress_size
    if too_large or unequal or member.compress_size > whole or _packed_too_well(member):
        raise FileFormatError(
            f"{str(path)!r} is refused: its {member.filename} claims {member.file_size} bytes, out "
            "of proportion to the file. It is damaged, or made to fill the memory."
        )


def _packed_too_well(member: zipfile.ZipInfo) -> bool:
    """Whether a member is so much larger than its packed form that it may be a bomb."""
    if member.compress_type == zipfile.ZIP_STORED:
        return False
    return member.file_size > _ALWAYS + _MOST_PACKED * member.compress_size
