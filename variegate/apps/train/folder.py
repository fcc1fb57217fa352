"""The folder of a training: whose it is, and the model that it ends with."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from variegate.apps.train.checkpoints import ResumeError, Tensors
from variegate.apps.train.feed import Feed
from variegate.formats.base import SourceError
from variegate.io.durable import write_atomically
from variegate.options.training import FREE, FREE_ON_OTHER_RANKS

LOG_NAME, SETTINGS_NAME, MODEL_NAME, CHECKPOINTS_NAME = "log.jsonl", "train.json", "model.pt", "checkpoints"
LOCK_NAME = ".train.lock"
# Of ``train --study``, which may be there before the training is.
STUDY_FOLDER = "study"


def describe(feed: Feed, ranks: int) -> dict[str, Any]:
    """All that decides what the weights become, as JSON reads it."""
    decided = {name: value for name, value in asdict(feed.options).items() if name not in {*FREE, "validation"}}
    if (path := Path(feed.options.policy)).is_file():  # files are told apart by their content, too
        decided["policy"] = f"{feed.options.policy} ({hashlib.sha256(path.read_bytes()).hexdigest()[:12]})"
    if feed.recorded is not None:
        decided["adapt_from"] = f"{feed.options.adapt_from} ({feed.recorded})"
    decided |= {"model": feed.model, "batch_size": feed.batch_size, "size": list(feed.size)}
    return {"classes": len(feed.classes), "source": feed.source.fingerprint, **decided, "ranks": ranks}


def check_out(folder: Path) -> None:
    """Raises ResumeError for what is no folder, and cannot become one."""
    if found := next((one for one in (folder, *folder.parents) if one.exists() and not one.is_dir()), None):
        raise ResumeError(f"out: got {folder}, where {found} is a file; accepted: a folder, which is made")


def claim(folder: Path, mine: dict[str, Any]) -> None:
    """Make the folder this training's. Raises ResumeError where it is another's."""
    path = folder / SETTINGS_NAME
    if not path.exists():
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
        return
    try:
        theirs = dict(json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError, RecursionError) as error:
        raise ResumeError(f"{path}: is no JSON ({error}); restore it, or choose another folder") from error
    check_same(folder, theirs, mine)


def check_same(folder: Path, theirs: dict[str, Any], mine: dict[str, Any]) -> None:
    """Raises ResumeError naming the first option that differs."""
    free = {"ranks", "recipe"} | (FREE_ON_OTHER_RANKS if theirs.get("ranks") != mine["ranks"] else set())
    for name, value in mine.items():
        if name not in free and theirs.get(name) != value:
            raise ResumeError(
                f"{folder}: holds a training with {_as_typed(name)} {theirs.get(name)!r}, this one has {value!r}; go "
                "on with that, or choose another folder"
            )


def check_ranks(every: list[dict[str, Any]]) -> None:
    """Raises SourceError naming the first option, or the source, that is another on another rank: they would wait for
    each other for ever."""
    for rank, theirs in enumerate(every):
        for name, value in every[0].items():
            if theirs.get(name) != value:
                raise SourceError(
                    f"rank {rank} has {_as_typed(name)} {theirs.get(name)!r}, rank 0 has {value!r}; accepted: the same "
                    "on every rank. Are files missing on a machine?"
                )


def _as_typed(name: str) -> str:
    return name if name in ("source", "classes") else f"--{name.replace('_', '-')}"


def write_model(folder: Path, feed: Feed, weights: Tensors) -> None:
    """``model.pt``, for use elsewhere: torch.load(..., weights_only=True). Raises WriteError."""
    buffer = io.BytesIO()
    torch.save({"model": feed.model, "classes": list(feed.classes), "weights": weights}, buffer)
    write_atomically(folder / MODEL_NAME, buffer.getvalue(), durable=True)
