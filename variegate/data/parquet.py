"""Parquet files in Hugging Face's layout: images, labels and objects in columns, read and written.

Rows may name image files instead of holding them. Boxes, key points and masks are in columns by name, such as
``objects``; classes are in the metadata.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from variegate.data import reading
from variegate.data.annotated.frames import Size, StoredImage, TargetStore
from variegate.data.annotated.options import check_options
from variegate.data.annotated.records import (
    IGNORED_NAMES,
    USUAL_NAMES,
    ImageAnnotations,
    ObjectFields,
    RecordForm,
    RecordReader,
    as_objects,
    form_of_schema,
    has_objects,
    named_lists,
    targets_of,
)
from variegate.data.base import SourceError, StoredFile, digest_of, summarize_names, truncate
from variegate.data.labels import (
    IMAGE_NAMES,
    LABEL_NAMES,
    MOST_LABEL,
    NO_LABEL,
    WHOLE_LABELS,
    Labels,
    accepted_classes,
    check_classes,
    check_int64,
    first_outside,
    hash_labels,
    names_of,
)
from variegate.data.row_groups import GroupCache, GroupReader, choose_unpacking
from variegate.data.samples import Samples, Store
from variegate.data.shards import GroupedShard, Record
from variegate.data.shards import Labels as ShardLabels
from variegate.data.storage import Storage
from variegate.decode import read_bytes
from variegate.errors import DecodeError, one_line
from variegate.io.amounts import pluralize
from variegate.io.files import NotRegularError, StrPath
from variegate.io.location import Location, LocationLike, cache_folder

_ACCEPTED = "a Parquet file with a column of images"


@dataclass(frozen=True)
class ParquetFile:
    """``stamp`` changes when the file is replaced."""

    location: Location
    size: int
    stamp: str
    schema: pa.Schema
    metadata: Any  # pq.FileMetaData, kept so that opening the file again does not read the footer again

    @property
    def name(self) -> str:
        """The last part of the path, without a query; of a chained address, that of the outer file."""
        return str(self.location).rstrip("/").replace("\\", "/").rsplit("/", 1)[-1]

    @contextmanager
    def opened(self, is_checked: bool = False) -> Iterator[pq.ParquetFile]:
        """Context manager: the file, reopened for each use; ``is_checked``: compares checksums of pages. Raises
        OSError."""
        with reading.open_random(self.location) as (handle, size, stamp):
            if (size, stamp) != (self.size, self.stamp):
                raise OSError("the file has changed since it was opened")
            # Over a network, the columns' parts are fetched together and ahead. From a disk they are read bit by bit,
            # which halves the memory that decoding takes and is no slower.
            options = {"pre_buffer": True} if self.location.is_url else {"buffer_size": 1 << 20}
            options |= {"page_checksum_verification": True} if is_checked else {}
            yield pq.ParquetFile(handle, metadata=self.metadata, **options)

    def read(self, columns: list[str], what: str) -> pa.Table:
        """All rows. Raises SourceError naming the file and ``what``."""
        try:
            with self.opened() as opened:
                return opened.read(columns=columns)
        except Exception as error:
            raise SourceError(
                f"{self.location}: {what} cannot be read: {parquet_reason(error, self.location)}"
            ) from None


def open_file(path: LocationLike, accepted: str = _ACCEPTED) -> ParquetFile:
    """Read the footer of a file. Raises SourceError naming the file, and accepted files."""
    location = Location.parse(path, chain=True)
    try:
        with reading.open_random(location) as (handle, size, stamp):
            if size == 0:
                raise SourceError(f"{location}: zero bytes: the file is empty; accepted: {accepted}")
            opened = pq.ParquetFile(handle)
            schema = opened.schema_arrow
            metadata = opened.metadata
    except SourceError:
        raise
    except NotRegularError as error:
        raise SourceError(f"{location}: {error.strerror}") from None
    except Exception as error:  # of pyarrow, of fsspec, or of any package that fsspec reads this address with
        raise SourceError(f"{location}: {parquet_reason(error, location)}; accepted: {accepted}") from None
    return ParquetFile(location, size, stamp, schema, metadata)


def parquet_reason(error: Exception, location: Location | None = None) -> str:
    """The reason of an error, in words for the file's owner, without the secrets of the address."""
    is_systems = isinstance(error, OSError) and error.errno is not None
    location = location or Location.of("")
    if not isinstance(error, pa.ArrowException) and (location.is_url or is_systems):
        return reading.reason_for(error, location)
    text = one_line(error).rstrip(".") or type(error).__name__
    if isinstance(error, pa.ArrowInvalid) and ("magic bytes" in text or "too small" in text or "file size" in text):
        return "not a Parquet file, or cut short: it does not end as one does"
    return f"damaged: {text}" if isinstance(error, pa.ArrowException) else text


_ACCEPTED_IMAGES = "a column of image files: struct<bytes: binary, path: string> (Hugging Face's) or binary"


class Columns(NamedTuple):
    """``label`` is None without a column of labels; ``class_names`` are the names that the file assigns to integer
    labels."""

    image: str
    label: str | None
    class_names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def find_columns(file: ParquetFile, image: str | None = None) -> Columns:
    """``image``: the column of images that the user names, if any. Raises SourceError naming the file, its columns, and
    accepted columns."""
    schema = file.schema
    features = features_of(file.schema)
    notes: list[str] = []

    def of_type(kind: str) -> list[str]:
        return [name for name, feature in features.items() if feature.get("_type") == kind]

    if image is None:
        image = _only_image(file, _holding(schema, of_type("Image"), is_image_column), notes)
    elif not _holding(schema, [image], is_image_column):
        what = str(schema.field(image).type) if image in schema.names else "no such column"
        columns = f"its columns: {schema_in_words(schema)}; accepted: {_ACCEPTED_IMAGES}"
        raise SourceError(f"{file.location}: image={image!r}: {what}; {columns}")
    named = _by_preference(of_type("ClassLabel"), LABEL_NAMES)
    found = _holding(schema, dict.fromkeys([*named, *LABEL_NAMES]), _is_label)
    if not found:
        return Columns(image, None, (), tuple(notes))
    if len(found) > 1:
        notes.append(f"labels are read from column {found[0]!r}, not from {', '.join(found[1:])}")
    return Columns(image, found[0], names_of(features.get(found[0], {}).get("names")), tuple(notes))


def check_alike(first: ParquetFile, columns: Columns, file: ParquetFile, has_labels: bool = True) -> None:
    """Raises SourceError naming both files where a further one has not the images and labels that the first has."""

    def error(what: str) -> SourceError:
        return SourceError(f"{file.location}: {what}; accepted: files with the same columns")

    its_columns = f"its columns: {schema_in_words(file.schema)}"
    if not _holding(file.schema, [columns.image], is_image_column):
        raise error(f"no images in a column {columns.image!r}, where {first.location} has them; {its_columns}")
    if columns.label is None:
        found = find_columns(file, columns.image).label if has_labels else None
        if found is not None:
            raise error(f"has labels (column {found!r}), and {first.location} has none")
        return
    if columns.label not in file.schema.names:
        raise error(f"no column {columns.label!r}, where {first.location} has its labels; {its_columns}")
    kinds = [each.schema.field(columns.label).type for each in (file, first)]
    if _label_kind(kinds[0]) != _label_kind(kinds[1]):
        raise error(f"column {columns.label!r} is {kinds[0]}, and {kinds[1]} in {first.location}")
    names = names_of(features_of(file.schema).get(columns.label, {}).get("names"))
    if names and columns.class_names and names != columns.class_names:
        raise error(f"column {columns.label!r} has other class names than in {first.location}")


def is_image_column(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        at = kind.get_field_index("bytes")
        return at >= 0 and _is_binary(kind.field(at).type)
    return _is_binary(kind)


def _is_binary(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)


def _label_kind(kind: pa.DataType) -> str | None:
    """The kind of labels, for any bit width; None if the type cannot hold labels."""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "int"
    if pa.types.is_floating(kind):
        return "float"
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(values) or pa.types.is_large_string(values):
        return "string"
    if pa.types.is_fixed_size_list(kind) and (inner := _label_kind(kind.value_type)) in ("int", "float"):
        return f"{kind.list_size} of {inner}"
    return None


def is_list_column(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_label(kind: pa.DataType) -> bool:
    return _label_kind(kind) is not None


def features_of(schema: pa.Schema) -> dict[Any, dict[str, Any]]:
    """Remarks of the library ``datasets`` on the columns; nothing where that is not to be understood."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        # A list around a feature is how older files have a list of it.
        features = {
            name: {"feature": one[0]} if isinstance(one, list) and one else one for name, one in features.items()
        }
        return {name: feature for name, feature in features.items() if isinstance(feature, dict)}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def _only_image(file: ParquetFile, named: list[str], notes: list[str]) -> str:
    """The column that the metadata names (``named``), else one with a usual name, else the only column of its type."""
    typed = _holding(file.schema, file.schema.names, is_image_column)
    found = _by_preference(named, IMAGE_NAMES) or [name for name in IMAGE_NAMES if name in typed]
    if not found and len(typed) > 1:
        what = f"images may be in any of {', '.join(typed)}; accepted: one such column, or one called 'image'"
        raise SourceError(f"{file.location}: {what}")
    if not typed:
        what = f"no column of images; its columns: {schema_in_words(file.schema)}; accepted: {_ACCEPTED_IMAGES}"
        raise SourceError(f"{file.location}: {what}")
    first, *others = dict.fromkeys((*found, *typed))
    if others:
        notes.append(f"images are read from column {first!r}, not from {', '.join(others)}")
    return first


def _holding(schema: pa.Schema, names: Iterable[str], test: Callable[[Any], bool]) -> list[str]:
    return [name for name in names if name in schema.names and test(schema.field(name).type)]


def _by_preference(names: list[str], preferred: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: preferred.index(name) if name in preferred else len(preferred))


def schema_in_words(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema) or "none"


def read_labels(
    files: Sequence[ParquetFile], column: str, classes: tuple[str, ...]
) -> tuple[Labels, tuple[str, ...], list[str]]:
    """The labels of all rows, the classes (``classes``, else sorted values) and notes. Raises SourceError."""
    with ThreadPoolExecutor(min(16, len(files))) as pool:
        columns = list(pool.map(lambda file: file.read([column], f"column {column!r}").column(column), files))
    kind = _label_kind(files[0].schema.field(column).type) or ""
    missing = sum(values.null_count for values in columns)
    theirs = "NaN" if kind == "float" else NO_LABEL
    notes = [f"{pluralize(missing, 'row')} without a label in column {column!r}, read as {theirs}"] if missing else []
    if kind == "string":
        columns = [values.cast(pa.large_string()) for values in columns]
        names = {name for values in columns for name in values.unique().drop_null().to_pylist()}
        classes = classes or tuple(sorted(names))
        parts = [_class_of(file, values, classes) for file, values in zip(files, columns, strict=True)]
    elif kind == "int":
        parts = [_whole_numbers(file, column, values) for file, values in zip(files, columns, strict=True)]
    elif kind == "float":
        parts = [np.asarray(values.cast(pa.float64()).to_numpy()) for values in columns]
    else:
        parts = [_rows_of_numbers(file, column, values) for file, values in zip(files, columns, strict=True)]
    for file, part in zip(files, parts, strict=False):
        row = first_outside(part, classes)
        if row is not None:
            accepted = f"accepted: {accepted_classes(classes)}"
            raise SourceError(f"{file.location}: row {row}: label {part[row]}; {accepted}")
    return np.concatenate(parts), classes, notes


def _whole_numbers(file: ParquetFile, column: str, values: pa.ChunkedArray) -> Labels:
    if pa.types.is_unsigned_integer(values.type):
        beyond = pc.greater(values.cast(pa.uint64()), pa.scalar(MOST_LABEL, pa.uint64()))
        if pc.any(beyond).as_py():
            row = pc.index(beyond, True).as_py()
            label = f"row {row}: label {values[row].as_py()} in column {column!r}"
            raise SourceError(f"{file.location}: {label}; accepted: {WHOLE_LABELS}")
    return np.asarray(values.cast(pa.int64()).fill_null(NO_LABEL).to_numpy())


def _class_of(file: ParquetFile, values: pa.ChunkedArray, classes: tuple[str, ...]) -> Labels:
    found = pc.index_in(values, value_set=pa.array(classes, pa.large_string()))
    unknown = pc.and_(pc.is_null(found), pc.is_valid(values))
    if pc.any(unknown).as_py():
        row = pc.index(unknown, True).as_py()
        raise SourceError(f"{file.location}: row {row}: label {values[row].as_py()!r}; accepted: {', '.join(classes)}")
    return np.asarray(found.fill_null(NO_LABEL).to_numpy()).astype(np.int64)


def _rows_of_numbers(file: ParquetFile, column: str, values: pa.ChunkedArray) -> Labels:
    where = f"{file.location}: column {column!r}"
    numbers = pc.list_flatten(values)
    if values.null_count or numbers.null_count:
        raise SourceError(f"{where} has rows without labels; accepted: a number in every place")
    rows = np.asarray(numbers.to_numpy()).reshape(-1, values.type.list_size)
    check_int64(where, rows)
    return rows


def check_root(image_root: StrPath) -> str:
    """The folder that named files are read from. Raises SourceError unless it is a folder of this machine."""
    location = Location.parse(image_root, chain=True)
    if location.is_url or not os.path.isdir(location.address()):
        what = "an address" if location.is_url else "no such folder"
        raise SourceError(f"image_root: got {str(location)!r}, {what}; accepted: a folder of this machine")
    return os.path.abspath(location.address())


def read_named_file(path: str, table: Location, root: str | None, name: str) -> bytes:
    """The file that a row names by ``path``, below ``root`` or the table's folder. Raises DecodeError."""
    quoted = repr(truncate(path, 200))
    if root is None and not table.is_url:
        root = os.path.dirname(table.address()) or "."
    if not path or root is None:
        what = f", and {quoted} is on another machine; accepted: image_root=, a folder of this one" if path else ""
        raise DecodeError(name, f"no image: its bytes are null{what}")
    try:
        # The resolved path, so that neither links nor ".." lead out of the folder.
        place = os.path.realpath(os.path.join(root, path))
        top = os.path.realpath(root)
        is_inside = os.path.splitdrive(place)[0] == os.path.splitdrive(top)[0]
        is_inside = is_inside and os.path.commonpath([place, top]) == top
    except (OSError, ValueError):  # NUL in it
        raise DecodeError(name, f"no image: its bytes are null, and {quoted} is no name of a file") from None
    if not is_inside:
        raise DecodeError(
            name,
            f"no image: its bytes are null, and it names {quoted}, which is outside of {root}; accepted: files "
            "below it, or below image_root= of open_source",
        )
    if not os.path.lexists(place):
        raise DecodeError(name, f"no image: its bytes are null, and there is no file {quoted} in {root}")
    return read_bytes(place, f"{name}: {path}")


MEMORY = 512 << 20


class ParquetStore(Store):
    """Images in the rows of Parquet files.

    A row is had by decoding the row group around it, once however many threads wait for that. Where all groups fit in
    ``memory`` bytes, they are held there. Larger row groups are unpacked, when first needed, into an Arrow file under
    ``cache_dir``. A row is then a single read, in this run and the next. Without room on that disk the latest groups
    stay in memory. A pickled copy opens its own files and holds row groups of its own.
    """

    def __init__(self, readers: Sequence[GroupReader], memory: int, image_root: str | None) -> None:
        self._image_root = image_root
        self._readers = list(readers)
        self._memory = memory
        self._groups = [(reader, group) for reader in readers for group in range(len(reader.rows))]
        self._group_starts = list(accumulate((reader.rows[group] for reader, group in self._groups), initial=0))[:-1]
        self.__setstate__({})

    def digest(self, samples: Samples) -> str:
        assert not callable(samples.label)
        files = [(reader.file, sum(reader.rows), reader.column) for reader in self._readers]
        parts = [f"\0{file.name}\0{file.size}\0{rows}\0{column}" for file, rows, column in files]
        return digest_of("\0".join(samples.classes), *parts, hash_labels(samples.label))

    def read(self, samples: Samples, row: int) -> bytes:
        """The bytes of the image file in a row. Raises DecodeError naming the Parquet file and the row in it."""
        at = bisect_right(self._group_starts, row) - 1
        position = row - self._group_starts[at]
        reader, group = self._groups[at]
        try:
            rows = self._cache.get(at)
            try:
                data, path = rows.row(position)
            except OSError:  # the cache folder was emptied meanwhile: unpack again
                self._cache.drop(at)
                data, path = self._cache.get(at).row(position)
        except MemoryError:
            raise
        except Exception as error:
            reason = f"its row group {group} cannot be read: {parquet_reason(error, reader.file.location)}"
            raise DecodeError(str(samples.row_name(row)), reason) from None
        if data is None:
            data = read_named_file(path, reader.file.location, self._image_root, str(samples.row_name(row)))
        return data

    def notes(self) -> list[str]:
        failures = [reader.failure for reader in self._readers if reader.failure is not None]
        return [f"rows cannot be unpacked, and reading in random order will be slow: {text}" for text in failures[:1]]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        groups = self._groups
        expected = [reader.expected[group] for reader, group in groups]
        self._cache = GroupCache(lambda at: groups[at][0].load(groups[at][1]), expected, self._memory)


def open_parquet(
    paths: Sequence[LocationLike],
    classes: Sequence[str] | None = None,
    image: str | None = None,
    *,
    memory: int = MEMORY,
    cache_dir: StrPath | None = None,
    image_root: StrPath | None = None,
    has_labels: bool = True,
) -> Samples:
    """Open Parquet files, in the given order, by path or by any address that fsspec understands.

    Images: the column that Hugging Face's metadata names, else ``image`` or ``img``, else the only one that holds
    struct<bytes, path> or binary values. Labels: the metadata's ClassLabel, else a column named as one (``label``,
    ``labels``, ``fine_label``, ...); -1 without. Strings become the index in ``classes``, or else in their sorted
    values; ``classes`` also names ints, before the metadata's names.

    ``memory``: bytes of decoded row groups to hold (while Arrow decodes one, it takes up to about its size on top).
    Larger row groups are unpacked to ``cache_dir`` (None: see ``cache_folder``), which then takes about the size of the
    images; files unpacked from a replaced file are removed.

    ``image_root``: the folder that files are read from which rows name instead of holding bytes; None: that of the
    Parquet file, if it is on this machine. A row that names a file outside of it is a bad sample (DecodeError), also
    where it leads there by links or "..". ``has_labels``: False for no labels, whatever the columns are called.

    Raises SourceError naming the file: no such file, not Parquet, no images in it, or columns of other types than the
    file before it has.
    """
    if isinstance(paths, (str, os.PathLike)) or not paths:
        raise SourceError(f"paths: got {paths!r}; accepted: a sequence of paths of Parquet files")
    given = check_classes(classes)
    with ThreadPoolExecutor(min(16, len(paths))) as pool:
        files = list(pool.map(open_file, paths))
    columns = find_columns(files[0], image)
    if not has_labels:
        columns = columns._replace(label=None, class_names=(), notes=())
    for file in files[1:]:
        check_alike(files[0], columns, file, has_labels)
    if sum(file.metadata.num_rows for file in files) == 0:
        raise SourceError(f"{files[0].location}: no rows{' in any of the files' if len(files) > 1 else ''}")
    labels = None
    names = given or columns.class_names
    notes = list(columns.notes)
    if columns.label is None and has_labels:
        notes.append(f"no column of labels in {files[0].name}: every label is -1")
    elif columns.label is not None:
        labels, names, more = read_labels(files, columns.label, names)
        notes += more
    readers = [GroupReader(file, columns.image) for file in files]
    notes += choose_unpacking(readers, memory, cache_folder(cache_dir))
    root = None if image_root is None else check_root(image_root)
    stored = [StoredFile(file.location, file.metadata.num_rows, file.size, file.stamp) for file in files]
    return Samples(
        place=summarize_names([str(file.location) for file in files], 1),
        size=sum(file.samples for file in stored),
        store=ParquetStore(readers, memory, root),
        classes=names,
        files=stored,
        label=labels,
        remarks=notes,
        is_remote=any(file.location.is_url for file in files),
    )


class RowStore(TargetStore):
    """``images`` and ``masks`` have the same rows; ``table``: the columns of the objects, all in memory. ``objects``:
    the column with all annotations of an image, if there is one."""

    def __init__(
        self,
        images: Samples,
        masks: Samples | None,
        table: pa.Table | None,
        reader: RecordReader,
        objects: str | None,
    ) -> None:
        super().__init__(reader.fields.exif)
        self._images = images
        self._masks = masks
        self._table = table
        self._reader = reader
        self._objects = objects

    def stored_image(self, samples: Samples, row: int) -> StoredImage:
        data = self._images.read(row).data
        name = str(samples.row_name(row))

        def targets(size: Size) -> dict[str, Any]:
            assert self._table is not None
            try:
                record: Any = self._table.slice(row, 1).to_pylist()[0]
            except (ValueError, OverflowError, NotImplementedError) as error:  # no UTF-8, or times too far off
                raise DecodeError(name, f"its annotations: {error}") from None
            return self._reader.targets(row, record[self._objects] if self._objects else record, size, name)

        mask = None if self._masks is None else (bytes(self._masks.read(row).data), f"{name}: its mask")
        place = name.rpartition(":")[0] or name
        return StoredImage(data, name, place, targets=None if self._table is None else targets, mask=mask)

    def digest(self, samples: Samples) -> str:
        masks = self._masks and self._masks.fingerprint
        fields = self._reader.fields.digest_text
        return digest_of(f"{self._images.fingerprint}\0{masks}\0{self._objects}\0{fields}")

    def notes(self) -> list[str]:
        masks = [] if self._masks is None else self._masks.notes()
        return [*dict.fromkeys([*self._images.notes(), *masks]), *self._reader.notes()]


def open_columns(
    files: Sequence[Location],
    annotations: Mapping[str, Any],
    on_error: str,
    classes: Sequence[str] | None,
    **places: Any,
) -> Samples:
    """``places``: as of ``open_parquet``. Raises SourceError naming the file and the column that is wrong."""
    options = check_options("columns", annotations)
    opened = [open_file(file) for file in files]
    image, objects, mask = (options[name] for name in ("image", "objects", "mask"))
    schema = opened[0].schema
    types = dict(zip(schema.names, schema.types, strict=True))
    has_flat = any(options[name] in types for name in ("boxes", "keypoints"))
    if objects is None and not has_flat and "objects" in types and _is_nested(types["objects"]):
        objects = "objects"
    if mask is None and "mask" in types and is_image_column(types["mask"]):
        mask = "mask"
    fields = ObjectFields.of(options, check_classes(classes))
    wanted = [objects] if objects else _flat_columns(types, fields)
    if not wanted and mask is None:
        usual = ", ".join(("objects", *USUAL_NAMES["boxes"], *USUAL_NAMES["keypoints"], "mask"))
        found = f"its columns: {schema_in_words(schema)}"
        raise SourceError(f"{files[0]}: no column of objects or masks ({usual}); {found}; accepted: their names")
    for file in opened:
        _check_types(opened[0], file, [*wanted, *([mask] if mask else [])], objects, mask)
    if image is None and mask is not None:  # where one more column is all that there is; else names decide
        typed = [name for name, kind in types.items() if is_image_column(kind) and name != mask]
        image = typed[0] if len(typed) == 1 else find_columns(opened[0]).image
    table = None
    if objects:
        _check_fields(opened[0], objects, fields)
    if wanted:
        parts = [file.read(wanted, f"columns {', '.join(wanted)}").select(wanted) for file in opened]
        table = pa.concat_tables([part.replace_schema_metadata(None) for part in parts])
        if not fields.classes:
            fields = replace(fields, classes=_classes_of(files[0], fields, table, objects, features_of(schema)))
    images = open_parquet(files, None, image, has_labels=False, **places)
    masks = None if mask is None else open_parquet(files, None, mask, has_labels=False, **places)
    form = form_of_schema(fields, None if table is None else table.schema, objects)
    names = {"image": image or find_columns(opened[0]).image, "objects": objects, "mask": mask}
    metadata = {"format": "columns", **names, "record": asdict(form)}
    store = RowStore(images, masks, table, RecordReader(fields, on_error), objects)
    return replace(images, store=store, layout="parquet", layout_record=metadata, **targets_of(fields))


def _flat_columns(types: Mapping[str, pa.DataType], fields: ObjectFields) -> list[str]:
    """Columns of boxes and their attributes, by their options, or the usual names of lists."""
    lists = [name for name, kind in types.items() if is_list_column(kind)]
    boxes, labels, points = fields.names(lists).values()
    if not boxes and not points:
        return []
    more = [name for name in IGNORED_NAMES if name in lists]
    return [name for name in (boxes, points, labels, *fields.per_box, *more) if name]


def _check_types(
    first: ParquetFile, file: ParquetFile, wanted: Sequence[str], objects: str | None, mask: str | None
) -> None:
    for name in wanted:
        if name not in file.schema.names:
            columns = schema_in_words(file.schema)
            raise SourceError(f"{file.location}: no column {name!r}; its columns: {columns}")
        kind = file.schema.field(name).type
        is_fit = is_list_column(kind)
        accepted = "lists"
        if name == objects:
            is_fit = _is_nested(kind)
            accepted = "a struct of lists or a list of structs"
        if name == mask:
            is_fit = is_image_column(kind)
            accepted = "image files: struct<bytes, path> or binary"
        if is_fit and not kind.equals(first.schema.field(name).type):
            is_fit = False
            kind = f"{kind}, and {first.schema.field(name).type} in {first.location}"
            accepted = "the same in all"
        if not is_fit:
            raise SourceError(f"{file.location}: column {name!r} is {kind}; accepted: {accepted}")


def _fields_of(kind: pa.DataType) -> list[str]:
    """Names within a nested column."""
    return [field.name for field in (kind.value_type if is_list_column(kind) else kind)]


def _check_fields(file: ParquetFile, objects: str, fields: ObjectFields) -> None:
    """Raises SourceError for names that occur twice in the column ``objects``, and for requested names it lacks."""
    names = _fields_of(file.schema.field(objects).type)
    where = f"{file.location}: column {objects!r}"
    if twice := [name for name in names if names.count(name) > 1]:
        raise SourceError(f"{where} has the field {twice[0]!r} twice; accepted: fields with different names")
    try:
        fields.read({name: [] for name in names}, (1, 1))
    except ValueError as error:
        raise SourceError(f"{where}: {error}") from None


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) or (is_list_column(kind) and pa.types.is_struct(kind.value_type)))


def _classes_of(
    file: Location, fields: ObjectFields, table: pa.Table, objects: str | None, features: Mapping[str, Any]
) -> tuple[str, ...]:
    """Class names from Hugging Face's metadata, or, for labels that are text, the sorted labels."""
    names = table.column_names
    if objects:
        names = _fields_of(table.schema.field(objects).type)
        features = _inner(features.get(objects))
    label = fields.names(names)["labels"]
    if label is None or label not in names:
        return ()
    values = _flattened(table.column(objects or label))
    if objects:
        values = _flattened(pc.struct_field(values, [label]))
    kind = values.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        where = f"{file}: column {objects or label!r}" + f", field {label!r}" * bool(objects)
        raise SourceError(f"{where}: labels are {kind}; accepted: whole numbers or names")
    known = names_of(_inner(features.get(label)).get("names"))
    if is_text and not known:
        try:
            known = tuple(sorted(pc.unique(values).drop_null().to_pylist()))
        except UnicodeDecodeError:
            raise SourceError(f"{file}: labels in column {objects or label!r} are not UTF-8") from None
    return known


def _flattened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values in lists of any depth, one after another, without dictionaries."""
    while is_list_column(column.type) or pa.types.is_dictionary(column.type):
        is_list = is_list_column(column.type)
        column = pc.list_flatten(column) if is_list else column.cast(column.type.value_type)
    return column


def _inner(feature: Any) -> Mapping[str, Any]:
    """The feature that a list holds, in any of the ways that Hugging Face has written lists."""
    while isinstance(feature, list) or (isinstance(feature, Mapping) and "feature" in feature):
        feature = (feature[0] if feature else None) if isinstance(feature, list) else feature["feature"]
    return feature if isinstance(feature, Mapping) else {}


# Readers decode whole row groups, so that large ones cost memory; Arrow's columns hold less than 2 GiB.
_RECORDS_A_GROUP = 256
_BYTES_A_GROUP = 64 << 20

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
# A column's type, and metadata that the library ``datasets`` requires.
Column = tuple[pa.DataType, Any]
_IMAGE_COLUMN: Column = (IMAGE, {"_type": "Image"})
# Arrow's names -> Hugging Face's.
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
OTHERS = {"id": pa.uint64(), "copy": pa.int32(), "source": pa.string()}


class ParquetShard(GroupedShard):
    """Columns image (bytes, path), label, id, copy and source; a row group has 256 rows, or fewer of large images."""

    def __init__(self, storage: Storage, name: str, labels: ShardLabels) -> None:
        super().__init__(storage, name, labels)
        self._schema = self._schema_of(labels)
        self._file = pq.ParquetWriter(
            self._writer.file,
            self._schema,
            compression=dict.fromkeys(self._compressed(self._schema), "zstd"),
            use_dictionary=["source"],
            write_statistics=["id", "copy"],
            # Fewest values of a page; with the default, one page would hold all images.
            write_batch_size=1,
        )
        self._begin_group()

    def _schema_of(self, labels: ShardLabels) -> pa.Schema:
        number = pa.int64() if labels.kind in ("int", "ints") else pa.float64()
        kind, feature = _class_label(number, labels.classes)
        if labels.width:
            kind = pa.list_(number, labels.width)
            feature = feature if labels.classes else {"feature": feature, "length": labels.width, "_type": "Sequence"}
        return _schema("image", {"label": (kind, feature)})

    def _compressed(self, schema: pa.Schema) -> list[str]:
        small = ["label", "image.path", *OTHERS]
        return [name for name in small if name != "label" or not self.labels.width]

    def _values(self, record: Record, label: Any) -> tuple[Any, ...]:
        """Arrays of the columns between the image's column and ``OTHERS``."""
        return (label,)

    def _begin_group(self) -> None:
        self._data = bytearray()
        self._ends = [0]
        self._rows: list[tuple[Any, ...]] = []

    def _add(self, record: Record, label: Any) -> None:
        if self._rows and len(self._data) + len(record.data) > _BYTES_A_GROUP:
            self._write_group()
        self._data += record.data
        self._ends.append(len(self._data))
        source = record.source.encode("utf-8", "backslashreplace").decode()
        self._rows.append((record.member, *self._values(record, label), record.id, record.copy or 0, source))
        if len(self._rows) == _RECORDS_A_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        paths, *others = zip(*self._rows, strict=True)
        ends = pa.py_buffer(np.array(self._ends, np.int32))
        data = pa.Array.from_buffers(pa.binary(), len(paths), [None, ends, pa.py_buffer(self._data)])
        images = pa.StructArray.from_arrays([data, pa.array(paths, pa.string())], fields=list(IMAGE))
        columns = [pa.array(values, kind) for values, kind in zip(others, self._schema.types[1:], strict=True)]
        self._file.write_table(pa.Table.from_arrays([images, *columns], schema=self._schema))
        self._begin_group()


class AnnotatedParquetShard(ParquetShard):
    """Columns of images, objects and masks under the names of the source's, then id, copy and source."""

    def __init__(self, storage: Storage, name: str, labels: ShardLabels, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata
        self._form = RecordForm(**metadata["record"])
        super().__init__(storage, name, labels)

    def _schema_of(self, labels: ShardLabels) -> pa.Schema:
        metadata = self._metadata
        is_list = self._form.is_list
        columns = _object_columns(self._form, labels.classes) if has_objects(metadata) else {}
        lists = {name: _list(column) for name, column in columns.items()}
        if (name := metadata["objects"]) is not None:
            parts = columns if is_list else lists
            kind = pa.struct([(part, column[0]) for part, column in parts.items()])
            features = {part: column[1] for part, column in parts.items()}
            lists = {name: (pa.list_(kind), [features]) if is_list else (kind, features)}
        if (name := metadata["mask"]) is not None:
            lists[name] = _IMAGE_COLUMN
        return _schema(metadata["image"], lists)

    def _compressed(self, schema: pa.Schema) -> list[str]:
        """All but image files."""
        sink = pa.BufferOutputStream()
        pq.write_metadata(schema, sink)
        leaves = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
        paths = [leaves.column(n).path for n in range(len(leaves))]
        return [path for path in paths if not path.endswith(".bytes")]

    def _values(self, record: Record, label: Any) -> tuple[Any, ...]:
        beside: ImageAnnotations = record.beside
        found: list[Any] = []
        if has_objects(self._metadata):
            lists = named_lists(beside.objects or {}, self._form, beside.size)
            whole: Any = as_objects(lists) if self._form.is_list else lists
            found += [whole] if self._metadata["objects"] else list(lists.values())
        if self._metadata["mask"]:
            found.append({"bytes": beside.mask, "path": f"{record.key}.png"})
        return tuple(found)


def _object_columns(form: RecordForm, classes: tuple[str, ...]) -> dict[str, Column]:
    """The columns of one object, by name."""
    found: dict[str, Column] = {}
    if form.boxes is not None:
        found[form.boxes] = _list(_value(pa.float32()))
    if form.labels is not None:
        found[form.labels] = _class_label(pa.int64(), classes)
    if form.keypoints is not None:
        point = _list(_value(pa.float32()))
        found[form.keypoints] = point if form.boxes is None else _list(point)
    return found | {name: _value(pa.type_for_alias(str(kind))) for name, kind in form.per_box.items()}


def _schema(image: str, columns: Mapping[str, Column]) -> pa.Schema:
    others = {name: _value(kind) for name, kind in OTHERS.items()}
    every = {image: _IMAGE_COLUMN, **columns, **others}
    features = {name: feature for name, (_, feature) in every.items()}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.schema([(name, kind) for name, (kind, _) in every.items()], metadata)


def _value(kind: pa.DataType) -> Column:
    return kind, {"dtype": _FLOATS.get(str(kind), str(kind)), "_type": "Value"}


def _class_label(kind: pa.DataType, classes: tuple[str, ...]) -> Column:
    return (kind, {"names": list(classes), "_type": "ClassLabel"}) if classes else _value(kind)


def _list(column: Column) -> Column:
    return pa.list_(column[0]), {"feature": column[1], "_type": "Sequence"}
