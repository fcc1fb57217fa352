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

from tests.formats.annotated.made import coco_entries, put_coco, put_yolo
from tests.formats.tars import write_tar
from variegate.decode import read_image
from variegate.errors import DecodeError
from variegate.formats.opening import open_source

SIZE = (40, 60)  # stored height and width
BOX = (slice(10, 30), slice(5, 25))  # of object 500 of a.png, rows and columns


def marked(orientation: int) -> bytes:
    """A stored picture, white in ``BOX`` and black elsewhere."""
    pixels = np.zeros((*SIZE, 3), np.uint8)
    pixels[BOX] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", exif=exif)
    return stream.getvalue()


def bounds(is_inside: Any) -> list[float]:
    rows, columns = np.nonzero(is_inside)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_stored_annotations_turn_with_their_photo(tmp_path: Path, orientation: int) -> None:
    entries = coco_entries()
    entries["annotations"] = entries["annotations"][:1]
    entries["categories"][2]["keypoints"] = ["corner", "none"]
    entries["annotations"][0]["keypoints"] = [5, 10, 2, 0, 0, 0]
    file = put_coco(tmp_path, entries)
    (tmp_path / "images/a.png").write_bytes(marked(orientation))
    for mask, name in (("each", "masks"), ("instances", "mask")):
        options = {"file": str(file), "mask": mask, "exif": "stored"}
        item = open_source(tmp_path / "images", annotations=options).read(0)
        is_white = read_image(item.data)[:, :, 0] == 255
        assert item.targets["boxes"].tolist() == [bounds(is_white)]
        found = item.targets[name]
        np.testing.assert_array_equal(found[0] if mask == "each" else found, is_white)
        x, y, visibility = item.targets["keypoints"][0, 0].tolist()
        assert visibility == 2
        assert is_white[int(y), int(x)]
        corners = [(left, top) for left in bounds(is_white)[::2] for top in bounds(is_white)[1::2]]
        assert min(abs(x - left) + abs(y - top) for left, top in corners) == 1  # half a pixel from both sides
        assert item.targets["keypoints"][0, 1].tolist() == [0, 0, 0]


def test_sizes_of_the_other_frame_are_refused_with_the_option_that_accepts_them(tmp_path: Path) -> None:
    file = put_coco(tmp_path)
    (tmp_path / "images/a.png").write_bytes(marked(6))
    for exif in (None, "pixels"):
        source = open_source(tmp_path / "images", annotations={"file": str(file), "exif": exif})
        with pytest.raises(
            DecodeError, match=r'40 x 60 by its annotations; its EXIF orientation is 6: set exif="stored"'
        ):
            source.read(0)


def test_one_note_where_sizes_cannot_tell(tmp_path: Path) -> None:
    file = put_coco(tmp_path)
    for name in "ac":
        (tmp_path / f"images/{name}.png").write_bytes(marked(3))
    place = tmp_path / "images"
    source = open_source(place, annotations=str(file))
    with pytest.warns(UserWarning, match=r'EXIF turns photos.*a\.png.*exif="pixels" or exif="stored"') as notes:
        items = [source.read(0) for _ in range(3)]
    assert items[0].targets["boxes"][0].tolist() == [5, 10, 25, 30]
    assert len(notes) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_source(place, annotations={"file": str(file), "exif": "pixels"}).read(0)


def test_yolo_rows_and_masks_of_stored_pixels(tmp_path: Path) -> None:
    put_yolo(tmp_path / "yolo")
    image = next((tmp_path / "yolo/images").rglob("a.png"))
    image.write_bytes(marked(8))
    source = open_source(tmp_path / "yolo", annotations="yolo,exif=stored")
    item = source.read([Path(path).name for path in source.paths()].index("a.png"))
    expected = bounds(read_image(item.data)[:, :, 0] == 255)
    np.testing.assert_allclose(item.targets["boxes"][0], expected, atol=1e-3)

    for folder in ("images", "masks"):
        (tmp_path / "pairs" / folder).mkdir(parents=True)
    (tmp_path / "pairs/images/a.png").write_bytes(marked(5))
    mask = np.zeros(SIZE, np.uint8)
    mask[BOX] = 7
    Image.fromarray(mask).save(tmp_path / "pairs/masks/a.png")
    item = open_source(tmp_path / "pairs", annotations={"format": "masks", "exif": "stored"}).read(0)
    np.testing.assert_array_equal(item.targets["mask"] == 7, read_image(item.data)[:, :, 0] == 255)
    with pytest.raises(DecodeError, match=r'set exif="stored"'):
        open_source(tmp_path / "pairs", annotations="masks").read(0)


def put_record(folder: Path, layout: str, orientation: int) -> Any:
    """A photo with one box and a mask, both of the stored pixels, in a Parquet file or a tar shard."""
    mask = np.zeros(SIZE, np.uint8)
    mask[BOX] = 7
    stream = io.BytesIO()
    Image.fromarray(mask).save(stream, "PNG")
    left, top, right, bottom = map(int, bounds(mask == 7))
    record = {"bbox": [[left, top, right - left, bottom - top]], "category": [0]}
    if layout == "columns":
        columns = {"image": [marked(orientation)], "mask": [stream.getvalue()], **{k: [v] for k, v in record.items()}}
        pq.write_table(pa.table(columns), folder / "photos.parquet")
        return folder / "photos.parquet", {"format": layout, "mask": "mask"}
    members = {"a.png": marked(orientation), "a.json": json.dumps(record).encode(), "a.mask.png": stream.getvalue()}
    write_tar(folder / "photos.tar", list(members.items()))
    return folder / "photos.tar", {"format": layout, "objects": "json", "mask": "mask.png"}


@pytest.mark.parametrize("layout", ["columns", "members"])
@pytest.mark.parametrize("orientation", [3, 6])
def test_records_of_stored_pixels(tmp_path: Path, layout: str, orientation: int) -> None:
    path, options = put_record(tmp_path, layout, orientation)
    source: Any = open_source(path, annotations={**options, "exif": "stored"})
    item = source.read(0)
    is_white = read_image(item.data)[:, :, 0] == 255
    assert item.targets["boxes"].tolist() == [bounds(is_white)]
    np.testing.assert_array_equal(item.targets["mask"] == 7, is_white)

    plain: Any = open_source(path, annotations=options)
    assert plain.fingerprint != source.fingerprint
    expected = r'EXIF turns photos.*exif="pixels" or exif="stored"'
    if orientation == 6:  # the mask tells that it is not of the displayed photo
        with pytest.warns(UserWarning, match=expected), pytest.raises(DecodeError, match=r'set exif="stored"'):
            plain.read(0)
    else:
        with pytest.warns(UserWarning, match=expected):
            plain.read(0)
