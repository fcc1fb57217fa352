"""Kernels of commands besides those of a batch: ``check``, annotated outputs, large COCO files, images in tiles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from variegate import transforms as T
from variegate.apps.curate.fingerprint import fingerprint
from variegate.apps.curate.near_hashes import find_partners, first_of_alike
from variegate.apps.curate.sample import prepare
from variegate.formats.coco_polygons import take_polygons
from variegate.jobs.engine import Engine

_CHECK = (
    "apps.curate.fingerprint._describe",
    "apps.curate.fingerprint._reduce",
    "apps.curate.pixels._measure",
    "apps.curate.pixels._measure_blocks",
    "apps.curate.near_search.search_block",
    "apps.curate.near_hashes._join",
)

_ANNOTATED = ("formats.coco_polygons._take",)

_TILES = (
    "executors.cpu.tiled.chain.axis_taps",
    "executors.cpu.tiled.chain.axis_weights",
    "executors.cpu.tiled.follow.reach_of_grid",
    "executors.cpu.tiled.follow.reach_of_maps",
    "executors.cpu.tiled.follow.reach_of_nearest",
    "executors.cpu.tiled.follow.records_of",
    "executors.cpu.tiled.host.add_lumas",
    "executors.cpu.tiled.host.add_lumas_through",
    "executors.cpu.tiled.host.count_pixels",
    "executors.cpu.tiled.host.resize_columns",
    "executors.cpu.tiled.host.resize_lines",
    "executors.cpu.tiled.statistics.count_tiles",
    "executors.cpu.tiled.statistics.fill_autocontrast",
    "executors.cpu.tiled.statistics.fill_clahe",
    "executors.cpu.tiled.statistics.fill_contrast",
    "executors.cpu.tiled.statistics.fill_equalize",
    "executors.cpu.tiled.workspace.add_tile_noise",
    "executors.cpu.tiled.workspace.equalized_tile_row",
    "executors.cpu.tiled.workspace.warped_tile_row",
    "executors.cpu.tiled.workspace.erase_normalized_tile",
    "executors.cpu.tiled.workspace.follow_tile_row",
    "executors.cpu.tiled.workspace.place_maps",
    "executors.cpu.tiled.workspace.real_nearest_tile_row",
    "executors.cpu.tiled.areas.read_lines",
    "executors.cpu.tiled.areas.write_lines",
)


def _check() -> None:
    prepare()
    prints = [fingerprint(np.full((8, 8, 3), level, np.uint8)) for level in (0, 9)]
    hashes = np.array([one.look_hash for one in prints], np.uint64)
    signatures = np.array([np.frombuffer(one.signature, np.uint8) for one in prints])
    partners = find_partners(hashes, signatures, np.zeros(2, np.uint8), np.zeros(2, np.int64), 4, 0.1)
    first_of_alike(partners[:, 0])


def _annotate() -> None:
    take_polygons(b'{"segmentation": [[1, 2, 3, 4, 5, 6]]}')


def _cut_into_tiles() -> None:
    engine = Engine(["cpu:0"], "thread", num_threads=1)
    inverted = [
        T.Contrast(0.5),
        T.AutoContrast(),
        T.Equalize(),
        T.CLAHE(),
        T.Resize(20),
        T.ElasticTransform(),
        T.ZoomBlur(1.3),
        T.JPEG(50),
    ]
    steps = [T.Contrast(0.5), *(T.Compose([T.Invert(), one]) for one in inverted)]
    steps += [T.RandomPerspective(p=1, interpolation=way) for way in ("nearest", "bilinear")]
    with TemporaryDirectory(prefix="variegate-warm-") as folder:
        path = Path(folder) / "a.npy"
        np.save(path, np.arange(40 * 48 * 3).astype(np.uint8).reshape(40, 48, 3))
        for number, step in enumerate(steps):
            engine.map_image(path, step, out=f"{folder}/{number}.npy", tile=16)


COMMANDS: dict[tuple[str, ...], Callable[[], None]] = {_CHECK: _check, _ANNOTATED: _annotate, _TILES: _cut_into_tiles}
