"""Ray Data, with Variegate's ``MapBatches`` inside, as docs/ray.md has it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import ray

from benchmarks.loader.peers.base import Given, LoaderPeer, Opener
from benchmarks.peers.ours import transform
from variegate.integrations.ray import MapBatches


class _Step:
    """Rows of files -> images and labels."""

    def __init__(self, epoch: int, classes: dict[str, int]) -> None:
        self._step = MapBatches(transform("w1"), image="bytes", id="path", epoch=epoch)
        self._classes = classes

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        labels = [self._classes[path.split("/")[-2]] for path in batch["path"]]
        return {"image": self._step(batch)["bytes"], "label": np.array(labels, np.int64)}


class _Epochs:
    def __init__(self, given: Given, compute: str, blocks: int) -> None:
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        self._given, self._compute, self._blocks, self._epoch = given, compute, blocks, 0
        self._classes = {home.name: label for label, home in enumerate(sorted(given.folder.iterdir()))}

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        given, epoch, self._epoch = self._given, self._epoch, self._epoch + 1
        files = ray.data.read_binary_files(
            str(given.folder), include_paths=True, shuffle="files", override_num_blocks=self._blocks * given.cores
        )
        if self._compute == "tasks":
            made = files.map_batches(_Step(epoch, self._classes), batch_size=given.batch)
        else:
            pool = ray.data.ActorPoolStrategy(size=given.cores)
            arguments = [epoch, self._classes]
            made = files.map_batches(
                _Step, fn_constructor_args=arguments, batch_size=given.batch, compute=pool, num_cpus=0.5
            )
        for batch in made.iter_torch_batches(batch_size=given.batch, prefetch_batches=2, drop_last=True):
            yield batch["image"], batch["label"]


class RayData(LoaderPeer):
    name = "Ray Data, Variegate inside"
    packages = ("ray", "pyarrow")

    def variants(self, given: Given) -> dict[str, Opener]:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ways = [("tasks", 4), ("actors", 4)]
        return {f"{way}, {n} blocks per core": partial(_Epochs, given, way, n) for way, n in ways}


PEER = RayData()
