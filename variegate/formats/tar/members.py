"""The members of a tar archive, one after another, with every cut and damage found where it is.

Read here and not by the standard library's tarfile, which takes an archive that ends in the middle of a member for one
that ends before it. Understood: ustar, GNU (long names, base-256 sizes), PAX (path, size) and the old V7 layout. Bytes
come from a local file by position, or from a stream.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from io import BufferedReader, FileIO
from typing import Any, NamedTuple

from variegate.errors import DecodeError
from variegate.formats.reading import ByteStream

_CHUNK = 256 << 10
_GZIP = b"\x1f\x8b"


class FileReader:
    """A local file. Skipping reads nothing, and small reads share a block. ``at``: bytes passed."""

    def __init__(self, file: FileIO, size: int, name: str) -> None:
        self.at = 0
        self._size = size
        self._name = name
        self._file = BufferedReader(file, 2048)

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


class StreamReader:
    """Whatever has ``read(size)``, as a FileReader, in chunks. ``head``: what was read of the stream already."""

    def __init__(self, stream: Any, head: bytes = b"") -> None:
        self.at = 0
        self._stream = stream
        self._chunk = head
        self._begin = 0

    def read(self, size: int) -> bytes:
        data = self._chunk[self._begin : self._begin + size]
        self._begin += len(data)
        parts = [data]
        while (missing := size - len(data)) > 0:
            self._chunk = self._stream.read(max(missing, _CHUNK))
            if not self._chunk:
                break
            data = self._chunk[:missing]
            self._begin = len(data)
            parts.append(data)
            size = missing
        data = b"".join(parts)
        self.at += len(data)
        return data

    def skip(self, size: int) -> int:
        passed = 0
        while passed < size:
            part = len(self.read(min(size - passed, _CHUNK)))
            if part == 0:
                break
            passed += part
        return passed


ForwardReader = FileReader | StreamReader


def unpacked_reader(stream: ByteStream) -> StreamReader:
    """Of the stream itself, or of what it holds where it is gzip'ed, whatever its name says."""
    head = stream.read(len(_GZIP))
    return StreamReader(_Gunzip(stream, head)) if head == _GZIP else StreamReader(stream, head)


class _Gunzip:
    """Not gzip.GzipFile, which at a cut throws away what it has decompressed already."""

    def __init__(self, stream: ByteStream, head: bytes) -> None:
        self._stream = stream
        self._name = stream.name
        self._gzip = zlib.decompressobj(31)
        self._packed = head

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            if self._gzip.eof:
                self._packed = self._gzip.unused_data or self._stream.read(_CHUNK)
                if not self._packed.startswith(_GZIP[:1]):
                    break  # the end, or the zeros that tapes are filled up with
                self._gzip = zlib.decompressobj(31)
            elif not self._packed:
                self._packed = self._stream.read(_CHUNK)
                if not self._packed:
                    if parts:
                        break
                    raise DecodeError(self._name, "cut off: its gzip compression ends too early")
            try:
                part = self._gzip.decompress(self._packed, size)
            except zlib.error as error:
                raise DecodeError(self._name, f"damaged: its gzip compression cannot be read on ({error})") from None
            self._packed = self._gzip.unconsumed_tail
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


BLOCK = 512
_REGULAR = (b"0", b"\0", b"7")
_WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")
_LINKS = (b"1", b"2")
# The longest extended header that is believed; names are some hundred bytes.
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


class TarWalk:
    """Call ``next``, then ``content`` or ``pass_over`` before the next ``next``."""

    def __init__(self, reader: ForwardReader) -> None:
        self._reader = reader
        self.members = 0
        self.links = 0
        self.has_end_mark = False
        self._last = ""
        self._current: Member | None = None

    def next(self) -> Member | None:
        """The next regular file; None at the end. Raises TarDamage."""
        long_name: str | None = None
        long_size: int | None = None
        is_extended = False
        while True:
            at = self._reader.at
            block = self._reader.read(BLOCK)
            if not block and not is_extended:
                return None
            if len(block) < BLOCK:
                raise self._cut_in_header(block, at, long_name)
            if block == _ZEROS and not is_extended:
                self.has_end_mark = True
                return None
            name, size, kind = self._parse(block, at)
            if kind in (b"L", b"x", b"X"):
                content = self._extended(size, at)
                is_extended = True
                if kind == b"L":
                    long_name = _text(content)
                else:
                    records = self._pax_records(content, at)
                    if any(key.startswith("GNU.sparse.") for key in records):
                        raise self._sparse(records.get("GNU.sparse.name", name))
                    long_name = records.get("path", long_name)
                    long_size = int(records["size"]) if "size" in records else long_size
                continue
            if kind in (b"g", b"K"):
                self._extended(size, at)
                continue
            name = long_name or name
            size = size if long_size is None else long_size
            long_name = None
            long_size = None
            is_extended = False
            if kind == b"S":
                raise self._sparse(name)
            self._last = name
            self.members += 1
            if kind in _WITHOUT_CONTENT or (kind == b"\0" and name.endswith("/")):
                self.links += kind in _LINKS
                continue
            self._current = Member(name, self._reader.at, size)
            if kind in _REGULAR:
                return self._current
            self.pass_over()  # kinds of single vendors, such as volume labels

    def content(self) -> bytes:
        """The bytes of the member that ``next`` gave."""
        return self._pass(lambda size: (data := self._reader.read(size), len(data)))

    def pass_over(self) -> None:
        self._pass(lambda size: (b"", self._reader.skip(size)))

    def _pass(self, take: Callable[[int], tuple[bytes, int]]) -> bytes:
        if self._current is None:
            raise RuntimeError("no member is open: call next() first")
        member = self._current
        self._current = None
        data, had = take(member.size)
        if had < member.size:
            raise TarDamage(
                f"cut off in the middle of member {member.name} (byte {had:,} of {member.size:,})", member.name
            )
        # Where only the filling of the last block is missing, nothing is lost.
        self._reader.skip(-member.size % BLOCK)
        return data

    def _parse(self, block: bytes, at: int) -> tuple[str, int, bytes]:
        """Name, size and kind. The checksum counts its own field as spaces; some old tars summed signed bytes."""
        try:
            wanted = _number(block[148:156])
            found = sum(block) - sum(block[148:156]) + 8 * 32
            if wanted != found and wanted != found - 256 * sum(byte > 127 for byte in block[:148] + block[156:]):
                raise ValueError
            size = _number(block[124:136])
            if size < 0:
                raise ValueError
        except ValueError:
            raise self._not_a_header(block, at) from None
        name = _text(block[:100])
        if block[257:263] == b"ustar\0" and block[345]:
            name = f"{_text(block[345:500])}/{name}"
        return name, size, block[156:157]

    def _extended(self, size: int, at: int) -> bytes:
        if size > _MOST_EXTENDED:
            raise TarDamage(f"damaged at byte {at:,}: an extended header of {size:,} bytes")
        content = self._reader.read(size)
        if len(content) < size or self._reader.skip(-size % BLOCK) < -size % BLOCK:
            raise self._cut_in_header(b"", at, None)
        return content

    def _pax_records(self, content: bytes, at: int) -> dict[str, str]:
        """Records are ``"<length of the record> <key>=<value>\\n"``; sizes must be numbers."""
        records: dict[str, str] = {}
        begin = 0
        try:
            while begin < len(content) and content[begin]:
                space = content.index(b" ", begin)
                end = begin + int(content[begin:space])
                key, equals, value = content[space + 1 : end - 1].partition(b"=")
                if end <= space or end > len(content) or not equals:
                    raise ValueError
                records[_text(key)] = _text(value)
                begin = end
            if int(records.get("size", 0)) < 0:
                raise ValueError
        except ValueError:
            raise TarDamage(f"damaged at byte {at:,}: a PAX header that cannot be read") from None
        return records

    def _cut_in_header(self, block: bytes, at: int, long_name: str | None) -> TarDamage:
        if self.members == 0 and (packed := _packed_as(block)):
            return TarDamage(f"{packed}, not a tar archive")
        # What is there of a name is not used: it may be that of an extended header, or lack what comes before it.
        where = (
            f"of member {long_name}" if long_name else f"after {self._last}" if self._last else "of its first member"
        )
        return TarDamage(f"cut off in the header {where} (byte {at + len(block):,})", long_name)

    def _not_a_header(self, block: bytes, at: int) -> TarDamage:
        if self.members:
            return TarDamage(f"damaged at byte {at:,}: there is no header of a member after {self._last}")
        packed = _packed_as(block)
        return TarDamage(f"{packed}, not a tar archive" if packed else "not a tar archive: it begins with no header")

    def _sparse(self, name: str) -> TarDamage:
        return TarDamage(
            f"member {name} is stored as a sparse file, which is not read; write it without --sparse", name
        )


def _packed_as(block: bytes) -> str | None:
    kind = next((kind for magic, kind in _PACKED.items() if block.startswith(magic)), None)
    if kind is None or not kind.startswith("compressed"):
        return kind
    return f"{kind} (unpack it first; gzip'ed archives can be read with stream=True)"


def _number(field: bytes) -> int:
    """Octal digits, or, where the first bit is set, a binary number."""
    if field[0] & 0x80:
        return int.from_bytes(field, "big", signed=True) if field[0] == 0xFF else int.from_bytes(field[1:], "big")
    return int(field.split(b"\0", 1)[0].strip() or b"0", 8)


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
