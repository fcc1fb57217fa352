"""WebDataset shards with objects or masks in members beside the images: ``7.json``, ``7.txt``, ``7.png`` of ``7.jpg``.

All members of a sample are had by one read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from variegate.data.annotated import records
from variegate.data.annotated.folders import mask_of, text_of
from variegate.data.annotated.objects import AnnotationErrors
from variegate.data.annotated.options import check_options
from variegate.data.base import Item, SourceError, digest_of
from variegate.data.labels import NO_LABEL, check_classes, class_names_beside
from variegate.data.samples import Samples, Store
from variegate.data.tar.copies import ShardCopies
from variegate.data.tar.index import NO_LABELS
from variegate.data.tar.members import FileReader
from variegate.data.tar.read import TarShards, TarStore, are_streamed, open_webdataset
from variegate.data.tar.samples import SEVERAL_IMAGES, TarSample, TarSamples, split_name, too_large
from variegate.data.yolo import objects_of_texts
from variegate.errors import DecodeError
from variegate.io.files import StrPath
from variegate.io.location import Location

_FIRST_RECORDS = 100  # of which the form of all is taken
_USES = ("objects", "rows", "mask")


class Members(NamedTuple):
    """The extensions of the members that hold a JSON record, YOLO's rows, or a mask; ``points``: of a row."""

    objects: str | None
    rows: str | None
    mask: str | None
    points: tuple[int, int] | None
    reader: records.RecordReader

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

        def content(extension: str) -> tuple[bytes, str]:
            if extension not in sample.beside:
                raise DecodeError(name, f"no member {key}.{extension} next to it")
            return sample.beside[extension], f"{name}: {key}.{extension}"

        data = sample.data or b""
        targets: dict[str, Any] = {}
        frame = self.reader.frames.of(data, name, name.rpartition(":")[0] or name)
        exif = self.reader.fields.exif
        size = frame.size(exif)
        if self.objects is not None:
            text, member = content(self.objects)
            try:
                record, _ = records.unwrapped(json.loads(text))
            except (ValueError, RecursionError) as error:
                raise DecodeError(member, f"no JSON: {' '.join(str(error).split())}") from None
            targets |= self.reader.targets(number, record, size, member)
        if self.rows is not None:  # an image without such a member has no objects, as in YOLO's folders
            rows = sample.beside.get(self.rows, b"")
            targets |= self._of_rows(rows, size, f"{name}: {key}.{self.rows}", number)
        if self.mask is not None:
            targets["mask"] = mask_of(*content(self.mask), frame, exif)
        return Item(data, NO_LABEL, self.reader.frames.displayed(targets, frame))

    def _of_rows(self, content: bytes, size: tuple[int, int], name: str, number: int) -> dict[str, Any]:
        errors = AnnotationErrors("skip")
        texts = [text_of(content, name)]
        objects = objects_of_texts(texts, self.reader.fields.classes, self.points, errors, lambda key: f"line {key[1]}")
        self.reader.count(number, errors, name)
        return objects.targets(0, size, None)

    def over(self, images: Samples) -> Samples:
        """Images of shards, with what these members hold as targets."""
        store = MemberStore(images, self)
        targets = records.targets_of(self.reader.fields)
        return replace(images, store=store, layout="webdataset", layout_record=store.layout_record, **targets)

    def fingerprint(self, of_shards: str) -> str:
        return digest_of(f"{of_shards}\0{self[:4]}\0{self.reader.fields.digest_text}")

    def notes(self, of_shards: Sequence[str]) -> list[str]:
        """Without those on labels of images, and on masks, which are images to whom does not know of them."""
        odd = (NO_LABELS, *([SEVERAL_IMAGES] if self.mask else []))
        notes = [note for note in of_shards if not any(what in note for what in odd)]
        return [*notes, *self.reader.notes()]


class MemberStore(Store):
    """Samples by index. Labels of the images themselves are not read."""

    def __init__(self, images: Samples, members: Members) -> None:
        assert isinstance(images.store, TarStore)
        self._images = images
        self._shards = images.store
        self._members = members

    def read(self, samples: Samples, row: int) -> Item:
        """Raises DecodeError naming the shard and the member."""
        number = int(samples.ids_of_rows(np.array([row]))[0])
        return self._members.item(self._sample(samples, row), str(samples.row_name(row)), number)

    def _sample(self, samples: Samples, row: int) -> TarSample:
        data = self._shards.read_members(samples, row)
        name = str(samples.row_name(row))
        sample = next(iter(TarSamples(FileReader(BytesIO(data), len(data), name), True, self._members.wanted)), None)
        if sample is None:
            raise DecodeError(name, "is not where the index of its shard has it; the shard was replaced")
        return sample

    def digest(self, samples: Samples) -> str:
        return self._members.fingerprint(self._images.fingerprint)

    def layout_record(self, samples: Samples) -> dict[str, Any]:
        """Properties that shards with the same members need, as JSON has it: the members' extensions, and
        ``RecordForm`` of the first record with objects among the first samples."""
        members = self._members
        form = records.form_of_texts(members.reader.fields, self._first_records(samples))
        names = {use: getattr(members, use) for use in _USES}
        points = members.points and list(members.points)
        return {"format": "members", **names, "points": points, "record": asdict(form)}

    def _first_records(self, samples: Samples) -> Iterator[Any]:
        if (extension := self._members.objects) is None:
            return
        for row in range(min(samples.size, _FIRST_RECORDS)):
            with suppress(Exception):  # it is named when its turn comes
                yield json.loads(self._sample(samples, row).beside[extension])

    def notes(self) -> list[str]:
        return self._members.notes(self._images.notes())


def open_members(
    files: Sequence[Location],
    annotations: Mapping[str, Any],
    stream: bool | None,
    on_error: str,
    classes: Sequence[str] | None,
    cache_dir: StrPath | None,
    cache_limit: int | None,
) -> Samples | TarShards:
    """Raises SourceError."""
    options = check_options("members", annotations)
    objects, rows, mask = ((options[name] or "").removeprefix(".").lower() or None for name in _USES)
    if not (objects or rows or mask):
        objects = "json"
    if objects and rows:
        raise SourceError('annotations: got both "objects" and "rows"; accepted: one of them')
    if mask and mask in (objects, rows):
        raise SourceError(f"annotations: got the member {mask!r} twice; accepted: one for each use")
    points = options["points"]
    known = class_names_beside(files) if classes is None else classes
    fields = records.ObjectFields.of(options, check_classes(known))
    reader = records.RecordReader(fields, on_error)
    members = Members(objects, rows, mask, points and (points[0], points[1]), reader)
    copies = ShardCopies(cache_dir, cache_limit)
    if are_streamed(files, stream):
        return TarShards(files, members.reader.fields.classes, on_error, copies, members)
    return members.over(open_webdataset(files, on_error=on_error, copies=copies))
