"""The folder of a training: whose it is, and checkpoints that a training goes on from."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import shutil
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from variegate.apps.train.feed import Feed
from variegate.apps.train.images import AUTOMATIC_MODELS, BATCH, LARGEST_KEPT
from variegate.apps.train.ranks import Ranks
from variegate.checks import PIXEL_VERSION, as_integer, as_numbers, check_pixel_version, integer
from variegate.errors import PolicyError
from variegate.formats.base import SourceError
from variegate.io.durable import sync_folder, write_atomically, write_error
from variegate.options.rows import NO_AUGMENTATION, is_policy_file
from variegate.options.training import FREE, FREE_ON_OTHER_RANKS, TrainOptions
from variegate.policies.load import load_policy
from variegate.policies.whole import is_whole

LOG_NAME, SETTINGS_NAME, CHECKPOINTS_NAME = "log.jsonl", "train.json", "checkpoints"
LOCK_NAME = ".train.lock"
# Of settings whose policy is a row; before, crop and flip stood around every policy.
_FORMAT = 2
# Of ``train --study``, which may be there before the training is.
STUDY_FOLDER = "study"


# The row says whether images are flipped.
_NOT_COMPARED = {"validation", "flip"}


def describe(feed: Feed, ranks: int) -> dict[str, Any]:
    """All that decides what the weights become, as JSON reads it."""
    decided = {name: value for name, value in asdict(feed.options).items() if name not in {*FREE, *_NOT_COMPARED}}
    if feed.options.lr_scale == "none":
        del decided["lr_base_size"]
    row = feed.options.row
    decided["policy"] = row.name
    if row.policy is not None and (path := Path(row.policy)).is_file():  # files are told apart by their content, too
        decided["policy"] = f"{row.name} ({hashlib.sha256(path.read_bytes()).hexdigest()[:12]})"
    if feed.recorded is not None:
        decided["adapt_from"] = f"{feed.options.adapt_from} ({feed.recorded})"
    decided |= {"model": feed.model, "batch_size": feed.batch_size, "size": list(feed.size)}
    found = {"classes": len(feed.classes), "source": feed.source.fingerprint, **decided, "ranks": ranks}
    return {**found, "format": _FORMAT, "pixels": PIXEL_VERSION}


def check_out(folder: Path) -> None:
    """Raises ResumeError for what is no folder, and cannot become one."""
    if found := next((one for one in (folder, *folder.parents) if one.exists() and not one.is_dir()), None):
        raise ResumeError(f"out: got {folder}, where {found} is a file; accepted: a folder, which is made")


def with_choices_of_run(options: TrainOptions, ranks: int) -> TrainOptions:
    """Options that are left open get what the run in ``out`` chose: its data is the same, but the free memory is not,
    and earlier versions chose otherwise. Raises ResumeError."""
    theirs = _settings(options.out) or {}
    kept: dict[str, Any] = {}
    if options.policy is None and "format" not in theirs and theirs.get("policy") in _OLD_DEFAULTS:
        kept |= {"policy": _with_row(theirs)["policy"], "flip": True}
    # A file names no code to import, and nothing larger than what would be chosen.
    if options.model is None and theirs.get("model") in AUTOMATIC_MODELS:
        kept["model"] = theirs["model"]
    batch = as_integer(theirs.get("batch_size"))
    if options.batch_size is None and theirs.get("ranks") == ranks and batch is not None and 1 <= batch <= BATCH:
        kept["batch_size"] = batch
    sides = as_numbers(theirs.get("size"), whole=True) or ()
    if options.size == "auto" and len(sides) == 2 and all(1 <= side <= _MOST_SIDE for side in sides):
        kept["size"] = f"{sides[0]}x{sides[1]}"
    return replace(options, **kept)


_MOST_SIDE = 4096
_OLD_DEFAULTS = (NO_AUGMENTATION, "randaugment")


def claim(folder: Path, mine: dict[str, Any]) -> None:
    """Make the folder this training's. Raises ResumeError where it is another's."""
    path, theirs = folder / SETTINGS_NAME, _settings(folder)
    if theirs is None:
        others = {one.name for one in folder.glob("[!.]*")} - {STUDY_FOLDER}
        if others == {CHECKPOINTS_NAME} and not any((folder / CHECKPOINTS_NAME).glob("[!.]*")):
            # A rank was writing while the folder was deleted; Checkpoints.clear takes away what is half-written.
            others = set()
        if CHECKPOINTS_NAME in others:
            raise ResumeError(
                f"{folder}: holds {CHECKPOINTS_NAME} without the {SETTINGS_NAME} that says of which training; restore "
                f"it, or delete {folder / CHECKPOINTS_NAME}, or choose an empty folder"
            )
        if others:
            raise ResumeError(f"{folder}: holds files of something else ({min(others)}); choose an empty folder")
        write_atomically(path, (json.dumps(mine, indent=2) + "\n").encode(), durable=True)
    else:
        check_same(folder, theirs, mine)


def _settings(folder: Path) -> dict[str, Any] | None:
    """Of the run in ``folder``; None without one."""
    path = folder / SETTINGS_NAME
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (TypeError, ValueError, RecursionError) as error:
        raise ResumeError(f"{path}: is no JSON ({error}); restore it, or choose another folder") from error


def _with_row(theirs: dict[str, Any]) -> dict[str, Any]:
    """Settings of a run, of an earlier version too, with the row that trained as policy."""
    if "format" in theirs or "policy" not in theirs:
        return theirs
    name, space, digest = str(theirs["policy"]).partition(" (")
    try:
        is_alone = is_policy_file(name) and is_whole(load_policy(name))
    except (PolicyError, OSError):
        is_alone = False
    is_kept = max(theirs.get("size", [0])) <= LARGEST_KEPT
    parts = [] if name == NO_AUGMENTATION else [name]
    if not is_alone:
        parts += ["flip"] * bool(theirs.get("flip", True))
        parts += ["crop"] * (theirs.get("padding") != 0 or not is_kept)
        parts += ["cutout"] * (bool(theirs.get("cutout")) and is_kept)
    row = "+".join(parts) or NO_AUGMENTATION
    return {**theirs, "policy": row + space + digest, "cutout": theirs.get("cutout") or None, "format": _FORMAT}


def check_same(folder: Path, theirs: dict[str, Any], mine: dict[str, Any]) -> None:
    """Raises ResumeError naming the first option that differs."""
    check_pixel_version(str(folder), theirs.get("pixels"), ResumeError)
    # An option that is newer than the run had its default there.
    theirs = {one.name: one.default for one in fields(TrainOptions)} | _with_row(theirs)
    free = {"ranks", "recipe", "pixels"} | (FREE_ON_OTHER_RANKS if theirs.get("ranks") != mine["ranks"] else set())
    for name, value in mine.items():
        if name not in free and theirs.get(name) != value:
            raise ResumeError(
                f"{folder}: holds a training run with {_as_typed(name)} {theirs.get(name)!r}, this one has {value!r}; "
                "resume that, or choose another folder"
            )


def check_ranks(every: list[dict[str, Any]]) -> None:
    """Raises SourceError naming an option or a source that differs between ranks, which would wait for each other."""
    for rank, theirs in enumerate(every):
        for name, value in every[0].items():
            if theirs.get(name) != value:
                raise SourceError(
                    f"rank {rank} has {_as_typed(name)} {theirs.get(name)!r}, rank 0 has {value!r}; accepted: the same "
                    "on every rank. Are files missing on a machine?"
                )


def _as_typed(name: str) -> str:
    return name if name in ("source", "classes") else f"--{name.replace('_', '-')}"


T = TypeVar("T")
Tensors = dict[str, torch.Tensor]
# Where a tensor of this name, size and type is read to; of one that is split over ranks, this one's part.
RoomFor = Callable[[str, torch.Size, torch.dtype], torch.Tensor]

FACTS_NAME = "facts.json"
_PREFIX, _BEFORE_IT_IS_WHOLE = "step-", ".step-"
_ALL = "all"
# What the table of contents is made of; it is a pickle, which could otherwise call anything.
_DTYPES = {str(one).removeprefix("torch.") for one in vars(torch).values() if isinstance(one, torch.dtype)}
_CONTENTS = {
    "torch.distributed.checkpoint.metadata": {
        *("Metadata", "MetadataIndex", "StorageMeta", "TensorProperties", "TensorStorageMetadata"),
        *("BytesStorageMetadata", "ChunkStorageMetadata", "_MEM_FORMAT_ENCODING"),
    },
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo"},
    "torch.serialization": {"_get_layout"},
    "torch": {"Size", *_DTYPES},
    "pathlib": {"PosixPath", "WindowsPath"},
}
# What damaged files raise, besides errors of the system.
_DAMAGE = (
    *(RuntimeError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, EOFError, MemoryError),
    *(pickle.UnpicklingError, CheckpointException),
)


# What torch's writer of files says, in C++, where no more could be written; the reason is lost.
_CUT_OFF = ("inline_container", "PytorchStreamWriter")


class ResumeError(ValueError):
    """A checkpoint that this training cannot go on from."""


class Checkpoints:
    """Checkpoints of a run in ``folder``, of which the latest ``keep`` stay; every rank saves and loads in the same
    steps."""

    def __init__(self, folder: Path, keep: int, ranks: Ranks) -> None:
        self.folder, self._keep, self._ranks = folder, keep, ranks
        self._more: dict[str, Any] = {"process_group": ranks.saving} if ranks.ranks > 1 else {}
        self._thread = ThreadPoolExecutor(1, "variegate-checkpoint")
        self._saving: Future[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._saving is not None and not self._saving.done()

    def save(self, step: int, tensors: Tensors, facts: dict[str, Any], is_alike: bool) -> None:
        """Copy the tensors, and write them in the background. ``is_alike``: ranks are equal. Raises WriteError of the
        last."""
        self.wait()
        owner = _ALL if is_alike else f"rank{self._ranks.rank}"
        # torch's own async_save plans and copies before it returns, which took 4 to 10 times as long as to copy.
        copied = {f"{owner}/{name}": tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
        told = {**facts, "step": step, "ranks": self._ranks.ranks, "is_alike": is_alike}
        self._saving = self._thread.submit(self._write, step, copied, told)

    def _write(self, step: int, tensors: Tensors, facts: dict[str, Any]) -> None:
        begun, whole = self.folder / f"{_BEFORE_IT_IS_WHOLE}{step:08d}", self.folder / f"{_PREFIX}{step:08d}"
        if self._ranks.is_first:
            if not self.folder.parent.is_dir():  # it was deleted; half of a run's folder is nobody's
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.folder.parent))
            write_atomically(begun / FACTS_NAME, json.dumps(facts).encode(), durable=True)
        _hush()
        save(tensors, storage_writer=FileSystemWriter(begun), **self._more)
        if self._ranks.is_first:
            # The table of contents is written when all ranks have written theirs.
            os.replace(begun, whole)
            sync_folder(self.folder)
            self.drop_old()

    def drop_old(self) -> None:
        """All but the latest. Before the first save, too: where the disk was full, fewer to keep make room."""
        for old in self._list()[: -self._keep] if self._ranks.is_first else ():
            shutil.rmtree(old, ignore_errors=True)

    def wait(self) -> None:
        """Until what is being saved is whole. Raises WriteError, and RuntimeError where another rank is gone."""
        saving, self._saving = self._saving, None
        error = None if saving is None else saving.exception()
        # torch gathers what went wrong on each rank.
        every = [one for one, _ in error.failures.values()] if isinstance(error, CheckpointException) else [error]
        for one in every:
            if any(word in str(one) for word in _CUT_OFF):
                one = OSError(errno.EIO, "a file came to an end too soon; is the disk full?")
            if isinstance(one, OSError):
                raise write_error(one, str(self.folder)) from error
        if error is not None:
            raise RuntimeError(f"{self.folder}: {every[0]}") from error

    def close(self) -> None:
        """``wait``, and give the thread back."""
        try:
            self.wait()
        finally:
            self._thread.shutdown()

    def clear(self) -> None:
        """Take away what a killed run has left half-written."""
        if self._ranks.is_first:
            for path in self.folder.glob(f"{_BEFORE_IT_IS_WHOLE}*"):
                shutil.rmtree(path, ignore_errors=True)

    def _list(self) -> list[Path]:
        return sorted(self.folder.glob(f"{_PREFIX}*"))

    def load(self, room_for: RoomFor, take: Callable[[dict[str, Any], Tensors], T]) -> T | None:
        """``take`` of the latest's facts and tensors on the CPU; None without any. Raises ResumeError."""
        if not (found := self._list()):
            return None
        path = found[-1]
        try:
            facts: dict[str, Any] = json.loads((path / FACTS_NAME).read_bytes())
            return take(facts, self._tensors(path, facts, room_for))
        except ResumeError:
            raise
        except (OSError, *_DAMAGE) as error:
            every = error.failures.values() if isinstance(error, CheckpointException) else ()
            first = next((one for one, _ in every), error)
            said = " ".join(str(first).split())[:200] or type(first).__name__
            raise ResumeError(
                f"{path}: is damaged, or no checkpoint of a training run ({said}); delete it to resume from the "
                "one before it"
            ) from error

    def _tensors(self, path: Path, facts: dict[str, Any], room_for: RoomFor) -> Tensors:
        if facts["is_alike"]:
            return self._read(path, _ALL, room_for)
        if facts["ranks"] == self._ranks.ranks:
            return self._read(path, f"rank{self._ranks.rank}")
        return self._mean(path, integer("ranks", facts["ranks"], 1))

    def _read(self, path: Path, owner: str, room_for: RoomFor | None = None) -> Tensors:
        _hush()
        reader = _Reader(path)
        kept = reader.read_metadata().state_dict_metadata
        wanted: Any = {name: one for name, one in kept.items() if name.startswith(f"{owner}/")}
        tensors = {}
        for name, one in wanted.items():
            size, dtype = one.size, one.properties.dtype
            place = None if room_for is None else room_for(name.partition("/")[2], size, dtype)
            tensors[name] = torch.empty(size, dtype=dtype) if place is None else place
        load(tensors, storage_reader=reader, **self._more)
        return {name.partition("/")[2]: tensor for name, tensor in tensors.items()}

    def _mean(self, path: Path, ranks: int) -> Tensors:
        """Of so many ranks that went ways of their own: where others go on, they all begin in the middle."""
        every = [self._read(path, f"rank{rank}") for rank in range(ranks)]
        return {
            name: torch.stack([one[name] for one in every]).mean(0) if tensor.is_floating_point() else tensor
            for name, tensor in every[0].items()
            if not name.startswith("between/")
        }


def _hush() -> None:
    """That a single process saves for itself alone is no news, nor what torch 2.5 uses to save."""
    warnings.filterwarnings("ignore", "torch.distributed is (disabled|unavailable)|TypedStorage", UserWarning)


class _Reader(FileSystemReader):
    """Reads tensors, and a table of contents that is made of nothing else."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
        with open(Path(self.path) / ".metadata", "rb") as file:
            return _ContentsUnpickler(file).load()


class _ContentsUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name not in _CONTENTS.get(module, ()):
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no checkpoint has")
        return super().find_class(module, name)
