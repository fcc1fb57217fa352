"""The images that a studio shows: any of a source by its number, read when asked for and kept in memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from variegate.apps.preview.choosing import DRAWN, Annotations, Choice, Chosen, choose_images, read_chosen
from variegate.augmenter.augmenter import Augmenter
from variegate.data.sample_photos import NAMES, sample_images
from variegate.errors import DecodeError
from variegate.io.recent import LruCache
from variegate.ops.sizes import LongestMaxSize
from variegate_studio.pictures import to_jpeg

MOST_SIDE = 1024  # pixels of a displayed image; larger images are scaled down first
_MOST_BYTES = 256 << 20
THUMBNAIL = 96
ORDERS = ("source", "name", "class", "random")


class Photos:
    """Images of ``source``, or of this package. ``annotations``: as of ``variegate preview``.

    Raises SourceError or DecodeError where there is nothing to show.
    """

    def __init__(self, source: Any = None, annotations: Annotations | None = None) -> None:
        self.place = source
        self.annotations = None if annotations is None else annotations.given
        if source is None:
            photos = zip(NAMES, sample_images(len(NAMES)), strict=True)
            images = [Chosen(name, n, img_HWC, index=n) for n, (name, img_HWC) in enumerate(photos)]
            self._choice, self.count, self.name = Choice(images, []), len(images), "sample photos"
        else:
            self._choice = choose_images(source, 1, annotations)
            self.count = 1 if self._choice.source is None else len(self._choice.source)
            self.name = Path(str(source)).resolve().name
        self._recent: LruCache[tuple[int, int | None], Chosen] = LruCache(_MOST_BYTES)

    @property
    def notes(self) -> list[str]:
        return [*self._choice.notes, *(f"skipped {error}" for error in self._choice.bad)]

    @property
    def key(self) -> str:
        """Key of this source among sources of the same name."""
        where = "" if self.place is None else os.path.abspath(str(self.place))
        return hashlib.sha256(where.encode(errors="replace")).hexdigest()[:12]

    @property
    def source(self) -> Any:
        """The source of all images; None for a single image and for the package's photos."""
        return self._choice.source

    @property
    def classes(self) -> tuple[str, ...]:
        return self._choice.naming.classes

    @property
    def has_targets(self) -> bool:
        return self._choice.images[0].targets is not None

    def choice(self, images: Sequence[Chosen], side: int | None) -> Choice:
        """Images for the rows of a preview, mixed with others of the same ``side``."""
        return self._choice._replace(images=list(images), bad=[], read=lambda index: self.get(index, side))

    def get(self, index: int, side: int | None) -> Chosen:
        """Image ``index``, its longer side at most ``side`` pixels. Raises DecodeError."""
        if (found := self._recent.get((index, side))) is not None:
            return found
        if self._choice.source is None:
            image = self._choice.images[index]
        else:
            image = read_chosen(self._choice.source, index)
        limit = min(side or MOST_SIDE, MOST_SIDE)
        if max(image.img_HWC.shape[:2]) > limit:
            image = _scaled(image, limit)
        return self._recent.put((index, side), image, image.img_HWC.nbytes)

    def thumbnail(self, index: int, side: int) -> bytes:
        """A JPEG; a gray square for an unreadable image."""
        try:
            pixels = self.get(index, side).img_HWC
        except DecodeError:
            pixels = np.full((side, side, 1), 128, np.uint8)
        return to_jpeg(pixels, 80)

    def label(self, image: Chosen) -> str | None:
        if isinstance(image.label, (int, np.integer)) and 0 <= image.label < len(self.classes):
            return self._class_name(int(image.label))
        return None if image.label is None or image.label == -1 else str(image.label)

    def _class_name(self, label: int) -> str | None:
        """None for the class of a folder without classes."""
        name = self.classes[label]
        return None if name == "." else name

    def listed(self, index: int) -> dict[str, Any]:
        """Name, class and address of a thumbnail, without reading the image."""
        labels = self._labels
        label = None if labels is None or labels[index] < 0 else self._class_name(int(labels[index]))
        return {"index": index, "name": self.title(index), "label": label, "url": self.address(index, THUMBNAIL)}

    def search(self, text: str = "", label: str = "", order: str = "source", seed: int = 0) -> list[int]:
        """Numbers of the images whose name holds ``text`` and whose class is ``label``; "" for all.

        ``order``: "source", "name", "class" or "random". Raises ValueError for other orders and classes.
        """
        if order not in ORDERS:
            raise ValueError(f"order: got {order!r}; accepted: {', '.join(ORDERS)}")
        found = list(range(self.count))
        if label:
            if self._labels is None or label not in self.classes:
                raise ValueError(
                    f"class: got {label!r}; accepted: {', '.join(self.classes) or 'none: there are no classes'}"
                )
            found = np.flatnonzero(self._labels == self.classes.index(label)).tolist()
        if text:
            found = [index for index in found if text.casefold() in self.title(index).casefold()]
        if order == "name":
            found.sort(key=self.title)
        elif order == "class" and self._labels is not None:
            found.sort(key=self._labels.__getitem__)
        elif order == "random":
            np.random.default_rng(seed).shuffle(found)
        return found

    @cached_property
    def _labels(self) -> Any:
        """Classes int64[N] of all images, -1 for none; None where they are not known without reading images."""
        read = getattr(self.source, "labels", None)
        labels = None if read is None else read(np.arange(self.count))
        return labels if isinstance(labels, np.ndarray) and labels.dtype.kind == "i" and self.classes else None

    def address(self, index: int, side: int) -> str:
        """The address of ``thumbnail``."""
        return f"/t/{side}/{index}-{self.stamp(index)}"

    def title(self, index: int) -> str:
        source = self._choice.source
        if source is None:
            return self._choice.images[index].name
        return str(source.relative_path(index) or source.name(index))

    def stamp(self, index: int) -> str:
        """Stamp of the image's file, which changes with the file."""
        source = self._choice.source
        path = self.place if source is None else source.name(index).file
        try:
            found = os.stat(str(path))
            told = f"{path}\0{found.st_size}\0{found.st_mtime_ns}"
        except OSError:
            told = str(path)
        return hashlib.sha256(told.encode()).hexdigest()[:12]


def _scaled(image: Chosen, side: int) -> Chosen:
    """Scale an image with its boxes, masks and points."""
    sample = {"image": image.img_HWC, **{name: each for name, each in (image.targets or {}).items() if name in DRAWN}}
    made = Augmenter(LongestMaxSize(side), layout="NHWC")([sample], ids=[0])[0]
    img_HWC = made.pop("image").numpy()
    return replace(image, img_HWC=img_HWC, targets=None if image.targets is None else made)
