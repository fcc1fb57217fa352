"""A training step on a GPU, recorded once as a CUDA graph: one launch in place of the hundreds of a small network."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import torch

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

# Steps before the recording: libraries choose their algorithms, and the optimiser makes its momenta, in the first.
_EAGER = 3

# torch allows one recording at a time in a process: each begins by returning the free memory of all GPUs, which is an
# internal error of the allocator of a GPU that is being recorded.
_RECORDING = Lock()


class CaptureError(ValueError):
    """A step that cannot be recorded: it waits for the GPU, say, because its work depends on values."""


class GraphMemory:
    """What steps on one device share that are recorded in it: they live as long as each other, one runs at a time."""

    def __init__(self, device: str) -> None:
        self.pool = torch.cuda.graph_pool_handle()
        # With the pool, since memory that is free on one stream is not given out on another. Nor is it the stream that
        # torch would take, which belongs to whichever GPU came first.
        self.stream = torch.cuda.Stream(torch.device(device))


class CapturedStep:
    """Calls ``step(images, labels)``, from the fourth call on by a graph.

    The memory of all that the step reads (weights, momenta, learning rate) must stay where it is: write into it, do
    not replace it. Batches have one shape. The result is written over by the next call.

    ``memory``: None for its own. Steps of several devices may run at once, in a thread each.
    """

    def __init__(self, step: Step, device: str, memory: GraphMemory | None = None) -> None:
        self._step, self._device = step, torch.device(device)
        self._memory = GraphMemory(device) if memory is None else memory
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Raises CaptureError."""
        with torch.cuda.device(self._device):
            if self._graph is None:
                self._calls += 1
                if self._calls <= _EAGER:
                    return self._run_beside(images, labels)
                self._graph = self._record(images, labels)
            self._images.copy_(images)
            self._labels.copy_(labels)
            self._graph.replay()
            return self._result

    def _run_beside(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """On the stream of the recording, since parts of a backward pass stay with the stream that they began on."""
        current, beside = torch.cuda.current_stream(), self._memory.stream
        beside.wait_stream(current)
        with torch.cuda.stream(beside):
            result = self._step(images, labels)
        current.wait_stream(beside)
        for tensor in (images, labels):
            tensor.record_stream(beside)
        result.record_stream(current)
        return result

    def _record(self, images: torch.Tensor, labels: torch.Tensor) -> torch.cuda.CUDAGraph:
        layout = torch.channels_last if images.dim() == 4 else torch.contiguous_format
        self._images, self._labels = images.clone(memory_format=layout), labels.clone()
        graph, current = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        memory = self._memory
        try:
            # "thread_local": what other threads do on other GPUs meanwhile is none of this graph's business.
            with _RECORDING, torch.cuda.graph(graph, memory.pool, memory.stream, capture_error_mode="thread_local"):
                self._result = self._step(self._images, self._labels)
        except Exception as error:
            torch.cuda.set_stream(current)  # torch leaves it where it was when a recording fails
            raise CaptureError(
                f"the training step cannot be recorded as a CUDA graph: {error}; accepted: a model that never waits "
                "for the GPU, or no recording (capture=False, --no-capture)"
            ) from error
        return graph
