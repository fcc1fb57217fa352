"""Names of devices as users give them."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from variegate.workers import devices
from variegate.workers.devices import choose_devices, cores_each, kind_of


def cluster(*nodes: dict[str, float]) -> Any:
    """A module ``ray`` that is connected to these machines, and to one that is gone."""
    gone = {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}}
    return SimpleNamespace(nodes=lambda: [gone, *({"Alive": True, "Resources": node} for node in nodes)])


def test_names_are_written_out() -> None:
    assert choose_devices(["cpu:0", "cpu:3"]) == ("cpu:0", "cpu:3")
    assert choose_devices(["cpu"]) == choose_devices("cpu") == ("cpu:0",)
    assert choose_devices(["cpu:01"]) == ("cpu:1",)
    assert kind_of("cuda:1") == "cuda"


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ([], "devices: got none; accepted: 'auto', or a list of names such as"),
        (["cpu:0", "cpu"], "devices: got 'cpu:0' 2 times; accepted: every device once"),
        (["cpu:0", "tpu:0"], "devices: got 'tpu:0'; accepted: 'auto', or a list of names such as"),
        (["cpu:0", "auto"], "devices: got 'auto'; accepted"),
        ("cpu:0,cpu:1", "devices: got 'cpu:0,cpu:1'; accepted"),
    ],
)
def test_what_is_not_accepted_is_named(devices: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        choose_devices(devices)


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks for a GPU that is not there")
def test_a_gpu_that_is_not_there_is_refused_here_but_not_in_a_cluster() -> None:
    with pytest.raises(ValueError, match="'cuda:1', but"):
        choose_devices(["cuda:1"])
    assert choose_devices(["cuda:1", "cuda:0"], cluster({"CPU": 4.0})) == ("cuda:1", "cuda:0")
    with pytest.raises(ValueError, match="'cuda:0' 2 times"):
        choose_devices(["cuda:0", "cuda"], cluster({"CPU": 4.0}))


@pytest.mark.parametrize(("cores", "number", "each"), [(1, 1, 1), (2, 1, 2), (7, 1, 7), (8, 2, 4), (17, 4, 4)])
def test_auto_without_a_gpu_is_the_cpu_in_parts(
    monkeypatch: pytest.MonkeyPatch, cores: int, number: int, each: int
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(devices, "default_threads", lambda: cores)
    names = choose_devices("auto")
    assert names == tuple(f"cpu:{n}" for n in range(number))
    assert cores_each(len(names)) == each


def test_auto_is_all_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(devices, "resolve", lambda name: name)
    assert choose_devices("auto") == ("cuda:0", "cuda:1", "cuda:2")


def test_auto_asks_the_cluster() -> None:
    gpus = cluster({"CPU": 16.0, "GPU": 2.0}, {"CPU": 8.0}, {"CPU": 16.0, "GPU": 1.0})
    assert choose_devices("auto", gpus) == ("cuda:0", "cuda:1", "cuda:2")
    # Six cores hold one actor of four, not one and a half.
    cpus = cluster({"CPU": 6.0}, {"CPU": 6.0}, {"CPU": 2.0}, {"memory": 1.0})
    assert choose_devices("auto", cpus) == ("cpu:0", "cpu:1", "cpu:2")
    assert cores_each(3, cpus) == 2
    assert cores_each(3, cluster({"CPU": 6.0}, {"CPU": 6.0})) == 4
