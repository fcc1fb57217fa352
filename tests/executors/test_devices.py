"""Device names: what there is, and what is said of what is not."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from variegate import Augmenter
from variegate import transforms as T
from variegate.executors.runners.devices import resolve


@pytest.mark.parametrize(("name", "means"), [("cpu", "cpu"), ("cpu:0", "cpu"), ("cpu:12", "cpu")])
def test_names(name: str, means: str) -> None:
    assert resolve(name) == means
    assert Augmenter(T.Invert(), device=name).device == means


def test_torch_devices_are_names() -> None:
    assert resolve(torch.device("cpu")) == "cpu"


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:x", "CUDA", "", None])
def test_unknown_names(name: object) -> None:
    with pytest.raises(ValueError, match=r"device: got .*; accepted: 'cpu', 'cuda' or 'cuda:N'"):
        resolve(name)


def _machine(monkeypatch: pytest.MonkeyPatch, gpus: int, cuda: str | None = "13.0", has_triton: bool = True) -> None:
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: (has_triton or None) if n == "triton" else found(n))


@pytest.mark.parametrize("name", ["cuda", "cuda:0"])
def test_a_cpu_only_torch_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, 0, cuda=None)
    with pytest.raises(ValueError, match=rf"device: got '{name}', but this PyTorch \(.*\) is built without CUDA"):
        resolve(name)
    assert resolve("auto") == "cpu"


def test_no_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, 0)
    with pytest.raises(ValueError, match=r"device: got 'cuda', but PyTorch finds no NVIDIA GPU; accepted: 'cpu'"):
        resolve("cuda")
    assert resolve("auto") == "cpu"


def test_gpus_count(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, 2)
    assert [resolve(name) for name in ("cuda", "cuda:0", "cuda:1", "auto")] == ["cuda:1", "cuda:0", "cuda:1", "cuda:1"]
    with pytest.raises(ValueError, match=r"got 'cuda:2', but PyTorch finds 2 GPU\(s\); accepted: 'cuda:0' to 'cuda:1'"):
        resolve("cuda:2")


def test_a_gpu_without_triton_is_no_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """ "auto" must not quietly become a hundred times slower."""
    _machine(monkeypatch, 2, has_triton=False)
    for name in ("auto", "cuda:0"):
        with pytest.raises(ValueError, match=r"needs Triton: pip install 'variegate\[cuda\]'"):
            resolve(name)
