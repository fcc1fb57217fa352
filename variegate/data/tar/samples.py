"""The samples of a shard, by the one walk of indexes and streams: members in a row that share a key, and labels."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from variegate.data.base import cut_off, first_names
from variegate.data.kinds import IMAGE_EXTENSIONS, is_image_name, is_system_path
from variegate.data.tar.members import FileReader, Member, TarDamage, TarWalk
from variegate.errors import DecodeError, one_line
from variegate.io.files import MOST_BYTES, in_words

_JSON_KEYS = ("label", "cls", "class")
_ACCEPTED = 'accepted: a whole number, or the name of a class where classes=["...", ...] is given'
_ACCEPTED_JSON = f"accepted under {', '.join(_JSON_KEYS)}: a whole number, or the name of a class with classes=[...]"
_MOST_LETTERS = 4096
_INT64 = 1 << 63


class LabelKind(IntEnum):
    """Kinds of labels; the numbers stand in index files."""

    NONE = 0
    NUMBER = 1
    NAME = 2
    BAD = 3


class Label(NamedTuple):
    """A label before class names are looked up: ``text`` is a class, or what is wrong; ``extension`` its member's."""

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
    """NO_LABEL where there is none of the keys: the member then holds something else."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        reason = one_line(error)
        return Label(LabelKind.BAD, text=f"not JSON ({reason}); {_ACCEPTED_JSON}", extension=extension)
    key = next((key for key in _JSON_KEYS if key in value), None) if isinstance(value, dict) else None
    if key is None:
        return NO_LABEL
    found = value[key]
    if type(found) is int:  # as JSON has it: true and false are none
        return _number(found, extension, _ACCEPTED_JSON)
    if isinstance(found, str) and found:
        return Label(LabelKind.NAME, text=found, extension=extension)
    return Label(LabelKind.BAD, text=f"{key} is {cut_off(json.dumps(found))}; {_ACCEPTED_JSON}", extension=extension)


def resolve_label(label: Label, key: str, numbers: Mapping[str, int], is_labelled: bool) -> tuple[int, str]:
    """-> (class, "") or (-1, what is wrong); ``is_labelled``: each sample needs a label, as the first has one."""
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
        problem = f"{cut_off(repr(label.text))} is {known}; {_ACCEPTED}"
    elif label.kind == LabelKind.NONE:
        wanted = "no label: the first sample has one, so each needs a .cls member, or a .json one with a label"
        return -1, wanted if is_labelled else ""
    return -1, f"label in {key}.{label.extension}: {problem}"


def _number(number: int, extension: str, accepted: str) -> Label:
    if not -_INT64 <= number < _INT64:
        return Label(LabelKind.BAD, text=f"{cut_off(str(number))} is too large; {accepted}", extension=extension)
    return Label(LabelKind.NUMBER, number, extension=extension)


_MOST_LABEL = 16 << 20
SEVERAL_IMAGES = "samples have several images"


class TarSample(NamedTuple):
    """``data``: None where only the place was asked for, or too large. ``begin``, ``end``: of all members, with
    headers. ``beside``: wanted contents by extension; ``picture``: the image, if it is none of these."""

    image: Member
    data: bytes | None
    label: Label
    begin: int
    end: int
    beside: dict[str, bytes]
    picture: Member | None


def too_large(size: int) -> str:
    """The complaint about a member of so many bytes; "" for none."""
    return f"{size:,} bytes; at most {in_words(MOST_BYTES)} are read" if size > MOST_BYTES else ""


class ShardFailure(NamedTuple):
    """The end of a shard before its time, in the sample ``member`` (None: not known); or that there is none at all."""

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
    """Of walks over shards, named."""
    walks = list(shards)
    lines = [
        f"{shard}: {failure.reason}; {seen.samples:,} whole samples before it are used"
        for shard, seen, failure in walks
        if failure
    ]
    if unmarked := [shard for shard, seen, failure in walks if not (seen.has_end_mark or failure)]:
        lines.append(f"no mark of the end, perhaps cut off between two members: {first_names(unmarked)}")
    if count := sum(seen.many_images for _, seen, _ in walks):
        first = next(f"{shard}: {seen.first_many_images}" for shard, seen, _ in walks if seen.many_images)
        lines.append(
            f"{count:,} {SEVERAL_IMAGES}, of which one is taken (the first such: {first}); members "
            "whose names are the same up to the first dot are one sample"
        )
    if count := sum(seen.without_image for _, seen, _ in walks):
        first = next(f"{shard}: {seen.first_without_image}" for shard, seen, _ in walks if seen.without_image)
        lines.append(f"{count:,} keys without an image are skipped (the first: {first})")
    if count := sum(seen.links for _, seen, _ in walks):
        lines.append(f"{count:,} links in archives are not followed")
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
    is_plain: bool = False
    picture: Member | None = None
    is_plain_picture: bool = False
    data: bytes | None = None
    images: int = 0
    beside: dict[str, bytes] = field(default_factory=dict)
    cls: Label | None = None
    json: tuple[bytes, str] | None = None

    @property
    def label(self) -> Label:
        if self.cls is not None:
            return self.cls
        return parse_json(*self.json) if self.json is not None else NO_LABEL


class TarSamples:
    """Iterate once; afterwards ``failure`` is set where the archive broke off, and ``counts`` tells the rest.
    ``wanted``: extensions, in small letters, of members read beside the image; samples and their names do not depend on
    it."""

    def __init__(self, reader: FileReader, with_data: bool, wanted: frozenset[str] = frozenset()) -> None:
        self.counts = ShardCounts()
        self.failure: ShardFailure | None = None
        self._reader = reader
        self._with_data = with_data
        self._wanted = wanted

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
                self._read_member(walk, group, member, parts[1])
                group.end = self._reader.at
        except (TarDamage, DecodeError) as error:
            lost = error.member if isinstance(error, TarDamage) else None
            if group is not None and self._is_hit(group, error, lost):
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

    @staticmethod
    def _is_hit(group: _Group, error: TarDamage | DecodeError, lost: str | None) -> bool:
        """True where the group may not be whole: what is lost is of its key, or not known, and its label may be it."""
        if isinstance(error, DecodeError):
            return True
        parts = split_name(lost) if lost else None
        return group.label == NO_LABEL if lost is None else parts is not None and parts[0] == group.key

    def _read_member(self, walk: TarWalk, group: _Group, member: Member, extension: str) -> None:
        """Read of a member what may be needed. Raises TarDamage, with the group as it was before."""
        kind = extension.lower()
        is_wanted = kind in self._wanted and kind not in group.beside and member.size <= MOST_BYTES
        content = walk.content() if is_wanted else None
        if content is not None:
            group.beside[kind] = content
        if is_image_name(f".{kind}"):
            # 7.jpg is the image of sample 7 even after 7.depth.png; of several such, the first is.
            is_plain = "." not in extension
            group.images += 1
            if group.image is None or (is_plain and not group.is_plain):
                group.image = member
                group.is_plain = is_plain
            if kind in self._wanted:
                pass
            elif group.picture is None or (is_plain and not group.is_plain_picture):
                group.picture = member
                group.is_plain_picture = is_plain
                group.data = None
                if self._with_data and member.size <= MOST_BYTES:
                    group.data = walk.content()
                    return
        elif content is not None:
            return  # labels of the image itself are not read beside it
        elif kind == "cls" and group.cls is None:
            if member.size <= _MOST_LABEL:
                group.cls = parse_cls(walk.content(), extension)
                return
            group.cls = Label(LabelKind.BAD, text=f"of {member.size:,} bytes is too large", extension=extension)
        elif kind == "json" and group.cls is None and group.json is None and member.size <= _MOST_LABEL:
            group.json = (walk.content(), extension)
            return
        if content is None:
            walk.pass_over()

    def _finish(self, group: _Group) -> Iterator[TarSample]:
        counts = self.counts
        if group.image is None:
            counts.first_without_image = counts.first_without_image or group.key
            counts.without_image += 1
            return
        if group.images > 1:
            counts.first_many_images = counts.first_many_images or group.key
            counts.many_images += 1
        counts.samples += 1
        place = group.begin, group.end
        yield TarSample(group.image, group.data, group.label, *place, group.beside, group.picture)


def _nothing_found(counts: ShardCounts) -> str:
    """Why a shard without a single sample has none."""
    if counts.size == 0:
        return "zero bytes: the file is empty"
    if counts.members == 0:
        return "no images: the archive has no members"
    return f"no images among its {counts.members:,} members; accepted extensions: {' '.join(IMAGE_EXTENSIONS)}"
