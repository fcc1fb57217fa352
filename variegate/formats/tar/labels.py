"""Labels of samples in a WebDataset (a ``.cls`` member, or a key of a ``.json`` one), and the names of classes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from variegate.errors import DecodeError
from variegate.formats.base import SourceError, cut_off
from variegate.formats.reading import read_file
from variegate.io.files import MOST_TEXT_BYTES
from variegate.io.location import Location

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
        reason = " ".join(str(error).split())
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


CLASS_NAMES = "classnames.txt"


def is_a_line(name: str) -> bool:
    """True if such a file can hold that name."""
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return bool(name) and "\n" not in name and "\r" not in name


def class_names_bytes(classes: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in classes).encode("utf-8", "surrogateescape")


def class_names_beside(shards: Sequence[Location]) -> tuple[str, ...] | None:
    """The classes that the folder of the shards names; None where it names none, or the shards lie in several. Web
    servers are not asked: each has its own way to say that there is none. Raises SourceError for a file that cannot
    be read."""
    files = {_beside(shard) for shard in shards}
    if len(files) != 1 or shards[0].is_web or len(shards[0].protocols) > 1:
        return None
    (file,) = files
    if not file.is_url and not os.path.exists(file.address()):
        return None
    try:
        data = read_file(file, MOST_TEXT_BYTES)
    except DecodeError as error:
        if file.is_url:  # some answer "forbidden" for what is not there
            return None
        raise SourceError(str(error)) from None
    names = data.decode("utf-8", "surrogateescape").rstrip("\r\n").split("\n")
    return tuple(name.rstrip("\r") for name in names) if names != [""] else None


def _beside(shard: Location) -> Location:
    if shard.is_url:
        return Location.of(f"{shard.address().rpartition('/')[0]}/{CLASS_NAMES}")
    return Location.of(os.path.join(os.path.dirname(shard.address()), CLASS_NAMES))
