"""JPEGs decoded by a GPU, straight into its memory: nvImageCodec, which runs nvJPEG."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import simplejpeg
import torch

from variegate.checks import one_of
from variegate.errors import DeviceMemoryError

DECODERS = ("auto", "cpu", "gpu")
INSTALL = "pip install 'variegate[gpu]'"

# First row, first column, and those after the last; None for the whole picture.
Box = tuple[int, int, int, int] | None

# nvJPEG's CUDA decoder alone. By default nvImageCodec would split a batch among this backend, the hardware decoder of
# some GPUs, and libjpeg-turbo: a picture's pixels would depend on its position in the batch.
_BACKEND = "HYBRID_CPU_GPU"
# Chroma is interpolated, as in libjpeg-turbo; otherwise colors along edges differ by tens.
_OPTIONS = ":fancy_upsampling=1"
_OUT_OF_MEMORY = ("out of memory", "CUDA Runtime failure: '#2'")


class JpegDecoder(Protocol):
    """A decoder of JPEGs into the memory of a device."""

    def decode(self, pieces: Sequence[tuple[bytes, Box]]) -> list[torch.Tensor | None]:
        """Decode the box of each file to uint8[H, W, 3] for the current stream; None for files it cannot decode."""
        ...


def check_decode(decode: object, device: str) -> None:
    """Raises ValueError for an unknown decoder, and for "gpu" without a GPU or nvImageCodec."""
    if one_of("decode", decode, DECODERS) != "gpu":
        return
    if not device.startswith("cuda"):
        raise ValueError(
            f"decode: got 'gpu' on device {device!r}; accepted there: 'cpu', 'auto'; decoding on a GPU needs "
            f"device='cuda' and nvImageCodec ({INSTALL})"
        )
    if not is_installed():
        raise ValueError(f"decode: got 'gpu', which needs nvImageCodec: {INSTALL}; accepted without it: 'cpu', 'auto'")


def is_installed() -> bool:
    """True where nvImageCodec is, whether or not it runs."""
    try:
        return importlib.util.find_spec("nvidia.nvimgcodec") is not None
    except ModuleNotFoundError:
        return False  # not even a package called nvidia


@lru_cache(maxsize=64)
def decoder_of(device: str, num_threads: int) -> GpuJpegDecoder | None:
    """The process's decoder for "cuda:N"; None where nvImageCodec is there but does not decode, for want of nvJPEG."""
    decoder = GpuJpegDecoder(torch.device(device), num_threads)
    return decoder if decoder.works() else None


class GpuJpegDecoder:
    """A CUDA device's decoder, for any thread on any stream; a CPU device decodes by libjpeg-turbo, for tests."""

    def __init__(self, device: torch.device, num_threads: int) -> None:
        self._codec = importlib.import_module("nvidia.nvimgcodec")
        self._device = device
        self._num_threads = num_threads
        # nvImageCodec's decoders are not made for two threads at once, and take a while to make: whoever calls takes
        # one that is idle or makes another, so that there are as many as there have been calls at the same time.
        self._idle: list[Any] = []

    def decode(self, pieces: Sequence[tuple[bytes, Box]]) -> list[torch.Tensor | None]:
        """Returns when the host's part is done; the rest is queued on the current stream. EXIF orientation is not
        applied.

        The tensors' memory is given back on that stream in its order, so that whatever is queued there while they are
        alive reads it unharmed. Raises DeviceMemoryError where the device has no room for the pictures.
        """
        if not pieces:
            return []
        places = []
        streams = []
        for i, (data, box) in enumerate(pieces):
            stream = self._open(data, box)
            if stream is not None:
                places.append(i)
                streams.append(stream)
        pictures: list[torch.Tensor | None] = [None] * len(pieces)
        for i, image in zip(places, self._run(streams), strict=True):
            pictures[i] = None if image is None else self._to_tensor(image)
        return pictures

    def works(self) -> bool:
        """True if a test picture decodes: without nvJPEG's library, nvImageCodec loads and decodes nothing."""
        gray = np.full((16, 16, 3), 128, np.uint8)
        try:
            return self.decode([(simplejpeg.encode_jpeg(gray), None)])[0] is not None
        except DeviceMemoryError:
            raise
        except RuntimeError:
            return False

    def _open(self, data: bytes, box: Box) -> Any:
        """The file as nvImageCodec reads it; None where it does not."""
        try:
            stream = self._codec.CodeStream(data)
            return stream if box is None else stream.get_sub_code_stream(region=self._codec.Region(*box))
        except (RuntimeError, ValueError):
            return None

    def _run(self, streams: Sequence[Any]) -> Sequence[Any]:
        """nvImageCodec's images, None for each that it could not decode."""
        if not streams:
            return []
        try:
            decoder = self._idle.pop()
        except IndexError:
            decoder = self._make()
        params = self._codec.DecodeParams(apply_exif_orientation=False)
        try:
            if self._device.type == "cpu":
                return list(decoder.decode(streams, params=params))
            with torch.cuda.device(self._device):
                current = torch.cuda.current_stream(self._device).cuda_stream
                return list(decoder.decode(streams, params=params, cuda_stream=current))
        except RuntimeError as error:
            self._check_room(error)
            raise
        finally:
            self._idle.append(decoder)

    def _make(self) -> Any:
        codec = self._codec
        is_cpu = self._device.type == "cpu"
        kind = codec.BackendKind.CPU_ONLY if is_cpu else getattr(codec.BackendKind, _BACKEND)
        try:
            return codec.Decoder(
                device_id=codec.NVIMGCODEC_DEVICE_CPU_ONLY if is_cpu else self._device.index or 0,
                max_num_cpu_threads=max(1, self._num_threads - 1),  # the calling thread decodes as well
                backends=[codec.Backend(kind)],
                options=_OPTIONS,
            )
        except RuntimeError as error:
            self._check_room(error)
            raise

    def _check_room(self, error: RuntimeError) -> None:
        if any(words in str(error) for words in _OUT_OF_MEMORY):
            raise DeviceMemoryError(
                f"{self._device}: no room for the decoded pictures of a batch; use a smaller batch, or decode='cpu'"
            ) from error

    def _to_tensor(self, image: Any) -> torch.Tensor | None:
        if tuple(image.shape[2:]) != (3,):
            return None
        if self._device.type == "cpu":
            return torch.from_numpy(np.array(image))
        # Not by DLPack, whose capsule does not own nvImageCodec's memory: the tensor made here holds the image.
        return torch.as_tensor(image, device=self._device)
