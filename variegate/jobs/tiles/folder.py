"""Files of large images (``variegate augment --tile``), one after another, each on all devices."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from variegate.checks import PIXEL_VERSION, integer, one_of
from variegate.formats.base import SourceError
from variegate.formats.kinds import is_system_name
from variegate.formats.storage import Storage
from variegate.io.durable import sync_folder
from variegate.jobs.engine import Engine
from variegate.jobs.jobs import EngineError
from variegate.jobs.mapping import MapSpec
from variegate.jobs.options import ON_ERROR, OnError
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.files import output_path, output_stems
from variegate.jobs.output.on_disk import DiskRun, Row, check_apart
from variegate.jobs.tiles.reading import SUFFIXES, file_of
from variegate.jobs.tiles.run import ImageRun
from variegate.program.describe import operations_of
from variegate.transforms import Transform


@dataclass
class FolderRun(DiskRun):
    """``copies`` of every image of ``source``, a file or a folder of them, into the folder ``destination``."""

    source: str
    destination: str
    transform: Transform
    engine: Engine
    tile: int
    copies: int = 1
    seed: int = 0
    epoch: int = 0
    on_error: OnError = "skip"
    resume: bool = True
    on_progress: Callable[[FolderRun], None] | None = None
    stop: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        """Raises ValueError, or SourceError where there are no images."""
        one_of("on_error", self.on_error, ON_ERROR)
        self.copies = integer("copies", self.copies, 1)
        check_apart(self.source, self.destination)
        self.root, self.names = image_files(self.source)
        self._stems = output_stems(self.names)
        self.total = self.num_items = len(self.names) * self.copies
        self.shared_columns = {"seed": self.seed, "epoch": self.epoch}
        self.done = self.resumed = 0  # outputs; ``resumed``: of an earlier run
        self.skipped: list[tuple[str, str]] = []  # files that could not be read, and why
        self.image: ImageRun | None = None  # what is being made now
        self.seconds = 0.0
        self.pixels = 0

    def run(self) -> None:
        """Raises SourceError for another destination, and with on_error="raise" for an unreadable file; EngineError."""
        self._began = time.perf_counter()
        self.run_on(None)

    def settings(self) -> dict[str, Any]:
        stamps = [(name, *_stamp(os.path.join(self.root, name))) for name in self.names]
        # Not "samples" and "copies": of a Zarr array the manifest has several rows.
        return {
            "source": os.path.abspath(self.source), "images": len(self.names),
            "fingerprint": hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:16], "classes": [],
            "transform": self.transform.to_dict(), "seed": self.seed, "epoch": self.epoch,
            "copies_of_each": self.copies, "layout": "folder", "tile": self.tile, "executor": self.engine.executor,
            "pixels": PIXEL_VERSION,
        }  # fmt: skip

    def span_of(self, row: Row) -> tuple[int, int]:
        item = row["index"] * self.copies + row["copy"]
        return item, item + 1

    def restore(self, destination: Destination, num_lost: int) -> None:
        covered = [(0, self.total)] if destination.is_complete else destination.journal.covered
        self.done = self.resumed = sum(stop - start for start, stop in covered)

    def make(self, destination: Destination) -> None:
        journal = destination.journal
        for item, _ in journal.left(self.total, 1):
            rows = self._make(item, destination.storage)
            if rows is None:
                return
            is_missing = rows[0]["status"] != "written"
            journal.append(item, item + 1, [json.dumps(row) for row in rows], len(rows) if is_missing else 0)
            journal.flush()
            self.done += not is_missing
            self.seconds = time.perf_counter() - self._began
            self._show()

    def _make(self, item: int, storage: Storage) -> list[dict[str, Any]] | None:
        """The manifest's rows of an output; None where it was interrupted."""
        index, copy = divmod(item, self.copies)
        name = self.names[index]
        place = os.path.join(self.root, name)
        about = {"source": name, "index": index, "id": index, "copy": copy}
        relative = output_path(self._stems[index], copy, Path(name).suffix.lower().lstrip("."))
        out = os.path.join(self.destination, relative)
        try:
            os.makedirs(os.path.dirname(out), exist_ok=True)
            work = MapSpec(self.transform, self.seed, "float32", "NHWC", "composed", self.epoch, copy)
            places = file_of(place), index, out, self.tile, None
            self.image = ImageRun(self.engine, work, *places, self.resume, lambda _: self._show(), self.stop)
            if self.image.plan.program.output.is_float:
                raise SourceError("the policy ends in Normalize; images on disk hold bytes, so leave it out")
            self.image.run()
        except (SourceError, EngineError) as error:
            # What reads a file names it first.
            if self.on_error == "raise" or not str(error).startswith((place, os.path.abspath(place))):
                raise
            if name not in [known for known, _ in self.skipped]:
                self.skipped.append((name, str(error)))
            return [{**about, "file": None, "status": "quarantined", "reason": str(error)}]
        if self.image.is_interrupted:
            return None
        height, width, _ = self.image.shape
        self.pixels += height * width
        operations = operations_of(self.image.sampled, 0)
        about |= {"status": "written", "height": height, "width": width, "operations": operations}
        files = [relative]
        if os.path.isdir(out):
            # Of a Zarr array every file has a row.
            inner = sorted(path for path in Path(out).rglob("*") if path.is_file())
            files = [f"{relative}/{path.relative_to(out).as_posix()}" for path in inner]
        sync_folder(os.path.dirname(out))
        sizes = [os.path.getsize(os.path.join(self.destination, file)) for file in files]
        return [
            {**about, "file": file, "sha256": storage.sha256(file), "bytes": size}
            for file, size in zip(files, sizes, strict=True)
        ]

    def _show(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self)


def image_files(source: str) -> tuple[str, list[str]]:
    """-> (a folder, the images in it by their paths below it, sorted). Raises SourceError where there are none."""
    if Path(source).suffix.lower() in SUFFIXES:
        path = file_of(source).path
        return os.path.dirname(path) or ".", [os.path.basename(path)]
    if not os.path.isdir(source):
        missing = "no such file or folder" if not os.path.exists(source) else f"accepted: {', '.join(SUFFIXES)}"
        raise SourceError(f"{source}: {missing}")
    names = []
    for folder, inner, files in os.walk(source):
        arrays = [name for name in inner if Path(name).suffix.lower() == ".zarr"]
        inner[:] = sorted(name for name in inner if name not in arrays and not is_system_name(name))
        found = [name for name in files if Path(name).suffix.lower() in SUFFIXES]
        found = [name for name in (*arrays, *found) if not is_system_name(name)]
        names += [os.path.relpath(os.path.join(folder, name), source) for name in found]
    if not names:
        raise SourceError(f"{source}: holds no image that is made in tiles; accepted: {', '.join(SUFFIXES)}")
    return source, sorted(names)


def _stamp(path: str) -> tuple[int, int]:
    known = os.stat(inner if os.path.exists(inner := os.path.join(path, "zarr.json")) else path)
    return known.st_size, known.st_mtime_ns
