"""Pictures of a studio, made by the executor that trains: each is known by an address that says all that made it."""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.apps.preview import sheet as layout
from variegate.apps.preview.choosing import Chosen
from variegate.apps.preview.rows import in_bytes, sample_rows, sweep_of, sweep_rows
from variegate.apps.preview.sheet import Cell
from variegate.apps.studio.cards import CardError, catalogue, new_card, schedule_of, to_policy
from variegate.apps.studio.photos import Photos
from variegate.apps.studio.pictures import difference, drawn_over, histograms, to_jpeg
from variegate.augmenter.augmenter import Augmenter
from variegate.checks import PIXEL_VERSION
from variegate.errors import DecodeError
from variegate.io.recent import RecentValues
from variegate.ops.base import Transform
from variegate.ops.output import Identity
from variegate.program.lowering import lower
from variegate.program.program import Program

MOST_CELLS = 256
_MOST_PIXELS = 256 << 20
_MOST_BYTES = 128 << 20  # of encoded pictures
_MOST_POLICIES = 512
_CHUNK, _MOST_DRAWS = 100, 5000  # of the strongest, at a time and in all


class Superseded(Exception):
    """Raised where the same page has asked for something newer."""


class Shown(NamedTuple):
    """Draws of a policy: of ``images``, ``copies`` of each. ``named``: the transform, in addresses. ``bad``: why other
    images are not shown."""

    transform: Transform
    named: str
    images: list[Chosen]
    copies: range
    seed: int
    epoch: int
    side: int | None
    bad: tuple[str, ...] = ()


@dataclass
class Watch:
    """Passes and time of the programs of a grid of ``images`` rows; ``proceed`` raises Superseded."""

    images: int
    proceed: Callable[[], None]
    passes: list[npt.NDArray[np.integer]] = field(default_factory=list)
    seconds: float = 0.0
    rows: int = 0

    def __call__(self, program: Program, seconds: float) -> None:
        self.proceed()
        passes = lower(program).num_passes
        assert passes is not None
        self.passes.append(passes)
        self.seconds, self.rows = self.seconds + seconds, self.rows + program.num_rows

    def of_pictures(self, pictures: int) -> npt.NDArray[np.integer] | None:
        """Passes [images, pictures in a row]; None where a picture is made of several rows, as in blends."""
        if sum(map(len, self.passes)) != self.images * pictures or not pictures:
            return None
        return np.concatenate([each.reshape(self.images, -1) for each in self.passes], axis=1)


class Studio:
    """Draws what a page asks for. Methods may be called by several threads; each takes a core."""

    def __init__(self, photos: Photos) -> None:
        self.photos = photos
        self._pictures: RecentValues[str, bytes] = RecentValues(_MOST_BYTES)
        self._policies: OrderedDict[str, Transform] = OrderedDict()
        self._lock = Lock()

    # -- pictures ----------------------------------------------------------------------------------------------

    def picture(self, address: str) -> bytes:
        """The JPEG at an address that a method below gave; drawn again where it is not kept any more.

        Raises LookupError for an address of a policy that was never shown here, or of another file or version.
        """
        if (found := self.kept(address)) is not None:
            return found
        version, named, side, stamp, *numbers = address.split("-")
        seed, epoch, index, number = map(int, numbers)
        transform = self._policies.get(named)
        if transform is None or version != str(PIXEL_VERSION) or not 0 <= index < self.photos.count:
            raise LookupError(address)
        if stamp != self.photos.stamp(index) or not 0 <= number <= _MOST_DRAWS:
            raise LookupError(address)
        image = self.photos.get(index, int(side) or None)
        # Of several views, a row has more pictures than copies.
        copies = range(number) if transform._is_alone or not number else range(number - 1, number)
        row = sample_rows(self.photos.choice([image]), transform, copies, seed, epoch, check=PixelLimit())[0]
        return self._keep(address, row[number if transform._is_alone else min(number, 1)])

    def kept(self, address: str) -> bytes | None:
        """The JPEG, if it need not be drawn."""
        return self._pictures.get(address)

    def _addresses(self, shown: Shown, index: int) -> str:
        """The beginning of those of a row; its pictures are numbered from the original, 0, on."""
        stamp, side = self.photos.stamp(index), shown.side or 0
        return f"{PIXEL_VERSION}-{shown.named}-{side}-{stamp}-{shown.seed}-{shown.epoch}-{index}-"

    def named(self, transform: Transform) -> str:
        try:
            told = json.dumps(transform.to_dict(), sort_keys=True)
        except (TypeError, ValueError):
            told = repr(transform)
        named = hashlib.sha256(told.encode()).hexdigest()[:16]
        with self._lock:
            self._policies[named] = transform
            self._policies.move_to_end(named)
            if len(self._policies) > _MOST_POLICIES:
                self._policies.popitem(last=False)
        return named

    def _keep(self, address: str, cell: Cell) -> bytes:
        made = to_jpeg(drawn_over(cell))
        return self._pictures.put(address, made, len(made))

    # -- what a page asks for ----------------------------------------------------------------------------------

    def grid(self, asked: Any, proceed: Callable[[], None]) -> dict[str, Any]:
        """Originals and draws. Raises CardError, DecodeError, Superseded."""
        began = time.perf_counter()
        shown = self.shown(asked)
        watch = Watch(len(shown.images), proceed)
        choice = self.photos.choice(shown.images)
        try:
            rows = sample_rows(choice, shown.transform, shown.copies, shown.seed, shown.epoch, watch, PixelLimit())
        except DecodeError:
            raise
        except (ValueError, TypeError) as error:
            raise _blaming(asked, shown, error) from error
        plain = shown._replace(named=self.named(Identity()), seed=0, epoch=0)
        passes, originals, cells = watch.of_pictures(len(rows[0]) - 1), [], []
        for n, (image, row) in enumerate(zip(shown.images, rows, strict=True)):
            address = self._addresses(plain, image.index) + "0"
            self._keep(address, row[0])
            about = {"index": image.index, "name": image.name, "label": self.photos.label(image)}
            originals.append({**about, "url": f"/p/{address}", "lines": row[0].lines})
            addresses = self._addresses(shown, image.index)
            for number, cell in enumerate(row[1:], 1):
                proceed()
                own = None if passes is None else int(passes[n, number - 1])
                cells.append({**self._cell(addresses, image.index, number, cell), "passes": own})
        every = np.concatenate(watch.passes) if watch.passes else np.zeros(1)
        return {
            "schedule": schedule_of(shown.transform),
            "bad": shown.bad,
            "originals": originals,
            "cells": cells,
            "histograms": {
                "before": histograms([row[0].img_HWC for row in rows]),
                "after": histograms([cell.img_HWC for row in rows for cell in row[1:]]),
            },
            "cost": {
                "draw_ms": 1e3 * (time.perf_counter() - began),
                "us_per_sample": 1e6 * watch.seconds / max(watch.rows, 1),
                "passes": float(every.mean()),
            },
        }

    def _cell(self, addresses: str, index: int, number: int, cell: Cell) -> dict[str, Any]:
        self._keep(f"{addresses}{number}", cell)
        height, width = cell.img_HWC.shape[:2]
        about = {"index": index, "copy": number - 1, "url": f"/p/{addresses}{number}", "lines": cell.lines}
        return {**about, "title": cell.title, "width": width, "height": height}

    def sweep(self, asked: Any) -> dict[str, Any]:
        """An operation over its range."""
        shown = self.shown({**asked, "cards": [], "copies": 0})
        sweep = sweep_of(str(asked.get("op")), whole_of(asked, "steps", 7, 1, 32))
        rows = []
        for image, row in zip(
            shown.images, sweep_rows(self.photos.choice(shown.images), sweep, shown.seed), strict=True
        ):
            # Not drawn again from its address, whose policy says nothing of the operation.
            addresses = f"{sweep.name}-{len(row)}-{self._addresses(shown, image.index)}"
            rows.append([self._cell(addresses, image.index, number, cell) for number, cell in enumerate(row)])
        return {"rows": rows}

    def thumbnails(self, asked: Any) -> dict[str, Any]:
        """Every operation at a middling strength, of those that need nothing that an image alone lacks."""
        side, index = whole_of(asked, "size", 224, 16, 256), whole_of(asked, "image", 0, 0, self.photos.count - 1)
        image = self.photos.get(index, side)
        found = {}
        for entry in catalogue():
            try:
                transform = to_policy([new_card(entry["name"])]).transform
                cell = sample_rows(self.photos.choice([image]), transform, range(1), 0, 0)[0][1]
            except (ValueError, TypeError, LookupError):
                continue
            addresses = self._addresses(Shown(transform, self.named(transform), [image], range(1), 0, 0, side), index)
            found[entry["name"]] = self._cell(addresses, index, 1, cell)["url"]
        return {"thumbnails": found}

    def strongest(self, asked: Any, proceed: Callable[[], None]) -> dict[str, Any]:
        """The draws of one image that change it most, by the mean difference of levels."""
        draws, keep = whole_of(asked, "draws", 1000, 1, _MOST_DRAWS), whole_of(asked, "keep", 24, 1, 64)
        shown = self.shown({**asked, "images": [asked.get("image", 0)], "copies": 0})
        image, changes = shown.images[0], np.zeros(draws)
        choice = self.photos.choice([image])

        def draw(copies: range) -> list[Cell]:
            return sample_rows(choice, shown.transform, copies, shown.seed, shown.epoch, check=PixelLimit())[0]

        if shown.transform._mixers or shown.transform._is_alone or image.targets is not None:
            raise CardError("the strongest draws: accepted: policies of one image that see no targets, and mix none")
        augmenter = Augmenter(shown.transform, seed=shown.seed, layout="NHWC")
        for start in range(0, draws, _CHUNK):
            proceed()
            copies = np.arange(start, min(start + _CHUNK, draws))
            given = [image.img_HWC] * len(copies)
            ids = [image.sample_id] * len(copies)
            program = in_bytes(augmenter.program(given, ids=ids, epoch=shown.epoch, copy=copies))
            PixelLimit()(program)
            outputs = augmenter.run(program, given)
            changes[copies] = [difference(output.numpy(), image.img_HWC) for output in outputs]
        cells: list[dict[str, Any]] = []
        addresses = self._addresses(shown, image.index)
        known = set()  # the same operations again, in whatever order, would hide others
        for copy in np.argsort(-changes, kind="stable")[: 10 * keep].tolist():
            cell = draw(range(copy, copy + 1))[1]
            if (lines := tuple(sorted(cell.lines))) in known or len(cells) == keep:
                continue
            known.add(lines)
            cells.append(
                {**self._cell(addresses, image.index, copy + 1, cell), "change": round(float(changes[copy]), 1)}
            )
        levels = [0.5, 0.9, 0.99]
        quantiles = zip(levels, np.quantile(changes, levels).tolist(), strict=True)
        return {"cells": cells, "quantiles": [list(each) for each in quantiles]}

    def sheet(self, asked: Any) -> bytes:
        """The grid as a contact sheet, a PNG."""
        shown = self.shown(asked)
        choice = self.photos.choice(shown.images)
        rows = sample_rows(choice, shown.transform, shown.copies, shown.seed, shown.epoch, check=PixelLimit())
        lines = [line for row in rows for line in layout.lines_of(row)]
        side = min(shown.side or layout.LARGEST_CELL, layout.LARGEST_CELL)
        notes = [f"Seed {shown.seed}, epoch {shown.epoch}."]
        picture = layout.draw_sheet(lines, "Policy", notes, side, max(side, layout.NARROWEST_COLUMN))
        buffer = io.BytesIO()
        picture.save(buffer, "PNG")
        return buffer.getvalue()

    def shown(self, asked: Any) -> Shown:
        """Of the arguments of a request. Raises CardError, DecodeError."""
        tuned = to_policy(asked.get("cards", []))
        indices = asked.get("images", [0])
        are_there = isinstance(indices, list) and all(type(i) is int and 0 <= i < self.photos.count for i in indices)
        if not indices or not are_there:
            raise CardError(f"images: accepted: a list of numbers from 0 to {self.photos.count - 1}, at least one")
        copies = whole_of(asked, "copies", 1, 0, MOST_CELLS)
        if len(indices) * (copies + 1) > 2 * MOST_CELLS:
            raise CardError(f"images: {len(indices)} times {copies} pictures; accepted: at most {MOST_CELLS}")
        side = None if asked.get("size") is None else whole_of(asked, "size", 224, 16, 1024)
        images, bad = [], []
        for index in indices:
            try:
                images.append(self.photos.get(index, side))
            except DecodeError as error:
                bad.append(str(error))
                if len(bad) == len(indices):
                    raise
        seed, epoch = (whole_of(asked, name, 0, 0, 2**32 - 1) for name in ("seed", "epoch"))
        named = self.named(tuned.transform)
        return Shown(tuned.transform, named, images, range(copies), seed, epoch, side, tuple(bad))


def whole_of(asked: Any, name: str, default: int, low: int, high: int) -> int:
    value = asked.get(name, default)
    if type(value) is not int or not low <= value <= high:
        raise CardError(f"{name}: got {value!r}; accepted: a whole number from {low:,} to {high:,}")
    return value


class PixelLimit:
    """Raises CardError for pictures of one request that would fill the memory, within an operation or at the end."""

    def __init__(self) -> None:
        self._pixels = 0

    def __call__(self, program: Program) -> None:
        largest = np.prod(program.out_size.astype(np.int64), axis=2).max(axis=1, initial=0)
        self._pixels += int(largest.sum())
        if self._pixels > _MOST_PIXELS:
            got, most = f"{self._pixels / 1e6:,.0f} megapixels at a time", f"{_MOST_PIXELS / 1e6:,.0f}"
            raise CardError(f"the policy makes {got}; accepted: up to {most}, by smaller sizes or fewer images")


def _blaming(asked: Any, shown: Shown, error: Exception) -> CardError:
    """The error that a transform raised for an image that it does not take, with the first card that does."""
    sizes = [image.img_HWC.shape for image in shown.images]
    for at in to_policy(asked["cards"]).numbers:
        transform = to_policy(asked["cards"][: at + 1]).transform
        try:
            if not transform._mixers:
                Augmenter(transform).program(sizes, ids=range(len(sizes)))
        except ValueError:
            return CardError(str(error), at)
    return CardError(str(error))
