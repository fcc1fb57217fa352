"""NVIDIA DALI with its own reader, threads and iterator: on the GPU that trains, else its CPU pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from variegate import transforms as T
from variegate.apps.train.feed import Feed
from variegate.apps.train.step import in_channels_last
from variegate.apps.train.study.feeds import Fed, StudiedFeed
from variegate.apps.train.study.peers import MissingPeerError, name_of, normalisation_of, reason, source_of, steps_of
from variegate.formats.base import FileSource, Source
from variegate.loader.shuffle import Permutation
from variegate.threads import default_threads

DALI = "DALI"
_AHEAD, _SHUFFLED = 2, 1024  # DALI's own defaults


def open_dali(feed: Feed, device: str) -> StudiedFeed:
    """Raises MissingPeerError."""
    try:
        from nvidia.dali.plugin.base_iterator import LastBatchPolicy
        from nvidia.dali.plugin.pytorch import DALIGenericIterator
    except Exception as error:  # whatever a driver or a library that does not fit raises
        raise MissingPeerError(f"nvidia.dali cannot be imported: {reason(error)}") from error
    source, threads = source_of(feed), default_threads()
    is_cuda = device.startswith("cuda")
    files = _files_of(source)
    pipeline, left_out = _pipeline(feed, source, files, is_cuda)
    with warnings.catch_warnings(record=True):  # of DALI's augmentations about its operators, whatever the filters
        made = pipeline(
            batch_size=feed.batch_size,
            num_threads=threads,
            device_id=int(device.partition(":")[2] or 0) if is_cuda else None,
            seed=feed.options.seed + 1,
            prefetch_queue_depth=_AHEAD,
        )
    ends = {"size": -1} if files is None else {"reader_name": "files", "last_batch_policy": LastBatchPolicy.PARTIAL}

    def batches() -> Iterator[Fed]:
        iterator = DALIGenericIterator(made, ["images", "labels"], auto_reset=True, **ends)
        while True:
            for (output,) in iterator:
                labels = output["labels"].reshape(-1).long().to(device)
                yield Fed(in_channels_last(output["images"]).to(device), labels, len(labels))

    found = batches()
    read = "its own file reader" if files is not None else "read by Python"
    how = f"{'GPU' if is_cuda else 'CPU'} pipeline, {threads} threads, {read}, {_AHEAD} batches ahead"
    return StudiedFeed(DALI, found, _AHEAD, how, left_out, found.close)  # type: ignore[attr-defined]


def _files_of(source: Source) -> tuple[list[str], list[int]] | None:
    """Paths and labels, of a source that has a file of this machine for each sample."""
    ask = getattr(source, "labels", None)
    if not isinstance(source, FileSource) or source.is_remote or ask is None:
        return None
    folder = Path(source.folder.address())
    return (
        [str(folder / source.relative_path(index)) for index in range(len(source))],
        np.asarray(ask(np.arange(len(source), dtype=np.int64))).tolist(),
    )


def _pipeline(
    feed: Feed, source: Source, files: tuple[list[str], list[int]] | None, is_cuda: bool
) -> tuple[Any, tuple[str, ...]]:
    """-> what makes the pipeline, and what of the training's augmentation DALI does not do."""
    from nvidia.dali import fn, pipeline_def, types

    steps = list(steps_of(feed.transform))
    left_out = tuple(name_of(step) for step in steps if not _is_known(step))
    is_encoded = isinstance(source.read(0).data, bytes)
    mean, std = normalisation_of(feed.transform)
    last: dict[str, Any] = {"mean": [255 * one for one in mean], "std": [255 * one for one in std]}
    flips = [step.p for step in steps if type(step) is T.RandomHorizontalFlip]
    space = {1: types.GRAY, 3: types.RGB}[feed.channels]

    @pipeline_def(enable_conditionals=True)  # type: ignore[untyped-decorator,unused-ignore]
    def made() -> Any:
        if files is not None:
            fill = min(_SHUFFLED, len(source))
            data, labels = fn.readers.file(
                files=files[0], labels=files[1], random_shuffle=True, initial_fill=fill, name="files"
            )
        else:
            layouts = ["" if is_encoded else "HWC", ""]
            data, labels = fn.external_source(
                _Samples(source, feed.batch_size, feed.options.seed), num_outputs=2, layout=layouts
            )
        images = data
        if is_encoded:
            images = _decoded(fn, data, steps[0] if steps else None, space, "mixed" if is_cuda else "cpu")
        elif is_cuda:
            images = data.gpu()
        for step in steps:
            images = _applied(fn, types, images, step)
        mirror = fn.random.coin_flip(probability=flips[0]) if flips else 0
        images = fn.crop_mirror_normalize(
            images, dtype=types.FLOAT, output_layout="HWC", mirror=mirror, mean=last["mean"], std=last["std"]
        )
        return images, labels

    return made, left_out


def _is_known(step: Any) -> bool:
    if getattr(step, "operations", None) is not None:
        return False
    known = (T.RandomResizedCrop, T.RandomCrop, T.RandomHorizontalFlip, T.RandAugment, T.TrivialAugmentWide)
    return type(step) in known or (type(step) is T.AutoAugment and step.policy == "imagenet")


def _decoded(fn: Any, data: Any, first: Any, space: Any, device: str) -> Any:
    if type(first) is T.RandomResizedCrop:
        return fn.decoders.image_random_crop(
            data,
            device=device,
            output_type=space,
            random_area=list(first.scale),
            random_aspect_ratio=list(first.ratio),
        )
    return fn.decoders.image(data, device=device, output_type=space)


def _applied(fn: Any, types: Any, images: Any, given: Any) -> Any:
    """The image after the step, in DALI's words; as it is after one that DALI does not have."""
    from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment

    step: Any = given  # not narrowed: transforms declare their sizes as wide as what may be typed
    if type(given) is T.RandomResizedCrop:  # decoded images are crops already
        return fn.resize(images, size=list(step.size), interp_type=types.INTERP_TRIANGULAR)
    if type(given) is T.RandomCrop:
        border = int(step.padding or 0)
        start = fn.cast(fn.random.uniform(range=[-border, border + 0.999], shape=[2]), dtype=types.INT32)
        return fn.slice(
            images, start=start, shape=list(step.size), axes=[0, 1], out_of_bounds_policy="pad", fill_values=0
        )
    if not _is_known(given):
        return images
    if type(given) is T.RandAugment:
        return rand_augment.rand_augment(images, n=step.num_ops, m=step.magnitude, fill_value=0)
    if type(given) is T.TrivialAugmentWide:
        return trivial_augment.trivial_augment_wide(images, fill_value=0)
    if type(given) is T.AutoAugment:
        return auto_augment.auto_augment_image_net(images, fill_value=0)
    return images  # a flip, which the normalisation does on its way


class _Samples:
    """Batches without end: bytes of files or pixels, and labels."""

    def __init__(self, source: Source, size: int, seed: int) -> None:
        self._source, self._size, self._seed = source, size, seed

    def __iter__(self) -> Iterator[tuple[list[Any], Any]]:
        epoch = 0
        while True:
            order = Permutation(len(self._source), self._seed, epoch)(np.arange(len(self._source)))
            for first in range(0, len(order) - self._size + 1, self._size):
                items = [self._source.read(index) for index in order[first : first + self._size].tolist()]
                data = [
                    np.frombuffer(item.data, np.uint8) if isinstance(item.data, bytes) else item.data for item in items
                ]
                yield data, np.array([[int(item.label)] for item in items], np.int64)
            epoch += 1
