"""A folder of images expanded into augmented copies: decode, augment, encode and write, all at the same time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from variegate.augmenter import Augmenter
from variegate.data.sources.base import SourceError
from variegate.data.sources.folder import FolderSource
from variegate.engine.manifest import ManifestWriter
from variegate.engine.prefetch import Batch, decoded_batches
from variegate.errors import DecodeError
from variegate.executors.cpu.executor import default_threads
from variegate.program.describe import operations_of
from variegate.sinks.folder import FolderSink
from variegate.sinks.naming import output_stems
from variegate.transforms.base import Transform

BATCH_SIZE = 16
BATCH_BYTES = 64 << 20


@dataclass
class Report:
    """What has been done so far; ``written`` counts files that are whole on disk and in the manifest."""

    files: int  # images in the source
    total: int  # outputs of a complete run
    read: int = 0
    written: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)  # file and reason
    seconds: float = 0.0
    is_interrupted: bool = False

    @property
    def rate(self) -> float:
        """Images written per second, from the first file opened to the last one in place."""
        return self.written / self.seconds if self.seconds > 0 else 0.0


@dataclass
class Expansion:
    """``copies`` augmented copies of every image of ``source``, written to ``sink``.

    The bytes of the outputs, and of the manifest, depend on the images, the transform, ``seed``, ``epoch`` and the
    sink alone: not on ``threads`` or ``batch_size``. ``on_error`` is "raise" or "skip", for files that do not decode.
    """

    source: FolderSource
    sink: FolderSink
    transform: Transform
    copies: int = 1
    seed: int = 0
    epoch: int = 0
    threads: int | None = None
    on_error: str = "raise"
    batch_size: int = BATCH_SIZE
    batch_bytes: int = BATCH_BYTES
    on_progress: Callable[[Report], None] | None = None
    stop: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.threads = self.threads or default_threads()
        self.report = Report(files=len(self.source), total=len(self.source) * self.copies)
        self._stems = output_stems([sample.path for sample in self.source.samples])
        self._writing: deque[tuple[dict[str, Any], int, Future[str]]] = deque()
        self._writing_bytes = 0

    def run(self) -> Report:
        """Do it. Setting ``stop`` from anywhere ends it early, with what is done kept, listed and counted.

        Raises DecodeError (with on_error="raise") or OSError; ``self.report`` then tells what was done before.
        """
        assert self.threads is not None
        check_apart(self.source.root, self.sink.root)
        augmenter = Augmenter(self.transform, seed=self.seed, num_threads=self.threads, layout="NHWC")
        self._manifest = ManifestWriter(self.sink.root, self._settings(), self.copies)
        started = time.perf_counter()
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="variegate-expand")
        try:
            for batch in decoded_batches(
                self.source,
                pool,
                threads=self.threads,
                batch_size=self.batch_size,
                batch_bytes=self.batch_bytes,
                on_bad=self._on_bad,
                stop=self.stop,
            ):
                self.report.read += len(batch.ids)
                for copy in range(self.copies):
                    if self.stop.is_set():
                        break
                    self._augment(augmenter, pool, batch, copy)
        finally:
            # Whatever has begun to be written is finished and listed; the rest is dropped if the run ends early.
            if self.stop.is_set():
                for _, _, future in self._writing:
                    future.cancel()
            try:
                self._settle(0)
            finally:
                pool.shutdown(cancel_futures=True)
                self._manifest.close()
                self.report.seconds = time.perf_counter() - started
                self.report.is_interrupted = self.stop.is_set() and self.report.written < self.report.total
        return self.report

    def _augment(self, augmenter: Augmenter, pool: ThreadPoolExecutor, batch: Batch, copy: int) -> None:
        program = augmenter.program(batch.images, ids=batch.ids, epoch=self.epoch, copy=copy)
        images = augmenter.run(program, batch.images)
        for n, sample_id in enumerate(batch.ids):
            img_HWC = images[n].numpy()
            if img_HWC.dtype != np.uint8:
                raise SourceError("the policy ends in Normalize; images on disk hold bytes, so leave it out")
            row = self._row(sample_id, copy) | {"operations": operations_of(program, n)}
            future = pool.submit(self.sink.write, img_HWC, self._stems[sample_id], copy)
            self._writing.append((row, img_HWC.nbytes, future))
            self._writing_bytes += img_HWC.nbytes
        self._settle(self.batch_bytes)

    def _row(self, sample_id: int, copy: int | None) -> dict[str, Any]:
        return {
            "source": self.source.samples[sample_id].path,
            "id": sample_id,
            "copy": copy,
            "label": self.source.samples[sample_id].label,
            "class": self.source.class_name(sample_id),
            "seed": self.seed,
            "epoch": self.epoch,
        }

    def _settle(self, keep_bytes: int) -> None:
        """List finished writes in the order of the samples; wait until at most ``keep_bytes`` are still waiting."""
        failure: OSError | ValueError | None = None
        while self._writing and (self._writing_bytes > keep_bytes or self._writing[0][2].done()):
            row, nbytes, future = self._writing.popleft()
            self._writing_bytes -= nbytes
            try:
                file = future.result()
            except CancelledError:
                continue
            except (OSError, ValueError) as error:
                failure = failure or error
                continue
            self._manifest.add({"file": file, "status": "written"} | row)
            self.report.written += 1
        self._manifest.flush()
        if self.on_progress is not None:
            self.on_progress(self.report)
        if failure is not None:
            raise failure

    def _on_bad(self, sample_id: int, error: DecodeError) -> None:
        if self.on_error == "raise":
            raise error
        path = self.source.samples[sample_id].path
        self.report.read += 1
        self.report.skipped.append((path, error.reason))
        self._manifest.add({"file": None, "status": "skipped", "reason": error.reason} | self._row(sample_id, None))
        if self.on_progress is not None:
            self.on_progress(self.report)

    def _settings(self) -> dict[str, Any]:
        return {
            "source": str(self.source.root),
            "classes": list(self.source.classes),
            "transform": self.transform.to_dict(),
            "seed": self.seed,
            "epoch": self.epoch,
            "copies": self.copies,
            "format": self.sink.format,
            "quality": self.sink.quality,
        }


def check_apart(source: Path, destination: Path) -> None:
    """Raise SourceError where the destination is the source, lies in it, or is a file."""
    source, destination = source.resolve(), destination.resolve()
    if destination == source or source in destination.parents:
        where = "is the source itself" if destination == source else f"lies inside the source {source}"
        raise SourceError(f"{destination}: {where}; choose a folder outside of it")
    if destination.exists() and not destination.is_dir():
        raise SourceError(f"{destination}: is a file; expected a folder, or a name that is still free")
