"""The pictures of an encoded batch on a GPU: JPEGs decoded there where that is wanted, the rest by the host's cores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from variegate.backends.encoded_batch import EncodedBatch
from variegate.backends.first_crop import shift_crop
from variegate.data.decode.gpu import Box, JpegDecoder
from variegate.executors.cuda.executor import CudaExecutor
from variegate.executors.cuda.host import upload_images
from variegate.executors.cuda.images import DeviceImages, join, place_tensors
from variegate.executors.threads import share_out
from variegate.program.program import Program

# At the border of a region a decoder may interpolate chroma by what lies inside it alone. One chroma sample covers four
# pixels at most, so that the pixels that the crop reads are those of the whole picture.
_MARGIN = 8


def place_encoded(
    fused: Program, batch: EncodedBatch, executor: CudaExecutor, num_threads: int | None, decoder: JpegDecoder | None
) -> tuple[Program, DeviceImages]:
    """-> (the program, reading what was decoded; the pictures). No more is decoded than the crops need.

    ``decoder``: None decodes everything on the host. Raises DecodeError naming the image, unless the batch notes it.
    """
    sources = np.empty(fused.num_rows, np.int32)
    tensors, rest = _decode_on_gpu(fused, batch, decoder, sources)
    images = _decode_on_host(fused, batch, rest, num_threads)
    sources[rest] = np.arange(len(tensors), len(tensors) + len(rest))
    parts = [place_tensors(tensors)] if tensors else []
    if images or not parts:
        parts.append(upload_images(executor, images))
    return fused.replace(source=sources), join(parts)


def _decode_on_gpu(
    fused: Program, batch: EncodedBatch, decoder: JpegDecoder | None, sources: npt.NDArray[np.int32]
) -> tuple[list[torch.Tensor], list[int]]:
    """-> (pictures on the device, the rows that read none of them); fills in ``sources`` for those that do."""
    if decoder is None:
        return [], list(range(fused.num_rows))
    # The rows of a blend read the same part of one picture, which is decoded once.
    readers: dict[tuple[int, Box], list[int]] = {}
    rest = []
    suitable = [batch.is_upright_jpeg(i) for i in range(len(batch.files))]
    for row, source in enumerate(fused.source.tolist()):
        if suitable[source]:
            readers.setdefault((source, batch.box_needed(fused, row, _MARGIN)), []).append(row)
        else:
            rest.append(row)
    tensors: list[torch.Tensor] = []
    pieces = [(bytes(batch.files[source]), box) for source, box in readers]
    with batch.decoding():
        pictures = decoder.decode(pieces)
    for (source, box), rows, tensor in zip(readers, readers.values(), pictures, strict=True):
        height, width = batch.shapes[source, :2].tolist()
        top, left, bottom, right = box or (0, 0, height, width)
        # Kernels trust sizes. What the decoder refused or took for another size is tried again on the host, whose
        # decoder says what is wrong with it.
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
) -> list[npt.NDArray[np.uint8]]:
    load = batch.loader(fused)
    images: list[npt.NDArray[np.uint8]] = [np.empty((0, 0, 3), np.uint8)] * len(rows)

    def decode(places: npt.NDArray[np.int64]) -> None:
        for place in places.tolist():
            # A copy: the thread's next load writes over the same memory.
            images[place] = load(rows[place], 0).copy()

    share_out(decode, len(rows), num_threads)
    return images
