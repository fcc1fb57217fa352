"""Pictures of a studio, made by the executor that trains: each is known by an address that says all that made it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from variegate.apps.preview import sheet as layout
from variegate.apps.preview.choosing import Naming, moved_overlays
from variegate.apps.preview.rows import in_bytes, original, sample_rows
from variegate.apps.preview.sheet import Cell
from variegate.augmenter.augmenter import Augmenter
from variegate.checks import PIXEL_VERSION
from variegate.errors import DecodeError
from variegate.io.recent import LruCache
from variegate.ops.base import Transform
from variegate.ops.output import Identity
from variegate.program import describe
from variegate_studio.cards import CardError, schedule_of, to_cards, to_policy
from variegate_studio.catalogue import catalogue, new_card
from variegate_studio.counterparts import certain, run_original
from variegate_studio.photos import Photos
from variegate_studio.pictures import Image_HWC, difference, drawn_over, histograms, to_jpeg
from variegate_studio.requests import (
    GridRequest,
    PixelLimit,
    name_card,
    policy_hash,
    read_integer,
    read_request,
)
from variegate_studio.strongest import BY, Draw, points_with_detail, share_left, strongest_of

_MOST_BYTES = 128 << 20  # of encoded pictures
_MOST_POLICIES = 512
_MOST_VALUES = 32  # of a sweep
# Draws among which the strongest are found: at a time, and in all.
_CHUNK = 100
_MOST_DRAWS = 5000
_DRAWS = 4  # of an approximate conversion


class Cancelled(Exception):
    """Raised where the same page has asked for something newer."""


class Studio:
    """Draws the pictures that a page requests. Methods may be called by several threads; each takes a core."""

    def __init__(self, photos: Photos) -> None:
        self.photos = photos
        self._pictures: LruCache[str, bytes] = LruCache(_MOST_BYTES)
        self._policies: LruCache[str, Transform] = LruCache(_MOST_POLICIES)

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
        copies = range(number) if transform._must_be_root or not number else range(number - 1, number)
        choice = self.photos.choice([image], int(side) or None)
        row = sample_rows(choice, transform, copies, seed, epoch, PixelLimit())[0]
        return self._keep(address, row[number if transform._must_be_root else min(number, 1)])

    def kept(self, address: str) -> bytes | None:
        """The JPEG, if it need not be drawn."""
        return self._pictures.get(address)

    def _addresses(self, request: GridRequest) -> Callable[[int], str]:
        """The prefix of a row's picture addresses; its pictures are numbered from the original, 0."""
        named = policy_hash(request.transform)
        self._policies.put(named, request.transform, 1)
        policy = f"{PIXEL_VERSION}-{named}-{request.side or 0}"
        draws = f"{request.seed}-{request.epoch}"
        return lambda index: f"{policy}-{self.photos.stamp(index)}-{draws}-{index}-"

    def _keep(self, address: str, cell: Cell) -> bytes:
        made = to_jpeg(drawn_over(cell))
        return self._pictures.put(address, made, len(made))

    def _cell(self, addresses: str, index: int, number: int, cell: Cell) -> dict[str, Any]:
        self._keep(f"{addresses}{number}", cell)
        height, width = cell.img_HWC.shape[:2]
        return {
            "index": index,
            "copy": number - 1,
            "url": f"/p/{addresses}{number}",
            "lines": cell.lines,
            "title": cell.title,
            "width": width,
            "height": height,
        }

    # -- requests of a page --------------------------------------------------------------------------------------------

    def grid(self, body: Any, proceed: Callable[[], None]) -> dict[str, Any]:
        """Originals and draws. Raises CardError, DecodeError, Cancelled."""
        request = read_request(body, self.photos)
        rows = self._rows(request, PixelLimit(proceed))
        plain_at = self._addresses(request._replace(transform=Identity(), seed=0, epoch=0))
        drawn_at = self._addresses(request)
        originals = []
        cells = []
        for image, row in zip(request.images, rows, strict=True):
            address = plain_at(image.index) + "0"
            self._keep(address, row[0])
            original = {
                "index": image.index,
                "name": image.name,
                "label": self.photos.label(image),
                "url": f"/p/{address}",
                "lines": row[0].lines,
            }
            originals.append(original)
            addresses = drawn_at(image.index)
            for number, cell in enumerate(row[1:], 1):
                proceed()
                cells.append(self._cell(addresses, image.index, number, cell))
        return {
            "schedule": schedule_of(request.transform),
            "bad": request.bad,
            "originals": originals,
            "cells": cells,
            "histograms": {
                "before": histograms([row[0].img_HWC for row in rows]),
                "after": histograms([cell.img_HWC for row in rows for cell in row[1:]]),
            },
        }

    def _rows(self, request: GridRequest, watch: PixelLimit) -> list[list[Cell]]:
        """Raises CardError naming the card, DecodeError."""
        choice = self.photos.choice(request.images, request.side)
        try:
            return sample_rows(choice, request.transform, request.copies, request.seed, request.epoch, watch)
        except DecodeError:
            raise
        except (ValueError, TypeError) as error:
            raise name_card(request, error) from error

    def sweep(self, body: Any) -> dict[str, Any]:
        """A card with each of ``values`` of one of its arguments. Raises CardError."""
        card, argument, values = body.get("card"), body.get("argument"), body.get("values")
        if not isinstance(values, list) or not 0 < len(values) <= _MOST_VALUES:
            raise CardError(f"values: accepted: a list of at most {_MOST_VALUES}")
        request = read_request({**body, "cards": [card], "copies": 1}, self.photos)
        plain_at = self._addresses(request._replace(transform=Identity(), seed=0, epoch=0))
        rows = [
            [self._cell(plain_at(image.index), image.index, 0, original(image, Naming()))] for image in request.images
        ]
        for value in values:
            arguments = {**card.get("arguments", {}), argument: value}
            cards = [{**card, "arguments": arguments, "p": 1.0}]
            made = request._replace(transform=to_policy(cards).transform, cards=cards)
            addresses = self._addresses(made)
            for image, row, (_, cell) in zip(request.images, rows, self._rows(made, PixelLimit()), strict=True):
                row.append({**self._cell(addresses(image.index), image.index, 1, cell), "title": f"{argument} {value}"})
        return {"rows": rows}

    def thumbnails(self, body: Any) -> dict[str, Any]:
        """Every operation at medium strength, if it needs an image only."""
        side = read_integer(body, "size", 224, 16, 256)
        index = read_integer(body, "image", 0, 0, self.photos.count - 1)
        image = self.photos.get(index, side)
        found = {}
        for entry in catalogue():
            try:
                transform = to_policy([new_card(entry["name"])]).transform
                cell = sample_rows(self.photos.choice([image], side), transform, range(1), 0, 0)[0][1]
            except (ValueError, TypeError, LookupError):
                continue
            addresses = self._addresses(GridRequest(transform, [image], range(1), side=side))(index)
            found[entry["name"]] = self._cell(addresses, index, 1, cell)["url"]
        return {"thumbnails": found}

    def counterparts(self, body: Any, proceed: Callable[[], None]) -> dict[str, Any]:
        """Approximate conversions of a text, by their places: draws by the library, where it is installed, and here."""
        side = read_integer(body, "size", 224, 16, 1024)
        index = read_integer(body, "image", 0, 0, self.photos.count - 1)
        image = self.photos.get(index, side)
        report = to_cards(str(body.get("text", ""))).report
        found = {}

        def pictures(made: list[Image_HWC]) -> list[dict[str, Any]]:
            """Pictures by the digest of their bytes, because a library's version is unknown."""
            named = []
            for img_HWC in made:
                jpeg = to_jpeg(img_HWC)
                address = f"drawn-{hashlib.sha256(jpeg).hexdigest()[:24]}"
                self._pictures.put(address, jpeg, len(jpeg))
                named.append({"url": f"/p/{address}", "title": f"{difference(img_HWC, image.img_HWC):.1f} levels"})
            return named

        for place, pair in () if report is None else report.counterparts.items():
            proceed()
            request = GridRequest(certain(pair.transform), [image], range(_DRAWS), side=side)
            try:
                ours = [cell.img_HWC for cell in self._rows(request, PixelLimit())[0][1:]]
            except CardError:  # of images that it does not take
                continue
            theirs, why = run_original(pair.original, image.img_HWC, _DRAWS)
            found[place] = {"ours": pictures(ours), "theirs": pictures(theirs), "why": why}
        return {"counterparts": found}

    def strongest(self, body: Any, proceed: Callable[[], None]) -> dict[str, Any]:
        """The draw of each operation, and of each combination of them, that changes an image most; and that leaves the
        least of it."""
        draws = read_integer(body, "draws", 1000, 1, _MOST_DRAWS)
        request = read_request({**body, "images": [body.get("image", 0)], "copies": 0}, self.photos)
        if (by := body.get("by", "change")) not in BY:
            raise CardError(f"by: accepted: {' or '.join(BY)}")
        transform, image = request.transform, request.images[0]
        if transform._mixers or transform._must_be_root or image.targets is not None:
            raise CardError("the strongest draws: accepted: policies of one image that see no targets, and mix none")
        augmenter = Augmenter(transform, seed=request.seed, layout="NHWC")
        marked = replace(image, targets={"keypoints": points_with_detail(image.img_HWC)})
        choice = self.photos.choice([marked], request.side)
        found: list[Draw] = []
        for start in range(0, draws, _CHUNK):
            proceed()
            copies = np.arange(start, min(start + _CHUNK, draws))
            given = [image.img_HWC] * len(copies)
            ids = [image.sample_id] * len(copies)
            program = in_bytes(augmenter.program(given, ids=ids, epoch=request.epoch, copy=copies))
            PixelLimit().begin(program)
            outputs = augmenter.run(program, given)
            overlays = moved_overlays(program, [marked] * len(copies), choice)
            for n, (output, overlay) in enumerate(zip(outputs, overlays, strict=True)):
                img_HWC = output.numpy()
                assert overlay is not None
                moved = overlay.points[0].places
                operations = frozenset(one["op"] for one in describe.operations_of(program, n))
                change = difference(img_HWC, image.img_HWC)
                found.append(Draw(int(copies[n]), operations, change, share_left(img_HWC, moved)))
        addresses = self._addresses(request)(image.index)

        def shown(draw: Draw, title: str) -> dict[str, Any]:
            copies = range(draw.copy, draw.copy + 1)
            cell = self._rows(request._replace(copies=copies), PixelLimit())[0][1]
            made = self._cell(addresses, image.index, draw.copy + 1, cell)
            return {**made, "title": title, "change": round(draw.change, 1), "left": round(draw.left, 2)}

        return {name: [shown(draw, title) for title, draw in some] for name, some in strongest_of(found, by).items()}

    def sheet(self, body: Any) -> bytes:
        """The grid as a contact sheet, a PNG."""
        request = read_request(body, self.photos)
        lines = [line for row in self._rows(request, PixelLimit()) for line in layout.lines_of(row)]
        side = min(request.side or layout.LARGEST_CELL, layout.LARGEST_CELL)
        notes = [f"Seed {request.seed}, epoch {request.epoch}."]
        picture = layout.draw_sheet(lines, "Policy", notes, side, max(side, layout.NARROWEST_COLUMN))
        buffer = io.BytesIO()
        picture.save(buffer, "PNG")
        return buffer.getvalue()
