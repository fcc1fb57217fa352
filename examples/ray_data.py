"""Expand a data set with Ray Data, from Parquet to Parquet, and show that the pixels do not depend on how it is cut.

``python examples/ray_data.py``. Here Ray starts on two cores of this machine; on a cluster ``ray.init()`` finds it, and
the folders are addresses that all of its machines see, such as ``s3://...``. It needs Variegate's extra ``ray``.
"""

from __future__ import annotations

import io
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # before Ray is imported

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import ray.data
from PIL import Image

import variegate as vg
from variegate import transforms as T
from variegate.interop.ray import MapBatches

PHOTOS = ("astronaut", "cat", "coffee", "rocket")


def write_photos(folder: Path, size: int = 64) -> None:
    """Twelve cut-outs of each photo as JPEG files, in two Parquet files of Hugging Face's layout."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for label, (name, photo) in enumerate(zip(PHOTOS, vg.sample_images(len(PHOTOS)), strict=True)):
        for number in range(12):
            top, left = rng.integers(0, np.array(photo.shape[:2]) - size)
            file = io.BytesIO()
            Image.fromarray(photo[top : top + size, left : left + size]).save(file, "JPEG", quality=90)
            image = {"bytes": file.getvalue(), "path": f"{name}/{number:02d}.jpg"}
            rows.append({"image": image, "label": label, "id": len(rows)})
    for part in range(2):
        pq.write_table(pa.Table.from_pylist(rows[part::2]), folder / f"part-{part}.parquet")


def expand(source: str, destination: str, blocks: int, batch_size: int) -> None:
    t = T.Compose([T.RandomResizedCrop(48, scale=(0.5, 1.0)), T.RandomHorizontalFlip(), T.RandAugment(2, 9)])
    step = MapBatches(t, seed=0, copies=4, encode="png", on_error="skip")
    dataset = ray.data.read_parquet(source, override_num_blocks=blocks)
    dataset.map_batches(step, batch_format="pyarrow", batch_size=batch_size).write_parquet(destination)


def read_files(folder: Path) -> dict[tuple[int, int], bytes]:
    """(id, copy) -> the bytes of the image file."""
    table = pq.read_table(folder, columns=["id", "copy", "image"])
    return {(row["id"], row["copy"]): row["image"]["bytes"] for row in table.to_pylist()}


def main() -> None:
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    quiet: Any = {"include_dashboard": False, "logging_level": "error", "log_to_driver": False}
    ray.init(address="local", num_cpus=2, **quiet)
    ray.data.DataContext.get_current().enable_progress_bars = False
    with tempfile.TemporaryDirectory() as root:
        photos, first, second = (Path(root) / name for name in ("photos", "first", "second"))
        photos.mkdir()
        write_photos(photos)
        expand(str(photos), str(first), blocks=1, batch_size=16)
        expand(str(photos), str(second), blocks=6, batch_size=5)
        source = vg.open_source(first, classes=PHOTOS)
        labels = np.array([source.read(i).label for i in range(len(source))])
        for name, count in zip(source.classes, np.bincount(labels), strict=True):
            print(f"{name}: {count} images")
        same = read_files(first) == read_files(second)
        print(f"{len(source)} images, the same bytes from 1 block and from 6: {same}")
        assert same
    ray.shutdown()


if __name__ == "__main__":
    main()
