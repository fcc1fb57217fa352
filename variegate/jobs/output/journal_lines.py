"""The lines of a journal: how they are written, and which of those found in a file may be believed.

    <crc32, 8 hex digits> {"format":1,"plan":"..."}
    <crc32, 8 hex digits> {"durable":0,"start":0,"stop":64,"count":128,"missing":0,"rows":[{...},{...}]}
    <crc32, 8 hex digits> {"durable":0,"start":0,"stop":64,"count":-1}

The last takes back the record of just these items: they are to be made again.

``durable`` is the place in the file up to which everything had been fsynced when the line was written. What a power
failure may take is what came after; a damaged line before that place means a damaged disk.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from variegate.formats.base import SourceError

FORMAT = 1
_HEAD = re.compile(rb'\{"durable":(\d+),"start":(\d+),"stop":(\d+),"count":(\d+),"missing":(\d+),"rows":\[')
_TAKEN_BACK = re.compile(rb'\{"durable":(\d+),"start":(\d+),"stop":(\d+),"count":-1\}')
_CRC_LENGTH = 9


@dataclass(frozen=True, slots=True)
class Line:
    """Of a record of items ``start..stop-1``: where it lies, how many rows it has (-1: it takes back the record of
    these items), and how many of these are of outputs that could not be made."""

    offset: int
    length: int
    durable: int
    start: int
    stop: int
    count: int
    missing: int


def header(plan: str) -> bytes:
    return _checked(json.dumps({"format": FORMAT, "plan": plan}, separators=(",", ":")).encode())


def record(start: int, stop: int, rows: Sequence[str], durable: int, missing: int = 0) -> bytes:
    """Raises ValueError for rows that json.dumps did not make."""
    text = ",".join(rows)
    if "\n" in text or not text.isascii():
        raise ValueError("rows: got a line break or letters beyond ASCII; accepted: what json.dumps makes by default")
    counts = f'"count":{len(rows)},"missing":{missing}'
    head = f'{{"durable":{durable},"start":{start},"stop":{stop},{counts},"rows":['
    return _checked(f"{head}{text}]}}".encode())


def taking_back(start: int, stop: int, durable: int) -> bytes:
    return _checked(f'{{"durable":{durable},"start":{start},"stop":{stop},"count":-1}}'.encode())


def rows_of(line: bytes) -> list[dict[str, Any]] | None:
    """None where the line is not what was written."""
    content = _content(line)
    if content is None:
        return None
    try:
        rows: list[dict[str, Any]] = json.loads(content)["rows"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else None


class Scan:
    """Iterate once over the records of a file. Afterwards ``end`` is where the believed part of it ends.

    Raises SourceError naming ``shown`` and the line: of another plan or format, or where a damaged line is followed by
    one that was written when the damaged one had been fsynced.
    """

    def __init__(self, file: IO[bytes], plan: str, shown: str) -> None:
        self._file, self._plan, self._shown = file, plan, shown
        self.end = 0

    def __iter__(self) -> Iterator[Line]:
        offset, broken = 0, 0
        for number, text in enumerate(self._file, 1):
            line = _parse(text, offset) if number > 1 else None
            if number == 1 and self._check_header(text):
                self.end = len(text)
            elif line is None:
                broken = broken or number
            elif not broken:
                self.end = offset + len(text)
                yield line
            elif line.durable > self.end:
                raise SourceError(
                    f"{self._shown}: line {broken} is damaged, and line {number} after it is not; choose another "
                    "folder, or begin anew without resuming"
                )
            offset += len(text)

    def _check_header(self, text: bytes) -> bool:
        content = _content(text)
        if content is None:
            return False
        try:
            found = dict(json.loads(content))
        except (ValueError, TypeError, RecursionError):
            return False
        if found.get("format") != FORMAT:
            raise SourceError(
                f"{self._shown}: a journal of format {found.get('format')!r}, by another version of Variegate; "
                f"accepted: {FORMAT}"
            )
        if (plan := found.get("plan")) != self._plan:
            raise SourceError(
                f"{self._shown}: the run that was begun there had other samples or another plan ({plan}, now "
                f"{self._plan}); choose another folder, or begin anew without resuming"
            )
        return True


def _checked(content: bytes) -> bytes:
    return b"%08x %b\n" % (zlib.crc32(content), content)


def _content(line: bytes) -> bytes | None:
    """What stands behind the checksum, if that is right."""
    content = line[_CRC_LENGTH:-1]
    is_whole = line.endswith(b"\n") and line[:_CRC_LENGTH] == b"%08x " % zlib.crc32(content)
    return content if is_whole else None


def _parse(text: bytes, offset: int) -> Line | None:
    content = _content(text)
    if content is None:
        return None
    if found := _HEAD.match(content):
        durable, start, stop, count, missing = map(int, found.groups())
        return Line(offset, len(text), durable, start, stop, count, missing)
    if found := _TAKEN_BACK.fullmatch(content):
        durable, start, stop = map(int, found.groups())
        return Line(offset, len(text), durable, start, stop, -1, 0)
    return None
