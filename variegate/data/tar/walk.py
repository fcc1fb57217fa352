"""Read a tar archive in one pass: its members, and their grouping to samples with labels.

Headers are parsed by the standard library's tarfile. tarfile treats a damaged or truncated header as the end of the
archive. Every end is therefore checked here: only the end of the file, or a block of zeros, is accepted.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from io import BufferedReader, BytesIO, FileIO
from typing import NamedTuple, cast

from variegate.data.base import summarize_names, truncate
from variegate.data.kinds import ARRAY_EXTENSIONS, IMAGE_EXTENSIONS, is_array_name, is_image_name, is_system_path
from variegate.errors import DecodeError, one_line
from variegate.io.amounts import format_limit, pluralize
from variegate.io.files import MOST_BYTES


class FileReader:
    """A local file, or bytes. Skipping reads nothing, and small reads share a block. ``at``: bytes passed."""

    def __init__(self, file: FileIO | BytesIO, size: int, name: str) -> None:
        self.at = 0
        self._size = size
        self._name = name
        self._file = BufferedReader(cast(FileIO, file), 2048)

    def read(self, size: int) -> bytes:
        try:
            data = self._file.read(min(size, self._size - self.at))
        except OSError as error:
            raise DecodeError(self._name, f"cannot be read ({error.strerror or error})") from error
        self.at += len(data)
        return data

    def skip(self, size: int) -> int:
        passed = min(size, self._size - self.at)
        self._file.seek(passed, os.SEEK_CUR)
        self.at += passed
        return passed

    def close(self) -> None:
        """Close the file as well."""
        self._file.close()


BLOCK = 512
# The longest extended header that is read; names are some hundred bytes.
_MOST_EXTENDED = 1 << 20
_ZEROS = bytes(BLOCK)
_PACKED = {
    b"\x1f\x8b": "compressed by gzip",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"PK\x03\x04": "a zip archive",
    b"PAR1": "a Parquet file",
}


class Member(NamedTuple):
    name: str
    offset: int  # of its content in the archive
    size: int


class TarDamage(Exception):
    """An archive that cannot be read on; ``reason`` reads well after its name, ``member`` is the one affected."""

    def __init__(self, reason: str, member: str | None = None) -> None:
        self.reason = reason
        self.member = member
        super().__init__(reason)


class _HeaderFile:
    """Stand-in for the TarFile of ``TarInfo.fromtarfile``: a header, and the headers that it extends, from a reader."""

    encoding, errors = "utf-8", "surrogateescape"

    def __init__(self, reader: FileReader, block: bytes) -> None:
        self.fileobj = self
        self.offset = 0  # set by tarfile: where the next header begins
        self.pax_headers: dict[str, str] = {}
        self.block = block  # the last that was read
        self._reader = reader
        self._is_begun = False

    def tell(self) -> int:
        return self._reader.at

    def read(self, size: int) -> bytes:
        if self._is_begun:
            if not 0 <= size <= _MOST_EXTENDED:
                raise TarDamage(f"damaged at byte {self._reader.at:,}: an extended header of {size:,} bytes")
            self.block = self._reader.read(size)
        self._is_begun = True
        return self.block


def _plain_file(block: bytes) -> tuple[str, int] | None:
    """Parse the header of a plain file, as most are: name and size. None for headers that tarfile parses, which takes
    twice as long."""
    try:
        if len(block) < BLOCK or block[156] not in b"0\0":
            return None
        if int(block[148:156].rstrip(b" \0"), 8) != _checksum(block):
            return None
        size = int(block[124:136].rstrip(b" \0"), 8)
        name = _text(block[:100])
    except ValueError:
        return None
    if block[345]:
        if block[257:263] != b"ustar\0":
            return None
        name = f"{_text(block[345:500])}/{name}"
    return None if size < 0 or name.endswith("/") else (name, size)


def _checksum(block: bytes) -> int:
    """The checksum of a header, whose own eight bytes count as spaces."""
    return sum(block) - sum(block[148:156]) + 8 * 32


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


class TarWalk:
    """Call ``next``, then ``content`` or ``pass_over``, then ``next`` again."""

    def __init__(self, reader: FileReader) -> None:
        self.members = 0
        self.links = 0
        self.has_end_mark = False
        self._reader = reader
        self._last = ""
        self._size = 0
        self._padding = 0
        self._is_cut = False

    def next(self) -> Member | None:
        """The next regular file; None at the end. Raises TarDamage."""
        while not self._is_cut:
            begin = self._reader.at
            block = self._reader.read(BLOCK)
            if not block or block == _ZEROS:
                self.has_end_mark = bool(block)
                return None
            if (plain := _plain_file(block)) is not None:
                self._last, self._size = plain
                self._padding = -self._size % BLOCK
                is_file = True
            else:
                is_file = self._read_header(block, begin)
            self.members += 1
            if is_file:
                return Member(self._last, self._reader.at, self._size)
            self.pass_over()
        return None

    def content(self) -> bytes:
        """The bytes of the member that ``next`` returned, once."""
        data = self._reader.read(self._size)
        self._pass(len(data))
        return data

    def pass_over(self) -> None:
        self._pass(self._reader.skip(self._size))

    def _pass(self, passed: int) -> None:
        if passed < self._size:
            where = f"(byte {passed:,} of {self._size:,})"
            raise TarDamage(f"cut off in the middle of member {self._last} {where}", self._last)
        # If only the padding of the last block is missing, nothing is lost.
        self._is_cut = self._reader.skip(self._padding) < self._padding

    def _read_header(self, block: bytes, begin: int) -> bool:
        """True for a regular file. Raises TarDamage."""
        headers = _HeaderFile(self._reader, block)
        try:
            info = tarfile.TarInfo.fromtarfile(headers)  # type: ignore[arg-type]
        except DecodeError:
            raise
        except (tarfile.TarError, ValueError, LookupError, ArithmeticError, RecursionError):
            # Whatever tarfile meets in a damaged header.
            is_cut = len(headers.block) < BLOCK
            raise self._cut_in_header(headers.block) if is_cut else self._not_a_header(block, begin) from None
        if info.issparse():
            reason = f"member {info.name} is stored as a sparse file, which is not read; write it without --sparse"
            raise TarDamage(reason, info.name)
        ahead = headers.offset - self._reader.at
        size = info.size if info.isreg() else ahead
        if not 0 <= size <= ahead:
            raise self._not_a_header(block, begin)
        self.links += info.islnk() or info.issym()
        self._last = info.name
        self._size = size
        self._padding = ahead - size
        return info.isreg()

    def _cut_in_header(self, block: bytes) -> TarDamage:
        if self.members == 0 and (packed := _packed_as(block)):
            return TarDamage(f"{packed}, not a tar archive")
        where = f"after {self._last}" if self._last else "of its first member"
        return TarDamage(f"cut off in the header {where} (byte {self._reader.at:,})")

    def _not_a_header(self, block: bytes, begin: int) -> TarDamage:
        if self.members:
            return TarDamage(f"damaged at byte {begin:,}: there is no header of a member after {self._last}")
        packed = _packed_as(block)
        return TarDamage(f"{packed}, not a tar archive" if packed else "not a tar archive: it begins with no header")


def _packed_as(block: bytes) -> str | None:
    kind = next((kind for magic, kind in _PACKED.items() if block.startswith(magic)), None)
    if kind is None or not kind.startswith("compressed"):
        return kind
    return f"{kind} (unpack it first; of compressed archives, those of gzip are read)"


_JSON_KEYS = ("label", "cls", "class")
_ACCEPTED = 'accepted: a whole number, or the name of a class where classes=["...", ...] is given'
_ACCEPTED_JSON = f"accepted under {', '.join(_JSON_KEYS)}: a whole number, or the name of a class with classes=[...]"
_MOST_LETTERS = 4096
_INT64 = 1 << 63


class LabelKind(IntEnum):
    """Kinds of labels; index files store these numbers."""

    NONE = 0
    NUMBER = 1
    NAME = 2
    BAD = 3


class Label(NamedTuple):
    """A label before class names are looked up: ``text`` is a class, or the error; ``extension`` its member's."""

    kind: LabelKind
    number: int = -1
    text: str = ""
    extension: str = ""


NO_LABEL = Label(LabelKind.NONE)


def parse_cls(content: bytes, extension: str) -> Label:
    text = content[:_MOST_LETTERS].decode("utf-8", "replace").strip()
    if not text:
        return Label(LabelKind.BAD, text=f"empty; {_ACCEPTED}", extension=extension)
    try:
        return _number(int(text), extension, _ACCEPTED)
    except ValueError:
        return Label(LabelKind.NAME, text=text, extension=extension)


def parse_json(content: bytes, extension: str) -> Label:
    """NO_LABEL without any of the keys: the member then holds something else."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        reason = one_line(error)
        return Label(LabelKind.BAD, text=f"not JSON ({reason}); {_ACCEPTED_JSON}", extension=extension)
    key = next((key for key in _JSON_KEYS if key in value), None) if isinstance(value, dict) else None
    if key is None:
        return NO_LABEL
    found = value[key]
    if type(found) is int:  # JSON's true and false are not numbers
        return _number(found, extension, _ACCEPTED_JSON)
    if isinstance(found, str) and found:
        return Label(LabelKind.NAME, text=found, extension=extension)
    return Label(LabelKind.BAD, text=f"{key} is {truncate(json.dumps(found))}; {_ACCEPTED_JSON}", extension=extension)


def resolve_label(label: Label, key: str, numbers: Mapping[str, int], is_labelled: bool) -> tuple[int, str]:
    """Resolve a label -> (class, "") or (-1, error); ``is_labelled``: each sample needs a label, because the first has
    one."""
    if label.kind == LabelKind.NUMBER:
        if not numbers or -1 <= label.number < len(numbers):
            return label.number, ""
        count = len(numbers)
        return -1, f"label {label.number}; accepted: 0 to {count - 1} for the {count} classes given, or -1 for none"
    problem = label.text
    if label.kind == LabelKind.NAME:
        if label.text in numbers:
            return numbers[label.text], ""
        known = f"none of the classes ({', '.join(list(numbers)[:5])}, ...)" if numbers else "no number"
        problem = f"{truncate(repr(label.text))} is {known}; {_ACCEPTED}"
    elif label.kind == LabelKind.NONE:
        wanted = "no label: the first sample has one, so each needs a .cls member, or a .json one with a label"
        return -1, wanted if is_labelled else ""
    return -1, f"label in {key}.{label.extension}: {problem}"


def _number(number: int, extension: str, accepted: str) -> Label:
    if not -_INT64 <= number < _INT64:
        return Label(LabelKind.BAD, text=f"{truncate(str(number))} is too large; {accepted}", extension=extension)
    return Label(LabelKind.NUMBER, number, extension=extension)


_MOST_LABEL = 16 << 20
SEVERAL_IMAGES = "samples have several images"


class TarSample(NamedTuple):
    """``begin``, ``end``: of all members, with headers."""

    image: Member
    label: Label
    begin: int
    end: int


def size_error(size: int) -> str:
    """The reason to refuse a member of this size in bytes; "" if it is accepted."""
    return f"{size:,} bytes; at most {format_limit(MOST_BYTES)} are read" if size > MOST_BYTES else ""


class ShardFailure(NamedTuple):
    """A premature end of a shard, in the sample ``member`` (None: unknown), or a missing shard."""

    member: str | None
    reason: str
    is_transient: bool = False  # reading failed, which says nothing of the file

    @property
    def sentence(self) -> str:
        return f"the archive is {self.reason}" if self.reason.startswith(("cut off", "damaged")) else self.reason


@dataclass
class ShardCounts:
    """Counts of a walk; complete once it has ended."""

    samples: int = 0
    members: int = 0
    links: int = 0
    without_image: int = 0
    first_without_image: str = ""
    many_images: int = 0
    first_many_images: str = ""
    has_end_mark: bool = True
    size: int = 0


def notes_of_walks(shards: Iterable[tuple[str, ShardCounts, ShardFailure | None]]) -> list[str]:
    """Notes of walks over shards, with the shards' names."""
    walks = list(shards)
    lines = [
        f"{shard}: {failure.reason}; {pluralize(seen.samples, 'complete sample')} before it"
        for shard, seen, failure in walks
        if failure
    ]
    if unmarked := [shard for shard, seen, failure in walks if not (seen.has_end_mark or failure)]:
        lines.append(f"no mark of the end, perhaps cut off between two members: {summarize_names(unmarked)}")
    if count := sum(seen.many_images for _, seen, _ in walks):
        first = next(f"{shard}: {seen.first_many_images}" for shard, seen, _ in walks if seen.many_images)
        lines.append(
            f"{count:,} {SEVERAL_IMAGES}, of which one is taken (the first such: {first}); members "
            "whose names are the same up to the first dot are one sample"
        )
    if count := sum(seen.without_image for _, seen, _ in walks):
        first = next(f"{shard}: {seen.first_without_image}" for shard, seen, _ in walks if seen.without_image)
        lines.append(f"skipped {pluralize(count, 'key')} without an image (the first: {first})")
    if count := sum(seen.links for _, seen, _ in walks):
        lines.append(f"skipped {pluralize(count, 'link')} in archives")
    return lines


def split_name(name: str) -> tuple[str, str] | None:
    """Key and extension: up to, and after, the first dot of the base name. None for names without either, and for
    members that are no part of a data set, such as ``__MACOSX/photo.jpg``."""
    if is_system_path(name):
        return None
    folder, slash, base = name.rpartition("/")
    stem, dot, extension = base.partition(".")
    return (folder + slash + stem, extension) if stem and dot else None


@dataclass
class _Group:
    """The members of one key so far."""

    key: str
    begin: int
    end: int = 0
    image: Member | None = None
    array: Member | None = None  # the image of a sample that has no other
    is_plain: bool = False
    images: int = 0
    cls: Label | None = None
    json: Label | None = None

    @property
    def label(self) -> Label:
        return self.cls or self.json or NO_LABEL

    def add_image(self, member: Member, extension: str) -> None:
        # 7.jpg is the image of sample 7 even after 7.depth.png; of several such, the first is.
        is_plain = "." not in extension
        self.images += 1
        if self.image is None or (is_plain and not self.is_plain):
            self.image = member
            self.is_plain = is_plain


class TarSamples:
    """Iterate once; afterwards ``failure`` is set if the archive broke off, and ``counts`` are complete."""

    def __init__(self, reader: FileReader) -> None:
        self.counts = ShardCounts()
        self.failure: ShardFailure | None = None
        self._reader = reader

    def __iter__(self) -> Iterator[TarSample]:
        walk = TarWalk(self._reader)
        group: _Group | None = None
        try:
            while True:
                begin = self._reader.at
                if (member := walk.next()) is None:
                    break
                parts = split_name(member.name)
                if group is not None and (parts is None or parts[0] != group.key):
                    yield from self._finish(group)
                    group = None
                if parts is None:
                    walk.pass_over()
                    continue
                group = group or _Group(parts[0], begin)
                _read_member(walk, group, member, parts[1])
                group.end = self._reader.at
        except (TarDamage, DecodeError) as error:
            lost = error.member if isinstance(error, TarDamage) else None
            if group is not None and _is_hit(group, error, lost):
                lost = group.image.name if group.image else lost
            elif group is not None:
                yield from self._finish(group)
            self.failure = ShardFailure(lost, error.reason, isinstance(error, DecodeError))
        else:
            if group is not None:
                yield from self._finish(group)
        self.counts.members, self.counts.links = walk.members, walk.links
        self.counts.has_end_mark, self.counts.size = walk.has_end_mark, self._reader.at
        if self.failure is None and self.counts.samples == 0:
            self.failure = ShardFailure(None, _nothing_found(self.counts))

    def _finish(self, group: _Group) -> Iterator[TarSample]:
        counts = self.counts
        image = group.image or group.array
        if image is None:
            counts.first_without_image = counts.first_without_image or group.key
            counts.without_image += 1
            return
        if group.images > 1:
            counts.first_many_images = counts.first_many_images or group.key
            counts.many_images += 1
        counts.samples += 1
        yield TarSample(image, group.label, group.begin, group.end)


def _is_hit(group: _Group, error: TarDamage | DecodeError, lost: str | None) -> bool:
    """True if the damage may have cost this sample a member."""
    if isinstance(error, DecodeError):
        return True
    parts = split_name(lost) if lost else None
    return group.label == NO_LABEL if lost is None else parts is not None and parts[0] == group.key


def _read_member(walk: TarWalk, group: _Group, member: Member, extension: str) -> None:
    """Note an image, or read a label. Raises TarDamage, and leaves the group unchanged."""
    kind = extension.lower()
    is_label = group.cls is None and (kind == "cls" or (kind == "json" and group.json is None))
    if not is_label:
        walk.pass_over()
        if is_image_name(f".{kind}"):
            group.add_image(member, extension)
        elif is_array_name(f".{kind}"):
            group.array = group.array or member
    elif member.size > _MOST_LABEL:
        walk.pass_over()
        if kind == "cls":
            group.cls = Label(LabelKind.BAD, text=f"of {member.size:,} bytes is too large", extension=extension)
    elif kind == "cls":
        group.cls = parse_cls(walk.content(), extension)
    else:
        group.json = parse_json(walk.content(), extension)


def read_members(data: bytes, name: str) -> dict[str, bytes]:
    """The contents of a sample's members, the first of each extension, in small letters. Raises DecodeError."""
    walk = TarWalk(FileReader(BytesIO(data), len(data), name))
    found: dict[str, bytes] = {}
    try:
        while (member := walk.next()) is not None:
            _, extension = split_name(member.name) or ("", "")
            found.setdefault(extension.lower(), walk.content())
    except TarDamage:
        found.clear()
    if not found:
        raise DecodeError(name, "is not where the index of its shard has it; the shard was replaced")
    return found


def _nothing_found(counts: ShardCounts) -> str:
    """Why a shard without a single sample has none."""
    if counts.size == 0:
        return "zero bytes: the file is empty"
    if counts.members == 0:
        return "no images: the archive has no members"
    accepted = " ".join(IMAGE_EXTENSIONS + ARRAY_EXTENSIONS)
    return f"no images in its {pluralize(counts.members, 'member')}; accepted extensions: {accepted}"
