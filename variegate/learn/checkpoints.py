"""The folder of a training: its settings, and checkpoints for resuming, one file per rank."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from variegate.checks import PIXEL_VERSION, as_integer, as_numbers, check_pixel_version, integer
from variegate.data.base import SourceError
from variegate.errors import one_line
from variegate.io.durable import publish, write_atomically, write_error
from variegate.learn.averaging import DistContext
from variegate.learn.choices import AUTOMATIC_MODELS, BATCH
from variegate.learn.feed import DataPipeline
from variegate.learn.model_file import DAMAGE, read_saved
from variegate.learn.step import Tensors
from variegate.learn.trainings import check_folder
from variegate.options.training import FREE, FREE_ON_OTHER_RANKS, TrainOptions

LOG_NAME = "log.jsonl"
SETTINGS_NAME = "train.json"
CHECKPOINTS_NAME = "checkpoints"
LOCK_NAME = ".train.lock"
# Runs of another format are refused, because their checkpoints cannot be read.
_FORMAT = 3
_MAX_SIDE = 4096

T = TypeVar("T")


class ResumeError(ValueError):
    """A folder or a checkpoint that this training cannot resume from."""


def describe(feed: DataPipeline, ranks: int) -> dict[str, Any]:
    """All settings that affect the weights, as JSON reads them."""
    options = {name: value for name, value in asdict(feed.options).items() if name not in {*FREE, "validation"}}
    row = feed.options.row
    policy = row.name
    if row.policy is not None and (path := Path(row.policy)).is_file():
        # The content of a file counts, not only its name.
        policy = f"{row.name} ({hashlib.sha256(path.read_bytes()).hexdigest()[:12]})"
    return {
        "classes": len(feed.classes),
        "source": feed.source.fingerprint,
        **options,
        "policy": policy,
        "model": feed.model,
        "batch_size": feed.batch_size,
        "size": list(feed.size),
        "ranks": ranks,
        "format": _FORMAT,
        "pixels": PIXEL_VERSION,
    }


def check_out(folder: Path) -> None:
    """Raises ResumeError for a path that is no folder and cannot become one."""
    file = next((path for path in (folder, *folder.parents) if path.exists() and not path.is_dir()), None)
    if file is not None:
        raise ResumeError(f"out: got {folder}, where {file} is a file; accepted: a folder, which is made")


def with_choices_of_run(options: TrainOptions, ranks: int) -> TrainOptions:
    """Fill open options with the choices of the run in ``out``, because the free memory may have changed. Raises
    ResumeError."""
    theirs = _settings(options.out) or {}
    kept: dict[str, Any] = {}
    # A file may not name code to import, nor larger networks and batches than would be chosen.
    if options.model is None and theirs.get("model") in AUTOMATIC_MODELS:
        kept["model"] = theirs["model"]
    batch = as_integer(theirs.get("batch_size"))
    if options.batch_size is None and theirs.get("ranks") == ranks and batch is not None and 1 <= batch <= BATCH:
        kept["batch_size"] = batch
    sides = as_numbers(theirs.get("size"), whole=True) or ()
    if options.size == "auto" and len(sides) == 2 and all(1 <= side <= _MAX_SIDE for side in sides):
        kept["size"] = f"{sides[0]}x{sides[1]}"
    return replace(options, **kept)


def claim(folder: Path, mine: dict[str, Any]) -> None:
    """Write the settings into a new folder. Raises ResumeError if it belongs to something else."""
    theirs = _settings(folder)
    if theirs is not None:
        check_same(folder, theirs, mine)
        return
    check_folder(folder, SETTINGS_NAME, ResumeError)
    write_atomically(folder / SETTINGS_NAME, (json.dumps(mine, indent=2) + "\n").encode(), durable=True)


def _settings(folder: Path) -> dict[str, Any] | None:
    """The settings of the run in ``folder``; None without a run."""
    path = folder / SETTINGS_NAME
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (TypeError, ValueError, RecursionError) as error:
        raise ResumeError(f"{path}: is no JSON ({error}); restore it, or choose another folder") from error


def check_same(folder: Path, theirs: dict[str, Any], mine: dict[str, Any]) -> None:
    """Raises ResumeError naming the first option that differs."""
    check_pixel_version(str(folder), theirs.get("pixels"), ResumeError)
    if theirs.get("format") != _FORMAT:
        raise ResumeError(
            f"{folder}: holds a training run of another version of Variegate; resume it with that version, or choose "
            "another folder"
        )
    # An option that is newer than the run had its default.
    theirs = {one.name: one.default for one in fields(TrainOptions)} | theirs
    # "pixels" was compared above.
    free = {"ranks", "pixels"}
    if theirs.get("ranks") != mine["ranks"]:
        free |= FREE_ON_OTHER_RANKS
    for name, value in mine.items():
        if name not in free and theirs.get(name) != value:
            raise ResumeError(
                f"{folder}: holds a training run with {_as_typed(name)} {theirs.get(name)!r}, this one has {value!r}; "
                "resume that, or choose another folder"
            )


def check_ranks(every: list[dict[str, Any]]) -> None:
    """Raises SourceError naming an option or a source that differs between ranks, because they would wait for each
    other."""
    for rank, theirs in enumerate(every):
        for name, value in every[0].items():
            if theirs.get(name) != value:
                raise SourceError(
                    f"rank {rank} has {_as_typed(name)} {theirs.get(name)!r}, rank 0 has {value!r}; accepted: the same "
                    "on every rank. Are files missing on a machine?"
                )


def _as_typed(name: str) -> str:
    return name if name in ("source", "classes") else f"--{name.replace('_', '-')}"


FACTS_NAME = "facts.json"
_PREFIX = "step-"
_PARTIAL_PREFIX = ".step-"
# Complete checkpoints that are kept; a damaged one leaves another to resume from.
_KEPT = 2


class Checkpoints:
    """Checkpoints of a run in ``folder``: step-N/rank-R.pt and step-N/facts.json. Every rank saves and loads in the
    same steps."""

    def __init__(self, folder: Path, ranks: DistContext) -> None:
        self.folder = folder
        self._ranks = ranks
        self._thread = ThreadPoolExecutor(1, "variegate-checkpoint")
        self._saving: Future[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._saving is not None and not self._saving.done()

    def save(self, step: int, tensors: Tensors, facts: dict[str, Any], is_alike: bool) -> None:
        """Copy the tensors and write them in the background. ``is_alike``: the tensors of all ranks are equal. Raises
        WriteError if the previous checkpoint could not be written."""
        self.wait()
        copies = {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
        facts = {**facts, "step": step, "ranks": self._ranks.ranks, "is_alike": is_alike}
        self._saving = self._thread.submit(self._write, step, copies, facts)

    def _write(self, step: int, tensors: Tensors, facts: dict[str, Any]) -> None:
        partial = self.folder / f"{_PARTIAL_PREFIX}{step:08d}"
        failure = None
        try:
            self._write_rank(partial, tensors)
            if self._ranks.is_first:
                write_atomically(partial / FACTS_NAME, json.dumps(facts).encode(), durable=True)
        except OSError as error:
            failure = error
        reasons = self._ranks.gather(None if failure is None else str(failure), self._ranks.saving)
        if failure is not None:
            raise failure
        for rank, reason in enumerate(reasons):
            if reason is not None:
                raise OSError(errno.EIO, f"rank {rank}: {reason}")
        if self._ranks.is_first:
            publish(partial, self.folder / f"{_PREFIX}{step:08d}")
            self.drop_old()

    def _write_rank(self, partial: Path, tensors: Tensors) -> None:
        if not self.folder.parent.is_dir():
            # The run's folder was deleted; it is not made again for a checkpoint alone.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.folder.parent))
        partial.mkdir(parents=True, exist_ok=True)
        with open(partial / _rank_name(self._ranks.rank), "wb") as file:
            try:
                torch.save(tensors, file)
            except RuntimeError as error:  # torch's writer loses the reason
                raise OSError(errno.EIO, "a file came to an end too soon; is the disk full?") from error
            file.flush()
            os.fsync(file.fileno())

    def drop_old(self) -> None:
        """Delete all but the latest checkpoints."""
        if self._ranks.is_first:
            for old in self._list()[:-_KEPT]:
                shutil.rmtree(old, ignore_errors=True)

    def wait(self) -> None:
        """Wait until the latest checkpoint is complete. Raises WriteError, and RuntimeError if another rank failed."""
        saving = self._saving
        self._saving = None
        if saving is None:
            return
        try:
            saving.result()
        except OSError as error:
            raise write_error(error, str(self.folder)) from error

    def close(self) -> None:
        """``wait``, and end the thread."""
        try:
            self.wait()
        finally:
            self._thread.shutdown()

    def clear(self) -> None:
        """Delete partial checkpoints of a killed run."""
        if self._ranks.is_first:
            for path in self.folder.glob(f"{_PARTIAL_PREFIX}*"):
                shutil.rmtree(path, ignore_errors=True)

    def _list(self) -> list[Path]:
        return sorted(self.folder.glob(f"{_PREFIX}*"))

    def load(self, take: Callable[[dict[str, Any], Tensors], T]) -> T | None:
        """Return ``take(facts, tensors)`` of the latest checkpoint, with tensors on the CPU; None without a checkpoint.
        Raises ResumeError."""
        checkpoints = self._list()
        if not checkpoints:
            return None
        path = checkpoints[-1]
        try:
            facts: dict[str, Any] = json.loads((path / FACTS_NAME).read_bytes())
            return take(facts, self._tensors(path, facts))
        except ResumeError:
            raise
        except (OSError, *DAMAGE) as error:
            reason = one_line(error)[:200] or type(error).__name__
            raise ResumeError(
                f"{path}: is damaged, or no checkpoint of a training run ({reason}); delete it to resume from the one "
                "before it"
            ) from error

    def _tensors(self, path: Path, facts: dict[str, Any]) -> Tensors:
        ranks = integer("ranks", facts["ranks"], 1)
        if ranks == self._ranks.ranks:
            return _read(path, self._ranks.rank)
        tensors = _read(path, 0)
        return tensors if facts["is_alike"] else _mean(path, tensors, ranks)


def _mean(path: Path, first: Tensors, ranks: int) -> Tensors:
    """The mean over ranks that differ: another number of ranks starts there. Without tensors in transit."""
    mean = {name: tensor for name, tensor in first.items() if not name.startswith("between/")}
    floats = [name for name, tensor in mean.items() if tensor.is_floating_point()]
    for rank in range(1, ranks):
        others = _read(path, rank)
        for name in floats:
            mean[name] += others[name]
    for name in floats:
        mean[name] /= ranks
    return mean


def _read(path: Path, rank: int) -> Tensors:
    tensors: Tensors = dict(read_saved(path / _rank_name(rank)))
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is no tensor")
    return tensors


def _rank_name(rank: int) -> str:
    return f"rank-{rank}.pt"
