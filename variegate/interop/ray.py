"""Augment images in a Ray Data pipeline: ``dataset.map_batches(MapBatches(t), batch_format="pyarrow")``.

Importing this does not need Ray; pixels in Arrow tables do.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from variegate.arrays import AnyArray
from variegate.augmenter.augmenter import Augmenter
from variegate.checks import integer, one_of
from variegate.data.objects.samples import check_entries
from variegate.errors import DecodeError
from variegate.executors.runners.runner import Dtype, Geometry, Layout
from variegate.interop import ray_batches as batches
from variegate.interop.ray_batches import ArrayBatch, Pixels, TableBatch, id_of
from variegate.jobs.output.files import FORMATS, check_format, encode_image, output_path
from variegate.ops.base import refuse_views
from variegate.ops.compose import KNOWN, Cond
from variegate.ops.description import walk
from variegate.transforms import Transform

__all__ = ["MapBatches", "id_of"]

_ON_ERROR = ("raise", "skip")
# Of each column: enough to meet one that is not null.
_ROWS_LOOKED_AT = 8
_log = logging.getLogger(__name__)


class MapBatches:
    """Augment batches of images in ``ray.data.Dataset.map_batches``.

    The pixels of a row are a pure function of (seed, epoch, id, copy) and its image. Batch size, blocks, workers and
    the order of rows do not change them. Columns other than ``image`` are returned unchanged; columns with masks,
    boxes, key points or further images, which would no longer match, are an error.

    Pass ``map_batches`` an object of this class for tasks, or the class with ``fn_constructor_args=[transform]`` and
    ``fn_constructor_kwargs`` for actors, which a GPU needs (``num_gpus=1``: Ray assigns each actor its own GPU).

    Args:
        transform: a transform, or the name or file of a policy (see ``vg.load_policy``). A ``Cond(by="label")`` reads
            the column "label"; likewise for other names.
        image: column of images, which is replaced: uint8 arrays [H, W, C] or [H, W] (``read_images``), bytes of image
            files, or Hugging Face's struct of bytes and path.
        id: column of sample ids: integers, or strings such as paths (see ``id_of``). Rows with the same id get the same
            random numbers.
        epoch: further input of the random numbers, and of schedules.
        copies: rows per input row, in succession. Above 1, a new column "copy" numbers them from 0.
        seed, device, dtype, layout, num_threads, geometry, fast_decode: as for ``vg.Augmenter``. The default is a
            single thread, because Ray runs one worker per core.
        encode: None for arrays [C, H, W] or [H, W, C]; or "jpg", "png" or "webp" for image files in Hugging Face's
            struct of bytes and path, which ``vg.open_source`` reads.
        quality: of "jpg" and "webp", 1 to 100.
        on_error: for an image that cannot be decoded, or that the transform does not accept: "raise" a DecodeError
            naming its id, or "skip" the row and log a warning with the id.
        untouched: columns of masks, boxes or images to return unchanged.

    Raises:
        TypeError, ValueError: naming the argument, its value and accepted values.
    """

    def __init__(
        self,
        transform: Transform,
        *,
        image: str = "image",
        id: str = "id",
        epoch: int = 0,
        copies: int = 1,
        seed: int = 0,
        device: str = "cpu",
        dtype: Dtype | torch.dtype = "float32",
        layout: Layout = "NCHW",
        num_threads: int | None = 1,
        geometry: Geometry = "composed",
        fast_decode: bool = False,
        encode: str | None = None,
        quality: int = 95,
        on_error: str = "raise",
        untouched: Sequence[str] = (),
    ) -> None:
        one_of("on_error", on_error, _ON_ERROR)
        if str(dtype).removeprefix("torch.") == "bfloat16":
            raise ValueError(f"dtype: got {dtype!r}, which NumPy does not have; accepted: 'float32', 'float16'")
        self._epoch = integer("epoch", epoch, 0)
        self._copies = integer("copies", copies, 1)
        if isinstance(untouched, str) or not all(isinstance(name, str) for name in untouched):
            raise TypeError(f"untouched: got {untouched!r}; accepted: a list of names of columns")
        self._image, self._id, self._on_error, self._untouched = image, id, on_error, tuple(untouched)
        if encode is not None:
            check_format(one_of("encode", encode, [*FORMATS]), quality)
        self._encode = encode
        self._quality = quality
        arguments = {"transform": transform, "seed": seed, "dtype": dtype, "layout": layout, "geometry": geometry}
        arguments |= {"num_threads": num_threads, "fast_decode": fast_decode}
        self._arguments: dict[str, Any] = {**arguments, "device": str(device)}
        # Bad arguments are refused here, where the pipeline is written, and not by a worker. GPUs are the workers'.
        is_theirs = self._arguments["device"].startswith(("cuda", "auto"))
        refuse_views(self._arguments["transform"], "transform")
        Augmenter(**{**self._arguments, **({"device": "cpu"} if is_theirs else {})})
        if encode is not None:
            self._arguments["layout"] = "NHWC"
        self._augmenter: Augmenter | None = None
        conditions = [part.by for part in walk(transform) if isinstance(part, Cond)]
        self._given = sorted({name for name in conditions if name not in KNOWN})

    def __call__(self, batch: Any) -> Any:
        """Augment a batch.

        Args:
            batch: a dict from column to array (``batch_format="numpy"``) or an Arrow table ("pyarrow").

        Returns:
            The same form. Pixels are uint8, or ``dtype`` if the transform normalizes; if their shapes differ, an array
            of arrays, or Ray's tensors of variable shape.

        Raises:
            TypeError, ValueError: for a missing or invalid column, naming existing columns. Also for columns of masks,
                boxes, key points and further images that are not named in ``untouched``.
            DecodeError: naming the id of a bad image, if ``on_error`` is "raise".
        """
        columns = batches.open_batch(batch)
        if not columns.names:  # an empty block of Ray's may have no columns
            return batch
        self._check_columns(columns)
        images = columns.images(self._image)
        names = columns.values(self._id)
        self._check_rest(columns, images)
        given = {name: _one_per_row(columns.values(name), name) for name in self._given}
        ids = batches.ids_of(names, self._id)
        rows = batches.ImageRows(images, ids, given, lambda row: self._name(names, images, row))
        self._report(rows.bad)
        if self._augmenter is None:
            self._augmenter = Augmenter(**self._arguments)
        made = []
        for copy in range(self._copies):
            numbers, pixels, bad = rows.augment(self._augmenter, self._epoch, copy)
            self._report(bad, copy)
            made.append((numbers, pixels))
        numbers, copies, pixels = _interleaved(made)
        if self._encode is None:
            new = {self._image: columns.column(pixels)}
        else:
            paths = [_path(images, row) or str(names[row]) for row in numbers]
            files = [self._file(*each) for each in zip(pixels, paths, copies, strict=True)]
            new = {self._image: columns.column(files, batches.FILES)}
        if self._copies > 1:
            new["copy"] = columns.column(np.array(copies, np.int64), pa.int64())
        return columns.put(None if numbers == list(range(len(columns))) else numbers, new)

    def _file(self, img_HWC: AnyArray, path: str, copy: int) -> dict[str, Any]:
        """Hugging Face's struct: the path is that of the original, by the new format's extension."""
        if img_HWC.dtype != np.uint8:
            got = f"got {img_HWC.dtype} pixels, as the transform ends in Normalize"
            raise ValueError(f"encode: {got}; accepted: one without it, since image files hold bytes")
        stem = os.path.splitext(path)[0]
        suffix = str(self._encode)
        name = output_path(stem, copy, suffix) if self._copies > 1 else f"{stem}.{suffix}"
        return {"bytes": encode_image(img_HWC, suffix, self._quality), "path": name}

    def _check_columns(self, columns: ArrayBatch | TableBatch) -> None:
        there = ", ".join(map(repr, columns.names))
        if self._image not in columns.names:
            accepted = "the name of the column that holds images"
            raise ValueError(f"image: there is no column {self._image!r}; the batch has {there}; accepted: {accepted}")
        if self._id not in columns.names:
            raise ValueError(
                f"id: there is no column {self._id!r}; the batch has {there}; accepted: the name of a column of "
                f"{batches.ACCEPTED_IDS}, that stay with their rows however these are split. Ray adds one that does by "
                "read_images(..., include_paths=True), for id='path', and by read_parquet(..., include_row_hash=True), "
                "for id='row_hash'"
            )
        for name in self._given:
            if name not in columns.names:
                raise ValueError(f"transform: Cond(by={name!r}) needs a column {name!r}; the batch has {there}")
        if self._copies > 1 and "copy" in columns.names:
            got = f"got {self._copies}, and the batch has a column 'copy'"
            raise ValueError(f"copies: {got}; accepted: 1, or another name")

    def _check_rest(self, columns: ArrayBatch | TableBatch, images: Any) -> None:
        """Refuse unchanged columns that refer to positions in the image."""
        shape: tuple[int, ...] = getattr(images[0], "shape", ()) if len(images) else ()
        size = (int(shape[0]), int(shape[1])) if len(shape) in (2, 3) else None
        for name in columns.names:
            if name in (self._image, self._id, *self._untouched):
                continue
            for value in columns.first(name, _ROWS_LOOKED_AT):
                check_entries({name: value}, None, "batch", size)

    def _name(self, names: AnyArray, images: Any, row: int) -> str:
        """Name of a row in errors: its id, and the path that the image brings along."""
        path = _path(images, row)
        return f"{self._id} {names[row : row + 1].tolist()[0]!r}" + (f" ({path})" if path else "")

    def _report(self, bad: Mapping[int, DecodeError], copy: int | None = None) -> None:
        if bad and self._on_error == "raise":
            raise bad[min(bad)]
        for row in sorted(bad):
            _log.warning("skipped%s: %s", f" (copy {copy})" if copy is not None and self._copies > 1 else "", bad[row])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_augmenter": None}


def _one_per_row(values: AnyArray, name: str) -> AnyArray:
    if values.ndim != 1:
        shape = list(values.shape[1:])
        raise ValueError(f"transform: Cond(by={name!r}) needs one value per row; column {name!r} holds arrays {shape}")
    return values


def _path(images: Any, row: int) -> str | None:
    """The path in Hugging Face's struct of bytes and path."""
    image = images[row]
    return image.get("path") if isinstance(image, Mapping) else None


def _interleaved(made: list[tuple[list[int], Pixels]]) -> tuple[list[int], list[int], Pixels]:
    """Rows and pixels of each copy -> rows in order, each with its copies; pixels as one array if shapes agree."""
    numbers, pixels = made[0]
    copies = [0] * len(numbers)
    if len(made) > 1:
        places = sorted((row, copy, place) for copy, (rows, _) in enumerate(made) for place, row in enumerate(rows))
        pixels = [made[copy][1][place] for _, copy, place in places]
        numbers = [row for row, _, _ in places]
        copies = [copy for _, copy, _ in places]
    if isinstance(pixels, list) and len({each.shape for each in pixels}) == 1:
        pixels = np.stack(pixels)
    return numbers, copies, pixels
