"""The CUDA runner: reads images on the device without a copy, and uploads images of the host once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from variegate.arrays import ImageArray, IndexArray, Int32Array, Int64Array, UInt8Array
from variegate.decode.gpu import INSTALL, JpegDecoder, decoder_of, is_installed
from variegate.executors.batches import depth_of_batch, share_out
from variegate.executors.cuda.executor import (
    CudaExecutor,
    executor_of,
    lower_for_cuda,
    upload_images,
)
from variegate.executors.cuda.images import DeviceImages, join, place_packed, place_tensor, place_tensors
from variegate.executors.cuda.pack import refuse_jpeg
from variegate.executors.runners.channels import run_groups
from variegate.executors.runners.decode_plan import join_boxes, shift_crop
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.runners.grouping import addresses_of, allocate_outputs
from variegate.executors.runners.host import decoded, widened
from variegate.executors.runners.images import (
    NAMES,
    RaggedBatch,
    as_tensor,
    check_images,
    check_tensor,
    check_tensors,
)
from variegate.program.plan import LoweringOptions
from variegate.program.program import Program
from variegate.threads import default_threads

# Pixels decoded around a crop. At a region's border, a decoder may interpolate chroma from samples in the region only.
# A chroma sample covers at most four pixels, so the pixels that the crop reads equal a full decode.
_MARGIN = 8


class CudaRunner:
    """Runs fused programs on a CUDA device; CPU counterpart: ``host.CpuRunner``.

    ``decode``: see ``Augmenter``. ``executor``, ``decoder``: for tests; by default the process's, one per device.
    Raises ValueError for ``decode="gpu"`` if nvImageCodec cannot decode JPEGs.
    """

    def __init__(
        self,
        device: str,
        num_threads: int | None,
        geometry: str,
        decode: str = "cpu",
        executor: CudaExecutor | None = None,
        decoder: JpegDecoder | None = None,
    ) -> None:
        self.lower = partial(lower_for_cuda, geometry=geometry)
        self.rewriting = LoweringOptions(geometry == "composed", measured_once=True)
        self._executor = executor_of(device) if executor is None else executor
        self._num_threads = num_threads
        self._decode = decode
        self._decoder = decoder
        if decode == "gpu" and decoder is None:
            self._decoder = self._find_decoder()
            if self._decoder is None:
                raise ValueError(
                    f"decode: got 'gpu', but nvImageCodec decodes no JPEG on {device}; {INSTALL} brings nvJPEG, which "
                    "it needs; accepted without it: 'cpu', 'auto'"
                )

    @property
    def mask_runner(self) -> CudaRunner:
        return self

    @property
    def device(self) -> torch.device:
        return self._executor.device

    def move(self, program: Program, images: Sequence[UInt8Array | torch.Tensor]) -> Any:
        """Apply a program to masks, given as images uint8[H, W, bytes], each on the host or on this device."""
        there = [image for image in images if isinstance(image, torch.Tensor)]
        host = [image for image in images if not isinstance(image, torch.Tensor)]
        is_host = np.array([not isinstance(image, torch.Tensor) for image in images])
        order = np.empty(len(images), np.int32)
        order[np.flatnonzero(~is_host)] = np.arange(len(there))
        order[np.flatnonzero(is_host)] = len(there) + np.arange(len(host))
        with self._executor.current():
            parts = [place_tensors(there)] if there else []
            if host:
                parts.append(upload_images(self._executor, host))
            lowered = lower_for_cuda(program.replace(source=order[program.source]), geometry="nearest")
            return self._run_placed(lowered, join(parts))

    def take(self, images: Any, names: str = NAMES) -> DeviceImages:
        if isinstance(images, DeviceImages):
            return images
        placed = self._in_place(images, names)
        if placed is not None:
            return placed
        if isinstance(images, RaggedBatch):
            staging = self._executor.memory.staging(len(images.data))
            staging.copy_(images.data)
            return place_packed(self._executor.memory.upload(staging, len(staging)), images.offsets, images.shapes)
        arrays = check_images(images, names)
        depth_of_batch(arrays, names)
        return upload_images(self._executor, arrays)

    def _in_place(self, images: Any, names: str = NAMES) -> DeviceImages | None:
        """Describe images on the GPU without a copy; None for images on the host."""
        if isinstance(images, RaggedBatch):
            if not images.data.is_cuda:
                return None
            self._check_device("images", images.data)
            return place_packed(images.data, images.offsets, images.shapes)
        whole = as_tensor(images)
        if whole is not None and whole.is_cuda:
            self._check_device("images", whole)
            return place_tensor(whole, is_channels_last=check_tensor(whole))
        if isinstance(images, (list, tuple)):
            tensors = [as_tensor(image) for image in images]
            if any(tensor is not None and tensor.is_cuda for tensor in tensors):
                return self._take_tensors(tensors, names)
        return None

    def _take_tensors(self, tensors: Sequence[torch.Tensor | None], names: str) -> DeviceImages:
        for i, tensor in enumerate(tensors):
            if tensor is None or not tensor.is_cuda:
                got = "no tensor" if tensor is None else f"a tensor on {tensor.device}"
                raise ValueError(f"{names.format(i)}: got {got} among tensors on a GPU; accepted: all on one device")
            self._check_device(names.format(i), tensor)
            if tensors[0] is not None and tensor.dtype != tensors[0].dtype:
                got = f"{tensor.dtype} in a batch of {tensors[0].dtype}"
                raise ValueError(f"{names.format(i)}: got {got}; accepted: images of one dtype")
        return place_tensors(check_tensors([tensor for tensor in tensors if tensor is not None], names))

    def _check_device(self, where: str, tensor: torch.Tensor) -> None:
        if tensor.device != self._executor.device:
            raise ValueError(
                f"{where}: got a tensor on {tensor.device}; accepted: tensors on {self._executor.device} or on the CPU"
            )

    def run(self, program: Program, batch: DeviceImages) -> Any:
        return self._run_placed(self._lowered(program), widened(batch, program))

    def _run_placed(self, fused: Program, batch: DeviceImages) -> Any:
        if fused.has_many_channels:
            with self._executor.current():
                return run_groups(fused, lambda group, part: self._run(part, batch.of_channels(group.read)))
        return self._run(fused, batch)

    def _lowered(self, program: Program) -> Program:
        return program if program.stage == "fused" else self.lower(program)

    def _run(self, fused: Program, batch: DeviceImages) -> Any:
        if fused.grouping is None:
            return self._executor.run(fused, batch)
        with self._executor.current():
            room, blocks = allocate_outputs(fused, fused.grouping, partial(self._executor.take_results, fused))
        self._executor.run(fused, batch, addresses_of(blocks, torch.Tensor.data_ptr))
        return room

    def decode_and_run(self, program: Program, batch: EncodedBatch) -> Any:
        if program.has_many_channels:
            return self.run(program, self.take(decoded(batch).images))
        batch = widened(batch, program)
        fused = self._lowered(program)
        refuse_jpeg(fused)
        with self._executor.current():
            fused, placed = _place_encoded(fused, batch, self._executor, self._num_threads, self._jpeg_decoder())
            return self._run(fused, placed)

    def _jpeg_decoder(self) -> JpegDecoder | None:
        """The GPU's decoder; None if the host decodes. Created on first use, because it takes time and memory."""
        if self._decode == "auto" and self._decoder is None and is_installed():
            self._decoder = self._find_decoder()
        return self._decoder

    def _find_decoder(self) -> JpegDecoder | None:
        return decoder_of(str(self._executor.device), self._num_threads or default_threads())


def _place_encoded(
    fused: Program, batch: EncodedBatch, executor: CudaExecutor, num_threads: int | None, decoder: JpegDecoder | None
) -> tuple[Program, DeviceImages]:
    """Decode the parts of images that the program reads -> (the program for these parts, the parts on the device).

    ``decoder``: None to decode all on the host.
    """
    sources = np.empty(fused.num_rows, np.int32)
    tensors, rest = _decode_on_gpu(fused, batch, decoder, sources)
    images, places = _decode_on_host(fused, batch, rest, num_threads)
    sources[rest] = len(tensors) + places
    parts = [place_tensors(tensors)] if tensors else []
    if images or not parts:
        parts.append(upload_images(executor, images))
    return fused.replace(source=sources), join(parts)


def _decode_on_gpu(
    fused: Program, batch: EncodedBatch, decoder: JpegDecoder | None, sources: Int32Array
) -> tuple[list[torch.Tensor], list[int]]:
    """Decode suitable JPEGs -> (images on the device, the remaining rows).

    Writes to ``sources`` the index of the image that each decoded row reads.
    """
    if decoder is None:
        return [], list(range(fused.num_rows))
    # Several rows may read one image (views, copies, rows of a blend): one decode covers all their boxes.
    readers: dict[int, list[int]] = {}
    rest = []
    suitable = [batch.is_upright_jpeg(i) for i in range(len(batch.files))]
    for row, source in enumerate(batch.first_of(fused).tolist()):
        if suitable[source]:
            readers.setdefault(source, []).append(row)
        else:
            rest.append(row)
    boxes = [join_boxes([batch.box_needed(fused, row, _MARGIN) for row in rows]) for rows in readers.values()]
    tensors: list[torch.Tensor] = []
    pieces = [(bytes(batch.files[source]), box) for source, box in zip(readers, boxes, strict=True)]
    with batch.decoding():
        pictures = decoder.decode(pieces)
    for source, box, rows, tensor in zip(readers, boxes, readers.values(), pictures, strict=True):
        height, width = batch.shapes[source, :2].tolist()
        top, left, bottom, right = box or (0, 0, height, width)
        # Kernels do not check sizes. If the GPU's decoder fails or returns another size, the host decodes the file
        # again, because its errors name the cause.
        if tensor is None or tensor.shape != (bottom - top, right - left, 3):
            rest += rows
            continue
        for row in rows:
            sources[row] = len(tensors)
            if box is not None:
                shift_crop(fused, row, top, left, bottom - top, right - left)
        tensors.append(tensor)
    return tensors, sorted(rest)


def _decode_on_host(
    fused: Program, batch: EncodedBatch, rows: list[int], num_threads: int | None
) -> tuple[list[ImageArray], IndexArray]:
    """Decode the images of ``rows`` on the host -> (images, the index of the image that each row reads)."""
    load = batch.loader(fused)
    images: list[ImageArray] = [np.empty((0, 0, 3), batch.depth.dtype)] * len(rows)
    shared = np.array([], np.intp) if fused.grouping is None else batch.first_of(fused)[rows]
    # Views of one file are consecutive rows.
    begins = np.flatnonzero(np.diff(shared, prepend=-1)) if len(shared) else np.arange(len(rows))
    ends = np.append(begins[1:], len(rows))

    def decode(runs: Int64Array) -> None:
        for run in runs.tolist():
            for place in range(begins[run], ends[run]):
                image = load(rows[place], 0)
                if place == begins[run]:
                    # Copy, because the thread's next load overwrites this memory.
                    images[run] = image.copy()

    share_out(decode, len(begins), num_threads)
    return images[: len(begins)], np.repeat(np.arange(len(begins)), ends - begins)
