"""The rows of W8, and what a library offers for them: a function of one image."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Literal

from benchmarks.peers.base import Library

# "function": F.* beside Pillow's operation. "as_transform": on Pillow images, beside torchvision. "call": t(image).
Way = Literal["function", "as_transform", "call"]
WAYS: tuple[Way, ...] = ("function", "as_transform", "call")
TARGETS: dict[Way, float | None] = {"function": 1.0, "as_transform": 5.0, "call": None}
# Milliseconds beyond the pixels' work.
BEYOND = 0.1
# Rows of W2o, whose transforms these are.
PIPELINES = ("normalize", "imagenet", "randaugment", "trivialaugment", "jitter_affine", "simclr", "augmix")

One = Callable[[Any], Any]


class SingleLibrary(Library):
    # Whether it is given Pillow images; else uint8 arrays.
    def wants_pillow(self, way: Way) -> bool:
        return True

    def one(self, way: Way, name: str) -> One | None:
        """The row as a function of one image, or None where it has no such operation."""
        raise NotImplementedError


def load_library(module: str) -> SingleLibrary:
    """The ``LIBRARY`` of ``benchmarks.single.<module>``."""
    found: Any = importlib.import_module(f"benchmarks.single.{module}").LIBRARY
    assert isinstance(found, SingleLibrary)
    return found
