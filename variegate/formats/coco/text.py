"""The text of a COCO file, entry by entry, so that no more than one of them is Python objects at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from variegate.errors import DecodeError
from variegate.formats.base import SourceError
from variegate.formats.reading import read_file
from variegate.io.location import Location

if TYPE_CHECKING:
    from variegate.formats.coco.polygons import Polygons


ACCEPTED = 'an object with the lists "images", "annotations" and "categories"'
LISTS = ("images", "annotations", "categories")
_SPACE = re.compile(r"[ \t\n\r]*")
_NEXT = re.compile(r"[ \t\n\r]*([,\]])[ \t\n\r]*")
# Shorter ones are read as they are: compiling what takes the polygons out would take longer than it saves.
LARGE = 8 << 20


def read_text(file: Location, is_whole: bool = False) -> tuple[str, Polygons | None]:
    """The text; of a large file without its polygons, and these, unless ``is_whole``. Raises SourceError."""
    try:
        data, taken = read_file(file), None
        if len(data) >= LARGE and not is_whole:
            from variegate.formats.coco.polygons import take_polygons  # here: Numba takes a while

            taken = take_polygons(data)
        return str(data if taken is None else taken.text, "utf-8-sig"), taken
    except DecodeError as error:
        raise SourceError(str(error)) from None
    except UnicodeDecodeError:
        raise SourceError(f"{file}: not UTF-8; accepted: JSON, {ACCEPTED}") from None


def entries_of(text: str, file: str) -> Iterator[tuple[str, Any]]:
    """(member, entry) of the three lists, in the file's order; (member, None) once for each list that is there. Raises
    SourceError for what is none of COCO's, JSONDecodeError for what is no JSON."""
    decode = json.JSONDecoder().raw_decode
    space, following = _SPACE.match, _NEXT.match

    def skip(at: int) -> int:
        found = space(text, at)
        return found.end() if found else at

    def expect(at: int, accepted: str) -> str:
        if text[at : at + 1] not in tuple(accepted):
            raise json.JSONDecodeError(f"expected {' or '.join(accepted)}", text, at)
        return text[at]

    try:
        at = skip(0)
        if text[at : at + 1] != "{":
            raise SourceError(f"{file}: not COCO's; accepted: JSON, {ACCEPTED}")
        at = skip(at + 1)
        while text[at : at + 1] != "}":
            name, at = decode(text, at)
            expect(at := skip(at), ":")
            at = skip(at + 1)
            if name not in LISTS:
                _, at = decode(text, at)
            elif text[at : at + 1] != "[":
                raise SourceError(f"{file}: {name!r} is no list; accepted: {ACCEPTED}")
            else:
                yield name, None
                at = skip(at + 1)
                while text[at : at + 1] != "]":
                    entry, at = decode(text, at)
                    yield name, entry
                    found = following(text, at)
                    if found is None:
                        expect(skip(at), ",]")
                    elif found[1] == ",":
                        at = found.end()
                    else:
                        at = found.start(1)
                at += 1
            at = skip(at)
            at = skip(at + 1) if expect(at, ",}") == "," else at
    except RecursionError:
        raise SourceError(f"{file}: nested too deeply; accepted: {ACCEPTED}") from None
    except ValueError as error:
        if isinstance(error, (json.JSONDecodeError, SourceError)):
            raise
        raise SourceError(f"{file}: no JSON: {error}") from None  # such as a number of 5,000 digits
