"""WebDataset shards with objects or masks in members beside the images: ``7.json``, ``7.txt``, ``7.png`` of ``7.jpg``.

By index, all members of a sample are had by one read; what is in them is taken as in a stream.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any, ClassVar, NamedTuple

import numpy as np

from variegate.errors import DecodeError
from variegate.formats.annotated.fields import FIELD_OPTIONS, FIRST_RECORDS, ObjectFields, form_of, under_name
from variegate.formats.annotated.folders import mask_beside, size_of
from variegate.formats.annotated.objects import Complaints, ObjectsBuilder, RecordReader, SourceOver
from variegate.formats.annotated.values import POINTS, AnnotationOption, GivenOptions
from variegate.formats.base import Item, SampleName, SourceError, check_index, digest_of
from variegate.formats.labels import NO_LABEL, check_classes
from variegate.formats.reading import read_range
from variegate.formats.tar.index import NO_LABELS
from variegate.formats.tar.labels import class_names_beside
from variegate.formats.tar.members import StreamReader
from variegate.formats.tar.read import TarStream, WebDatasetSource, open_webdataset
from variegate.formats.tar.samples import SEVERAL_IMAGES, TarSample, TarSamples, split_name, too_large
from variegate.formats.yolo.rows import add_rows
from variegate.io.location import Location
from variegate.threads import computed_once


def _is_extension(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip(".")) and "/" not in value and os.sep not in value


_EXTENSION = AnnotationOption(
    *(None, "what follows the key, as 'json', 'mask.png'"), lambda value: value is None or _is_extension(value)
)
MEMBER_OPTIONS = {"objects": _EXTENSION, "rows": _EXTENSION, "mask": _EXTENSION, "points": POINTS, **FIELD_OPTIONS}


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
        size = size_of(data, name)
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
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise DecodeError(name, "not UTF-8; accepted: a text file") from None
        complaints, wrong = Complaints("skip"), []
        builder = ObjectsBuilder(points=self.points[0] if self.points else 0)

        def complain(where: str, what: str) -> None:
            wrong.append(f"{where}: {what}")

        wheres = add_rows(builder, text, self.reader.fields.classes, self.points, 0, "", complain)
        objects = builder.done(np.zeros((1, 2), np.int32), complaints, wheres.__getitem__, is_normalised=True)
        wrong += [complaints.first] * complaints.bad
        self.reader.count(number, wrong, complaints.flat, name)
        return objects.targets(0, size, None)


class AnnotatedShards(SourceOver):
    """Samples by index. Labels of the images themselves are not read."""

    def __init__(self, shards: WebDatasetSource, members: Members) -> None:
        super().__init__(shards, members.reader)
        self._members = members
        self.fingerprint = _fingerprint(shards.fingerprint, members)

    def __repr__(self) -> str:
        return repr(self._images).replace(type(self._images).__name__, type(self).__name__, 1)

    def read(self, index: int) -> Item:
        """Raises DecodeError naming the shard and the member."""
        sample, name = self._sample(index)
        return self._members.item(sample, name, int(self.ids(np.array([index]))[0]))

    def _sample(self, index: int) -> tuple[TarSample, str]:
        """With its name."""
        check_index(index, len(self))
        shard, position = self._images.place(index)
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
        """Properties that shards with the same members need, as JSON has it: the members' extensions, and
        ``RecordForm`` of the first record with objects among the first samples."""
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

    def notes(self) -> list[str]:
        return _notes(self._images.notes(), self._members)


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
    files: Sequence[Location], options: GivenOptions, opening: Mapping[str, Any]
) -> AnnotatedShards | AnnotatedStream:
    """Raises SourceError."""
    on_error = opening["on_error"]
    names = [(options.of(name) or "").removeprefix(".").lower() or None for name in ("objects", "rows", "mask")]
    if not any(names):
        names[0] = "json"
    if names[0] and names[1]:
        raise SourceError('annotations: got both "objects" and "rows"; accepted: one of them')
    if len(given := [name for name in names if name]) > len(set(given)):
        raise SourceError(f"annotations: got the member {given[0]!r} twice; accepted: one for each use")
    points = options.of("points")
    known = opening["classes"] if opening["classes"] is not None else class_names_beside(files)
    fields = ObjectFields.of(options, check_classes(known))
    members = Members(names[0], names[1], names[2], points and (points[0], points[1]), RecordReader(fields, on_error))
    is_remote = any(file.is_url for file in files)
    if is_remote if opening["stream"] is None else opening["stream"]:
        return AnnotatedStream(files, members)
    return AnnotatedShards(open_webdataset(files, on_error=on_error, cache_dir=opening["cache_dir"]), members)


def _record(content: bytes, name: str) -> Any:
    """The objects of a JSON text: itself, or what it has under "objects" or "annotations"."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DecodeError(name, f"no JSON: {' '.join(str(error).split())}") from None
    under = under_name(record)
    return record if under is None else record[under]


def _fingerprint(of_shards: str, members: Members) -> str:
    return digest_of(f"{of_shards}\0{members[:4]}\0{members.reader.fields!r}")


def _notes(of_shards: Sequence[str], members: Members) -> list[str]:
    """Without what is said of labels of images, and of masks, which are images to whom does not know of them."""
    odd = (NO_LABELS, *([SEVERAL_IMAGES] if members.mask else []))
    notes = [note for note in of_shards if not any(what in note for what in odd)]
    return [*notes, *members.reader.notes()]
