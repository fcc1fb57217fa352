"""Result of a check, and the Parquet file that holds it."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from variegate.apps.curate.findings import FINDING_KINDS, METADATA_KEY, SPLITS, DataFinding, floats
from variegate.apps.curate.judging import Thresholds
from variegate.formats.base import Source, SourceError, StreamSource
from variegate.io.durable import write_errors_name, write_pieces
from variegate.io.files import check_regular

_FORMAT = 1
_ROWS_A_GROUP = 8192


@dataclass(frozen=True)
class CheckResult:
    """``table``: a row per image, with the columns of ``SCHEMA`` (findings.py). ``findings``: of all images
    and, with ``file`` None, of a split as a whole. ``sources``: what was checked, by split. ``classes``: by label, of
    the train images. ``mean``, ``std``: by channel over all pixels of those, 0 to 1; None where none decodes.
    ``thresholds``: what images were judged by. ``notes``: a line each. ``seconds``: that it took, ``pass_seconds`` of
    them to read, decode and measure; ``resumed``: images that an earlier run had measured. ``out``: the Parquet file;
    ``report``: the HTML file.
    """

    table: pa.Table
    findings: tuple[DataFinding, ...]
    sources: dict[str, Source | StreamSource]
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
        return f"CheckResult({self.images:,} images, {len(self.findings):,} findings)"

    @property
    def images(self) -> int:
        return len(self.table)

    @property
    def images_per_second(self) -> float | None:
        """That were read, decoded and measured; None where an earlier run had done so with all."""
        measured = self.images - self.resumed
        return measured / self.pass_seconds if measured and self.pass_seconds else None

    @property
    def splits(self) -> dict[str, int]:
        """Number of images of each split."""
        counted = Counter(self.table["split"].to_pylist())
        return {split: counted[split] for split in self.sources}

    @property
    def class_sizes(self) -> dict[str, int]:
        """Number of train images of each class, by name where it has one; without those of no class."""
        train = self.table.filter(pc.equal(self.table["split"], "train"))
        counted = Counter(label for label in train["label"].to_pylist() if label >= 0)
        labels = sorted({*counted, *range(len(self.classes))})
        names = {label: self.classes[label] if label < len(self.classes) else str(label) for label in labels}
        return {names[label]: counted[label] for label in labels}

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings of each kind, those without any left out."""
        counted = Counter(one.finding for one in self.findings)
        return {name: counted[name] for name in FINDING_KINDS if counted[name]}

    @property
    def is_serious(self) -> bool:
        return any(FINDING_KINDS[name].is_serious for name in self.counts)


def in_order(findings: Sequence[DataFinding]) -> tuple[DataFinding, ...]:
    """By kind, then by group, then by place: images that belong together stand together."""
    kinds = list(FINDING_KINDS)

    def key(one: DataFinding) -> tuple[Any, ...]:
        place = (-1, one.why) if one.index is None else (one.index, "")
        return kinds.index(one.finding), -1 if one.group is None else one.group, SPLITS.index(one.split), *place

    return tuple(sorted(findings, key=key))


def channel_statistics(table: pa.Table) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """Mean and standard deviation of each channel over all pixels of the train images."""
    some = table.filter(pc.and_(pc.equal(table["split"], "train"), pc.is_valid(table["mean"])))
    if not len(some):
        return None, None
    means, stds = (pc.list_flatten(some[name]).to_numpy().reshape(len(some), -1) for name in ("mean", "std"))
    pixels = (floats(some, "height") * floats(some, "width"))[:, None]
    mean = (means * pixels).sum(axis=0) / pixels.sum()
    square = ((stds * stds + means * means) * pixels).sum(axis=0) / pixels.sum()
    std = np.sqrt(np.maximum(square - mean * mean, 0))
    return tuple(mean.tolist()), tuple(std.tolist())


def check_out(path: Path) -> None:
    """Raises SourceError where something else than the findings of an earlier check is there."""
    try:
        check_regular(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}; accepted: a new file for the findings") from None
    try:
        is_ours = METADATA_KEY in (pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        is_ours = False
    if not is_ours:
        raise SourceError(
            f"{path}: is there, and holds no findings of variegate check; accepted: a new file, or an earlier check's"
        )


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
    with write_errors_name(str(path)):
        write_pieces(path, _parquet(table), durable=True)


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
