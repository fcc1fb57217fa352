"""Batches on a CUDA device: images already there are read where they lie, others are sent over once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.backends.encoded_batch import EncodedBatch
from variegate.backends.gpu_decode import place_encoded
from variegate.backends.host import take_host_batch
from variegate.backends.inputs import as_tensor, check_images, check_tensor, check_tensors
from variegate.backends.ragged_batch import RaggedBatch
from variegate.data.decode.gpu import INSTALL, JpegDecoder, decoder_of, is_installed
from variegate.executors.cuda.captured import CapturedRun
from variegate.executors.cuda.executor import CudaExecutor
from variegate.executors.cuda.host import executor_of, lower_for_cuda, upload_images
from variegate.executors.cuda.images import DeviceImages, place_packed, place_tensor, place_tensors
from variegate.program.program import Program
from variegate.threads import default_threads


class CudaRunner:
    """``decode``: as for ``Augmenter``. ``executor``, ``decoder``: given by tests; else the process's for the device.

    Raises ValueError for ``decode="gpu"`` where nvImageCodec does not decode.
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
        self._executor = executor_of(device) if executor is None else executor
        self._num_threads = num_threads
        self._decode, self._decoder = decode, decoder
        if decode == "gpu" and decoder is None:
            self._decoder = self._find_decoder()
            if self._decoder is None:
                raise ValueError(
                    f"decode: got 'gpu', but nvImageCodec decodes no JPEG on {device}; {INSTALL} brings nvJPEG, which "
                    "it needs; accepted without it: 'cpu', 'auto'"
                )

    def take(self, images: Any) -> DeviceImages:
        placed = self._in_place(images)
        if placed is not None:
            return placed
        if isinstance(images, RaggedBatch):
            staging = self._executor.memory.staging(len(images.data))
            staging.copy_(images.data)
            return place_packed(self._executor.memory.upload(staging, len(staging)), images.offsets, images.shapes)
        return upload_images(self._executor, check_images(images))

    def shapes(self, images: Any) -> npt.NDArray[np.int32]:
        placed = self._in_place(images)
        return take_host_batch(images).shapes if placed is None else placed.shapes

    def _in_place(self, images: Any) -> DeviceImages | None:
        """Images that are on a GPU, where they lie; None for those of the host."""
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
                return self._take_tensors(tensors)
        return None

    def _take_tensors(self, tensors: Sequence[torch.Tensor | None]) -> DeviceImages:
        for i, tensor in enumerate(tensors):
            if tensor is None or not tensor.is_cuda:
                got = "no tensor" if tensor is None else f"a tensor on {tensor.device}"
                raise ValueError(f"images[{i}]: got {got} among tensors on a GPU; accepted: all on one device")
            self._check_device(f"images[{i}]", tensor)
        return place_tensors(check_tensors([tensor for tensor in tensors if tensor is not None]))

    def _check_device(self, where: str, tensor: torch.Tensor) -> None:
        if tensor.device != self._executor.device:
            raise ValueError(
                f"{where}: got a tensor on {tensor.device}; accepted: tensors on {self._executor.device} or on the CPU"
            )

    def run(self, program: Program, batch: DeviceImages) -> Any:
        stacked, results = self._executor.run(self.lower(program), batch)
        return results if stacked is None else stacked

    def captured(self, programs: Sequence[Program], batch: DeviceImages) -> CapturedRun:
        return CapturedRun(self._executor, programs, batch)

    def decode_and_run(self, program: Program, batch: EncodedBatch) -> Any:
        fused = self.lower(program)
        with self._executor.current():
            fused, placed = place_encoded(fused, batch, self._executor, self._num_threads, self._jpeg_decoder())
            stacked, results = self._executor.run(fused, placed)
        return results if stacked is None else stacked

    def _jpeg_decoder(self) -> JpegDecoder | None:
        """The GPU's; None where the host decodes. Made when it is first needed: it takes a while, and memory."""
        if self._decode == "auto" and self._decoder is None and is_installed():
            self._decoder = self._find_decoder()
        return self._decoder

    def _find_decoder(self) -> JpegDecoder | None:
        return decoder_of(str(self._executor.device), self._num_threads or default_threads())
