"""For users who keep their torch ``Dataset`` and ``DataLoader``: a transform of one image, and one of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from multiprocessing import parent_process
from operator import index
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from variegate.augmenter import Augmenter
from variegate.backends.images import Tensors
from variegate.backends.runner import Dtype, Geometry, Layout
from variegate.checks import renamed
from variegate.integrations.items import RunningIds, SharedEpoch, form_of, stack_labels, take_apart, to_array
from variegate.transforms import Transform
from variegate.warm import make_ready


class _InWorkers:
    """An ``Augmenter`` that is made again in every process that its owner is copied to."""

    def __init__(self, **arguments: Any) -> None:
        self._arguments = arguments
        augmenter = Augmenter(**arguments)  # now, so that bad arguments are refused now
        self._device = augmenter.device
        self._augmenters = {False: augmenter}  # by whether it keeps to one thread, as workers are the parallelism
        # Before there are workers, of which one would compile and all others wait. With none to come it is only sooner.
        if self._device == "cpu" and parent_process() is None:
            make_ready()
        self._epoch = SharedEpoch()
        self._running_ids = RunningIds()

    @property
    def epoch(self) -> int:
        """The current epoch, the same in every worker."""
        return self._epoch.get()

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, here and in workers that run already. Call it before iterating over the ``DataLoader``.

        Raises ValueError for anything but an integer from 0 to 2**63 - 1.
        """
        self._epoch.set(epoch)

    def _get_augmenter(self) -> Augmenter:
        worker = get_worker_info()
        # PyTorch prepares workers that are threads, which may use a GPU.
        in_process = worker is not None and getattr(worker, "worker_method", None) != "thread"
        if in_process and self._device.startswith("cuda"):
            raise ValueError(
                f"device: got {self._device!r} in a worker process of a DataLoader; accepted there: 'cpu'. For a GPU "
                "use num_workers=0, or let workers give raw images and call vg.Augmenter in the training loop"
            )
        is_single = worker is not None and self._arguments["num_threads"] is None
        if is_single not in self._augmenters:
            self._augmenters[is_single] = Augmenter(**self._arguments | ({"num_threads": 1} if is_single else {}))
        return self._augmenters[is_single]

    def _run(self, images: Any, ids: Any, given: Mapping[str, Any] | None, **more: Any) -> Any:
        """``ids``: None for running ones."""
        ids = self._running_ids.take(len(images)) if ids is None else ids
        return self._get_augmenter()(images, ids=ids, epoch=self.epoch, conditions=given, **more)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_augmenters": {}}


class ImageTransform(_InWorkers):
    """What ``as_transform`` gives: image -> augmented tensor."""

    @renamed(given="conditions")
    def __call__(self, image: Any, id: int | None = None, conditions: Mapping[str, Any] | None = None) -> Any:
        """Augment one image.

        Args:
            image: a PIL image of any mode, a uint8 array [H, W, 3], [H, W, 1] or [H, W], a uint8 tensor [C, H, W] or
                [H, W], or the bytes of an image file. PIL images in gray keep one channel.
            id: the sample's number in the data set. With it the pixels are a pure function of (seed, epoch, id); None
                takes a running count.
            conditions: values of this sample for ``Cond``, such as ``{"label": 3}``.

        Returns:
            [C, H, W] or, with layout "NHWC", [H, W, C]: of ``dtype`` if the transform normalises, else uint8. Of a
            ``T.MultiView`` a tuple of them, [views, C, H, W], which ``default_collate`` makes [N, views, C, H, W] of.

        Raises TypeError or ValueError (of which DecodeError is one) naming the image and what is accepted.
        """
        pixels = image if self._arguments["consistent"] else to_array(image, "image")
        given = {name: [value] for name, value in conditions.items()} if conditions else None
        ids = [self._running_ids.take_one()] if id is None else [id]
        return self._get_augmenter().of_one(pixels, ids, self.epoch, conditions=given)


def as_transform(
    t: Transform,
    seed: int = 0,
    dtype: Dtype | torch.dtype = "float32",
    layout: Layout = "NCHW",
    geometry: Geometry = "composed",
    consistent: bool = False,
) -> ImageTransform:
    """A transform for data sets that take one: ``ImageFolder(root, transform=vg.as_transform(t))``.

    Args:
        t: what may be done (``variegate.transforms``, ``vg.load_policy``).
        seed, dtype, layout, geometry: as for ``vg.Augmenter``.
        consistent: True for clips in the place of images, [T, H, W, C] (a tensor [T, C, H, W], too) or a list of
            frames; all frames get the same, and come back as [T, C, H, W].

    Returns:
        A callable ``(image, id=None, conditions=None)`` -> tensor, for workers of any start method. A data set
        calls it without ``id``. Then a running count stands for it, which in a worker begins at a place drawn by the
        DataLoader from torch's generator: workers do not repeat one another, epochs differ, ``torch.manual_seed``
        makes a run repeat, and another number of workers makes other pixels. Two of them in one pipeline need seeds of
        their own, or they draw the same for each image. It runs on one core and plans each image alone;
        ``vg.Collate`` costs less.

    Raises TypeError or ValueError for arguments that ``vg.Augmenter`` does not accept.
    """
    arguments: dict[str, Any] = {"transform": t, "seed": seed, "dtype": dtype, "layout": layout, "geometry": geometry}
    return ImageTransform(**arguments, consistent=consistent, num_threads=1)


class Collate(_InWorkers):
    """A ``collate_fn`` that augments the batch: ``DataLoader(dataset, 64, collate_fn=vg.Collate(t))``.

    Args:
        t: what may be done.
        seed, dtype, layout, geometry: as for ``vg.Augmenter``.
        device: "cpu", or a GPU where the DataLoader has no workers (``num_workers=0``).
        num_threads: None for one thread in a worker and all cores in the main process.

    Items with an id (see ``vg.WithIds``) make the pixels a pure function of (seed, epoch, id); call ``set_epoch`` for
    every epoch then. Without ids a running count is used as by ``vg.as_transform``.

    Raises TypeError or ValueError for arguments that ``vg.Augmenter`` does not accept.
    """

    def __init__(
        self,
        t: Transform,
        seed: int = 0,
        device: str = "cpu",
        dtype: Dtype | torch.dtype = "float32",
        layout: Layout = "NCHW",
        num_threads: int | None = None,
        geometry: Geometry = "composed",
    ) -> None:
        arguments = {"transform": t, "device": device, "seed": seed, "dtype": dtype, "layout": layout}
        super().__init__(**arguments, num_threads=num_threads, geometry=geometry)

    def __call__(self, items: Sequence[Any]) -> tuple[Tensors, Any]:
        """Augment a batch.

        Args:
            items: each (image, label), (image, label, id), or a dict with "image", "label" and perhaps "id", of which
                other entries (names, numbers) are left out. Images as for ``vg.as_transform``; their sizes may differ.
                Masks, boxes, key points and further images are refused by name, wherever they are in an item: they are
                not augmented along with the image yet, and would no longer fit it.

        Returns:
            (images, labels). Images: one tensor [N, C, H, W] or [N, H, W, C], or a list of tensors where shapes differ;
            of a ``T.MultiView`` a tuple of such, one for each group.
            Labels: int64[N], float32[N] or bool[N] of numbers, arrays stacked, containers as ``default_collate`` does,
            anything else a list. Labels that are numbers are given to ``Cond(by="label")``. A transform that mixes
            images (``T.MixUp``) mixes each with the one before it in the batch, and their labels likewise: float32
            [N, num_classes], or ``MixedLabels``.

        Raises TypeError or ValueError naming the item and what is accepted.
        """
        arrays, labels, ids = take_apart(items)
        stacked = stack_labels(labels)
        is_numbers = isinstance(stacked, torch.Tensor) and stacked.ndim == 1
        given = {"label": stacked.tolist()} if is_numbers else None
        if self._arguments["transform"]._mixers:
            mixed: tuple[Tensors, Any] = self._run(arrays, ids, given, labels=stacked, partners="batch")
            return mixed
        return self._run(arrays, ids, given), stacked


class WithIds(Dataset[Any]):
    """A map-style data set whose items also carry their index, which ``vg.Collate`` takes as the sample's id.

    Items (image, label) become (image, label, index); dicts get an "id". Other attributes (``classes``) are those of
    ``dataset``. Wrap before ``Subset`` or ``random_split``, so that a sample keeps its id whatever part it falls into.

    Raises TypeError for data sets that cannot be indexed, and when an item has another form.
    """

    def __init__(self, dataset: Any) -> None:
        is_indexed = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        if isinstance(dataset, IterableDataset) or not is_indexed:
            accepted = "a map-style data set, with __getitem__ and __len__"
            raise TypeError(f"dataset: got {type(dataset).__name__}; accepted: {accepted}")
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> Any:
        place = self._place(i)
        return self._with_id(self.dataset[place], place)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """What the DataLoader calls for a batch; data sets that have it fetch a batch at once."""
        places = [self._place(i) for i in indices]
        fetch = getattr(self.dataset, "__getitems__", None)
        items = fetch(places) if callable(fetch) else [self.dataset[place] for place in places]
        return [self._with_id(item, place) for item, place in zip(items, places, strict=True)]

    def _place(self, i: int) -> int:
        place, length = index(i), len(self)
        if not -length <= place < length:
            raise IndexError(f"index: got {place}; accepted: {-length} to {length - 1}")
        return place % length

    def _with_id(self, item: Any, place: int) -> Any:
        if isinstance(item, Mapping):
            return {**item, "id": place}
        if isinstance(item, (tuple, list)) and len(item) == 2:
            return (*item, place)
        raise TypeError(f"dataset[{place}]: got {form_of(item)}; accepted: (image, label), or a dict")

    def __getattr__(self, name: str) -> Any:
        # Names with underscores are asked for by copying and pickling, before there is a data set to ask.
        if name == "dataset" or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return getattr(self.dataset, name)
