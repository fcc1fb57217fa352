"""The frame of annotations: photos that EXIF turns, with annotations of the displayed or of the stored pixels."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.data.annotated.made import coco_entries, put_coco, put_yolo
from tests.data.tars import png, write_tar
from variegate.data.opening import open_source
from variegate.decode import read_image
from variegate.errors import DecodeError

SIZE = (40, 60)  # stored height and width
BOX = (slice(10, 30), slice(5, 25))  # of object 500 of a.png, rows and columns
MASK = np.zeros(SIZE, np.uint8)
MASK[BOX] = 7
RECORD = {"bbox": [[5, 10, 20, 20]], "category": [0]}


def marked(orientation: int) -> bytes:
    """A stored picture, white in ``BOX`` and black elsewhere."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    stream = io.BytesIO()
    Image.fromarray(np.where(MASK, 255, 0).astype(np.uint8)).convert("RGB").save(stream, "PNG", exif=exif)
    return stream.getvalue()


def bounds(is_inside: Any) -> list[float]:
    rows, columns = np.nonzero(is_inside)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def put(root: Path, layout: str, image: bytes) -> tuple[Path, dict[str, Any]]:
    """A data set whose first photo, a.png, is ``image``, with its box or mask of the stored pixels."""
    if layout == "coco":
        entries = coco_entries()
        entries["annotations"] = [{**entries["annotations"][0], "keypoints": [5, 10, 2, 0, 0, 0]}]
        entries["categories"][2]["keypoints"] = ["corner", "none"]
        options = {"file": str(put_coco(root, entries)), "mask": "instances"}
        (root / "images/a.png").write_bytes(image)
        return root / "images", options
    if layout == "yolo":
        (put_yolo(root) / "images/a.png").write_bytes(image)
        return root, {"format": layout}
    if layout == "masks":
        for folder, data in (("images", image), ("masks", png(MASK))):
            (root / folder).mkdir()
            (root / folder / "a.png").write_bytes(data)
        return root, {"format": layout}
    if layout == "columns":
        columns = {"image": [image], "mask": [png(MASK)], **{name: [value] for name, value in RECORD.items()}}
        pq.write_table(pa.table(columns), root / "photos.parquet")
        return root / "photos.parquet", {"format": layout, "mask": "mask"}
    members = [("a.png", image), ("a.json", json.dumps(RECORD).encode()), ("a.mask.png", png(MASK))]
    write_tar(root / "photos.tar", members)
    return root / "photos.tar", {"format": layout, "objects": "json", "mask": "mask.png"}


@pytest.mark.filterwarnings("ignore:.*EXIF turns photos")
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("layout", ["coco", "yolo", "masks", "columns", "members"])
def test_stored_annotations_turn_with_their_photo(tmp_path: Path, layout: str, orientation: int) -> None:
    place, options = put(tmp_path, layout, marked(orientation))
    source: Any = open_source(place, annotations={**options, "exif": "stored"})
    item = source.read(0)
    is_white = read_image(item.data)[:, :, 0] == 255
    if layout != "masks":
        np.testing.assert_allclose(item.targets["boxes"][0], bounds(is_white), atol=1e-3)
    if layout != "yolo":
        np.testing.assert_array_equal(item.targets["mask"] != 0, is_white)
    if layout == "coco":
        (x, y, visibility), none = item.targets["keypoints"][0].tolist()
        assert none == [0, 0, 0]
        assert visibility == 2
        assert is_white[int(y), int(x)]
        left, top, right, bottom = bounds(is_white)
        assert min(x - left, right - x) == min(y - top, bottom - y) == 0.5  # the pixel in a corner
    shown: Any = open_source(place, annotations=options)
    assert shown.fingerprint != source.fingerprint
    if orientation >= 5 and layout != "yolo":  # sizes tell that they are not of the displayed photo
        with pytest.raises(DecodeError, match=r'set exif="stored"'):
            shown.read(0)
    elif orientation > 1 and layout != "masks":
        with pytest.warns(UserWarning, match=r'EXIF turns photos.*exif="pixels" or exif="stored"'):
            shown.read(0)


def test_sizes_of_the_other_frame_are_refused_with_the_option_that_accepts_them(tmp_path: Path) -> None:
    place, options = put(tmp_path, "coco", marked(6))
    source = open_source(place, annotations={**options, "exif": "pixels"})
    with pytest.raises(DecodeError, match=r'40 x 60 by its annotations; its EXIF orientation is 6: set exif="stored"'):
        source.read(0)


def test_one_note_if_sizes_cannot_tell(tmp_path: Path) -> None:
    place, options = put(tmp_path, "coco", marked(3))
    source = open_source(place, annotations=options)
    with pytest.warns(UserWarning, match=r"EXIF turns photos.*a\.png") as notes:
        items = [source.read(0) for _ in range(3)]
    assert items[0].targets["boxes"][0].tolist() == [5, 10, 25, 30]
    assert len(notes) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_source(place, annotations={**options, "exif": "pixels"}).read(0)
