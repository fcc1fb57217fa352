"""What systems leave beside shards and masks is no sample; folders: ``folders.txt``, archives: ``tar/samples.txt``."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

from tests.data.tars import encoded, write_tar
from variegate.data.opening import open_source


def test_shards_by_folder_and_by_pattern(tmp_path: Path) -> None:
    for name in ("a.tar", "b/c.tar", "__MACOSX/a.tar", "b/@eaDir/c.tar"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        write_tar(tmp_path / name, [("0.png", encoded(0, "png"))])
    (tmp_path / "Thumbs.db").write_bytes(b"")
    assert len(open_source(str(tmp_path / "**/*.tar"))) == 2
    assert len(open_source(str(tmp_path / "__MACOSX/*.tar"))) == 1  # as it was typed
    (tmp_path / "b/c.tar").rename(tmp_path / "c.tar")
    shutil.rmtree(tmp_path / "b")
    assert len(open_source(tmp_path)) == 2


def test_masks(tmp_path: Path) -> None:
    for folder in ("images", "masks"):
        for name in ("0.png", "@eaDir/0.png", "._0.png"):
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / folder / name)
    assert open_source(tmp_path, annotations="masks").paths() == ["images/0.png"]


def test_an_index_leaves_no_file_open(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", [("0.png", encoded(0, "png"))])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        open_source(tmp_path / "a.tar").read(0)
    assert [str(one.message) for one in caught] == []
