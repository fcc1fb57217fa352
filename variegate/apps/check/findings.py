"""Kinds of findings, the table with a row for every image, and the result of a check as a Parquet file."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from variegate.arrays import Float64Array, Int64Array
from variegate.data.base import SourceError
from variegate.data.samples import Samples
from variegate.io.amounts import pluralize
from variegate.io.durable import write_atomically
from variegate.io.files import check_regular

if TYPE_CHECKING:
    from variegate.apps.check.judging import Thresholds


class FindingKind(NamedTuple):
    """``is_serious``: a training is wrong or breaks off because of it, so that ``variegate check`` ends with 1."""

    name: str
    is_serious: bool
    meaning: str


# The names are what reports, tables and ``variegate clean --drop`` call them, in the order in which they are shown.
FINDING_KINDS: dict[str, FindingKind] = {
    kind.name: kind
    for kind in (
        FindingKind("corrupt", True, "does not decode to an image"),
        FindingKind("truncated", True, "ends before its image does"),
        FindingKind("damaged", True, "has damaged data inside, which its decoder skipped"),
        FindingKind("empty", True, "has no bytes, or no pixels"),
        FindingKind("wrong_extension", False, "holds another kind of image than its name says"),
        FindingKind("unusual_mode", False, "has pixels of a kind that changes on the way to RGB"),
        FindingKind("not_finite", True, "has NaN or infinite values"),
        FindingKind("deep", False, "has more than 8 bits a channel, of which 8 are read unless depth= is given"),
        FindingKind("mixed_depths", False, "images have numbers of several kinds"),
        FindingKind("mixed_channels", True, "has another number of channels than most train images"),
        FindingKind("value_range", False, "the values use a small part of black to white, or are beyond it"),
        FindingKind("exif_turned", False, "is turned or mirrored by its EXIF orientation"),
        FindingKind("tiny", False, "has far fewer pixels than the others"),
        FindingKind("huge", False, "has far more pixels than the others"),
        FindingKind("extreme_aspect", False, "is far longer than wide, or wider than long"),
        FindingKind("blank", True, "has one color"),
        FindingKind("dark", False, "is too dark"),
        FindingKind("bright", False, "is too bright"),
        FindingKind("clipped", False, "has its least or greatest value in many pixels"),
        FindingKind("low_contrast", False, "has hardly any contrast"),
        FindingKind("blurred", False, "is not sharp"),
        FindingKind("duplicates", False, "has the same pixels as another image"),
        FindingKind("near_duplicates", False, "looks like another image"),
        FindingKind("leaks", True, "is among the train images and among the test images"),
        FindingKind("contradictions", True, "is, or looks like, an image of another class"),
        FindingKind("imbalance", False, "the classes are of very different sizes"),
        FindingKind("lone_files", False, "is the only one of its class"),
        FindingKind("label_errors", False, "has a label that a model trained on the others considers wrong"),
        FindingKind("marked", False, "was marked by hand in the studio"),
    )
}
MARKED = "marked"
# ``depth`` of images whose values need no window.
BYTE = "uint8"
# Channels of color images. Gray counts as color, because loaders repeat its channel.
COLORS = 3

# In the order of reports: serious ones first.
KINDS_SHOWN = tuple(sorted(FINDING_KINDS, key=lambda name: not FINDING_KINDS[name].is_serious))


# Of the table's metadata.
METADATA_KEY = b"variegate.check"
# Splits in words, in the order of the table's rows: images that loaders read, then images next to class folders.
READ = ("train", "test")
SPLIT_TITLES = {
    "beside": "outside the class folders, not read by loaders",
    "beside_test": "outside the class folders of the test images, not read by loaders",
}
SPLITS = (*READ, *SPLIT_TITLES)


@dataclass(frozen=True)
class DataFinding:
    """A finding about one image or, with ``file`` and ``index`` None, about a whole split.

    ``split``: of ``SPLITS``. ``index``: position in the source; ``file``: name in the source, a path relative to the
    folder if the source is a folder. ``finding``: one of ``FINDING_KINDS``. ``measure``: the value compared with the
    threshold. ``group``: the same number for images that belong together, such as duplicates. ``why``: a sentence with
    measure and threshold.
    """

    split: str
    index: int | None
    file: str | None
    finding: str
    measure: float | None
    group: int | None
    why: str


_FINDING = pa.struct([("finding", pa.string()), ("measure", pa.float64()), ("group", pa.int64()), ("why", pa.string())])

# Measures of pixels are null where ``error`` is not. Luminance is (299 R + 587 G + 114 B) / 1000: 0 to 1; of images of
# more than 8 bits, on the scale of the middle image's ``low`` to ``high``.
SCHEMA = pa.schema(
    [
        ("split", pa.string()),  # train, test; the two others: images next to class folders
        ("index", pa.int64()),  # in its source
        ("file", pa.string()),  # its name there; relative to the folder, where the source is one
        ("label", pa.int64()),  # -1: none, or one that is no class
        ("class", pa.string()),
        ("error", pa.string()),  # why it does not decode
        ("warning", pa.string()),  # the decoder's warning, although it returned an image
        ("bytes", pa.int64()),  # of the file; of the pixels, where they are stored as such
        ("kind", pa.string()),  # Pillow's name of the format: JPEG, PNG, ..., or NPY, DICOM; null for pixels
        # Pillow's, as stored: RGB, L, P, CMYK, I;16, ...; RGB;16 for color of 16 bits; 5-channel of other channels
        ("mode", pa.string()),
        ("depth", pa.string()),  # of its numbers: uint8, uint12, int16, float32, ...; null if 8 of more bits are read
        ("orientation", pa.int8()),  # EXIF, 1 to 8
        ("is_truncated", pa.bool_()),
        ("height", pa.int32()),  # upright
        ("width", pa.int32()),
        (
            "mean",
            pa.list_(pa.float64()),
        ),  # by channel, gray as RGB: shares of white, which is 1 unless numbers are unsigned
        ("std", pa.list_(pa.float64())),
        ("brightness", pa.float64()),  # mean luminance
        ("dark_end", pa.float64()),  # the luminance below which 5 % of the pixels are
        ("bright_end", pa.float64()),  # ... 95 % of the pixels are
        ("contrast", pa.float64()),  # standard deviation of luminance
        ("entropy", pa.float64()),  # of the histogram of luminance, in bits
        ("sharpness", pa.float64()),  # see variegate/apps/check/pixels.py
        ("least", pa.float64()),  # of all channels, in the image's own numbers
        ("greatest", pa.float64()),
        ("clipped_low", pa.float64()),  # share of the pixels with the least value: in all channels, or as luminance
        ("clipped_high", pa.float64()),  # ... with the greatest value
        # The value that 0.1 % of the values are below; null for gray and color of 8 bits, as the next four.
        ("low", pa.float64()),
        ("high", pa.float64()),  # ... are above
        ("black", pa.float64()),  # as low, of the numbers that appearance is measured on: the mean of many channels
        ("white", pa.float64()),  # as high, likewise
        ("not_finite", pa.float64()),  # share of the pixels with NaN or infinity
        ("pixel_hash", pa.binary(16)),  # of size and pixels
        ("look_hash", pa.uint64()),  # perceptual
        ("mirror_hash", pa.uint64()),  # the perceptual hash of the mirrored image
        ("signature", pa.binary()),  # a finer description, which says whether two images with near hashes are alike
        ("findings", pa.list_(_FINDING)),
    ]
)
# The columns of a scan: all except the findings.
MEASURED = pa.schema([column for column in SCHEMA if column.name != "findings"])


def with_findings(table: pa.Table, findings: Iterable[DataFinding]) -> pa.Table:
    """``table`` has the columns ``MEASURED``, its splits one after the other, each in the order of its samples.
    ``findings``: by kind."""
    splits = table["split"].to_pylist()
    starts = {split: splits.index(split) for split in set(splits)}
    found: list[list[dict[str, Any]]] = [[] for _ in splits]
    for one in findings:
        if one.index is not None:
            columns = {"finding": one.finding, "measure": one.measure, "group": one.group, "why": one.why}
            found[starts[one.split] + one.index].append(columns)
    return table.append_column(SCHEMA.field("findings"), pa.array(found, SCHEMA.field("findings").type)).cast(SCHEMA)


def floats(table: pa.Table, name: str) -> Float64Array:
    """A column of numbers; NaN for null."""
    return np.asarray(table[name].cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def coded(column: pa.ChunkedArray) -> tuple[list[str], Int64Array]:
    """-> (the different values, the place among them of each row's value; -1: null)."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy().astype(np.int64)


_FORMAT = 1
_ROWS_A_GROUP = 8192


@dataclass(frozen=True)
class CheckResult:
    """Result of ``vg.check``.

    Attributes:
        table: one row per image, with the columns of ``SCHEMA``.
        findings: findings of images and, with ``file`` None, of whole splits.
        sources: the checked sources, by split.
        classes: class names of the train images, by label.
        mean, std: per channel, over all pixels of the train images, 0 to 1; None if none decodes. If numbers of
            channels differ, over the images that have the most frequent number.
        thresholds: the thresholds that were applied.
        notes: remarks, one line each.
        seconds: duration of the check.
        pass_seconds: time spent on reading, decoding and measuring.
        resumed: images that an earlier run had measured.
        out: path of the Parquet file, if written.
        report: path of the HTML report, if written.
    """

    table: pa.Table
    findings: tuple[DataFinding, ...]
    sources: dict[str, Samples]
    classes: tuple[str, ...]
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    thresholds: Thresholds
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    pass_seconds: float = 0.0
    resumed: int = 0
    out: str | None = None
    report: str | None = None

    def __repr__(self) -> str:
        return f"CheckResult({pluralize(self.images, 'image')}, {pluralize(len(self.findings), 'finding')})"

    @property
    def suggested_drop(self) -> list[str]:
        """Kinds of findings in train images that few data sets want, for ``clean``: serious ones, then duplicates.

        Dark or tiny images are not among them, because a model may have to learn from such images.
        """
        here = {one.finding for one in self.findings if one.file is not None and one.split == "train"}
        return [
            name for name in KINDS_SHOWN if name in here and (FINDING_KINDS[name].is_serious or name == "duplicates")
        ]

    @property
    def images(self) -> int:
        return len(self.table)

    @property
    def images_per_second(self) -> float | None:
        """Rate of reading, decoding and measuring; None if an earlier run had measured all images."""
        measured = self.images - self.resumed
        return measured / self.pass_seconds if measured and self.pass_seconds else None

    @property
    def splits(self) -> dict[str, int]:
        """Number of images of each split."""
        counted = Counter(self.table["split"].to_pylist())
        return {split: counted[split] for split in self.sources}

    @property
    def depths(self) -> dict[str, int]:
        """Number of train images per kind of numbers, such as uint8 and uint16."""
        train = self.table.filter(pc.equal(self.table["split"], "train"))
        return dict(Counter(train["depth"].drop_null().to_pylist()).most_common())

    @property
    def class_sizes(self) -> dict[str, int]:
        """Number of train images per class, by name where known; images without a class are not counted."""
        train = self.table.filter(pc.equal(self.table["split"], "train"))
        counted = Counter(label for label in train["label"].to_pylist() if label >= 0)
        labels = sorted({*counted, *range(len(self.classes))})
        names = {label: self.classes[label] if label < len(self.classes) else str(label) for label in labels}
        return {names[label]: counted[label] for label in labels}

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings per kind, without kinds that have none."""
        counted = Counter(one.finding for one in self.findings)
        return {name: counted[name] for name in FINDING_KINDS if counted[name]}

    @property
    def is_serious(self) -> bool:
        return any(FINDING_KINDS[name].is_serious for name in self.counts)


def in_order(findings: Sequence[DataFinding]) -> tuple[DataFinding, ...]:
    """Sort by kind, then by group, then by position, so that groups are contiguous."""
    kinds = list(FINDING_KINDS)

    def key(one: DataFinding) -> tuple[Any, ...]:
        place = (-1, one.why) if one.index is None else (one.index, "")
        return kinds.index(one.finding), -1 if one.group is None else one.group, SPLITS.index(one.split), *place

    return tuple(sorted(findings, key=key))


def channels_of(table: pa.Table) -> Int64Array:
    """Numbers of channels; 3 for gray, 0 for images without pixels."""
    lengths = pc.fill_null(pc.list_value_length(table["mean"]), 0)
    return np.asarray(lengths.to_numpy(), np.int64)


def usual_channels(table: pa.Table) -> int:
    """The most frequent number of channels in the train images; 0 if none has pixels."""
    channels = channels_of(table.filter(pc.equal(table["split"], "train")))
    return int(np.bincount(channels[channels > 0], minlength=1).argmax())


def channel_statistics(table: pa.Table) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """Mean and standard deviation of each channel over all pixels of the train images with ``usual_channels``."""
    usual = usual_channels(table)
    if not usual:
        return None, None
    some = table.filter(pa.array((np.array(table["split"]) == "train") & (channels_of(table) == usual)))
    means, stds = (pc.list_flatten(some[name]).to_numpy().reshape(len(some), -1) for name in ("mean", "std"))
    pixels = (floats(some, "height") * floats(some, "width"))[:, None]
    mean = (means * pixels).sum(axis=0) / pixels.sum()
    square = ((stds * stds + means * means) * pixels).sum(axis=0) / pixels.sum()
    std = np.sqrt(np.maximum(square - mean * mean, 0))
    return tuple(mean.tolist()), tuple(std.tolist())


def check_replaces(path: Path, is_earlier: Callable[[Path], bool], kind: str) -> None:
    """Raise SourceError if there is anything but an earlier file of this kind at ``path``."""
    try:
        check_regular(path)
        may_be_replaced = is_earlier(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}; accepted: a new file") from None
    if not may_be_replaced:
        raise SourceError(f"{path}: exists, and is no {kind}; accepted: a new file, or an earlier one")


def is_table(path: Path) -> bool:
    """True for the findings of a check."""
    try:
        return METADATA_KEY in (pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        return False


def write_findings(path: Path, result: CheckResult) -> None:
    """Whole or not at all; equal results give equal bytes. Raises WriteError."""
    about = {
        "format": _FORMAT,
        "splits": result.splits,
        "fingerprints": {split: source.fingerprint for split, source in result.sources.items()},
        "classes": result.classes,
        "mean": result.mean,
        "std": result.std,
        "thresholds": asdict(result.thresholds),
        "findings": [[one.split, one.finding, one.measure, one.why] for one in result.findings if one.index is None],
    }
    table = result.table.replace_schema_metadata({METADATA_KEY: json.dumps(about).encode()})
    write_atomically(path, _parquet(table), durable=True)


def read_table(path: Path | str) -> pa.Table:
    """Table of an earlier check. Raises SourceError."""
    try:
        return pq.read_table(path, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{path}: cannot be read ({error}); accepted: findings of variegate check") from None


def with_marks(table: pa.Table, split: str, indices: Iterable[int]) -> bytes:
    """The file of a check's ``table`` in which the images of ``split`` at ``indices``, and no others, are "marked"."""
    chosen = set(indices)
    mark = {"finding": MARKED, "measure": None, "group": None, "why": FINDING_KINDS[MARKED].meaning}
    places = zip(table["split"].to_pylist(), table["index"].to_pylist(), table["findings"].to_pylist(), strict=True)
    found = [
        [*(one for one in old if one["finding"] != MARKED), *([mark] if of == split and index in chosen else [])]
        for of, index, old in places
    ]
    column = SCHEMA.field("findings")
    changed = table.set_column(table.schema.get_field_index("findings"), column, pa.array(found, column.type))
    return b"".join(_parquet(changed))


def _parquet(table: pa.Table) -> Iterator[bytes]:
    """Its bytes, a group of rows at a time."""
    out = io.BytesIO()

    def taken() -> bytes:
        data = out.getvalue()
        out.seek(0)
        out.truncate()
        return data

    with pq.ParquetWriter(pa.PythonFile(out, "w"), table.schema, compression="zstd") as writer:
        for start in range(0, len(table), _ROWS_A_GROUP):
            writer.write_table(table.slice(start, _ROWS_A_GROUP).combine_chunks())
            yield taken()
    yield taken()
