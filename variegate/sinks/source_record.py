"""What a run saw of its source, kept beside the settings, so that a run that goes on knows whether it is the same.

``variegate.source`` is a Parquet file with a row for every file of the source: name, size, time (ns) or mark, as
``data/sources/stamps.py`` has them. (It is not called so, since readers take all Parquet files of a folder for data.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from variegate.data.sources.base import SourceError
from variegate.data.sources.stamps import UNKNOWN, Stamps, describe_change
from variegate.sinks.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa

SOURCE_NAME = "variegate.source"
FORMAT = 1
_SHOWN = 3
_ROWS_A_GROUP = 1 << 16
_TYPES = {"name": "string", "size": "int64", "time": "int64", "mark": "string"}


def write_source(storage: Storage, stamps: Stamps) -> None:
    """It lasts when this returns. Raises WriteError."""
    import pyarrow.parquet as pq

    with storage.writer(SOURCE_NAME) as out:
        pq.write_table(
            _table(stamps),
            out.file,
            row_group_size=_ROWS_A_GROUP,
            compression="zstd",
            use_dictionary=["mark"],
            write_statistics=False,
            write_page_checksum=True,
        )
        out.commit()
    storage.sync()


def read_source(storage: Storage) -> Stamps | None:
    """None where there is none: an earlier version wrote none, nor do runs of sources that are no files.

    Raises SourceError where it is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = storage.read(SOURCE_NAME)
    except FileNotFoundError:
        return None
    try:
        # In this thread: those of read_table may be at work still when a command that is refused ends.
        table = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read(use_threads=False)
        if table.schema.names != list(_TYPES):
            raise ValueError(f"columns {', '.join(table.schema.names)}")
        marks = table["mark"].to_pylist()
        return Stamps(
            table["name"].to_pylist(),
            table["size"].to_numpy(),
            table["time"].fill_null(UNKNOWN).to_numpy(),
            [mark or "" for mark in marks] if any(marks) else (),
            np.zeros(0, np.int64),
        )
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise SourceError(
            f"{storage.place_of(SOURCE_NAME)}: damaged ({reason}); without the file the same command goes on, and "
            "cannot know whether its source has changed"
        ) from None


def describe_changed(was: Stamps, now: Stamps, files: npt.NDArray[np.int64]) -> str:
    """``photos/a.jpg: was ..., is ...; and 3 more``."""
    lines = [f"{now.place(file)}: {describe_change(was.at(file), now.at(file))}" for file in files[:_SHOWN].tolist()]
    return "; ".join(lines) + (f"; and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else "")


def describe_listing(was: Stamps, now: Stamps) -> str:
    """Which files are new, and which are gone; "" where the names are the same."""
    before, here = set(was.names), set(now.names)
    new = [name for name in now.names if name not in before]
    gone = [name for name in was.names if name not in here]
    return " and ".join(_are(names, word) for names, word in ((new, "new"), (gone, "gone")) if names)


def _are(names: Sequence[str], word: str) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more} {'is' if len(names) == 1 else 'are'} {word}"


def _table(stamps: Stamps) -> pa.Table:
    import pyarrow as pa

    times = pa.array(stamps.times, pa.int64(), mask=stamps.times == UNKNOWN)
    marks = pa.array(stamps.marks, pa.string()) if stamps.marks else pa.nulls(len(stamps), pa.string())
    columns = [pa.array(stamps.names, pa.string()), pa.array(stamps.sizes, pa.int64()), times, marks]
    schema = pa.schema(
        [(name, pa.type_for_alias(kind)) for name, kind in _TYPES.items()], {"variegate.format": str(FORMAT)}
    )
    return pa.Table.from_arrays(columns, schema=schema)
