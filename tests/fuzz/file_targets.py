"""Files of others: saved fits, and folders of checkpoints, damaged or made to do harm."""

from __future__ import annotations

import contextlib
import inspect
import os
import random
import shutil
import stat
import tempfile
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import cstonet as cs
from cstonet.errors import CStoNetError, FileFormatError, NotEnoughMemoryError
from cstonet.files import archive
from tests.conftest import GOLDEN, options_for_quick_fits
from tests.unit.files.conftest import FITS, data_of

from .archives import linked, mutated, unzipped, zipped
from .chance import TEXTS, often
from .watch import Finding, only_reading, within_memory

# Fits of these kinds are saved and then damaged, beside the first file that ever was saved.
KINDS = ("arms", "levels", "dose", "mediation", "mar")
# Rows of the fits: what is in a file is to be damaged, not how much of it there is.
ROWS = 90
# The questions about new units that fits of any kind have.
QUESTIONS = ("cate", "propensity", "predict", "potential_outcomes", "selection", "params")


def _empty_folder() -> Path:
    """A new folder, in memory where there is one."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="fuzz", dir=memory if memory.is_dir() else None))


class Saves:
    """`cstonet.load` of anything: results, or an error of files; nothing run, nothing written.

    What loads is then asked the questions that fits have: whatever it answers, nothing but its
    terms may be evaluated.

    Parameters
    ----------
    kinds : iterable of str
        Kinds of fits that are saved and damaged, of ``tests/unit/files/conftest.py``.
    """

    def __init__(self, kinds: Iterable[str] = KINDS) -> None:
        self.folder = _empty_folder()
        self._path = self.folder / "fit.cst"
        self._new = data_of("levels", 8).assign(x1=1.0, x2=0.5, x3=-1.0, region="north")
        self.seeds = [(GOLDEN / "fit_format_1.cst").read_bytes()]
        for kind in kinds:
            results = quick_fit(kind)
            for with_data in (False, True):
                results.save(self._path, with_data=with_data)
                self.seeds.append(self._path.read_bytes())
        for seed in self.seeds:  # what is imported for files is imported before it is watched
            self._path.write_bytes(seed)
            self._ask(cs.load(self._path))
        self.largest_memory = 0

    def draw(self, chance: random.Random) -> bytes:
        return mutated(chance, chance.choice(self.seeds))[1]

    def run(self, content: bytes) -> str:
        self._path.write_bytes(content)
        with within_memory(allowed_memory(len(content))) as memory:
            said = self._load_and_ask()
        if memory is not None:
            self.largest_memory = max(self.largest_memory, memory.above)
        return said

    def _load_and_ask(self) -> str:
        with only_reading(self._path):
            try:
                loaded = cs.load(self._path)
            except (FileFormatError, NotEnoughMemoryError) as error:
                return type(error).__name__
        with only_reading(terms=True):
            return self._ask(loaded)

    def _ask(self, loaded: Any) -> str:
        """What came of questions to a fit that was loaded."""
        strange = False
        for ask in (
            lambda: loaded.summary().as_text(),
            lambda: loaded.methods(),
            lambda: repr(loaded),
            *(self._question(loaded, name) for name in QUESTIONS),
        ):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # numbers that no fit has may overflow
                    ask()
            except CStoNetError:
                pass
            except MemoryError as error:
                raise Finding(f"a small fit asks for much memory: {error}") from error
            except Exception:
                strange = True  # parts that contradict each other: wrong, but no harm
        return "read, contradicts itself" if strange else "read"

    def _question(self, loaded: Any, name: str) -> Any:
        def ask() -> None:
            found = getattr(loaded, name)
            if callable(found):
                found(self._new)

        return ask

    def close(self) -> None:
        there = os.listdir(self.folder)
        shutil.rmtree(self.folder)
        if there != ["fit.cst"]:
            raise Finding(f"files beside the one that was read: {there}")


def allowed_memory(size: int) -> int:
    """Bytes that reading a file of a size may take at most, by the rule of `cstonet.files`."""
    unpacked = archive._ALWAYS + archive._MOST_PACKED * size
    return sum(archive._NEEDED.values()) * unpacked


def quick_fit(kind: str, **more: Any) -> Any:
    """A fit of a kind to few rows, in a moment."""
    formula, arguments, recipe, changes = FITS[kind]
    small = {"folds": 2, "repeats": 1, "starts": 1}
    options = options_for_quick_fits(recipe, epochs=3, **(changes | small))
    call = {"options": options, "seed": 1, "n_jobs": 1} | arguments | more
    return cs.fit(formula, data_of(kind, ROWS), **call)


# Checkpoints -------------------------------------------------------------------------------------


# Bytes that a fit as small as these takes by itself, generously.
_OF_A_FIT = 2**26
FORGED = b"forged"


class _HalfDone(Exception):
    """Ends a fit whose checkpoint is to be damaged."""


class Checkpoints:
    """A fit that goes on from a folder of anything: the same bits, or an error of checkpoints.

    The input is a zip file of the folder. Links and pipes in it are made, too. Whoever can write
    into the folder can also write other numbers there, sums that tell damage included: such an
    input has the comment `FORGED`, and may end in other bits, but in nothing worse.
    """

    def __init__(self, kind: str = "arms") -> None:
        if "checkpoint" not in inspect.signature(cs.fit).parameters:
            raise NotImplementedError("this version has no checkpoints")
        self._kind = kind
        self.folder = _empty_folder()
        self._outside = self.folder / "outside"
        self._outside.write_text("untouched")
        self.seeds = [zipped(*self._interrupted(share).items()) for share in (0.4, 0.9)]
        self.expected = quick_fit(kind).effects.influence.tobytes()
        self.largest_memory = 0
        for seed in self.seeds:  # what is looked up once is looked up before it is watched
            _unpack(seed, self.folder / "checkpoint")
            quick_fit(kind, checkpoint=self.folder / "checkpoint")
            shutil.rmtree(self.folder / "checkpoint")

    def _interrupted(self, share: float) -> Mapping[str, bytes]:
        """The files of a checkpoint of a fit that ended after a share of its work."""
        place = self.folder / "checkpoint"

        def stop(done: int, total: int) -> None:
            if done >= share * total:
                raise _HalfDone

        with contextlib.suppress(_HalfDone):
            quick_fit(self._kind, checkpoint=place, progress=stop)
        found = {
            path.relative_to(place).as_posix(): path.read_bytes()
            for path in sorted(place.rglob("*"))
            if path.is_file()
        }
        shutil.rmtree(place)
        return found

    def draw(self, chance: random.Random) -> bytes:
        files = unzipped(chance.choice(self.seeds))
        name = chance.choice(list(files))
        how = chance.randrange(8)
        members: dict[Any, bytes] = dict(files)
        if how == 0:
            del members[name]
        elif how == 1:
            other = chance.choice(list(files))
            members[name], members[other] = members[other], members[name]
        elif how == 2:
            members[name + chance.choice((".tmp", "~", ".1", ""))] = chance.randbytes(9)
        elif how == 3:
            del members[name]
            special = linked(name)
            if often(chance, 0.3):
                special.external_attr = (stat.S_IFIFO | 0o600) << 16
            target = str(self._outside) if often(chance, 0.5) else chance.choice(TEXTS[9:13])
            members[special] = target.encode()
        else:
            kind, members[name] = mutated(chance, files[name])
            if kind in ("json", "arrays", "members"):
                return zipped(*members.items(), comment=FORGED)
        return zipped(*members.items())

    def run(self, content: bytes) -> str:
        place = self.folder / "checkpoint"
        try:
            _unpack(content, place)
            with (
                within_memory(_OF_A_FIT + allowed_memory(len(content))),
                only_reading(within=place),
            ):
                try:
                    results = quick_fit(self._kind, checkpoint=place)
                except CStoNetError as error:
                    return type(error).__name__
            if results.effects.influence.tobytes() == self.expected:
                return "same bits"
            if is_forged(content):
                return "other bits, as forged"
            raise Finding("a fit that went on from a damaged checkpoint has other bits")
        finally:
            shutil.rmtree(place)
            if self._outside.read_text() != "untouched":
                raise Finding("a file outside the checkpoint was written to")

    def close(self) -> None:
        there = sorted(os.listdir(self.folder))
        shutil.rmtree(self.folder)
        if there != ["outside"]:
            raise Finding(f"files beside the checkpoint: {there}")


def is_forged(content: bytes) -> bool:
    """Whether an input has other numbers, rather than damage."""
    with zipfile.ZipFile(BytesIO(content)) as packed:
        return packed.comment == FORGED


def _unpack(content: bytes, place: Path) -> None:
    """Make the files of an input; its links and pipes, too."""
    place.mkdir()
    with zipfile.ZipFile(BytesIO(content)) as packed:
        for member in packed.infolist():
            path = place / member.filename
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = member.external_attr >> 16
            if stat.S_ISLNK(mode):
                path.symlink_to(packed.read(member).decode().replace("\0", "0") or "nowhere")
            elif stat.S_ISFIFO(mode):
                os.mkfifo(path)
            else:
                path.write_bytes(packed.read(member))
