"""What a pass has measured, kept in a file that grows, so that it goes on after whatever ended it.

    variegate check 1 <plan, hex>
    <length, 4 bytes> <crc32, 4 bytes> <JSON: how far the pass has come> newline <rows, as an Arrow stream>
    ...

Everything up to the first record that is not whole may be believed, since records are appended one after the other.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zlib
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from variegate.apps.curate.scan.columns import MEASURED
from variegate.apps.curate.scan.passing import Position
from variegate.io.durable import AppendOnlyFile, write_errors_name
from variegate.io.files import read_regular

_MAGIC = b"variegate check 1 "
_HEAD = struct.Struct("<II")
_MOST_BYTES = 1 << 40


class ScanJournal:
    """``path``: the file. ``plan``: hex digest of all that rows depend on; records of another plan are not believed,
    and ``is_other`` says that there were some.

    ``batches``: what was recorded, by split. ``positions``: how far each split was. Raises WriteError.
    """

    def __init__(self, path: Path, plan: str) -> None:
        self.batches: dict[str, list[pa.RecordBatch]] = {}
        self.positions: dict[str, Position] = {}
        first = _MAGIC + plan.encode() + b"\n"
        with write_errors_name(str(path), "read"):
            data = read_regular(path, _MOST_BYTES) if os.path.lexists(path) else b""
        is_ours = data.startswith(first)
        self.is_other = not is_ours and len(data) > len(first)
        self._begin = len(first)
        end = self._load(memoryview(data), len(first)) if is_ours else 0
        self._file = AppendOnlyFile(path, str(path), end, first)

    @property
    def is_empty(self) -> bool:
        return self._file.end == self._begin

    def append(self, split: str, batch: pa.RecordBatch, position: Position) -> None:
        """It lasts when this returns."""
        out = io.BytesIO()
        out.write(json.dumps({"split": split, **asdict(position)}).encode() + b"\n")
        with pa.ipc.new_stream(out, MEASURED) as writer:
            writer.write_batch(batch)
        record = out.getvalue()
        self._file.append(_HEAD.pack(len(record), zlib.crc32(record)) + record)

    def close(self) -> None:
        self._file.close()

    def _load(self, data: memoryview, at: int) -> int:
        """Up to where records are whole."""
        while at + _HEAD.size <= len(data):
            length, checksum = _HEAD.unpack_from(data, at)
            record = bytes(data[at + _HEAD.size : at + _HEAD.size + length])
            if len(record) != length or zlib.crc32(record) != checksum:
                break
            head, _, rows = record.partition(b"\n")
            position = json.loads(head)
            split = position.pop("split")
            with pa.ipc.open_stream(rows) as reader:
                batches = list(reader)
            # A record that was interrupted behind its last byte was written once more.
            if batches[0]["index"][0].as_py() == self.positions.get(split, Position()).samples:
                self.batches.setdefault(split, []).extend(batches)
                self.positions[split] = Position(**position)
            at += _HEAD.size + length
        return at
