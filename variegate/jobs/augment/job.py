"""Workers of an expansion. Nothing depends on which items came together: groups, threads and devices change no byte."""

from __future__ import annotations

import hashlib
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import ImageArray
from variegate.augmenter.augmenter import Augmenter
from variegate.data.shards import Labels
from variegate.data.stamps import Stamps
from variegate.data.storage import Storage
from variegate.decode import check_side, checked_header, read_image
from variegate.decode.channels import in_channels
from variegate.decode.depth import in_depth, read_in
from variegate.decode.entropy.index import DamagedIndexError, EntropyIndex
from variegate.errors import DecodeError, try_each
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.jobs.augment.plan import Plan
from variegate.jobs.augment.same_source import check_read
from variegate.jobs.augment.writing import CopyOutput, ItemOutputs, Made, PartReport
from variegate.jobs.output.files import encode_image
from variegate.program.describe import operations_of
from variegate.program.program import Program
from variegate.threads import Lookahead, Threads
from variegate.workers.protocol import FatalError, Job, Result, is_device_error

# Decoded pixels that are augmented together, at most.
_GROUP_BYTES = 64 << 20
# Attempts to read a sample before it is skipped.
_READS = 3
_INT_LABELS = Labels()

Image_HWC = ImageArray


class Decoded(NamedTuple):
    """A decoded sample and its partners."""

    id: int
    image: Image_HWC | bytes  # a file still, where little more than a crop of it will be decoded
    label: Any
    partners: Sequence[Decoded] = ()
    file: Any = None  # facts of it for a packing
    targets: Mapping[str, Any] | None = None  # arrays of targets

    @property
    def pixels(self) -> Image_HWC:
        assert isinstance(self.image, np.ndarray)
        return self.image

    @property
    def nbytes(self) -> int:
        own = len(self.image) if isinstance(self.image, bytes) else self.image.nbytes
        own += sum(value.nbytes for value in (self.targets or {}).values())
        return own + sum(partner.nbytes for partner in self.partners)


@dataclass
class DecodedItem:
    item: int
    index: int  # of the sample
    sample: Decoded | None  # None: it could not be read
    outputs: list[CopyOutput] = field(default_factory=list)
    failure: str = ""  # why it has no outputs
    targets: Any = None  # of the copy that is made last

    @property
    def decoded(self) -> Decoded:
        assert self.sample is not None
        return self.sample


@dataclass(frozen=True)
class ExpansionSpec:
    """A job on the items of a plan."""

    plan: Plan
    storage: Storage | None  # where whole parts are written; None: outputs are returned
    is_alone: bool = False  # in a process, where nobody else would see warnings
    labels: Labels = _INT_LABELS  # the kind of all labels in shards
    is_strict: bool = False  # a part with a failed item is not written
    stamps: Stamps | None = None  # that the source's files must be like when they are read
    noted: set[str] = field(default_factory=set)  # notes that jobs of this process have given (``decode/depth.py``)
    index: str | None = None  # file of an entropy index of the source's JPEGs, whose pixels are the same without

    def cold_job(self, device: str, num_threads: int) -> ExpansionJob:
        """A job whose first task compiles its kernels."""
        kind: type[ExpansionJob] = self.plan.job_kind or ExpansionJob
        return kind(self, device, num_threads)

    def open(self, device: str, num_threads: int) -> ExpansionJob:
        job = self.cold_job(device, num_threads)
        job.warm_up()
        return job


class ExpansionJob(Job):
    """Expands samples on one device, with ``threads`` threads at most."""

    def __init__(self, spec: ExpansionSpec, device: str, num_threads: int) -> None:
        self._spec = spec
        self._plan = spec.plan
        self._threads = num_threads
        self._pool = Threads(num_threads, "variegate-expand") if num_threads > 1 else None
        self._augmenter = Augmenter(spec.plan.transform, device, spec.plan.seed, num_threads=num_threads, layout="NHWC")
        self._notes: deque[str] = deque()
        self._index: EntropyIndex | None = None
        try:
            self._index = None if spec.index is None else EntropyIndex(spec.index)
        except (DamagedIndexError, OSError) as error:  # nothing but time depends on it
            warnings.warn(f"the index of JPEG files is not used: {error}", stacklevel=2)
        if spec.is_alone:  # warnings are given back with the results, instead of being printed
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_, **__: self._notes.append(str(message))

    def warm_up(self) -> None:
        """Compile kernels (or load them) before a task has to show that it gets on."""
        image = np.random.default_rng(0).integers(0, 256, (256, 256, 3)).astype(self._plan.depth.dtype)
        with suppress(Exception):  # it may well take other images than this one; if it takes none, tasks will say so
            for copy in range(2):
                self._augmenter([image] * 8, ids=list(range(8)), copy=copy, partners="batch")

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        """Write a part. Of less than a part, as after a crash, return ``ItemOutputs`` for ``join``.

        Raises FatalError if outputs cannot be written.
        """
        groups = self._groups(items, beat)
        if self._spec.storage is not None and items == self._plan.items_of(items.start // self._plan.items_per_part):
            return self._write_part(self._spec.storage, items, groups)
        made = dict(pair for group in groups for pair in group)
        failed = {item: found for item, found in made.items() if isinstance(found, str)}
        return Result([None if item in failed else made[item] for item in items], failed)

    def join(self, items: range, payload: Any, result: Result, announce: Callable[[int], None]) -> Result:
        """Write a part that was made in pieces."""
        storage = self._spec.storage
        if storage is None or any(isinstance(output, PartReport) for output in result.outputs):
            return result
        pairs = zip(items, result.outputs, strict=True)
        return self._write_part(storage, items, iter([[(item, result.failed.get(item, made)) for item, made in pairs]]))

    def _write_part(self, storage: Storage, items: range, groups: Iterator[list[tuple[int, Made]]]) -> Result:
        """-> a ``PartReport`` instead of the first output."""
        failed: dict[int, str] = {}
        try:
            with self._plan.open_part(storage, items.start // self._plan.items_per_part, self._spec.labels) as writer:
                for group in groups:
                    failed |= {item: found for item, found in group if isinstance(found, str)}
                    if failed and self._spec.is_strict:
                        break
                    writer.add(group, self._map, self._threads)
                else:
                    writer.commit()
        except OSError as error:  # an output that cannot be written here can be written nowhere
            raise FatalError(str(error)) from error
        notes = tuple(self._notes.popleft() for _ in range(len(self._notes)))
        return Result([PartReport(failed, notes)] + [None] * (len(items) - 1), {})

    def _groups(self, items: range, beat: Callable[[], None]) -> Iterator[list[tuple[int, Made]]]:
        """Items in their order, as many at a time as fit into memory."""
        group: list[DecodedItem] = []
        size = 0
        for index, wanted, found in self._read(items):
            beat()
            if isinstance(found, DecodeError):
                group += [DecodedItem(item, index, None, failure=found.reason) for item in wanted]
                continue
            group += [DecodedItem(item, index, found) for item in wanted]
            size += found.nbytes
            if size >= _GROUP_BYTES:
                yield self._make(group, beat)
                group = []
                size = 0
        yield self._make(group, beat)

    def make(self, index: int, copy: int) -> CopyOutput:
        """Make a single output. Raises DecodeError, or ValueError where it is not taken."""
        found = self._decode(index)
        if isinstance(found, DecodeError):
            raise found
        one = DecodedItem(self._plan.item_of(index, copy), index, found)
        self._encode_copy([one], copy, *self._augment([one], copy))
        if one.failure:
            raise ValueError(one.failure)
        return one.outputs[0]

    def _read(self, items: range) -> Iterator[tuple[int, list[int], Decoded | DecodeError]]:
        """(index, items, pixels and label or what went wrong) of every sample, decoded ahead by all threads."""
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
                largest = max(largest, found.nbytes)
            yield index, wanted, found

    def _decode(self, index: int) -> Decoded | DecodeError:
        """Decode a sample with its partners; the sample replaces unreadable partners."""
        own = self._decode_alone(index)
        if isinstance(own, DecodeError):
            return own
        partners = self._plan.partners(np.array([index], np.int64))[0].tolist()
        found = list(map(self._decode_alone, partners))
        return own._replace(partners=[own if isinstance(other, DecodeError) else other for other in found])

    def _decode_alone(self, index: int) -> Decoded | DecodeError:
        """Try again after a failure: a network may answer the next time."""
        for _ in range(_READS):
            found = self._try_to_decode(index)
            if not isinstance(found, DecodeError):
                break
        return found

    def _try_to_decode(self, index: int) -> Decoded | DecodeError:
        source = self._plan.source
        try:
            with self._reading():
                data, label = item = source.read(index)
            if self._spec.stamps is not None:
                check_read(self._spec.stamps, source, index, len(data))
            with self._reading():
                image, file = self._open(data, str(source.name(index)))
            if isinstance(image, np.ndarray):
                check_side(str(source.name(index)), *image.shape[:2])
                image = in_depth(image, self._plan.depth, str(source.name(index)))
        except DecodeError as error:
            return error
        except MemoryError:
            raise
        except Exception as error:  # whatever a data set or a storage raises for this sample; the next may be good
            return DecodeError(str(source.name(index)), f"cannot be read ({type(error).__name__}: {error})")
        if self._plan.is_sharded and self._spec.storage is not None:
            try:
                self._spec.labels.check(label, "label")
            except ValueError as error:
                return DecodeError(str(source.name(index)), str(error))
        return Decoded(self._plan.sample_id(index), image, label, (), file, self._targets(item, index))

    def _reading(self) -> AbstractContextManager[None]:
        return read_in(self._plan.depth, self._spec.noted, self._plan.dicom)

    def _targets(self, item: Any, index: int) -> Mapping[str, Any] | None:
        """The targets of an item; None without annotations."""
        return None

    def _open(self, data: Any, name: str) -> tuple[Image_HWC | bytes, Any]:
        """Pixels, or the file where the index can cut crops out of it; and ``Decoded.file``. Raises DecodeError."""
        channels = self._plan.channels
        if channels is None and isinstance(data, bytes) and self._index is not None and self._index.can_cut(data):
            check_side(name, *checked_header(data, name).oriented_size)
            return data, None
        if isinstance(data, np.ndarray):
            return in_channels(data, channels, name), None
        return read_image(data, name, channels=channels), None

    def _make(self, group: list[DecodedItem], beat: Callable[[], None]) -> list[tuple[int, Made]]:
        """Augment and encode. If a copy of an item fails, the item does."""
        copies_of = self._plan.copies_of
        for copy in sorted({copy for one in group for copy in copies_of(one.item)}):
            if todo := [one for one in group if copy in copies_of(one.item) and not one.failure]:
                self._make_copy(todo, copy)
            beat()
        return [(one.item, one.failure or ItemOutputs(tuple(one.outputs), one.decoded.label)) for one in group]

    def _make_copy(self, group: list[DecodedItem], copy: int) -> None:
        try:
            result = self._augment(group, copy)
        except Exception as error:
            if is_device_error(error):
                raise
        else:
            self._encode_copy(group, copy, *result)
            return
        alone = try_each(group, lambda one: self._augment([one], copy), lambda error: not is_device_error(error))
        for one, made in alone:
            if isinstance(made, Exception):
                kind = "" if isinstance(made, ValueError) else f"{type(made).__name__}: "
                one.failure = f"not taken by the transform: {kind}{made}"
            else:
                self._encode_copy([one], copy, *made)

    def _augment(self, group: list[DecodedItem], copy: int) -> tuple[Program, list[Image_HWC]]:
        every, given = self._together(group, copy)
        labels = [sample.label for sample in every]
        images = [sample.image for sample in every]
        if all(isinstance(label, (int, np.integer)) for label in labels):
            given["conditions"] = {"label": labels}
        if any(isinstance(image, bytes) for image in images):
            batch = EncodedBatch(images, lambda i: str(every[i].id))
            program = self._augmenter.program([tuple(shape) for shape in batch.shapes.tolist()], **given)
            outputs = self._augmenter.decode_and_run(batch, **given, index=self._index)
        else:
            program = self._augmenter.program(images, **given)
            outputs = self._augmenter.run(program, images)
        return program, [output.cpu().numpy() for output in outputs]

    def _together(self, group: list[DecodedItem], copy: int) -> tuple[list[Decoded], dict[str, Any]]:
        """The samples of a group, then their partners; and the augmenter's arguments besides images."""
        samples = [one.decoded for one in group]
        every = samples + [partner for sample in samples for partner in sample.partners]
        given: dict[str, Any] = {"ids": [sample.id for sample in every], "epoch": self._plan.epoch, "copy": copy}
        if len(every) > len(samples):
            given["partners"] = np.arange(len(samples), len(every)).reshape(len(samples), -1)
        return every, given

    def _encode_copy(
        self, group: list[DecodedItem], copy: int, program: Program | None, images: list[Image_HWC]
    ) -> None:
        """Adds to ``outputs`` of each item, or sets its ``failure``."""

        def encode(each: tuple[DecodedItem, Image_HWC, dict[str, Any]]) -> None:
            try:
                each[0].outputs.append(self._encode(*each))
            except ValueError as error:
                each[0].failure = str(error)

        rows = []
        for number, (one, image) in enumerate(zip(group, images, strict=True)):
            sample = one.decoded
            operations = [] if program is None else _with_labels(operations_of(program, number), sample)
            rows.append(self._plan.written_row(one.index, sample.id, copy, sample.label, image.shape, operations))
        self._map(encode, list(zip(group, images, rows, strict=True)))

    def _encode(self, one: DecodedItem, image: Image_HWC, row: dict[str, Any]) -> CopyOutput:
        """Complete the row. Raises ValueError for a picture that the format cannot hold."""
        data = encode_image(image, self._plan.format, self._plan.quality)
        return CopyOutput(row | digest_columns(data), data)

    def _map(self, function: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
        return list(map(function, values) if self._pool is None else self._pool.map(function, values))


def digest_columns(data: bytes, prefix: str = "") -> dict[str, Any]:
    """Columns of a row: number of bytes and checksum of a file."""
    return {f"{prefix}sha256": hashlib.sha256(data).hexdigest(), f"{prefix}bytes": len(data)}


def _with_labels(operations: list[dict[str, Any]], sample: Decoded) -> list[dict[str, Any]]:
    """Add the partners' labels if labels are classes: with the shares they make the output's label."""
    known = {partner.id: partner.label for partner in sample.partners}
    for operation in operations:
        for chain in operation.get("chains", ()):
            if isinstance(label := known.get(chain.get("id")), (int, np.integer)):
                chain["label"] = int(label)
    return operations
