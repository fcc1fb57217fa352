"""WebDataset shards: tar archives with an image, a ``.cls`` and a ``.json`` for each key, read and written.

With annotations, boxes, key points and masks are in further members (``7.json``, ``7.txt``, ``7.png`` of ``7.jpg``).
All members of a sample are read at once, and written under the names and in the form that the source has them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from variegate.data.annotated import records
from variegate.data.annotated.folders import text_of
from variegate.data.annotated.frames import Size, StoredImage, TargetStore
from variegate.data.annotated.objects import AnnotationErrors, split_key
from variegate.data.annotated.options import check_options
from variegate.data.base import SourceError, StoredFile, check_on_error, digest_of, summarize_names
from variegate.data.kinds import is_array_name, is_image_name
from variegate.data.labels import check_classes, class_names_beside
from variegate.data.reading import FileVersion, read_range
from variegate.data.samples import Samples, Store, concat
from variegate.data.sharded import ShardedSource
from variegate.data.shards import Labels, Record, Shard
from variegate.data.storage import Storage
from variegate.data.tar.copies import ShardCopies
from variegate.data.tar.index import ShardIndex, empty_index, find_index, first_is_labelled
from variegate.data.tar.walk import (
    SEVERAL_IMAGES,
    LabelKind,
    ShardFailure,
    notes_of_walks,
    read_members,
    resolve_label,
    size_error,
    split_name,
)
from variegate.data.yolo import objects_of_texts, yolo_rows
from variegate.errors import DecodeError
from variegate.io.amounts import pluralize
from variegate.io.files import StrPath
from variegate.io.location import Location, LocationLike, relative_names
from variegate.threads import computed_once

_INDEXING_THREADS = 16
_NO_LABELS = "no labels"
_FIRST_RECORDS = 100  # the form of the first records applies to all
_USES = ("objects", "rows", "mask")


class TarStore(Store):
    """Images in shards, by the columns ``offsets`` and ``sizes``, and their members by ``begins`` and ``ends``."""

    def __init__(self, copies: ShardCopies) -> None:
        self._copies = copies

    def digest(self, samples: Samples) -> str:
        assert isinstance(samples.label, np.ndarray)
        parts: list[str | bytes] = ["\0".join(samples.classes)]
        start = 0
        for file, name in zip(samples.files, relative_names([file.location for file in samples.files]), strict=True):
            end = start + file.samples
            # A row that a shard broke off in has no image.
            has_image = samples.columns["offsets"][start:end] >= 0
            members = samples.path[start:end].filter(pa.array(has_image)).to_pylist()
            parts += [f"\0{name}\0{file.samples}\0", b"".join(member + b"\0" for member in members)]
            parts += [samples.columns["sizes"][start:end][has_image].tobytes(), samples.label[start:end].tobytes()]
            start = end
        return digest_of(*parts)

    def read(self, samples: Samples, row: int) -> bytes:
        """The bytes of the image file. Raises DecodeError naming shard and member."""
        return self._read(samples, row, samples.columns["offsets"].item(row), samples.columns["sizes"].item(row))

    def read_members(self, samples: Samples, row: int) -> dict[str, bytes]:
        """All members of a sample. Raises DecodeError naming shard and member."""
        begin = samples.columns["begins"].item(row)
        size = samples.columns["ends"].item(row) - begin
        return read_members(self._read(samples, row, begin, size, "its members are "), str(samples.row_name(row)))

    def _read(self, samples: Samples, row: int, offset: int, size: int, what: str = "") -> bytes:
        name = str(samples.row_name(row))
        if problem := size_error(size):
            raise DecodeError(name, f"{what}{problem}")
        file, _ = samples.file_of(row)
        open_copy = None
        if file.location.is_url or file.copy_size:
            version = FileVersion(file.size, file.version)
            open_copy = partial(self._copies.open, file.location, version, fetch=file.copy_size > 0)
        return read_range(file.location, offset, size, file.copy_size or file.size, name, open_copy)


class _Rules(NamedTuple):
    """Rules by which indexed shards become Samples. ``members``: members to read besides images, None for labels
    alone."""

    classes: tuple[str, ...]
    on_error: str
    copies: ShardCopies
    members: Members | None

    def samples(self, shard: Location, index: ShardIndex, is_labelled: bool, number: int) -> Samples:
        """The samples of a shard, the ``number``-th; one more if it broke off. ``is_labelled``: each needs a label."""
        numbers = {name: label for label, name in enumerate(self.classes)}
        labels = np.where(index.kinds == LabelKind.NUMBER, index.values, -1)
        broken: dict[int, str] = {}
        # Plain numbers, which most data sets have and nothing else, are resolved all at once.
        doubtful = np.arange(len(index)) if self.classes else np.flatnonzero(index.kinds != LabelKind.NUMBER)
        for position in [] if self.members else doubtful.tolist():
            key, _ = split_name(index.name(position)) or ("", "")
            labels[position], problem = resolve_label(index.label(position), key, numbers, is_labelled)
            if problem:
                broken[position] = problem
        names = ("offsets", "sizes", *(("begins", "ends") if self.members else ()))
        columns = {name: getattr(index, name) for name in names}
        path = index.names.cast(pa.large_binary())
        if index.failure:
            member = index.failure.member
            last = None if member is None else member.encode("utf-8", "surrogateescape")
            path = pa.concat_arrays([path, pa.array([last], pa.large_binary())])
            labels = np.append(labels, -1)
            columns = {name: np.append(column, -1) for name, column in columns.items()}
            broken[len(index)] = index.failure.sentence
        return Samples(
            place=str(shard),
            size=len(labels),
            store=TarStore(self.copies),
            classes=() if self.members else self.classes,
            path=path,
            files=[StoredFile(shard, len(labels), *index.version, index.copy_size)],
            label=labels,
            first_shard=number,
            columns=columns,
            broken=broken,
            is_remote=shard.is_url,
        )

    def finished(self, samples: Samples, indexes: Sequence[ShardIndex], not_kept: Sequence[str] = ()) -> Samples:
        """Add notes on the shards, and targets."""
        notes = _notes_of(samples, indexes, not_kept)
        samples = replace(samples, remarks=notes)
        return samples if self.members is None else self.members.over(samples)

    def open_all(self, shards: Sequence[Location]) -> Samples:
        """Raises SourceError."""
        with ThreadPoolExecutor(min(_INDEXING_THREADS, len(shards)), "variegate-index") as pool:
            try:
                found = list(pool.map(self._index, shards))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        indexes = [index for index, _ in found]
        first = next((index for index in indexes if len(index)), None)
        if first is None:
            pairs = zip(shards, indexes, strict=True)
            reasons = [f"{shard}: {index.failure.reason}" for shard, index in pairs if index.failure]
            raise SourceError(f"no complete sample in {pluralize(len(shards), 'shard')}: {summarize_names(reasons, 3)}")
        numbered = enumerate(zip(shards, indexes, strict=True))
        parts = [self.samples(*one, first.is_labelled, number) for number, one in numbered]
        not_kept = [str(shard) for shard, (_, is_kept) in zip(shards, found, strict=True) if not is_kept]
        return self.finished(concat(parts), indexes, not_kept)

    def _index(self, shard: Location) -> tuple[ShardIndex, bool]:
        """A shard's index, empty for one that cannot be read unless ``on_error`` is "raise"."""
        try:
            found = find_index(shard, self.on_error, self.copies)
            assert found is not None
            return found
        except SourceError as error:
            if self.on_error == "raise":
                raise
            return empty_index(ShardFailure(None, error.reason(str(shard)), is_transient=True)), True


def _notes_of(samples: Samples, indexes: Sequence[ShardIndex], not_kept: Sequence[str]) -> list[str]:
    """Remarks on shards; ``not_kept``: names of those whose index is in no file."""
    shards = [str(file.location) for file in samples.files]
    counts = [(shard, index.counts, index.failure) for shard, index in zip(shards, indexes, strict=True)]
    lines = notes_of_walks(counts)
    number = sum(map(len, indexes))
    unlabelled = sum(int(np.sum(index.kinds == LabelKind.NONE)) for index in indexes)
    if unlabelled == number:
        lines.append(f"{_NO_LABELS}: no sample has a .cls or .json member with one; all labels are -1")
    elif unlabelled:
        lines.append(f"without a label: {unlabelled:,} of {pluralize(number, 'sample')}")
    wrong = [row for row in samples.broken if samples.columns["offsets"][row] >= 0]
    if wrong:
        first = f"{samples.row_name(wrong[0])}: {samples.broken[wrong[0]]}"
        lines.append(f"invalid labels: {pluralize(len(wrong), 'sample')}; {first}")
    if not_kept:
        lines.append(f"the index could not be written, and is made at every start: {summarize_names(not_kept)}")
    return lines


class TarShards(ShardedSource):
    """Tar archives, plain or gzip'ed, opened when an epoch needs them. Samples, labels and ids are those by index."""

    def __init__(self, shards: Sequence[Location], rules: _Rules) -> None:
        super().__init__(shards, rules.classes, rules.on_error)
        self.has_targets = self.has_edges = rules.members is not None
        self.has_image_labels = rules.members is None
        self._rules = rules

    @computed_once
    def fingerprint(self) -> str:
        of_shards = super().fingerprint
        members = self._rules.members
        return of_shards if members is None else members.fingerprint(of_shards)

    def _open(self, number: int, fetch: bool) -> Samples | None:
        rules = self._rules
        shard = self.locations[number]
        is_labelled = rules.members is None and self._is_labelled
        found = find_index(shard, rules.on_error, rules.copies, fetch)
        if found is None:
            return None
        index, _ = found
        if fetch and (shard.is_url or index.copy_size):
            rules.copies.fetch(shard, index.version)
        return rules.finished(rules.samples(shard, index, is_labelled, number), [index])

    def _open_all(self) -> Samples:
        return self._rules.open_all(self.locations)

    @computed_once
    def _is_labelled(self) -> bool:
        """True if the data set's first sample has a label, so that others need one."""
        for shard in self.locations:
            with suppress(SourceError, DecodeError):
                if (found := first_is_labelled(shard, self._rules.copies)) is not None:
                    return found
        return False


def open_tar(
    files: Sequence[LocationLike],
    *,
    stream: bool | None = None,
    on_error: str = "raise",
    classes: Sequence[str] | None = None,
    cache_dir: StrPath | None = None,
    cache_limit: int | None = None,
    members: Members | None = None,
) -> Samples | TarShards:
    """Open tar archives: their samples by index, or shards that are opened in epochs (``stream``; None: if they are
    remote), with class names from the file next to them.

    Each shard is read once and its index saved: next to it (``train-00.tar.index``), or in the cache folder, which
    holds copies of remote and gzip'ed shards. A sample is a key (the name up to the first dot of the base name) with an
    image member; its label is in its ``.cls`` member, or under "label", "cls" or "class" in its ``.json`` member.

    ``on_error="skip"``: of shards that are cut off or cannot be read the complete samples are listed, and one entry
    more, whose ``read`` raises the DecodeError. Raises SourceError for them otherwise, and where nothing is listed.
    """
    check_on_error(on_error)
    shards = _sorted_shards(files)
    names = class_names_beside(shards) if classes is None else classes
    names = members.reader.fields.classes if members is not None else names
    rules = _Rules(tuple(names or ()), on_error, ShardCopies(cache_dir, cache_limit), members)
    is_streamed = any(shard.is_url for shard in shards) if stream is None else stream
    return TarShards(shards, rules) if is_streamed else rules.open_all(shards)


def _sorted_shards(shards: Sequence[LocationLike]) -> list[Location]:
    """Shards in the order of their numbers. Raises SourceError for an empty list or a duplicate."""
    locations = sorted((Location.parse(shard, chain=True) for shard in shards), key=Location.address)
    if not locations:
        raise SourceError("no shards given; expected at least one .tar file")
    for one, other in pairwise(locations):
        if one == other:
            raise SourceError(f"{one}: given twice; each shard is expected once")
    return locations


class Members(NamedTuple):
    """The extensions of the members that hold a JSON record, YOLO's rows, or a mask; ``points``: of a row."""

    objects: str | None
    rows: str | None
    mask: str | None
    points: tuple[int, int] | None
    reader: records.RecordReader

    def over(self, images: Samples) -> Samples:
        """Images of shards, with targets from these members. Labels of the images are not read."""
        store = MemberStore(self.reader.fields.exif, images, self)
        targets = records.targets_of(self.reader.fields)
        return replace(images, store=store, layout="webdataset", layout_record=store.layout_record, **targets)

    def fingerprint(self, of_shards: str) -> str:
        return digest_of(f"{of_shards}\0{self[:4]}\0{self.reader.fields.digest_text}")

    def image_among(self, extensions: Iterable[str]) -> str | None:
        """The extension of the image, plain ones first; None without an image."""
        others = [one for one in extensions if one not in self[:3]]
        images = [one for one in others if is_image_name(f".{one}")] or [
            one for one in others if is_array_name(f".{one}")
        ]
        return next((one for one in images if "." not in one), images[0] if images else None)

    def targets(
        self, content: Callable[[str], tuple[bytes, str]], rows: bytes, name: str, number: int, size: Size
    ) -> dict[str, Any]:
        """``content``: returns a member and its name. ``number``: the sample's id. Raises DecodeError."""
        if self.objects is not None:
            text, member = content(self.objects)
            try:
                record, _ = records.unwrapped(json.loads(text))
            except (ValueError, RecursionError) as error:
                raise DecodeError(member, f"no JSON: {' '.join(str(error).split())}") from None
            return self.reader.targets(number, record, size, member)
        if self.rows is None:
            return {}
        errors = AnnotationErrors("skip")
        classes = self.reader.fields.classes
        objects = objects_of_texts(
            [text_of(rows, name)], classes, self.points, errors, lambda key: f"line {split_key(key)[1]}"
        )
        self.reader.count(number, errors, name)
        return objects.targets(0, size, None)


class MemberStore(TargetStore):
    """Images of shards with targets in further members."""

    def __init__(self, exif: str | None, images: Samples, members: Members) -> None:
        super().__init__(exif)
        assert isinstance(images.store, TarStore)
        self._images = images
        self._shards = images.store
        self._members = members

    def stored_image(self, samples: Samples, row: int) -> StoredImage:
        name = str(samples.row_name(row))
        number = int(samples.ids_of_rows(np.array([row]))[0])
        contents = self._shards.read_members(samples, row)
        members = self._members
        key, _ = split_name(samples.text(samples.path, row)) or ("", "")
        image = members.image_among(contents)
        if image is None:
            raise DecodeError(name, f"no image: {key} has a mask alone")

        def content(extension: str) -> tuple[bytes, str]:
            if extension not in contents:
                raise DecodeError(name, f"no member {key}.{extension} next to it")
            return contents[extension], f"{name}: {key}.{extension}"

        # An image without rows has no objects, as in YOLO's folders.
        rows = contents.get(members.rows or "", b"")
        targets = partial(members.targets, content, rows, f"{name}: {key}.{members.rows}", number)
        mask = None if members.mask is None else content(members.mask)
        place = name.rpartition(":")[0] or name
        return StoredImage(contents[image], name, place, targets=targets, mask=mask)

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
            with suppress(Exception):  # it is named when it is read
                yield json.loads(self._shards.read_members(samples, row)[extension])

    def notes(self) -> list[str]:
        """Without those on labels of images, and on masks, which are images where nobody says that they are masks."""
        odd = (_NO_LABELS, *([SEVERAL_IMAGES] if self._members.mask else []))
        notes = [note for note in self._images.notes() if not any(what in note for what in odd)]
        return [*notes, *self._members.reader.notes()]


def open_members(
    files: Sequence[Location], annotations: Mapping[str, Any], on_error: str, classes: Sequence[str] | None, **more: Any
) -> Samples | TarShards:
    """``more``: as of ``open_tar``. Raises SourceError."""
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
    return open_tar(files, on_error=on_error, classes=known, members=members, **more)


_BLOCK = 512
_END = bytes(2 * _BLOCK)
_MOST_BYTES = 8**11


class WebDatasetShard(Shard):
    """``<key>.cls`` holds the label (-1 for a missing label), ``<key>.json`` the sample's id, name, class and copy.
    Packed samples have key and label instead of a copy.

    The run writes the names of the classes to ``classnames.txt``, where ``open_source`` looks for them. Headers are
    plain ustar without times and owners.
    """

    def _add(self, record: Record, label: Any) -> None:
        metadata: dict[str, Any] = {"id": record.id, "copy": record.copy}
        if record.copy is None:
            metadata = {"key": record.key, "id": record.id, "label": label}
        metadata |= {"source": record.source, "class": record.class_name}
        self._member(record.member, record.data)
        self._member(f"{record.key}.cls", str(label).encode())
        self._member(f"{record.key}.json", json.dumps(metadata).encode())

    def _finish(self) -> None:
        self._writer.file.write(_END)

    def _member(self, name: str, data: bytes) -> None:
        file = self._writer.file
        file.write(tar_header(name, len(data)))
        file.write(data)
        file.write(bytes(-len(data) % _BLOCK))


def tar_header(name: str, size: int) -> bytes:
    """The header of a regular file. Raises ValueError for names beyond 100 ASCII characters, and for 8 GiB and more."""
    if len(name) > 100 or not name.isascii() or size >= _MOST_BYTES:
        raise ValueError(f"{name}: {size:,} bytes; accepted: names of up to 100 ASCII characters, less than 8 GiB")
    begin = name.encode().ljust(100, b"\0") + b"0000644\x000000000\x000000000\0" + b"%011o\x0000000000000\0" % size
    end = b"0" + bytes(100) + b"ustar\x0000" + bytes(247)
    # The checksum counts its own eight bytes as spaces.
    return begin + b"%06o\0 " % (sum(begin) + 8 * 32 + sum(end)) + end


_NO_PNG = (".tif", ".tiff", ".bmp", ".gif", ".jpg", ".jpeg", ".webp")


def check_written(metadata: Mapping[str, Any], image_format: str) -> None:
    """Raises SourceError for what shards of this source cannot hold."""
    is_tar = metadata["format"] == "members"
    if is_tar and metadata["mask"] is not None and mask_member(metadata) == image_format:
        accepted = "jpg, webp"
        raise SourceError(f"format: got {image_format!r}, as the members of masks end; accepted here: {accepted}")
    types = {} if is_tar else metadata["record"]["per_box"]
    if odd := next((name for name, kind in types.items() if kind is None or "<" in kind), None):
        raise SourceError(f"per_box: column {odd!r} is {types[odd]}; accepted, to be written: numbers, bool, string")


def mask_member(metadata: Mapping[str, Any]) -> str:
    """The extension of masks, which are written as PNG."""
    stem, last = os.path.splitext(f".{metadata['mask']}" if "." not in metadata["mask"] else metadata["mask"])
    if not last:
        stem, last = "", stem
    return f"{stem}.png".removeprefix(".") if last in _NO_PNG else str(metadata["mask"])


class AnnotatedTarShard(WebDatasetShard):
    """For each record: an image, its objects in JSON or in YOLO's rows, its mask, and in ``.json`` the sample's id and
    name and the copy."""

    def __init__(self, storage: Storage, name: str, labels: Labels, metadata: Mapping[str, Any]) -> None:
        super().__init__(storage, name, labels)
        self._metadata = metadata
        self._form = records.RecordForm(**metadata["record"])

    def _add(self, record: Record, label: Any) -> None:
        metadata = self._metadata
        beside = record.beside
        texts: dict[str, Any] = {"json": {"id": record.id, "copy": record.copy, "source": record.source}}
        self._member(record.member, record.data)
        if (name := metadata["objects"]) is not None:
            # Include the member's error, if there is room.
            lists = records.named_lists(beside.objects or {}, self._form, beside.size)
            found: Any = records.as_objects(lists) if self._form.is_list else lists
            if self._form.under is not None:
                found = {self._form.under: found}
            texts[name] = found if isinstance(found, list) else texts.get(name, {}) | found
        for name, text in texts.items():
            self._member(f"{record.key}.{name}", json.dumps(text).encode())
        if (name := metadata["rows"]) is not None:
            row = {"height": beside.size[0], "width": beside.size[1]}
            lines = yolo_rows(row, beside.objects, metadata["points"][1] if metadata["points"] else 0)
            self._member(f"{record.key}.{name}", lines.encode())
        if metadata["mask"] is not None:
            self._member(f"{record.key}.{mask_member(metadata)}", beside.mask)
