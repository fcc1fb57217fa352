"""What a worker does for an expansion: read, decode, augment, encode, and where outputs are files of their own, write.

Nothing in here depends on which items came together: groups, threads and devices change no byte.
"""

from __future__ import annotations

import json
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from variegate.augmenter import Augmenter
from variegate.data.decode import check_side, read_image
from variegate.data.sources.stamps import Stamps
from variegate.engine.expansion.outputs import DecodedSample, Image_HWC, ItemOutputs, written_row
from variegate.engine.expansion.plan import Plan
from variegate.engine.expansion.same_source import check_read
from variegate.engine.jobs import FatalError, Result, is_devices_fault
from variegate.errors import DecodeError, each_alone
from variegate.program.program import Program
from variegate.sinks.encode import encode_image
from variegate.sinks.shards.base import Labels
from variegate.sinks.storage import Storage
from variegate.threads import Lookahead, Threads

# Decoded pixels that are augmented together, at most.
_GROUP_BYTES = 64 << 20
# Files that are open at the same time, at most, in a thread.
_FILES_AT_ONCE = 64


@dataclass(frozen=True)
class ExpansionSpec:
    """``storage``: where the outputs are written as files; None: they are given back. ``is_alone``: it has a process to
    itself, where nobody else would see warnings. ``labels``: what all labels must be like, where outputs are gathered.
    ``stamps``: what the source's files must be like when they are read. ``kept``: by item, the copies that are in their
    place already, and are left alone.
    """

    plan: Plan
    storage: Storage | None
    is_alone: bool = False
    labels: Labels | None = None
    stamps: Stamps | None = None
    kept: dict[int, frozenset[int]] = field(default_factory=dict)

    def open(self, device: str, num_threads: int) -> ExpansionJob:
        job = ExpansionJob(self, device, num_threads)
        if self.is_alone:
            job.collect_warnings()
        job.warm_up()
        return job


class ExpansionJob:
    """On one device, with no more threads than it was given."""

    def __init__(self, spec: ExpansionSpec, device: str, num_threads: int) -> None:
        self._plan, self._storage, self._labels = spec.plan, spec.storage, spec.labels
        self._stamps, self._kept = spec.stamps, spec.kept
        self._threads = num_threads
        self._pool = Threads(num_threads, "variegate-expand") if num_threads > 1 else None
        self._augmenter = Augmenter(spec.plan.transform, device, spec.plan.seed, num_threads=num_threads, layout="NHWC")
        self._notes: deque[str] = deque()

    def collect_warnings(self) -> None:
        """Give warnings back with the results, instead of printing them."""
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: self._notes.append(str(message))

    def warm_up(self) -> None:
        """Compile kernels (or load them) before a task has to show that it gets on."""
        image = np.random.default_rng(0).integers(0, 256, (256, 256, 3)).astype(np.uint8)
        for copy in range(2):
            try:
                self._augmenter([image] * 8, ids=list(range(8)), copy=copy)
            except Exception:  # it may well take other images than this one; if it takes none, tasks will say so
                return

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        """Raises FatalError where outputs cannot be written."""
        made: dict[int, ItemOutputs] = {}
        failed: dict[int, str] = {}
        group: list[DecodedSample] = []
        size = 0
        for index, wanted, found in self._read(items):
            beat()
            if isinstance(found, DecodeError):
                failed.update(dict.fromkeys(wanted, found.reason))
                continue
            image, label = found
            group.append(DecodedSample(index, wanted, image, label, self._plan.sample_id(index)))
            size += image.nbytes
            if size >= _GROUP_BYTES:
                self._finish(group, made, failed, beat)
                group, size = [], 0
        if group:
            self._finish(group, made, failed, beat)
        if self._storage is not None:
            self._do_or_end(self._storage.sync)
        if self._notes and made:
            first = next(iter(made))
            made[first] = made[first]._replace(notes=tuple(self._notes.popleft() for _ in range(len(self._notes))))
        return Result([made.get(item) for item in items], failed)

    def make(self, index: int, copy: int) -> bytes:
        """One output, alone. Raises DecodeError, or ValueError where the transform or the format does not take it."""
        found = self._decode(index)
        if isinstance(found, DecodeError):
            raise found
        picture = DecodedSample(index, [], *found, self._plan.sample_id(index))
        _, images = self._augment([picture], copy)
        return encode_image(images[0], self._plan.format, self._plan.quality)

    def _read(self, items: range) -> Iterator[tuple[int, list[int], tuple[Image_HWC, Any] | DecodeError]]:
        """(index, items, (pixels, label) or what went wrong) of every sample, decoded ahead by all threads."""
        samples = [(index, list(wanted)) for index, wanted in groupby(items, self._plan.sample_of)]
        if self._pool is None:
            yield from ((index, wanted, self._decode(index)) for index, wanted in samples)
            return
        pool = self._pool
        ahead = Lookahead(pool.submit(self._decode, index) for index, _ in samples)
        largest = 0
        for index, wanted in samples:
            # As far ahead as the largest picture so far allows; two are always under way.
            ahead.begin(min(2 * self._threads, max(2, _GROUP_BYTES // largest)) if largest else 2 * self._threads)
            decoded = ahead.take()
            assert decoded is not None
            found = decoded.result()
            if not isinstance(found, DecodeError):
                largest = max(largest, found[0].nbytes)
            yield index, wanted, found

    def _decode(self, index: int) -> tuple[Image_HWC, Any] | DecodeError:
        source = self._plan.source
        try:
            data, label = source.read(index)
            if self._stamps is not None:
                check_read(self._stamps, source, index, len(data))
            image = data if isinstance(data, np.ndarray) else read_image(data, str(source.name(index)))
            check_side(str(source.name(index)), *image.shape[:2])
        except DecodeError as error:
            return error
        except MemoryError:
            raise
        except Exception as error:  # whatever a data set or a storage raises for this sample; the next may be good
            return DecodeError(str(source.name(index)), f"cannot be read ({type(error).__name__}: {error})")
        if self._labels is not None:
            try:
                self._labels.check(label, "label")
            except ValueError as error:
                return DecodeError(str(source.name(index)), str(error))
        return image, label

    def _finish(
        self, group: list[DecodedSample], made: dict[int, ItemOutputs], failed: dict[int, str], beat: Callable[[], None]
    ) -> None:
        """Augment and encode, then write: of an item of which a copy fails, nothing is written."""
        for copy in sorted(
            {copy for picture in group for item in picture.items for copy in self._plan.copies_of(item)}
        ):
            here = [(p, item) for p in group for item in p.items if copy in self._plan.copies_of(item)]
            here = [(p, item) for p, item in here if item not in failed]
            self._make_copy(here, copy, failed)
            beat()
        good = [(p, item) for p in group for item in p.items if item not in failed]
        if self._storage is not None:
            made_here = [(item, output) for picture, item in good for output in picture.outputs[item]]
            self._write([each for item, each in made_here if each[0]["copy"] not in self._kept.get(item, ())], beat)
        for picture, item in good:
            outputs = picture.outputs.pop(item)
            rows = tuple(json.dumps(row) for row, _ in outputs)
            is_given_back = self._storage is None
            made[item] = (
                ItemOutputs(rows, tuple(data for _, data in outputs), picture.label)
                if is_given_back
                else ItemOutputs(rows)
            )

    def _make_copy(self, here: list[tuple[DecodedSample, int]], copy: int, failed: dict[int, str]) -> None:
        if not here:
            return
        try:
            program, images = self._augment([picture for picture, _ in here], copy)
        except Exception as error:
            if is_devices_fault(error):
                raise
            alone = each_alone(
                here, lambda one: self._augment([one[0]], copy), lambda error: not is_devices_fault(error)
            )
            for one, result in alone:
                if isinstance(result, Exception):
                    kind = "" if isinstance(result, ValueError) else f"{type(result).__name__}: "
                    failed[one[1]] = f"not taken by the transform: {kind}{result}"
                else:
                    self._encode_copy([one], copy, *result, failed)
            return
        self._encode_copy(here, copy, program, images, failed)

    def _encode_copy(
        self,
        here: list[tuple[DecodedSample, int]],
        copy: int,
        program: Program,
        images: list[Image_HWC],
        failed: dict[int, str],
    ) -> None:
        encoded = self._map(lambda row: self._encode(images[row]), range(len(here)))
        for row, ((picture, item), data) in enumerate(zip(here, encoded, strict=True)):
            if isinstance(data, ValueError):
                failed[item] = str(data)
            else:
                described = written_row(self._plan, picture, copy, program, row, images[row], data)
                picture.outputs.setdefault(item, []).append((described, data))

    def _augment(self, pictures: list[DecodedSample], copy: int) -> tuple[Program, list[Image_HWC]]:
        images, ids = [picture.image for picture in pictures], [picture.id for picture in pictures]
        labels = [picture.label for picture in pictures]
        given = {"label": labels} if all(isinstance(label, (int, np.integer)) for label in labels) else None
        program = self._augmenter.program(images, ids=ids, epoch=self._plan.epoch, copy=copy, conditions=given)
        return program, [output.cpu().numpy() for output in self._augmenter.run(program, images)]

    def _encode(self, image: Image_HWC) -> bytes | ValueError:
        try:
            return encode_image(image, self._plan.format, self._plan.quality)
        except ValueError as error:  # larger than the format can hold
            return error

    def _write(self, outputs: list[tuple[dict[str, Any], bytes]], beat: Callable[[], None]) -> None:
        storage = self._storage
        assert storage is not None
        files = [(row["file"], data) for row, data in outputs]
        share = min(_FILES_AT_ONCE, -(-len(files) // self._threads))

        def put(first: int) -> None:
            storage.write_many(files[first : first + share])
            beat()

        self._do_or_end(lambda: self._map(put, range(0, len(files), max(1, share))))

    def _map(self, function: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
        return list(map(function, values) if self._pool is None else self._pool.map(function, values))

    def _do_or_end(self, write: Callable[[], object]) -> None:
        """What cannot be written here can be written nowhere."""
        try:
            write()
        except OSError as error:
            raise FatalError(str(error)) from error
