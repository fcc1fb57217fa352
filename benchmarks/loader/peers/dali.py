"""NVIDIA DALI's CPU pipeline with its own reader, threads and iterator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import DALIGenericIterator

from benchmarks.loader.peers.base import Given, LoaderPeer, Opener
from benchmarks.peers.dali import DECODE_WAYS, augment, decode_and_crop
from benchmarks.peers.dali import PEER as ON_ONE_CORE

SHUFFLE_BUFFER = 1024  # DALI's own default


@pipeline_def(enable_conditionals=True)
def _pipeline(folder: str, decode: str, files: int) -> Any:
    # A buffer larger than the folder would only make the first batch wait.
    fill = min(SHUFFLE_BUFFER, files)
    data, labels = fn.readers.file(file_root=folder, random_shuffle=True, initial_fill=fill, name="files")
    return augment(decode_and_crop(data, decode)), labels


class _Batches:
    def __init__(self, given: Given, decode: str) -> None:
        pipeline = _pipeline(
            folder=str(given.folder),
            decode=decode,
            files=sum(1 for _ in given.folder.glob("*/*")),
            batch_size=given.batch,
            num_threads=given.cores,
            device_id=None,
            seed=1,
            prefetch_queue_depth=2,
            exec_async=True,
        )
        # An epoch's last batch is filled from the next one: dropping it would throw away what has been made.
        self._iterator = DALIGenericIterator(
            pipeline,
            ["images", "labels"],
            reader_name="files",
            auto_reset=True,
            last_batch_policy=LastBatchPolicy.FILL,
        )

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for (output,) in self._iterator:
            yield output["images"], output["labels"].squeeze(-1)


class Dali(LoaderPeer):
    name = ON_ONE_CORE.name
    packages = ON_ONE_CORE.packages

    def variants(self, given: Given) -> dict[str, Opener]:
        return {f"decode {way}, {given.cores} threads": partial(_Batches, given, way) for way in DECODE_WAYS}


PEER = Dali()
