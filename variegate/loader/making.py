"""Who makes batches of what was read, on the streams of a GPU where the device is one."""

from __future__ import annotations

import time

import torch

from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.per_image import MixedLabels
from variegate.decode.entropy.index import EntropyIndex
from variegate.executors.threads import extra_seconds
from variegate.loader.batch import Batch, tensors_of
from variegate.loader.observer import Observer
from variegate.loader.one_batch import AnyBatch, BatchResult, FindSubstitutes, OneBatch
from variegate.loader.options import ConditionsOfIds, LoaderOptions
from variegate.loader.reading import Rows
from variegate.loader.targets import BatchTargets


class BatchMaker:
    """``options``: ``on_error`` is "raise" for the first bad sample of a batch, "skip" for none of them, or "replace"
    for another sample in the place of each.

    On a GPU, batches are made on streams of their own, so that augmenting runs beside the training step: as many as
    there are makers at a time, the same ones in every epoch, as torch keeps memory for each stream. The consumer's
    stream waits for the batch; its thread does not.
    """

    def __init__(
        self,
        augmenter: Augmenter,
        options: LoaderOptions,
        substitutes: FindSubstitutes,
        index: EntropyIndex | None = None,
        targets: BatchTargets | None = None,
    ) -> None:
        self.augmenter, self.options, self.substitutes, self.index = augmenter, options, substitutes, index
        self.targets = targets
        self._device = torch.device(augmenter.device) if augmenter.device.startswith("cuda") else None
        self._idle: list[torch.cuda.Stream] = []

    def make(self, epoch: int, observer: Observer, rows: Rows, given: ConditionsOfIds | None = None) -> BatchResult:
        """Raises DecodeError, or whatever the transform raises for a sample, where errors are to be raised."""
        if self._device is None:
            return self._make(epoch, observer, rows, given)
        try:
            stream = self._idle.pop()
        except IndexError:
            stream = torch.cuda.Stream(self._device)
        try:
            with torch.cuda.device(self._device), torch.cuda.stream(stream):
                result = self._make(epoch, observer, rows, given)
                batch = result.batch
                if isinstance(batch, Batch):
                    parts = [part.pin_memory().to(self._device, non_blocking=True) for part in tensors_of(batch.labels)]
                    labels = MixedLabels(*parts) if isinstance(batch.labels, MixedLabels) else parts[0]
                    result.batch = Batch(batch.images, labels, batch.ids, batch.padding, batch.copies)
                result.ready = torch.cuda.Event()
                result.ready.record()
        finally:
            self._idle.append(stream)
        return result

    def _make(self, epoch: int, observer: Observer, rows: Rows, given: ConditionsOfIds | None) -> BatchResult:
        extra: list[float] = []
        token = extra_seconds.set(extra)
        begin = time.perf_counter()
        try:
            result = OneBatch(self, rows, epoch, observer, given).make()
            if observer.is_exact and self._device is not None:
                torch.cuda.current_stream().synchronize()
        finally:
            extra_seconds.reset(token)
        seconds = time.perf_counter() - begin + sum(extra)
        observer.stage_done("augment", max(seconds, 0.0), len(result.batch.ids), result.batch.nbytes)
        return result

    def hand_over(self, result: BatchResult) -> AnyBatch:
        """The batch, for use on the caller's current stream."""
        batch = result.batch
        if self._device is None:
            return batch
        current = torch.cuda.current_stream(self._device)
        current.wait_event(result.ready)
        whole = batch if isinstance(batch, Batch) else batch.on_device()
        for tensor in tensors_of(whole):
            # Its memory belongs to the making stream; it must not be used again before the consumer is done with it.
            tensor.record_stream(current)
        return batch
