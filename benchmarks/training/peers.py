"""Other libraries' feeds: DataLoader with torchvision's v2 on Pillow images, and NVIDIA DALI."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from variegate import transforms as T
from variegate.apps.train.feed import Feed
from variegate.apps.train.step import in_channels_last
from variegate.apps.train.study import Fed, StudiedFeed, reason
from variegate.decode import FORMATS
from variegate.formats.base import FileSource, Item, Source
from variegate.loader.shuffle import Permutation
from variegate.threads import default_threads

_PREFETCH = 2  # batches of each worker, torch's default
_AHEAD, _SHUFFLED = 2, 1024  # DALI's own defaults


class MissingPeerError(RuntimeError):
    """A feed that is not available here, and why."""


def open_torchvision(feed: Feed, device: str) -> StudiedFeed:
    """Raises MissingPeerError."""
    try:
        from torchvision.transforms import v2
    except (ImportError, RuntimeError) as error:  # the latter of a build that does not go with torch's
        raise MissingPeerError(f"torchvision cannot be imported: {reason(error)}") from error
    source, workers = source_of(feed), default_threads()
    steps, left_out = spelled(v2, feed)
    loader: Any = torch.utils.data.DataLoader(
        _Images(source, feed.channels, v2.Compose(steps)),  # type: ignore[arg-type]
        batch_size=feed.batch_size,
        shuffle=True,
        num_workers=workers,
        prefetch_factor=_PREFETCH,
        persistent_workers=True,
        pin_memory=device.startswith("cuda"),
        # Workers that have nothing of ours running; they read and augment, no more.
        multiprocessing_context="fork" if sys.platform.startswith("linux") else None,
    )

    def batches() -> Iterator[Fed]:
        while True:
            for images, labels in loader:
                moved = images.to(device, memory_format=torch.channels_last, non_blocking=True)
                yield Fed(moved, labels.to(device, non_blocking=True), len(labels))

    how = f"{workers} workers, prefetch_factor={_PREFETCH}"
    return StudiedFeed("DataLoader+torchvision", batches(), workers * _PREFETCH, how, left_out)


def spelled(v2: Any, feed: Feed) -> tuple[list[Any], tuple[str, ...]]:
    """-> the training's augmentation in ``v2``, and the names of steps that it lacks."""
    asked = [(type(step).__name__, _in_torchvision(v2, step)) for step in steps_of(feed.transform)]
    mean, std = normalisation_of(feed.transform)
    last = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std, inplace=True)]
    steps = [step for _, step in asked if step is not None]
    return [*steps, *last], tuple(name for name, step in asked if step is None)


# Arguments of torchvision's transforms of the same names.
_IN_TORCHVISION: dict[type, tuple[str, ...]] = {
    T.RandomResizedCrop: ("size", "scale", "ratio"),
    T.RandomCrop: ("size", "padding", "pad_if_needed"),
    T.RandomHorizontalFlip: ("p",),
    T.RandAugment: ("num_ops", "magnitude", "num_magnitude_bins"),
    T.TrivialAugmentWide: ("num_magnitude_bins",),
    T.AugMix: ("severity", "mixture_width", "chain_depth", "alpha", "all_ops"),
}


def _in_torchvision(v2: Any, step: Any) -> Any:
    """The step in torchvision; None where it is missing there."""
    if getattr(step, "operations", None) is not None or getattr(step, "space", "torchvision") != "torchvision":
        return None
    if type(step) is T.AutoAugment and isinstance(step.policy, str) and not step.magnitude_std:
        return v2.AutoAugment(v2.AutoAugmentPolicy(step.policy))
    if (names := _IN_TORCHVISION.get(type(step))) is None:
        return None
    named = {"padding_mode": step.padding_mode} if type(step) is T.RandomCrop else {}
    return getattr(v2, type(step).__name__)(*(getattr(step, name) for name in names), **named)


class _Images:
    """A source as a data set of torch's."""

    def __init__(self, source: Source, channels: int, each: Any) -> None:
        self._source, self._mode, self._each = source, "L" if channels == 1 else "RGB", each

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        item = self._source.read(index)
        if isinstance(item.data, bytes):
            image: Any = Image.open(io.BytesIO(item.data), formats=FORMATS).convert(self._mode)
        else:
            image = Image.fromarray(np.ascontiguousarray(item.data.squeeze(2) if self._mode == "L" else item.data))
        return self._each(image), int(item.label)


def open_dali(feed: Feed, device: str) -> StudiedFeed:
    """DALI with its own reader, threads and iterator, on the GPU that trains or on the CPU. Raises MissingPeerError."""
    try:
        from nvidia.dali.plugin.base_iterator import LastBatchPolicy
        from nvidia.dali.plugin.pytorch import DALIGenericIterator
    except Exception as error:  # whatever a driver or a library that does not fit raises
        raise MissingPeerError(f"nvidia.dali cannot be imported: {reason(error)}") from error
    source, threads, is_cuda = source_of(feed), default_threads(), device.startswith("cuda")
    files, labels_of = None, getattr(source, "labels", None)
    if isinstance(source, FileSource) and not source.is_remote and labels_of is not None:
        folder, every = Path(source.folder.address()), np.arange(len(source), dtype=np.int64)
        files = [str(folder / source.relative_path(index)) for index in range(len(source))], labels_of(every)
    pipeline = _dali_pipeline(feed, source, files, is_cuda)
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

    read = "its own file reader" if files is not None else "read by Python"
    how = f"{'GPU' if is_cuda else 'CPU'} pipeline, {threads} threads, {read}, {_AHEAD} batches ahead"
    left_out = tuple(type(step).__name__ for step in steps_of(feed.transform) if not _is_in_dali(step))
    return StudiedFeed("DALI", batches(), _AHEAD, how, left_out)


def _dali_pipeline(feed: Feed, source: Source, files: tuple[list[str], Any] | None, is_cuda: bool) -> Any:
    """A function that makes the pipeline. ``files``: their paths and labels, where DALI can read them itself."""
    from nvidia.dali import fn, pipeline_def, types

    steps = list(steps_of(feed.transform))
    is_encoded = isinstance(source.read(0).data, bytes)
    mean, std = ([255 * one for one in numbers] for numbers in normalisation_of(feed.transform))
    flips = [step.p for step in steps if type(step) is T.RandomHorizontalFlip]
    decoding = {"device": "mixed" if is_cuda else "cpu", "output_type": {1: types.GRAY, 3: types.RGB}[feed.channels]}

    @pipeline_def(enable_conditionals=True)  # type: ignore[untyped-decorator,unused-ignore]
    def made() -> Any:
        if files is not None:
            names, known = files[0], files[1].tolist()
            how = {"random_shuffle": True, "initial_fill": min(_SHUFFLED, len(source)), "name": "files"}
            images, labels = fn.readers.file(files=names, labels=known, **how)
        else:
            batches = _Batches(source, feed.batch_size, feed.options.seed)
            images, labels = fn.external_source(batches, num_outputs=2, layout=["" if is_encoded else "HWC", ""])
        if is_encoded and steps and type(steps[0]) is T.RandomResizedCrop:
            scale, ratio = list(steps[0].scale), list(steps[0].ratio)
            images = fn.decoders.image_random_crop(images, random_area=scale, random_aspect_ratio=ratio, **decoding)
        elif is_encoded:
            images = fn.decoders.image(images, **decoding)
        elif is_cuda:
            images = images.gpu()
        for step in steps:
            images = _in_dali(fn, types, images, step)
        mirror = fn.random.coin_flip(probability=flips[0]) if flips else 0
        layout = {"dtype": types.FLOAT, "output_layout": "HWC"}
        return fn.crop_mirror_normalize(images, mirror=mirror, mean=mean, std=std, **layout), labels

    return made


def _is_in_dali(step: Any) -> bool:
    known = (T.RandomResizedCrop, T.RandomCrop, T.RandomHorizontalFlip, T.RandAugment, T.TrivialAugmentWide)
    is_known = type(step) in known or (type(step) is T.AutoAugment and step.policy == "imagenet")
    return is_known and getattr(step, "operations", None) is None


def _in_dali(fn: Any, types: Any, images: Any, step: Any) -> Any:
    """The images after the step, by DALI's operators; unchanged after one that DALI lacks."""
    from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment

    kind = type(step) if _is_in_dali(step) else None
    if kind is T.RandomResizedCrop:  # decoded images are crops already
        return fn.resize(images, size=list(step.size), interp_type=types.INTERP_TRIANGULAR)
    if kind is T.RandomCrop:
        border = int(step.padding or 0)
        start = fn.cast(fn.random.uniform(range=[-border, border + 0.999], shape=[2]), dtype=types.INT32)
        border_is = {"out_of_bounds_policy": "pad", "fill_values": 0}
        return fn.slice(images, start=start, shape=list(step.size), axes=[0, 1], **border_is)
    if kind is T.RandAugment:
        return rand_augment.rand_augment(images, n=step.num_ops, m=step.magnitude, fill_value=0)
    if kind is T.TrivialAugmentWide:
        return trivial_augment.trivial_augment_wide(images, fill_value=0)
    if kind is T.AutoAugment:
        return auto_augment.auto_augment_image_net(images, fill_value=0)
    return images  # a flip is done by the normalisation


class _Batches:
    """Batches without end: bytes of files or pixels, and labels."""

    def __init__(self, source: Source, size: int, seed: int) -> None:
        self._source, self._size, self._seed = source, size, seed

    def __iter__(self) -> Iterator[tuple[list[Any], Any]]:
        for epoch in count():
            items = shuffled(self._source, self._seed, epoch)
            for _ in range(len(self._source) // self._size):
                some = list(islice(items, self._size))
                data = [np.frombuffer(one.data, np.uint8) if isinstance(one.data, bytes) else one.data for one in some]
                yield data, np.array([[int(one.label)] for one in some], np.int64)


PEERS: dict[str, Callable[[Feed, str], StudiedFeed]] = {"DataLoader+torchvision": open_torchvision, "DALI": open_dali}


def open_peers(feed: Feed, device: str) -> tuple[list[StudiedFeed], dict[str, str]]:
    return opened({name: partial(opener, feed, device) for name, opener in PEERS.items()})


def opened(openers: Mapping[str, Callable[[], Any]]) -> tuple[list[Any], dict[str, str]]:
    """-> the peers that there are, and why others are not, by their names."""
    feeds, missing = [], {}
    for name, opener in openers.items():
        try:
            feeds.append(opener())
        except MissingPeerError as error:
            missing[name] = str(error)
        except Exception as error:  # a peer's own errors are of any type
            missing[name] = f"failed: {reason(error)}"
    return feeds, missing


def source_of(feed: Feed) -> Source:
    """Raises MissingPeerError for a stream."""
    if not isinstance(feed.source, Source):
        raise MissingPeerError("it reads samples by their number, which a stream does not have")
    return feed.source


def shuffled(source: Source, seed: int, epoch: int) -> Iterator[Item]:
    for index in Permutation(len(source), seed, epoch)(np.arange(len(source))).tolist():
        yield source.read(index)


def steps_of(transform: T.Transform) -> Iterator[Any]:
    """All steps of a transform in order, without the normalisation."""
    if isinstance(transform, T.Compose):
        for one in transform.transforms:
            yield from steps_of(one)
    elif not isinstance(transform, T.Normalize):
        yield transform


def normalisation_of(transform: T.Transform) -> tuple[list[float], list[float]]:
    """-> mean and deviation, of pixels from 0 to 1."""
    assert isinstance(transform, T.Compose)
    (found,) = (one for one in transform.transforms if isinstance(one, T.Normalize))
    mean, std = found.numbers
    return list(mean), list(std)
