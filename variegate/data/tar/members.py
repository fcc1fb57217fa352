"""The members of a tar archive, one after another.

Headers are parsed by the standard library's tarfile. It takes a damaged or cut header for the end of the archive, so
every end is checked here: only the end of the file, or a block of zeros, is one.
"""

from __future__ import annotations

import os
import tarfile
from io import BufferedReader, BytesIO, FileIO
from typing import NamedTuple, cast

from variegate.errors import DecodeError


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
    """Of all bytes, where the eight of the checksum itself are spaces."""
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
