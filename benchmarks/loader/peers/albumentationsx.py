"""AlbumentationsX in torch's DataLoader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.loader.peers import torch_data
from benchmarks.loader.peers.base import Given, LoaderPeer, Opener
from benchmarks.loader.peers.torch_data import Way
from benchmarks.peers.albumentationsx import PEER as ON_ONE_CORE
from benchmarks.peers.albumentationsx import Image, decode_cv2, decode_simplejpeg, normalise, pipeline

cv2.setNumThreads(0)  # the worker processes are the threads, and they inherit this


def _reader(decode: Callable[[bytes], Image]) -> Callable[[str], Image]:
    return lambda path: decode(Path(path).read_bytes())


def _applied(augment: Any) -> Callable[[Image], Any]:
    return lambda image: augment(image=image)["image"]


def _pixels(augment: Any) -> Callable[[Image], Image]:
    # A flipped image is a view with a negative stride, which torch does not take.
    return lambda image: np.ascontiguousarray(augment(image=image)["image"])


class AlbumentationsX(LoaderPeer):
    name = ON_ONE_CORE.name
    packages = ON_ONE_CORE.packages

    def variants(self, given: Given) -> dict[str, Opener]:
        each, pixels = _applied(pipeline("w1", normalize=True)), _pixels(pipeline("w1", normalize=False))
        ways: dict[str, Way] = {}
        for decode in (decode_cv2, decode_simplejpeg):
            ways[f"{decode.__name__}, per sample"] = Way(_reader(decode), each)
            ways[f"{decode.__name__}, normalized as a batch"] = Way(_reader(decode), pixels, normalise)
        return torch_data.variants(given, ways)


PEER = AlbumentationsX()
