"""Outputs gathered into large files: WebDataset's tar archives, Parquet files in Hugging Face's layout, or raw pixels.

``open_shard`` begins one, a ``Shard`` (``base``) of a kind (``webdataset``, ``parquet``, ``raw``).
"""

from collections.abc import Mapping
from typing import Any

from variegate.formats.shards.base import Labels, Record, Shard
from variegate.formats.storage import Storage

__all__ = ["Record", "Shard", "open_annotated_shard", "open_shard"]


def open_shard(storage: Storage, format: str, number: int, labels: Labels) -> Shard:
    """``format``: "webdataset", "parquet" or "raw"; ``number`` 7 makes ``shard-000007``; ``labels``: of
    ``describe_labels``."""
    if format == "webdataset":
        from variegate.formats.shards.webdataset import WebDatasetShard

        return WebDatasetShard(storage, f"shard-{number:06}.tar", labels)
    if format == "parquet":
        from variegate.formats.shards.parquet import ParquetShard

        return ParquetShard(storage, f"shard-{number:06}.parquet", labels)
    if format == "raw":
        from variegate.formats.shards.raw import RawShard

        return RawShard(storage, f"shard-{number:06}.vgraw", labels)
    raise ValueError(f"format: got {format!r}; accepted: webdataset, parquet, raw")


def open_annotated_shard(storage: Storage, format: str, number: int, labels: Labels, about: Mapping[str, Any]) -> Shard:
    """``format``: "webdataset" or "parquet"; ``about``: of a source with boxes, masks or key points in such shards."""
    if format == "webdataset":
        from variegate.formats.shards.annotated import AnnotatedTarShard

        return AnnotatedTarShard(storage, f"shard-{number:06}.tar", labels, about)
    from variegate.formats.shards.annotated_parquet import AnnotatedParquetShard

    return AnnotatedParquetShard(storage, f"shard-{number:06}.parquet", labels, about)
