"""``Samples``: the table that every reader of samples by index returns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from variegate.arrays import AnyArray, Int64Array, UInt8Array, UInt64Array
from variegate.data.base import (
    Item,
    SampleRef,
    Source,
    StoredFile,
    check_index,
    describe,
    digest_of,
    summarize_names,
)
from variegate.data.labels import NO_LABEL, label_at
from variegate.errors import DecodeError
from variegate.io.location import Location, inside
from variegate.threads import computed_once

# Of an id, the bits of a sample's position within its shard.
POSITION_BITS = 32
# Values of all rows, or a function that returns the values of given rows.
Column: TypeAlias = AnyArray | Callable[[Int64Array], Any]


class Store:
    """Reads the rows of Samples: the only part that touches storage. A pickled copy opens files of its own."""

    def read(self, samples: Samples, row: int) -> Item | bytes | UInt8Array:
        """The data of a row; an Item if the storage also has its label or targets. Raises DecodeError."""
        raise NotImplementedError

    def pixels(self, rows: Int64Array) -> UInt8Array:
        """Images of many rows, copied: uint8 [N, H, W, C]. Only for Samples that are stacked."""
        raise NotImplementedError

    def name(self, row: int) -> SampleRef:
        """Name of a row of Samples without files."""
        raise NotImplementedError

    def digest(self, samples: Samples) -> str:
        """Fingerprint of all rows."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """Remarks from reading."""
        return []

    def with_targets(self, box_format: str, normalized: bool) -> tuple[Store, bool] | None:
        """A store whose items have targets, and whether they also have labels; None if that is already decided."""
        return None


class Exclusion(NamedTuple):
    """Exclusion of samples of ``whole``: the indices that were kept, ascending, and the list of the others, or ""."""

    whole: Samples
    kept: Int64Array
    exclude: str
    notes: tuple[str, ...]


@dataclass(eq=False, repr=False, kw_only=True)
class Samples:
    """Samples by index: columns in memory, and a store that reads. Any thread may call any method.

    Columns hold metadata that is known without reading samples. They have an entry per row; ``take`` keeps some of the
    rows, whose ids, labels and classes stay the same.

    Attributes:
        place: address of the data set for messages, without secrets.
        size: number of rows.
        store: reads rows.
        path: path of each row below ``folder``, or within its file of ``files``: pa.LargeBinaryArray of UTF-8. None if
            rows have no paths.
        folder: the folder whose files are the samples.
        files: files of many samples each, in the order of the rows.
        label: int64 [N], float64 [N] or an array per row. None if no sample has a label.
        id: uint64 [N], on which the random numbers of samples depend. None if ids are row numbers.
        first_shard: number of the first of ``files``. Ids are ``shard << POSITION_BITS | position`` then.
        columns: further columns, which ``store`` reads rows by: an array with an entry per row each.
        broken: rows that cannot be read, and the reasons.
        remarks: notes from opening the data set.
        is_remote: samples come from an address, so that reading waits for a network.
        is_decoded: samples are pixels, in memory or in files mapped into it.
        is_stacked: all images are one array, which ``pixels`` reads many of at once.
        has_targets: samples have targets. Their boxes are edges in pixels if ``has_edges``, and images also have labels
            if ``has_image_labels``.
        layout: the layout that targets are written in. ``layout_record``: see ``metadata``; may be a function of these
            Samples.
        objects: boxes, labels, key points and outlines (``annotated.objects.Objects``), if they are in memory.
        mask: form of the masks made of outlines (``annotated.options``).
        masks: path of each image's mask below ``folder``, as ``path``.
        empty_classes: classes that the format lists although they have no sample.
        unclassified: images next to class folders, as a flat folder.
        rows: rows of the columns that are samples, ascending. None if all are.
        exclusion: how these Samples were taken from others.
    """

    place: str
    size: int
    store: Store
    classes: tuple[str, ...] = ()
    path: Any = None
    folder: Location | None = None
    files: Sequence[StoredFile] = ()
    label: Column | None = None
    id: Column | None = None
    first_shard: int | None = None
    columns: Mapping[str, AnyArray] = field(default_factory=dict)
    broken: Mapping[int, str] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    is_remote: bool = False
    is_decoded: bool = False
    is_stacked: bool = False
    has_targets: bool = False
    has_edges: bool = False
    has_image_labels: bool = True
    layout: str | None = None
    layout_record: Mapping[str, Any] | Callable[[Samples], Mapping[str, Any]] | None = None
    objects: Any = None
    mask: str | None = None
    masks: Any = None
    empty_classes: tuple[str, ...] = ()
    unclassified: Samples | None = None
    rows: Int64Array | None = None
    exclusion: Exclusion | None = None

    def __repr__(self) -> str:
        return describe(self, self.place)

    def __len__(self) -> int:
        return self.size if self.rows is None else len(self.rows)

    def take(self, kept: Int64Array, notes: Sequence[str] = (), exclude: str = "") -> Samples:
        """The samples with the indices ``kept``, ascending. ``exclude``: the list of the others, or ""."""
        rows = kept if self.rows is None else self.rows[kept]
        return self._with(rows=rows, exclusion=Exclusion(self, kept, exclude, tuple(notes)))

    def row(self, index: int) -> int:
        """The row of a sample. Raises IndexError."""
        check_index(index, len(self))
        return int(index) if self.rows is None else int(self.rows[index])

    def read(self, index: int) -> Item:
        """Read a sample. Raises DecodeError with its name, and IndexError."""
        row = self.row(index)
        if row in self.broken:
            raise DecodeError(str(self.row_name(row)), self.broken[row])
        data = self.store.read(self, row)
        if isinstance(data, Item):
            return data
        assert not callable(self.label)
        return Item(data, label_at(self.label, row))

    def pixels(self, indices: Int64Array) -> UInt8Array:
        """Many images at once, copied: uint8 [N, H, W, C]. Raises TypeError unless ``is_stacked``."""
        if not self.is_stacked:
            raise TypeError("pixels: these images may differ in size; accepted: one array of images")
        for index in (indices.min(), indices.max()) if len(indices) else ():
            check_index(int(index), len(self))
        return self.store.pixels(self._rows(indices))

    def name(self, index: int) -> SampleRef:
        return self.row_name(self.row(index))

    def relative_path(self, index: int) -> str | None:
        """Path of a sample below ``folder``, with forward slashes, the same on every machine."""
        return None if self.folder is None else self.text(self.path, self.row(index))

    def paths(self) -> list[str]:
        """``relative_path`` of all samples. Only for samples that are files."""
        return self._kept_names(self.path)

    def mask_paths(self) -> list[str]:
        """Paths of the masks of all samples below ``folder``; none if they are no such files."""
        return [] if self.masks is None else self._kept_names(self.masks)

    def _kept_names(self, column: Any) -> list[str]:
        return names_in(column if self.rows is None else column.take(pa.array(self.rows)))

    def ids(self, indices: Int64Array) -> UInt64Array:
        return self.ids_of_rows(self._rows(indices))

    def ids_of_rows(self, rows: Int64Array) -> UInt64Array:
        if self.first_shard is not None:
            starts = np.array(self._starts)
            numbers = np.searchsorted(starts, rows, "right") - 1
            ids = (self.first_shard + numbers) << POSITION_BITS | rows - starts[numbers]
            return ids.astype(np.uint64)
        if self.id is None:
            return rows.astype(np.uint64)
        return np.asarray(self.id(rows) if callable(self.id) else self.id[rows], np.uint64)

    def labels(self, indices: Int64Array) -> AnyArray | None:
        """Labels of many samples, copied: -1 for a missing label; None if they are not known without reading
        samples."""
        if self.label is None:
            return np.full(len(indices), NO_LABEL)
        rows = self._rows(indices)
        labels: AnyArray | None = self.label(rows) if callable(self.label) else self.label[rows]
        return labels

    def notes(self) -> list[str]:
        excluded = () if self.exclusion is None else self.exclusion.notes
        before = [*self.remarks, *self.store.notes()] if self.exclusion is None else self.exclusion.whole.notes()
        return [*before, *excluded]

    @computed_once
    def fingerprint(self) -> str:
        """Hash over all rows, and over the selected samples; names in the list without a sample do not count."""
        if self.exclusion is None:
            return self.store.digest(self)
        return digest_of(f"{self.exclusion.whole.fingerprint}\0", self.exclusion.kept.tobytes())

    @computed_once
    def metadata(self) -> Mapping[str, Any] | None:
        """JSON metadata of a data set in its ``layout``, besides images and targets."""
        return self.layout_record(self) if callable(self.layout_record) else self.layout_record

    @property
    def whole(self) -> Samples:
        """The samples without exclusions."""
        return self if self.exclusion is None else self.exclusion.whole.whole

    @property
    def excluded(self) -> dict[str, Any]:
        """Settings of runs: the list of samples that are excluded, and their number."""
        if self.exclusion is None:
            return {}
        return {"exclude": self.exclusion.exclude, "left_out": len(self.exclusion.whole) - len(self)}

    def stored_files(self) -> list[StoredFile]:
        """``files``, with the numbers of their samples that were not excluded."""
        if self.rows is None:
            return list(self.files)
        counts = np.diff(np.searchsorted(self.rows, self._starts)).tolist()
        return [file._replace(samples=count) for file, count in zip(self.files, counts, strict=True)]

    def with_targets(self, box_format: str, normalized: bool) -> Samples:
        """Read the other entries of samples as targets, if the data set leaves this to the user. ``box_format``,
        ``normalized``: how boxes are written, as dicts of a data set have them already."""
        made = self.store.with_targets(box_format, normalized)
        if made is None:
            return self
        store, has_labels = made
        return self._with(store=store, label=no_labels, has_targets=True, has_image_labels=has_labels)

    def with_mask(self, mask: str | None) -> Samples:
        """Return the source with masks of another form (``annotated.values.MASKS``), drawn from the outlines of
        objects."""
        exclusion = self.exclusion
        if exclusion is not None:
            exclusion = exclusion._replace(whole=exclusion.whole.with_mask(mask))
        return self._with(mask=mask, exclusion=exclusion)

    def _with(self, **changes: Any) -> Samples:
        """A copy with changes; of a subclass, plain Samples."""
        columns = {field.name: getattr(self, field.name) for field in fields(Samples)}
        return Samples(**columns | changes)

    def file_of(self, row: int) -> tuple[StoredFile, int]:
        """The file of a row, and the row's position in it."""
        number = bisect_right(self._starts, row) - 1
        return self.files[number], row - self._starts[number]

    def row_name(self, row: int) -> SampleRef:
        """``name`` of the sample in a row."""
        if self.folder is not None:
            return SampleRef(inside(str(self.folder), self.text(self.path, row)))
        if not self.files:
            return self.store.name(row)
        file, position = self.file_of(row)
        member = f"row {position}" if self.path is None else self.text(self.path, row)
        return SampleRef(str(file.location), member)

    @staticmethod
    def text(names: Any, row: int) -> Any:
        """An entry of a column of names. Names of files are not redacted: whatever they hold is no secret."""
        name = names[row].as_py()
        return None if name is None else name.decode("utf-8", "surrogateescape")

    @computed_once
    def _starts(self) -> list[int]:
        return [0, *accumulate(file.samples for file in self.files)]

    def _rows(self, indices: Int64Array) -> Int64Array:
        indices = np.asarray(indices, np.int64)
        return indices if self.rows is None else self.rows[indices]


def concat(parts: Sequence[Samples]) -> Samples:
    """The rows of Samples with labels and files, one after another. All else is that of the first."""
    starts = accumulate((part.size for part in parts), initial=0)
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    ids = None if parts[0].id is None else np.concatenate([part.id for part in parts])
    return replace(
        parts[0],
        place=summarize_names([part.place for part in parts], 1),
        size=sum(part.size for part in parts),
        path=pa.concat_arrays([part.path for part in parts]),
        files=[file for part in parts for file in part.files],
        label=np.concatenate([part.label for part in parts]),
        id=ids,
        columns=columns,
        broken={
            start + row: part.broken[row] for start, part in zip(starts, parts, strict=False) for row in part.broken
        },
        is_remote=any(part.is_remote for part in parts),
    )


def name_column(names: Sequence[str]) -> Any:
    """Names as a column of Samples."""
    return pa.array([name.encode("utf-8", "surrogateescape") for name in names], pa.large_binary())


def names_in(column: Any) -> list[str]:
    """All names of such a column."""
    return [name.decode("utf-8", "surrogateescape") for name in column.to_pylist()]


class _SourceStore(Store):
    """A Source of a user."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def read(self, samples: Samples, row: int) -> Item:
        return self._source.read(row)

    def name(self, row: int) -> SampleRef:
        return self._source.name(row)

    def digest(self, samples: Samples) -> str:
        return self._source.fingerprint

    def notes(self) -> list[str]:
        return self._source.notes()


def samples_of(source: Source) -> Samples:
    """A source as Samples. A Source need not have more than the methods of its protocol, so it is asked here alone."""
    if isinstance(source, Samples):
        return source
    has_targets = getattr(source, "has_targets", False)
    return Samples(
        place=type(source).__name__,
        size=len(source),
        store=_SourceStore(source),
        classes=tuple(source.classes),
        label=getattr(source, "labels", no_labels),
        id=source.ids,
        is_remote=source.is_remote,
        has_targets=has_targets,
        has_edges=has_targets and getattr(source, "has_edges", False),
        has_image_labels=not has_targets or getattr(source, "has_image_labels", True),
    )


def no_labels(rows: Int64Array) -> None:
    """The column of labels of Samples that do not know them."""
