"""Kernels of commands besides those of a batch: annotated outputs, images in tiles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from variegate import transforms as T
from variegate.formats.annotated.outlines import trace
from variegate.jobs.engine import Engine

_ANNOTATED = (
    "formats.annotated.outlines._count",
    "formats.annotated.outlines._trace",
)

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


def _annotate() -> None:
    trace(np.ones((2, 2), np.bool_))


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


COMMANDS: dict[tuple[str, ...], Callable[[], None]] = {_ANNOTATED: _annotate, _TILES: _cut_into_tiles}
