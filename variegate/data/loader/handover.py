"""How a batch gets from the thread that makes it to the one that trains with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from variegate.data.loader.batch import Batch
from variegate.data.loader.making import BatchResult


class Handover:
    """On a GPU, batches are made on streams of their own, so that augmenting runs beside the training step.

    As many streams as there are makers at a time, the same ones in every epoch: torch keeps memory for each stream.

    The consumer's stream waits for the batch; its thread does not. On a CPU there is nothing to do.
    """

    def __init__(self, device: str) -> None:
        self._device = torch.device(device) if device.startswith("cuda") else None
        self._idle: list[torch.cuda.Stream] = []

    def make(self, work: Callable[[], BatchResult]) -> BatchResult:
        """Run ``work`` on a stream that is idle and bring the labels over."""
        if self._device is None:
            return work()
        try:
            stream = self._idle.pop()
        except IndexError:
            stream = torch.cuda.Stream(self._device)
        try:
            with torch.cuda.device(self._device), torch.cuda.stream(stream):
                result = work()
                batch = result.batch
                labels = batch.labels.pin_memory().to(self._device, non_blocking=True)
                result.batch = Batch(batch.images, labels, batch.ids, batch.padding, batch.copies)
                result.ready = torch.cuda.Event()
                result.ready.record()
        finally:
            self._idle.append(stream)
        return result

    def take(self, result: BatchResult) -> Batch:
        """The batch, for use on the caller's current stream."""
        if self._device is None:
            return result.batch
        current = torch.cuda.current_stream(self._device)
        current.wait_event(result.ready)
        for tensor in _tensors(result.batch):
            # Its memory belongs to the making stream; it must not be used again before the consumer is done with it.
            tensor.record_stream(current)
        return result.batch


def _tensors(batch: Batch) -> list[Any]:
    images = batch.images
    return [batch.labels, *([images] if isinstance(images, torch.Tensor) else images)]
