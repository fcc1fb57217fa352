"""Kinds of findings, the record of one, and the table that has a row for every image."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa


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
        FindingKind("damaged", True, "has damaged data within, which its decoder passed over"),
        FindingKind("empty", True, "has no bytes, or no pixels"),
        FindingKind("wrong_extension", False, "holds another kind of image than its name says"),
        FindingKind("unusual_mode", False, "has pixels of a kind that changes on the way to RGB"),
        FindingKind("exif_turned", False, "is turned or mirrored by its EXIF orientation"),
        FindingKind("tiny", False, "has far fewer pixels than the others"),
        FindingKind("huge", False, "has far more pixels than the others"),
        FindingKind("extreme_aspect", False, "is far longer than wide, or wider than long"),
        FindingKind("blank", True, "has one colour"),
        FindingKind("dark", False, "is too dark"),
        FindingKind("bright", False, "is too bright"),
        FindingKind("low_contrast", False, "has hardly any contrast"),
        FindingKind("blurred", False, "is not sharp"),
        FindingKind("duplicates", False, "has the same pixels as another image"),
        FindingKind("near_duplicates", False, "looks like another image"),
        FindingKind("leaks", True, "is among the train images and among the test images"),
        FindingKind("contradictions", True, "is, or looks like, an image of another class"),
        FindingKind("imbalance", False, "the classes are of very different sizes"),
        FindingKind("lone_files", False, "is the only one of its class"),
        FindingKind("label_errors", False, "has a label that a model trained on the others holds for wrong"),
    )
}

# In the order of reports: serious ones first.
KINDS_SHOWN = tuple(sorted(FINDING_KINDS, key=lambda name: not FINDING_KINDS[name].is_serious))


# Of the table's metadata.
METADATA_KEY = b"variegate.check"
# What loaders read, then the images beside its class folders, in words: the order of the table's rows.
READ = ("train", "test")
BESIDE = {
    "beside": "beside the class folders: no loader reads them",
    "beside_test": "beside the class folders of the test images: no loader reads them",
}
SPLITS = (*READ, *BESIDE)


@dataclass(frozen=True)
class DataFinding:
    """Something found in one image, or with ``file`` and ``index`` None, in the whole split.

    ``split``: of ``SPLITS``. ``index``: the image's place in its source, ``file``: its name there, a path relative
    to the folder where the source is a folder. ``finding``: of ``FINDING_KINDS``. ``measure``: the number that it was
    judged by. ``group``: the same for images that belong together, such as duplicates of each other. ``why``: a
    sentence for people, with the measure and the threshold.
    """

    split: str
    index: int | None
    file: str | None
    finding: str
    measure: float | None
    group: int | None
    why: str


_FINDING = pa.struct([("finding", pa.string()), ("measure", pa.float64()), ("group", pa.int64()), ("why", pa.string())])

# Measures of pixels are null where ``error`` is not. Luminance is (299 R + 587 G + 114 B) / 1000, 0 to 1.
SCHEMA = pa.schema(
    [
        ("split", pa.string()),  # train, test; beside, beside_test: images beside their class folders
        ("index", pa.int64()),  # in its source
        ("file", pa.string()),  # its name there; relative to the folder, where the source is one
        ("label", pa.int64()),  # -1: none, or one that is no class
        ("class", pa.string()),
        ("error", pa.string()),  # why it does not decode
        ("warning", pa.string()),  # what its decoder complains of, though it makes an image of it
        ("bytes", pa.int64()),  # of the file; of the pixels, where they are stored as such
        ("kind", pa.string()),  # Pillow's name of the format: JPEG, PNG, ...; null for pixels
        ("mode", pa.string()),  # Pillow's, as stored: RGB, L, P, CMYK, I;16, ...
        ("orientation", pa.int8()),  # EXIF, 1 to 8
        ("is_truncated", pa.bool_()),
        ("height", pa.int32()),  # upright
        ("width", pa.int32()),
        ("mean", pa.list_(pa.float64())),  # by channel of RGB, 0 to 1
        ("std", pa.list_(pa.float64())),
        ("brightness", pa.float64()),  # mean luminance
        ("dark_end", pa.float64()),  # the luminance below which 5 % of the pixels are
        ("bright_end", pa.float64()),  # ... 95 % of the pixels are
        ("contrast", pa.float64()),  # standard deviation of luminance
        ("entropy", pa.float64()),  # of the histogram of luminance, in bits
        ("sharpness", pa.float64()),  # see variegate/apps/curate/pixels.py
        ("pixel_hash", pa.binary(16)),  # of size and pixels
        ("look_hash", pa.uint64()),  # perceptual
        ("mirror_hash", pa.uint64()),  # the perceptual hash of the mirrored image
        ("signature", pa.binary()),  # a finer description, which says whether two images with near hashes are alike
        ("findings", pa.list_(_FINDING)),
    ]
)
# The columns of a pass over the images: all but the findings.
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


def floats(table: pa.Table, name: str) -> npt.NDArray[np.float64]:
    """A column of numbers; NaN for null."""
    return np.asarray(table[name].cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def coded(column: pa.ChunkedArray) -> tuple[list[str], npt.NDArray[np.int64]]:
    """-> (the different values, the place among them of each row's value; -1: null)."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
