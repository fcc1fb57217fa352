"""Recordings of several threads, without a GPU: what torch asks of those who record."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
import torch

from variegate.training.captured import CapturedStep


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

    monkeypatch.setattr("torch.cuda.Stream", lambda device: None)
    monkeypatch.setattr("torch.cuda.CUDAGraph", object)
    monkeypatch.setattr("torch.cuda.graph", graph)

    def record(device: str) -> None:
        made = CapturedStep(lambda images, labels: images.sum(), device)
        made._record(torch.ones(2, 3, 4, 4), torch.ones(2, dtype=torch.int64))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(record, ["cuda:0", "cuda:1"]))
    assert met == [False, False]
