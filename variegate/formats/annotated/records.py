"""Records read with their samples: their targets, and how many wrong objects were left out."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from variegate.errors import DecodeError
from variegate.formats.annotated.fields import ObjectFields
from variegate.formats.annotated.folders import size_of
from variegate.formats.annotated.objects import Complaints
from variegate.formats.base import IndexedSource, SampleName, StoredFile
from variegate.formats.labels import NO_LABEL


class RecordReader:
    """``on_error``: "skip" leaves wrong objects out, counted once for each sample; else they are DecodeErrors."""

    def __init__(self, fields: ObjectFields, on_error: str) -> None:
        self.fields, self._is_skipping = fields, on_error == "skip"
        self._wrong: dict[int, int] = {}
        self._flat: dict[int, int] = {}
        self._first = ""

    def targets(self, sample: int, record: Any, size: tuple[int, int], name: str) -> dict[str, Any]:
        """``sample``: its number; ``size``: of its image, height and width. Raises DecodeError with ``name``."""
        try:
            found = self.fields.read(record, size)
        except (TypeError, ValueError, OverflowError) as error:
            raise DecodeError(name, f"its annotations: {error}") from None
        self.count(sample, found.wrong, found.flat, name)
        return found.targets

    def count(self, sample: int, wrong: list[str], flat: int, name: str) -> None:
        """Raises DecodeError for the first that is wrong, unless these are left out."""
        if wrong and not self._is_skipping:
            raise DecodeError(name, f'its annotations: {wrong[0]}; on_error="skip" of open_source leaves such out')
        if wrong:
            self._first = self._first or f"{name}: {wrong[0]}"
            self._wrong[sample] = len(wrong)
        if flat:
            self._flat[sample] = flat

    def notes(self) -> list[str]:
        """Of the samples that were read so far."""
        wrong, flat = sum(list(self._wrong.values())), sum(list(self._flat.values()))
        return Complaints("skip", bad=wrong, first=self._first, flat=flat).notes("", "were")


class SourceOver(IndexedSource):
    """The samples of another source, ``_images``, with targets instead of labels. ``_reader``: of their records."""

    has_targets: ClassVar[bool] = True
    has_edges: ClassVar[bool] = True
    has_image_labels: ClassVar[bool] = False

    def __init__(self, images: Any, reader: RecordReader) -> None:
        self._images, self._reader = images, reader
        self.classes, self.is_remote = reader.fields.classes, images.is_remote

    def __len__(self) -> int:
        return len(self._images)

    def name(self, index: int) -> SampleName:
        name: SampleName = self._images.name(index)
        return name

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        ids: npt.NDArray[np.uint64] = self._images.ids(indices)
        return ids

    def labels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return np.full(len(indices), NO_LABEL)

    def stored_files(self) -> list[StoredFile]:
        files: list[StoredFile] = self._images.stored_files()
        return files


def image_size(image: Any, name: str) -> tuple[int, int]:
    """Height and width of pixels [H, W, C], or of a file, upright. Raises DecodeError."""
    return (image.shape[0], image.shape[1]) if isinstance(image, np.ndarray) else size_of(image, name)
