"""Files of large images that claim anything: refused, or made in bounded memory."""

from __future__ import annotations

import io
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from tests.images import photo
from tests.soak.mutating import check
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.jobs.engine import Engine
from variegate.jobs.mapping import MapSpec
from variegate.jobs.regions.reading import file_of
from variegate.jobs.regions.run import ImageRun
from variegate.workers.protocol import EngineError

pytest.importorskip("zarr")  # it needs Python 3.11

from tests.soak.parsers.regions import PARSERS, zarr_with

HUGE = 1 << 20


def run_of(path: Path, **settings: Any) -> ImageRun:
    work = MapSpec(T.Compose([T.Invert(), T.Equalize()]), 0, "float32", "NHWC", "composed", 0, 0)
    return ImageRun(Engine(["cpu:0"], "thread", num_threads=1), work, file_of(path), **settings)


def tiff_of(folder: Path, tags: dict[int, int], image: Any = None, **options: Any) -> Path:
    """A small TIFF with other values in some of its tags."""
    stream = io.BytesIO()
    tifffile.imwrite(stream, photo(50, 70) if image is None else image, **options)
    data = bytearray(stream.getvalue())
    (begin,) = struct.unpack_from("<I", data, 4)
    for at in range(begin + 2, begin + 2 + 12 * struct.unpack_from("<H", data, begin)[0], 12):
        tag, kind = struct.unpack_from("<HH", data, at)
        if tag in tags:
            struct.pack_into("<H" if kind == 3 else "<I", data, at + 8, tags[tag])
    path = folder / "a.tif"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("tags", "options", "what"),
    [
        ({256: HUGE, 257: HUGE}, {"tile": (16, 32)}, "12 tiles; accepted: 2,147,483,648 for its size"),
        ({256: HUGE, 257: HUGE}, {"rowsperstrip": 7}, r"8 strips; accepted: 149,797 for its size"),
        ({256: 3000}, {"rowsperstrip": 7}, "bytes for 50 x 3,000 pixels; accepted: 450,000 bytes or more"),
        ({278: 0}, {"rowsperstrip": 7}, "a.tif: "),
        ({256: 0}, {"tile": (16, 32)}, r"a\.tif: "),
        ({256: 1 << 16, 257: 1 << 16, 322: 1 << 14, 323: 1 << 14}, {"tile": (16, 16)}, "tiles of 16,384 x 16,384 pix"),
        ({322: 1024, 323: 512}, {"tile": (16, 16)}, "20 tiles; accepted: 1 for"),
    ],
)  # fmt: skip
def test_a_tiff_that_claims_more_than_it_holds(
    tmp_path: Path, tags: dict[int, int], options: dict[str, Any], what: str
) -> None:
    with pytest.raises(SourceError, match=what) as caught:
        file_of(tiff_of(tmp_path, tags, **options)).open()
    assert str(caught.value).startswith(str(tmp_path / "a.tif"))


def test_tiles_that_are_compressed_have_a_ratio(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.zeros((3000, 3000), np.uint8), tile=(1024, 1024), compression="zlib")
    file_of(path).open()
    path = tiff_of(tmp_path, {256: 20_000, 257: 16_000, 322: 20_000, 323: 16_000}, tile=(64, 80), compression="zlib")
    with pytest.raises(SourceError, match=r"a\.tif: tiles of 16,000 x 20,000 pixels; accepted: up to 512 MiB"):
        file_of(path).open()
    nothing = np.zeros((16, 16), np.uint8)
    sides = dict.fromkeys((256, 257, 322, 323), 16_000)
    with pytest.raises(SourceError, match=r"a\.tif: \d+ bytes for 16,000 x 16,000 pixels; accepted: 2,560 bytes"):
        file_of(tiff_of(tmp_path, sides, nothing, tile=(16, 16), compression="zlib")).open()
    with pytest.raises(SourceError, match=r"a\.tif: \d+ bytes for 160 x 160 pixels; accepted: 25,600 bytes or more"):
        file_of(tiff_of(tmp_path, dict.fromkeys(sides, 160), nothing, tile=(16, 16))).open()


def test_a_head_of_numpy_with_a_negative_side(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", photo(8, 8))
    data = (tmp_path / "b.npy").read_bytes()
    (tmp_path / "b.npy").write_bytes(data.replace(b"(8, 8, 3)", b"(-8,8, 3)"))
    with pytest.raises(SourceError, match=r"b\.npy: got uint8\[-8, 8, 3\]; accepted"):
        file_of(tmp_path / "b.npy").open()


def test_more_than_a_disk_or_memory_holds(tmp_path: Path) -> None:
    path = zarr_with(tmp_path, [HUGE, HUGE, 3], [1024, 1024, 3])
    run = run_of(path, out=str(tmp_path / "out.npy"), tile=4)
    with pytest.raises(EngineError, match=r"out\.npy: cannot be written .* bytes, of which its disk has"):
        run.run()
    with pytest.raises(EngineError, match="out: got None for 1,048,576 x 1,048,576 x 3 uint8, more than memory holds"):
        run_of(path).run()
    assert {path.name for path in tmp_path.iterdir()} == {"a.zarr"}


def test_chunks_of_any_size_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    one = zarr_with(tmp_path / "one", [HUGE, HUGE, 3], [HUGE, HUGE, 3])
    with pytest.raises(SourceError, match=r"a\.zarr: tiles of 1,048,576 x 1,048,576 pixels; accepted: up to 512 MiB"):
        file_of(one).open()
    (tmp_path / "wide").mkdir()
    wide = zarr_with(tmp_path / "wide", [1 << 40, 8, 3], [8, 8, 3])
    with pytest.raises(SourceError, match=r"a\.zarr: got uint8\[1099511627776, 8, 3\]"):
        file_of(wide).open()


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_mutated_files_are_made_or_refused(parser: Any, tmp_path: Path) -> None:
    check(parser, 0, range(40), tmp_path)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.npy", b"\x93NUMPY\x01\x00\x0a\x00{'descr': ("),
        ("a.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr': '|u1', 'fortran_order': False, 'shape': ("),
    ],
)
def test_heads_that_are_not_finished_are_refused(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceError, match=rf"{name}: cannot be read \(") as caught:
        file_of(tmp_path / name).open()
    assert not re.search(r"Error|EOF in|line \d", str(caught.value))


def test_what_python_says_of_a_parser_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("ZeroDivisionError")

    monkeypatch.setattr(np.lib.format, "read_magic", broken)
    (tmp_path / "a.npy").write_bytes(b"")
    with pytest.raises(SourceError, match=r"a\.npy: cannot be read \(its fields contradict one another\)"):
        file_of(tmp_path / "a.npy").open()
