"""WebDataset shards with objects or masks in members beside the images: ``7.json``, ``7.txt``, ``7.png`` of ``7.jpg``.

By index, all members of a sample are had by one read; what is in them is taken as in a stream.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.errors import DecodeError
from variegate.formats.annotated.fields import FIELD_OPTIONS, ObjectFields
from variegate.formats.annotated.forms import FIRST_RECORDS, form_of, under_name
from variegate.formats.annotated.objects import Complaints, ObjectsBuilder
from variegate.formats.annotated.records import RecordReader, image_size, mask_beside
from variegate.formats.annotated.yolo import add_row
from variegate.formats.annotated.yolo_data import check_points
from variegate.formats.base import IndexedSource, Item, SampleName, SourceError, StoredFile, check_index
from variegate.formats.labels import NO_LABEL, check_classes
from variegate.formats.reading import read_range
from variegate.formats.tar.labels import class_names_beside
from variegate.formats.tar.listing import NO_LABELS
from variegate.formats.tar.readers import StreamReader
from variegate.formats.tar.samples import SEVERAL_IMAGES, TarSample, TarSamples, split_name, too_large
from variegate.formats.tar.source import TarStream, WebDatasetSource, open_webdataset
from variegate.io.location import Location
from variegate.threads import computed_once

MEMBER_OPTIONS: dict[str, Any] = {"objects": None, "rows": None, "mask": None, "points": None, **FIELD_OPTIONS}


class Members(NamedTuple):
    """The extensions of the members that hold a JSON record, YOLO's rows, or a mask; ``points``: of a row."""

    objects: str | None
    rows: str | None
    mask: str | None
    points: tuple[int, int] | None
    reader: RecordReader

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset(name for name in self[:3] if name)

    def item(self, sample: TarSample, name: str, number: int) -> Item:
        """``number``: the sample's id. Raises DecodeError."""
        key, _ = split_name(sample.image.name) or ("", "")
        if sample.picture is None:
            raise DecodeError(name, f"no image: {key} has a mask alone")
        if problem := too_large(sample.picture.size):
            raise DecodeError(name, problem)
        data = sample.data or b""
        targets: dict[str, Any] = {}
        size = image_size(data, name)
        if self.objects is not None:
            record = _record(self._content(sample, self.objects, key, name), f"{name}: {key}.{self.objects}")
            targets |= self.reader.targets(number, record, size, f"{name}: {key}.{self.objects}")
        if self.rows is not None:
            targets |= self._of_rows(sample.beside.get(self.rows, b""), size, f"{name}: {key}.{self.rows}", number)
        if self.mask is not None:
            content = self._content(sample, self.mask, key, name)
            targets["mask"] = mask_beside(content, f"{name}: {key}.{self.mask}", size)
        return Item(data, NO_LABEL, targets)

    def _content(self, sample: TarSample, extension: str, key: str, name: str) -> bytes:
        try:
            return sample.beside[extension]
        except KeyError:
            raise DecodeError(name, f"no member {key}.{extension} beside it") from None

    def _of_rows(self, content: bytes, size: tuple[int, int], name: str, number: int) -> dict[str, Any]:
        """An image without such a member has no objects, as in YOLO's folders."""
        try:
            lines = content.decode("utf-8-sig").splitlines()
        except UnicodeDecodeError:
            raise DecodeError(name, "not UTF-8; accepted: a text file") from None
        complaints, wheres, wrong = Complaints("skip"), [], []
        builder = ObjectsBuilder(points=self.points[0] if self.points else 0)
        for at, line in enumerate(lines, 1):
            if line.strip():
                try:
                    add_row(builder, line, self.reader.fields.classes, self.points)
                except ValueError as error:
                    wrong.append(f"line {at}: {error}")
                    continue
                builder.images.append(0)
                wheres.append(f"line {at}")
        objects = builder.done(np.zeros((1, 2), np.int32), complaints, wheres.__getitem__, is_normalised=True)
        wrong += [complaints.first] * complaints.bad
        self.reader.count(number, wrong, complaints.flat, name)
        return objects.targets(0, size, None)


class AnnotatedShards(IndexedSource):
    """Samples by index. Labels of the images themselves are not read."""

    has_targets: ClassVar[bool] = True
    has_edges: ClassVar[bool] = True
    has_image_labels: ClassVar[bool] = False

    def __init__(self, shards: WebDatasetSource, members: Members) -> None:
        self._shards, self._members = shards, members
        self.classes, self.is_remote = members.reader.fields.classes, shards.is_remote
        self.fingerprint = _fingerprint(shards.fingerprint, members)

    def __repr__(self) -> str:
        return repr(self._shards).replace(type(self._shards).__name__, type(self).__name__, 1)

    def __len__(self) -> int:
        return len(self._shards)

    def read(self, index: int) -> Item:
        """Raises DecodeError naming the shard and the member."""
        sample, name = self._sample(index)
        return self._members.item(sample, name, int(self.ids(np.array([index]))[0]))

    def _sample(self, index: int) -> tuple[TarSample, str]:
        """With its name."""
        check_index(index, len(self))
        shard, position = self._shards.place(index)
        name = str(self.name(index))
        if position >= len(shard.index):
            raise DecodeError(name, shard.broken[position])
        begin, end = int(shard.index.begins[position]), int(shard.index.ends[position])
        if problem := too_large(end - begin):
            raise DecodeError(name, f"its members are {problem}")
        data = read_range(shard.location, begin, end - begin, shard.index.version.size, name)
        sample = next(iter(TarSamples(StreamReader(BytesIO(data)), True, self._members.wanted)), None)
        if sample is None:
            raise DecodeError(name, "is not where the index of its shard has it; the shard was replaced")
        return sample, name

    @computed_once
    def about(self) -> dict[str, Any]:
        """What shards with the same members need to have, as JSON has it: the members' extensions, and ``RecordForm``
        of the first record with objects among the first samples."""
        members = self._members
        form = form_of(members.reader.fields, self._first_records())
        told = {"rows": members.rows, "points": members.points and list(members.points)}
        return {"format": "members", "objects": members.objects, "mask": members.mask, **told, "record": form.told()}

    def _first_records(self) -> Iterator[Any]:
        if (extension := self._members.objects) is None:
            return
        for index in range(min(len(self), FIRST_RECORDS)):
            with suppress(Exception):  # it is named when its turn comes
                yield json.loads(self._sample(index)[0].beside[extension])

    def name(self, index: int) -> SampleName:
        return self._shards.name(index)

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return self._shards.ids(indices)

    def labels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return np.full(len(indices), NO_LABEL)

    def stored_files(self) -> list[StoredFile]:
        return self._shards.stored_files()

    def notes(self) -> list[str]:
        return _notes(self._shards.notes(), self._members)


class AnnotatedStream(TarStream):
    """Samples one after another: those of ``AnnotatedShards``, with the same ids."""

    has_targets: ClassVar[bool] = True
    has_edges: ClassVar[bool] = True
    has_image_labels: ClassVar[bool] = False

    def __init__(self, shards: Sequence[Location], members: Members) -> None:
        super().__init__(shards, members.reader.fields.classes)
        self._members, self._wanted = members, members.wanted

    @property
    def fingerprint(self) -> str:
        """As of a TarStream, and of what is read beside the images."""
        return _fingerprint(super().fingerprint, self._members)

    def notes(self) -> list[str]:
        return _notes(super().notes(), self._members)

    def _item(self, sample: TarSample, name: SampleName, shard: int, number: int) -> Item | DecodeError:
        try:
            return self._members.item(sample, str(name), number)
        except DecodeError as error:
            return error


def open_members(
    files: Sequence[Location], options: Mapping[str, Any], on_error: str, opening: Mapping[str, Any]
) -> AnnotatedShards | AnnotatedStream:
    """``options``: all of ``MEMBER_OPTIONS``; ``opening``: ``stream``, ``classes`` and ``cache_dir`` of
    ``open_source``. Raises SourceError."""
    names = [_extension(name, options[name]) for name in ("objects", "rows", "mask")]
    if not any(names):
        names[0] = "json"
    if names[0] and names[1]:
        raise SourceError('annotations: got both "objects" and "rows"; accepted: one of them')
    if len(given := [name for name in names if name]) > len(set(given)):
        raise SourceError(f"annotations: got the member {given[0]!r} twice; accepted: one for each use")
    points = check_points(options["points"], "annotations: points")
    known = opening["classes"] if opening["classes"] is not None else class_names_beside(files)
    fields = ObjectFields.check(options, check_classes(known))
    members = Members(names[0], names[1], names[2], points, RecordReader(fields, on_error))
    is_remote = any(file.is_url for file in files)
    if is_remote if opening["stream"] is None else opening["stream"]:
        return AnnotatedStream(files, members)
    return AnnotatedShards(open_webdataset(files, on_error=on_error, cache_dir=opening["cache_dir"]), members)


def _extension(option: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip(".") or "/" in value or os.sep in value:
        raise SourceError(
            f"annotations: {option}: got {value!r}; accepted: what follows the key, as 'json', 'mask.png'"
        )
    return value.removeprefix(".").lower()


def _record(content: bytes, name: str) -> Any:
    """The objects of a JSON text: itself, or what it has under "objects" or "annotations"."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DecodeError(name, f"no JSON: {' '.join(str(error).split())}") from None
    under = under_name(record)
    return record if under is None else record[under]


def _fingerprint(of_shards: str, members: Members) -> str:
    told = f"{of_shards}\0{members[:4]}\0{members.reader.fields!r}"
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _notes(of_shards: Sequence[str], members: Members) -> list[str]:
    """Without what is said of labels of images, and of masks, which are images to whom does not know of them."""
    odd = (NO_LABELS, *([SEVERAL_IMAGES] if members.mask else []))
    notes = [note for note in of_shards if not any(what in note for what in odd)]
    return [*notes, *members.reader.notes()]
