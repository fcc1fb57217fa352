"""NVIDIA DALI's GPU pipeline with its own RandAugment, fed with batches that are on the GPU already."""

from __future__ import annotations

import itertools
import os
from typing import Any

import torch
from nvidia.dali import backend, fn, pipeline_def, tensors, types
from torch.utils.dlpack import from_dlpack

from benchmarks.gpu import device as _device
from benchmarks.gpu.peers.base import Given, GpuPeer
from benchmarks.inputs import SIZE
from benchmarks.peers.base import NextBatch
from benchmarks.peers.dali import augment

THREADS = min(8, os.cpu_count() or 1)


@pipeline_def(enable_conditionals=True)
def _pipeline(feed: Any, device: str, layout: str | None, crop: bool) -> Any:
    # No copy: the batches stay where they are for as long as the pipeline runs.
    given: dict[str, Any] = {"batch": True, "dtype": types.UINT8, "ndim": 3, "layout": layout, "no_copy": True}
    images = fn.external_source(feed, device=device, **given)
    if crop:
        images = fn.random_resized_crop(images, size=[SIZE, SIZE], interp_type=types.INTERP_LINEAR)
    return augment(images, types.FLOAT16)


class Dali(GpuPeer):
    name = "DALI GPU"
    packages = ("nvidia-dali-cuda120",)
    # It writes no bfloat16; its float16 has as many bytes and is taken as it is.
    dtypes = (torch.float16, torch.bfloat16)
    # Outputs are DALI's own memory, which it uses again.
    keeps_outputs = False
    memory = "used on the whole device"

    def versions(self) -> dict[str, str]:
        import nvidia.dali

        return {"nvidia-dali": nvidia.dali.__version__, "torch": torch.__version__}

    def variants(self, given: Given) -> dict[str, NextBatch]:
        batches = _arrays(given)
        # A TensorList knows its layout; told it again, DALI would look at every sample in Python.
        lists = [_tensor_list(one) for one in batches]
        made = {
            "TensorLists in, float16 out": _runner(lists, None, given),
            "TensorLists in, bfloat16 by torch": _runner(lists, None, given, dtype=torch.bfloat16),
            "arrays in, float16 out": _runner(batches, "HWC", given),
        }
        if given.device.startswith("cuda"):
            made["TensorLists in, float16 out on torch's stream"] = _runner(lists, None, given, waits=False)
        return made

    def memory_now(self, device: str) -> int:
        return _device.used_bytes(device)

    def memory_peak(self, device: str) -> int:
        """Its pools do not shrink by themselves, so what is used now is the most that was used."""
        return _device.used_bytes(device)

    def release(self, device: str) -> None:
        super().release(device)
        if device.startswith("cuda"):
            backend.ReleaseUnusedMemory()


def _arrays(given: Given) -> list[Any]:
    """Per batch one HWC array per sample, or one array of all where the sizes agree, on the device.

    On a CPU they are NumPy's: for torch's, DALI asks for a CUDA stream.
    """
    if not given.device.startswith("cuda"):
        return [one.images() if given.ragged else one.stacked() for one in given.batches]
    laid: list[Any] = []
    for one in given.batches:
        data = torch.from_numpy(one.data).to(given.device)
        if not given.ragged:
            laid.append(data.view(len(one), *one.shapes[0]))
            continue
        parts = data.split(one.shapes.prod(axis=1).tolist())
        laid.append([part.view(shape) for part, shape in zip(parts, one.shapes.tolist(), strict=True)])
    return laid


def _tensor_list(batch: Any) -> Any:
    """``batch`` as DALI's own view of the same memory, so that no Python runs per sample while the clock does."""
    on_gpu = isinstance(batch[0], torch.Tensor)
    one, many = (tensors.TensorGPU, tensors.TensorListGPU) if on_gpu else (tensors.TensorCPU, tensors.TensorListCPU)
    if not isinstance(batch, list):
        return many(batch, "HWC")
    return many([one(image, "HWC") for image in batch], "HWC", contiguous=False)


def _runner(
    batches: list[Any], layout: str | None, given: Given, dtype: torch.dtype | None = None, waits: bool = True
) -> NextBatch:
    """``waits``: until the host knows that the output is ready, which is DALI's default."""
    on_gpu = given.device.startswith("cuda")
    turns = itertools.cycle(batches)
    pipeline = _pipeline(
        lambda: next(turns),
        "gpu" if on_gpu else "cpu",
        layout,
        given.ragged,
        batch_size=given.batch,
        num_threads=THREADS,
        device_id=(torch.device(given.device).index or 0) if on_gpu else None,
        seed=1,
    )

    def next_batch() -> torch.Tensor:
        (output,) = pipeline.run() if waits else pipeline.run(torch.cuda.current_stream())
        batch: torch.Tensor = from_dlpack(output.as_tensor())
        return batch if dtype is None else batch.to(dtype)

    return next_batch


PEER = Dali()
