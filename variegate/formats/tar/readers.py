"""Where the bytes of an archive come from while it is walked: a local file by position, or a stream."""

from __future__ import annotations

import os
import zlib
from io import BufferedReader, FileIO
from typing import Protocol

from variegate.errors import DecodeError
from variegate.formats.reading import ByteStream

_CHUNK = 256 << 10
_GZIP = b"\x1f\x8b"


class ForwardReader(Protocol):
    """``at`` is how many bytes were passed. What goes wrong underneath is a DecodeError."""

    at: int

    def read(self, size: int) -> bytes:
        """The next bytes; fewer than ``size`` only at the end."""
        ...

    def skip(self, size: int) -> int:
        """Pass over bytes -> how many there were; fewer than ``size`` only at the end."""
        ...


class Readable(Protocol):
    def read(self, size: int) -> bytes: ...


class FileReader:
    """A local file. Skipping reads nothing, and small reads share a block: a header, a label and the next header."""

    def __init__(self, file: FileIO, size: int, name: str) -> None:
        self.at, self._size, self._name = 0, size, name
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


class StreamReader:
    """Anything read from its beginning to its end, in chunks, with the memory of a chunk and of what is asked for."""

    def __init__(self, stream: Readable, head: bytes = b"") -> None:
        """``head``: what was read of the stream already."""
        self.at, self._stream = 0, stream
        self._chunk, self._begin = head, 0

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


def unpacked_reader(stream: ByteStream) -> StreamReader:
    """Of the stream itself, or of what it holds where it is gzip'ed, whatever its name says."""
    head = stream.read(len(_GZIP))
    return StreamReader(_Gunzip(stream, head)) if head == _GZIP else StreamReader(stream, head)


class _Gunzip:
    """Not gzip.GzipFile, which at a cut throws away what it has decompressed already."""

    def __init__(self, stream: ByteStream, head: bytes) -> None:
        self._stream, self._name = stream, stream.name
        self._gzip, self._packed = zlib.decompressobj(31), head

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
