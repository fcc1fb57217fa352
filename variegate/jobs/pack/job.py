"""What a worker does to pack: read, decode, reduce, encode, and look into what it encoded.

Nothing in here depends on which items came together: groups, threads and devices change no byte.
"""

from __future__ import annotations

import json
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.decode import PillowFile, checked_header, is_jpeg, read_image
from variegate.decode.entropy.cut import key_of_file, pack_file
from variegate.errors import DecodeError
from variegate.formats.packed import sums_of
from variegate.jobs.augment.job import DecodedItem, ExpansionJob
from variegate.jobs.output.encode import encode_image
from variegate.jobs.pack.plan import PackPlan
from variegate.program.describe import operations_of
from variegate.program.program import Program

Image_HWC = npt.NDArray[np.uint8]


class Origin(NamedTuple):
    """What is known of a sample beside its pixels: bytes of its file (or pixels), how many channels a loader shows of
    it, and the file where that is kept."""

    nbytes: int
    shown: int
    kept: bytes | None


class Beside(NamedTuple):
    """What shards need to know of an image. ``key``, ``entries``: of the entropy index, 0 where there is none."""

    shape: tuple[int, int, int, int]
    key: int = 0
    entries: bytes = b""


class PackJob(ExpansionJob):
    """On one device, with no more threads than it was given."""

    _plan: PackPlan

    def _open(self, data: Any, name: str) -> tuple[Image_HWC, Origin]:
        """Gray files give one channel."""
        if isinstance(data, np.ndarray):
            return data, Origin(data.nbytes, data.shape[2], None)
        if not is_jpeg(data):
            with PillowFile(data, name) as file:
                image, is_gray = file.decode(), file.is_gray
        else:
            image = read_image(data, name)
            is_gray = checked_header(data, name).components == 1
        kept = bytes(data) if self._plan.keep_jpeg and is_jpeg(data) else None
        return np.ascontiguousarray(image[:, :, :1]) if is_gray else image, Origin(len(data), 3, kept)

    def _make_copy(self, group: list[DecodedItem], copy: int) -> None:
        """Only larger images than are wanted are reduced."""
        most = self._plan.short_side
        is_large = [most is not None and min(one.sample.pixels.shape[:2]) > most for one in group]
        if large := list(compress(group, is_large)):
            super()._make_copy(large, copy)
        if rest := [one for one, is_one in zip(group, is_large, strict=True) if not is_one]:
            self._encode_copy(rest, copy, None, [one.sample.pixels for one in rest])

    def _beside(self, one: DecodedItem) -> list[Beside]:
        return [one.beside]

    def _encode_copy(
        self, group: list[DecodedItem], copy: int, program: Program | None, images: list[Image_HWC]
    ) -> None:
        packed = self._map(self._pack, list(zip(group, images, strict=True)))
        for number, (one, image, result) in enumerate(zip(group, images, packed, strict=True)):
            if isinstance(result, ValueError):
                one.failure = str(result)
                continue
            data, one.beside, about = result
            operations = [] if program is None else operations_of(program, number)
            sample = one.sample
            row = self._plan.written_row(one.index, sample.id, copy, sample.label, image.shape, operations, data)
            one.outputs.append((row | {"packed": json.dumps(about)}, data))

    def _pack(self, both: tuple[DecodedItem, Image_HWC]) -> tuple[bytes, Beside, dict[str, Any]] | ValueError:
        """What goes into a shard; a ValueError for a picture that the format cannot hold."""
        one, image = both
        origin: Origin = one.sample.file
        about = {"bytes": origin.nbytes, "kept": origin.kept is not None}
        if self._plan.layout == "raw":
            beside = Beside((*image.shape, origin.shown))
            return np.ascontiguousarray(image).tobytes(), beside, about | _sums(image, origin.shown)
        try:
            data = encode_image(image, "jpg", self._plan.quality) if origin.kept is None else origin.kept
            # What a reader gets, which is a little beside what was encoded.
            about |= _sums(image if origin.kept is not None else read_image(data), 3)
        except DecodeError as error:
            return ValueError(error.reason)
        except ValueError as error:  # larger than the format can hold
            return error
        found = pack_file(data)
        entries = b"" if isinstance(found, int) else found
        return data, Beside((*image.shape, 3), key_of_file(data), entries), about


def _sums(image: Image_HWC, channels: int) -> dict[str, Any]:
    sums, squares = sums_of(image)
    repeated = channels // len(sums)
    return {"sums": sums * repeated, "squares": squares * repeated}
