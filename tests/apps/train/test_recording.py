"""Recordings of several threads, without a GPU: what torch asks of those who record."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
import torch

from variegate.apps.train.classifier import CapturedStep, CaptureError, GraphMemory


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.Stream", lambda device: object())
    monkeypatch.setattr("torch.cuda.current_stream", object)
    monkeypatch.setattr("torch.cuda.CUDAGraph", object)
    monkeypatch.setattr("torch.cuda.graph_pool_handle", object)


def record(device: str, memory: GraphMemory | None = None) -> None:
    made = CapturedStep(lambda images, labels: images.sum(), device, memory)
    made._record(torch.ones(2, 3, 4, 4), torch.ones(2, dtype=torch.int64))


def test_one_recording_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Barrier(2)
    met: list[bool] = []

    @contextmanager
    def graph(*_: Any, **__: Any) -> Iterator[None]:
        try:
            both.wait(0.3)  # the other thread comes to this only where nothing keeps it out
            met.append(True)
        except BrokenBarrierError:
            met.append(False)
        yield

    monkeypatch.setattr("torch.cuda.graph", graph)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(record, ["cuda:0", "cuda:1"]))
    assert met == [False, False]


def test_a_recording_that_fails_leaves_the_stream_it_was_on(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[object] = []
    stream = object()

    @contextmanager
    def graph(*_: Any, **__: Any) -> Iterator[None]:
        yield
        raise RuntimeError("waits for the GPU")  # and torch does not leave the stream of the recording

    monkeypatch.setattr("torch.cuda.graph", graph)
    monkeypatch.setattr("torch.cuda.current_stream", lambda: stream)
    monkeypatch.setattr("torch.cuda.set_stream", found.append)
    with pytest.raises(CaptureError, match="cannot be recorded as a CUDA graph: waits for the GPU; accepted: a model"):
        record("cuda:0")
    assert found == [stream]


def test_steps_that_share_memory_share_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[tuple[Any, Any]] = []

    def graph(recorded: Any, pool: Any, stream: Any, **_: Any) -> Any:
        used.append((pool, stream))
        return nullcontext()

    monkeypatch.setattr("torch.cuda.graph", graph)
    memory = GraphMemory("cuda:0")
    for given in (memory, memory, None):
        record("cuda:0", given)
    assert used[0] == used[1] == (memory.pool, memory.stream)
    assert not set(used[2]) & set(used[0])
