"""Links in a folder are followed. Names in files lead to nothing outside of the data set (SECURITY.md)."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import variegate as vg
from variegate.errors import DecodeError
from variegate.formats.base import SourceError


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """An image beside the data set."""
    folder = tmp_path / "outside"
    folder.mkdir()
    Image.fromarray(np.full((4, 5, 3), 9, np.uint8)).save(folder / "a.png")
    return folder / "a.png"


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    """With a link to the image in one class, and a link to its folder as the other."""
    (tmp_path / "data" / "cat").mkdir(parents=True)
    os.symlink(outside, tmp_path / "data" / "cat" / "link.png")
    os.symlink(outside.parent, tmp_path / "data" / "dog")
    return tmp_path / "data"


def test_links_in_a_folder_are_followed(root: Path, outside: Path) -> None:
    source = vg.open_source(root)
    assert [str(source.name(i)) for i in range(len(source))] == [f"{root}/cat/link.png", f"{root}/dog/a.png"]
    assert [source.read(i).data for i in range(2)] == [outside.read_bytes()] * 2


def test_names_in_annotations_stay_below(root: Path) -> None:
    for name in ("../outside/a.png", "/etc/hostname", "cat/../../outside/a.png", "memory://a.png"):
        images = [{"id": 1, "file_name": name, "height": 4, "width": 5}]
        (root / "coco.json").write_text(json.dumps({"images": images, "annotations": [], "categories": []}))
        with pytest.raises(SourceError, match=r"file_name is|are not in"):
            vg.open_source(root, annotations=str(root / "coco.json"))
    (root / "data.yaml").write_text(f"names: [a]\npath: {root.parent}\ntrain: outside\n")
    with pytest.raises(SourceError, match=r"leads out of|there is no"):
        vg.open_source(root, annotations="yolo,split=train")


def test_rows_of_a_table_stay_below_where_links_lead_too(root: Path) -> None:
    images = [{"bytes": None, "path": path} for path in ("cat/link.png", "../outside/a.png")]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"image": pa.array(images, kind)}), root / "a.parquet")
    source = vg.open_source(root / "a.parquet")
    for index in range(2):
        with pytest.raises(DecodeError, match="outside of"):
            source.read(index)


def test_links_in_archives_are_not_followed(root: Path, outside: Path) -> None:
    with tarfile.open(root / "a.tar", "w") as archive:
        link = tarfile.TarInfo("0.png")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        archive.addfile(link)
        image = tarfile.TarInfo("1.png")
        image.size = outside.stat().st_size
        archive.addfile(image, io.BytesIO(outside.read_bytes()))
    source = vg.open_source(root / "a.tar")
    assert [str(source.name(i)) for i in range(len(source))] == [f"{root}/a.tar: 1.png"]
