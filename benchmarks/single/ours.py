"""Variegate, one image at a time; the same work by the batch; and the checks of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from PIL import Image

import variegate as vg
from benchmarks.rows.catalogue import BY_NAME
from benchmarks.rows.libraries.ours import transform
from benchmarks.single import pillow
from benchmarks.single.base import One, SingleLibrary, Way
from benchmarks.single.functions import BATCHED, FUNCTIONS
from benchmarks.works.base import Check

CHECKED = 8


class Variegate(SingleLibrary):
    name = "Variegate"
    packages = ("numba", "numpy", "torch", "pillow")

    def versions(self) -> dict[str, str]:
        return {"variegate": vg.__version__, **super().versions()}

    def wants_pillow(self, way: Way) -> bool:
        return way == "as_transform"

    def one(self, way: Way, name: str) -> One | None:
        if way == "function":
            return function(name)
        if way == "as_transform":
            return vg.as_transform(transform(BY_NAME[name]))
        return transform(BY_NAME[name])


def function(name: str, device: str = "cpu") -> One:
    called, positional, named = FUNCTIONS[name]
    return lambda image: called(image, *positional, **named, device=device)


def by_batch(way: Way, name: str, images: list[Any]) -> Callable[[], Any] | None:
    """The same pixels' work for all of ``images`` in one call, or None for a function that no transform is."""
    if way == "function":
        if name not in BATCHED:
            return None
        augmenter = vg.Augmenter(BATCHED[name], layout="NHWC", num_threads=1)
    else:
        augmenter = vg.Augmenter(transform(BY_NAME[name]), num_threads=1)
    return lambda: augmenter(images)


def checks(way: Way, name: str, images: list[Any]) -> Iterator[Check]:
    few = images[:CHECKED]
    if way == "function":
        yield from _function_checks(name, few)
        return
    t = transform(BY_NAME[name])
    ids = list(range(len(few)))
    by_id = vg.as_transform(t)
    ones = [by_id(Image.fromarray(image), id=i) for i, image in zip(ids, few, strict=True)]
    whole = list(vg.Augmenter(t, seed=0, num_threads=1)(few, ids=ids))
    same = sum(bool((one == row).all()) for one, row in zip(ones, whole, strict=True))
    yield Check("one at a time equals the batch", same == len(few), f"{same} of {len(few)} images bit-identical")


def _function_checks(name: str, images: list[Any]) -> Iterator[Check]:
    ours = [np.asarray(function(name)(image)) for image in images]
    plain = [np.asarray(function(name, "reference")(image)) for image in images]
    most = max(_off(a, b) for a, b in zip(ours, plain, strict=True))
    allowed = 2e-6 if name == "normalize" else 0.0
    yield Check("cpu against the reference", most <= allowed, f"largest difference {most:g}; accepted: {allowed:g}")
    if name in pillow.OPERATIONS and name not in pillow.OTHERWISE:
        theirs = [np.asarray(pillow.OPERATIONS[name](Image.fromarray(image))) for image in images]
        most = max(_off(a, b) for a, b in zip(ours, theirs, strict=True))
        # Interpolation rounds in its own way.
        allowed = 2.0 if "bilinear" in name or name in ("perspective", "resize", "resized_crop") else 0.0
        yield Check("as Pillow", most <= allowed, f"largest difference {most:g}; accepted: {allowed:g}")


def _off(ours: Any, theirs: Any) -> float:
    if ours.shape != theirs.shape:
        return float("inf")
    return float(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max())


LIBRARY = Variegate()
