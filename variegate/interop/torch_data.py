"""For users of torch's ``Dataset`` and ``DataLoader``: a transform of one image, and a transform of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import get_worker_info

from variegate.augmenter.augmenter import Augmenter
from variegate.checks import integer
from variegate.errors import short_repr
from variegate.executors.runners.runner import Dtype, Geometry, Layout
from variegate.interop.items import collate_samples, split_item, stack_labels
from variegate.interop.one_sample import RunningIds, augment_inputs, is_beside, is_sample, to_array
from variegate.io.files import StrPath
from variegate.ops.base import refuse_views
from variegate.targets.settings import Targets
from variegate.transforms import Transform


class SharedEpoch:
    """The epoch, in memory that copies made by torch's multiprocessing share, so that persistent workers see it."""

    def __init__(self, epoch: int = 0) -> None:
        self._cell = torch.zeros(1, dtype=torch.int64).share_memory_()
        self.set(epoch)

    def get(self) -> int:
        return int(self._cell.item())

    def set(self, epoch: int) -> None:
        """Raises ValueError for anything but an integer from 0 to 2**63 - 1."""
        self._cell.fill_(integer("epoch", epoch, 0, 2**63 - 1))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._cell = state["_cell"]
        if not self._cell.is_shared():  # copied by value
            self._cell = self._cell.clone().share_memory_()


class _InWorkers:
    """An ``Augmenter`` that is made again in every process that its owner is copied to."""

    def __init__(self, targets: Targets | None, **arguments: Any) -> None:
        if not isinstance(targets, (Targets, type(None))):
            raise TypeError(f"targets: got {short_repr(targets)}; accepted: vg.Targets(...), or None")
        augmenter = Augmenter(**arguments)  # now, so that bad arguments are refused now
        self._arguments = {**arguments, "transform": augmenter.transform}
        self._targets = targets
        self._device = augmenter.device
        if targets is not None:
            refuse_views(augmenter.transform, "t with targets")
        # By whether it must run in one thread, as in a worker process.
        self._augmenters = {False: augmenter}
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
    """Result of ``as_transform``: image -> augmented tensor."""

    def __call__(self, image: Any, id: Any = None, conditions: Mapping[str, Any] | None = None) -> Any:
        """Augment one image, alone or with its targets.

        Args:
            image: a PIL image of any mode, the bytes of an image file, or uint8: an array [H, W, 3], [H, W, 1] or
                [H, W], or a tensor [C, H, W] or [H, W]. PIL images in gray keep one channel. Or a dict of such an
                "image" and its targets, as for ``vg.Augmenter``.
            id: the sample's number in the data set. With it the pixels are a pure function of (seed, epoch, id); None
                takes a running count. Or the image's targets, as torchvision's data sets pass them to ``transforms``: a
                dict, or torchvision's ``Mask``, ``BoundingBoxes`` or ``KeyPoints``.
            conditions: values of this sample for ``Cond``, such as ``{"label": 3}``.

        Returns:
            [C, H, W] or, with layout "NHWC", [H, W, C]: of ``dtype`` if the transform normalizes, else uint8. Of a
            ``T.MultiView`` a tuple of them, [views, C, H, W], which ``default_collate`` makes [N, views, C, H, W] of.
            for a dict; a pair for an image with its targets.

        Raises TypeError or ValueError (also DecodeError) naming the image and accepted values.
        """
        if is_sample(image) or is_beside(id):
            inputs, number = ((image, id), None) if is_beside(id) else ((image,), id)
            number = self._running_ids.take_one() if number is None else number
            told = {"ids": number, "epoch": self.epoch, "conditions": conditions}
            return augment_inputs(self._get_augmenter(), inputs, self._targets, **told)
        pixels = image if self._arguments["consistent"] else to_array(image, "image")
        given = {name: [value] for name, value in conditions.items()} if conditions else None
        ids = [self._running_ids.take_one()] if id is None else [id]
        return self._get_augmenter().of_one(pixels, ids, self.epoch, conditions=given)


def as_transform(
    t: Transform | StrPath,
    seed: int = 0,
    dtype: Dtype | torch.dtype = "float32",
    layout: Layout = "NCHW",
    geometry: Geometry = "composed",
    consistent: bool = False,
    targets: Targets | None = None,
) -> ImageTransform:
    """Wrap a transform for data sets that take one: ``ImageFolder(root, transform=vg.as_transform(t))``.

    For images with targets, use ``transforms=vg.as_transform(t)``.

    Args:
        t: a transform, or the name or file of a policy (see ``vg.load_policy``).
        seed, dtype, layout, geometry: as for ``vg.Augmenter``.
        consistent: True for clips instead of images: [T, H, W, C], a tensor [T, C, H, W], or a list of frames. All
            frames are augmented alike and returned as [T, C, H, W].
        targets: how to read and filter targets; None for ``vg.Targets()``.

    Returns:
        A callable ``(image, id=None, conditions=None)`` -> tensor (a dict for a dict, a pair for a pair), which works
        in workers of any start method.

    Data sets call it without ``id``; then a running count takes its place, which in a worker starts where torch's
    generator says. So workers do not repeat each other, epochs differ, and ``torch.manual_seed`` makes a run
    repeatable; another number of workers changes pixels. Two of these transforms in one pipeline need different seeds,
    or they draw the same numbers. It runs on one core and plans each image separately; ``vg.Collate`` is faster.

    Raises:
        TypeError, ValueError: for arguments that ``vg.Augmenter`` does not accept.
    """
    arguments: dict[str, Any] = {"transform": t, "seed": seed, "dtype": dtype, "layout": layout, "geometry": geometry}
    return ImageTransform(targets, **arguments, consistent=consistent, num_threads=1)


class Collate(_InWorkers):
    """Augment batches in a ``collate_fn``: ``DataLoader(dataset, 64, collate_fn=vg.Collate(t))``.

    Args:
        t: a transform, or the name or file of a policy (see ``vg.load_policy``).
        seed, dtype, layout, geometry: as for ``vg.Augmenter``.
        device: "cpu", or a GPU if the DataLoader has no workers (``num_workers=0``).
        num_threads: None for one thread in a worker and all cores in the main process.
        targets: ``vg.Targets(...)`` for items with boxes, masks or key points; batches are then dicts.

    With ids in the items (see ``vg.WithIds``), pixels are a pure function of (seed, epoch, id): call ``set_epoch`` for
    every epoch. Without ids, a running count is used as by ``vg.as_transform``.

    Raises:
        TypeError, ValueError: for arguments that ``vg.Augmenter`` does not accept.
    """

    def __init__(
        self,
        t: Transform | StrPath,
        seed: int = 0,
        device: str = "cpu",
        dtype: Dtype | torch.dtype = "float32",
        layout: Layout = "NCHW",
        num_threads: int | None = None,
        geometry: Geometry = "composed",
        targets: Targets | None = None,
    ) -> None:
        arguments = {"transform": t, "device": device, "seed": seed, "dtype": dtype, "layout": layout}
        super().__init__(targets, **arguments, num_threads=num_threads, geometry=geometry)

    def __call__(self, items: Sequence[Any]) -> Any:
        """Augment a batch.

        Args:
            items: each (image, label), (image, label, id), or a dict with "image", "label" and optionally "id"; its
                other entries (names, numbers) are dropped. Images as for ``vg.as_transform``; their sizes may differ.
                Without ``targets``, masks, boxes, key points and further images anywhere in an item are refused by
                name, because they would no longer fit the image. With it: dicts of "image" and its targets, (image,
                dict) or (image, dict, id); also (image, list of COCO's annotations).

        Returns:
            (images, labels). Images: one tensor [N, C, H, W] or [N, H, W, C], or a list of tensors where shapes differ;
            of a ``T.MultiView`` a tuple of such, one for each group.
            Labels: int64[N], float32[N] or bool[N] of numbers, arrays stacked, containers as ``default_collate`` does,
            anything else a list. Labels that are numbers are given to ``Cond(by="label")``. A transform that mixes
            images (``T.MixUp``) mixes each with the one before it in the batch, and their labels likewise: float32
            [N, num_classes], or ``MixedLabels``.
            With ``targets`` one dict of the batch, as ``vg.Loader`` gives it.

        Raises TypeError or ValueError naming the item and accepted values.
        """
        if self._targets is not None:
            count = self._running_ids.take
            return collate_samples(self._get_augmenter(), items, self._targets, self.epoch, count)
        arrays, labels, ids = split_item(items)
        stacked = stack_labels(labels)
        is_numbers = isinstance(stacked, torch.Tensor) and stacked.ndim == 1
        given = {"label": stacked.tolist()} if is_numbers else None
        if self._arguments["transform"]._mixers:
            return self._run(arrays, ids, given, labels=stacked, partners="batch")
        return self._run(arrays, ids, given), stacked
