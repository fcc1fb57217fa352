"""Arguments of the page's calls: which images by which policy, and how much of it a request may ask for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from variegate.apps.preview.choosing import Chosen
from variegate.augmenter.augmenter import Augmenter
from variegate.errors import DecodeError
from variegate.ops.base import Transform
from variegate.program.program import Program
from variegate_studio.cards import CardError, to_policy
from variegate_studio.photos import Photos

_MOST_COPIES, _MOST_PICTURES = 256, 512
_MOST_PIXELS = 256 << 20


class GridRequest(NamedTuple):
    """Draws of a policy: of ``images``, ``copies`` of each. ``bad``: why other images are not shown. ``cards``: the
    cards of the transform."""

    transform: Transform
    images: list[Chosen]
    copies: range
    seed: int = 0
    epoch: int = 0
    side: int | None = None
    bad: tuple[str, ...] = ()
    cards: Any = ()


def policy_hash(transform: Transform) -> str:
    """16 digits, as in addresses of pictures."""
    try:
        told = json.dumps(transform.to_dict(), sort_keys=True)
    except (TypeError, ValueError):
        told = repr(transform)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def read_request(body: Any, photos: Photos) -> GridRequest:
    """Raises CardError, and DecodeError where no image can be read."""
    transform = to_policy(body.get("cards", [])).transform
    indices = body.get("images", [0])
    are_there = isinstance(indices, list) and all(type(i) is int and 0 <= i < photos.count for i in indices)
    if not indices or not are_there:
        raise CardError(f"images: accepted: a list of numbers from 0 to {photos.count - 1}, at least one")
    copies = read_integer(body, "copies", 1, 0, _MOST_COPIES)
    if (pictures := len(indices) * (copies + 1)) > _MOST_PICTURES:
        raise CardError(f"{pictures} pictures of {len(indices)} images; accepted: at most {_MOST_PICTURES}")
    side = None if body.get("size") is None else read_integer(body, "size", 224, 16, 1024)
    images, bad = [], []
    for index in indices:
        try:
            images.append(photos.get(index, side))
        except DecodeError as error:
            bad.append(str(error))
            if len(bad) == len(indices):
                raise
    seed, epoch = (read_integer(body, name, 0, 0, 2**32 - 1) for name in ("seed", "epoch"))
    return GridRequest(transform, images, range(copies), seed, epoch, side, tuple(bad), body.get("cards", []))


def read_integer(body: Any, name: str, default: int, low: int, high: int) -> int:
    value = body.get(name, default)
    if type(value) is not int or not low <= value <= high:
        raise CardError(f"{name}: got {value!r}; accepted: a whole number from {low:,} to {high:,}")
    return value


class PixelLimit:
    """Raises CardError for pictures of one request that would fill the memory, within an operation or at the end.

    ``proceed`` is called before each copy, and may raise.
    """

    def __init__(self, proceed: Callable[[], None] | None = None) -> None:
        self._pixels = 0
        self._proceed = proceed

    def begin(self, program: Program) -> None:
        if self._proceed is not None:
            self._proceed()
        largest = np.prod(program.out_size.astype(np.int64), axis=2).max(axis=1, initial=0)
        self._pixels += int(largest.sum())
        if self._pixels > _MOST_PIXELS:
            got, most = f"{self._pixels / 1e6:,.0f} megapixels at a time", f"{_MOST_PIXELS / 1e6:,.0f}"
            raise CardError(f"the policy makes {got}; accepted: up to {most}, by smaller sizes or fewer images")

    def finish(self, program: Program) -> None:
        pass


def name_card(request: GridRequest, error: Exception) -> CardError:
    """The error that a transform raised for an image that it does not take, with the first card that does."""
    sizes = [image.img_HWC.shape for image in request.images]
    for at in to_policy(request.cards).numbers if request.cards else ():
        transform = to_policy(request.cards[: at + 1]).transform
        try:
            if transform._mixers:
                return CardError(str(error), at)
            Augmenter(transform).program(sizes, ids=range(len(sizes)))
        except (ValueError, TypeError):
            return CardError(str(error), at)
    return CardError(str(error))
