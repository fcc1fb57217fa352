"""How busy the GPU is while a step is timed, asked of NVML by a thread beside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from variegate.apps.train.study.peers import reason

_EVERY = 0.05  # seconds; NVML's own figure is of the last sixth of a second or more


class Utilisation:
    """``samples``: percent, of each name that was watched. ``note``: why there are none on a GPU."""

    def __init__(self, device: str) -> None:
        self.samples: dict[str, list[int]] = {}
        self.note: str | None = None
        self._ask: Any = None
        if device.startswith("cuda"):
            try:
                self._ask = _asking(device)
            except Exception as error:  # no pynvml, or whatever its library raises
                self.note = f"the GPU's utilisation is not known: {reason(error)}"

    @contextmanager
    def watching(self, name: str) -> Iterator[None]:
        if self._ask is None:
            yield
            return
        found, is_over = self.samples.setdefault(name, []), threading.Event()

        def sample() -> None:
            while not is_over.wait(_EVERY):
                found.append(self._ask())

        thread = threading.Thread(target=sample, name="variegate-nvml", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def _asking(device: str) -> Any:
    import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]

    pynvml.nvmlInit()
    known = torch.cuda.get_device_properties(torch.device(device))
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{known.uuid}")
    except (AttributeError, pynvml.NVMLError):  # older torch; a slice of a GPU
        handle = pynvml.nvmlDeviceGetHandleByIndex(torch.device(device).index or 0)
    return lambda: int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
