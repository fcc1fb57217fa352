"""Shards begun by the name of their format, of which only the one that is asked for is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variegate.formats.shards import Labels, Shard
from variegate.formats.storage import Storage


def open_shard(storage: Storage, format: str, number: int, labels: Labels) -> Shard:
    """``format``: "webdataset", "parquet" or "raw"; ``number`` 7 makes ``shard-000007``; ``labels``: of
    ``describe_labels``."""
    if format == "webdataset":
        from variegate.formats.tar.write import WebDatasetShard

        return WebDatasetShard(storage, f"shard-{number:06}.tar", labels)
    if format == "parquet":
        from variegate.formats.parquet.write import ParquetShard

        return ParquetShard(storage, f"shard-{number:06}.parquet", labels)
    if format == "raw":
        from variegate.formats.raw.layout import RawShard

        return RawShard(storage, f"shard-{number:06}.vgraw", labels)
    raise ValueError(f"format: got {format!r}; accepted: webdataset, parquet, raw")


def open_annotated_shard(storage: Storage, format: str, number: int, labels: Labels, about: Mapping[str, Any]) -> Shard:
    """``format``: "webdataset" or "parquet"; ``about``: of a source with boxes, masks or key points in such shards."""
    if format == "webdataset":
        from variegate.formats.tar.write import AnnotatedTarShard

        return AnnotatedTarShard(storage, f"shard-{number:06}.tar", labels, about)
    from variegate.formats.parquet.write import AnnotatedParquetShard

    return AnnotatedParquetShard(storage, f"shard-{number:06}.parquet", labels, about)
