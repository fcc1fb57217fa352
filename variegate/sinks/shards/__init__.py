"""Outputs gathered into large files: WebDataset's tar archives, Parquet files in Hugging Face's layout, or raw pixels.

``open_shard`` begins one, a ``Shard`` (``base``) of a kind (``webdataset``, ``parquet``, ``raw``).
"""

from variegate.sinks.shards.base import Labels, Record, Shard
from variegate.sinks.storage import Storage

__all__ = ["Record", "Shard", "open_shard"]


def open_shard(storage: Storage, format: str, number: int, labels: Labels) -> Shard:
    """``format``: "webdataset", "parquet" or "raw"; ``number`` 7 makes ``shard-000007``; ``labels``: of
    ``describe_labels``."""
    if format == "webdataset":
        from variegate.sinks.shards.webdataset import WebDatasetShard

        return WebDatasetShard(storage, f"shard-{number:06}.tar", labels)
    if format == "parquet":
        from variegate.sinks.shards.parquet import ParquetShard

        return ParquetShard(storage, f"shard-{number:06}.parquet", labels)
    if format == "raw":
        from variegate.sinks.shards.raw import RawShard

        return RawShard(storage, f"shard-{number:06}.vgraw", labels)
    raise ValueError(f"format: got {format!r}; accepted: webdataset, parquet, raw")
