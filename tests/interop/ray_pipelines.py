"""Pipelines of Ray Data on a Ray of two cores that runs already (see test_ray.py).

A folder holds ``photos`` (image files) and ``files.parquet`` (Hugging Face's layout, with "id" and "label"; one image
is none). Results are put beside them.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import ray
import ray.data

from variegate import transforms as T
from variegate.interop.ray import MapBatches

POLICY = T.Compose([T.RandomResizedCrop(24), T.RandAugment(2, 9), T.Normalize(0.5, 0.25)])
RAGGED = T.Compose([T.RandomHorizontalFlip(), T.GaussianNoise(sigma=0.1)])


def rows_of(dataset: Any, by: str) -> dict[Any, Any]:
    return {row.pop(by): row for row in dataset.take_all()}


def run(folder: Path) -> dict[str, Any]:
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    files = str(folder / "files.parquet")
    to_files = MapBatches(T.RandomResizedCrop(24), encode="png", copies=2, on_error="skip")
    in_four = ray.data.read_parquet(files, include_row_hash=True, override_num_blocks=4)
    in_four.map_batches(to_files, batch_format="pyarrow", batch_size=2).write_parquet(str(folder / "written"))

    in_one = ray.data.read_parquet(files, include_row_hash=True, override_num_blocks=1)
    on_an_actor = in_one.map_batches(
        MapBatches,
        fn_constructor_args=[POLICY],
        fn_constructor_kwargs={"seed": 3, "epoch": 2, "on_error": "skip"},
        batch_size=16,
        compute=ray.data.ActorPoolStrategy(size=1),  # two would take both cores, and leave none to read with
    )

    images = ray.data.read_images(str(folder / "photos"), include_paths=True)
    by_path = MapBatches(RAGGED, id="path", seed=4)
    results: dict[str, Any] = {
        "actor": rows_of(on_an_actor, "id"),
        "images": rows_of(images.map_batches(by_path, batch_size=3), "path"),
    }
    try:
        ray.data.read_parquet(files).map_batches(MapBatches(POLICY)).materialize()
    except Exception as error:
        results["error"] = str(error)
    return results
