"""Settings of a run, and the files of its source as it saw them, by which a run that goes on is known to be the same.

``variegate.source`` is a Parquet file not called so, since readers take all such files of a folder for data.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.formats.base import SourceError
from variegate.formats.stamps import UNKNOWN, Stamps, describe_change, differences
from variegate.formats.storage import Storage

SETTINGS_NAME = "variegate.json"
SOURCE_NAME = "variegate.source"
FORMAT = 1
_SHOWN = 3
_ROWS_A_GROUP = 1 << 16
_TYPES = {"name": "string", "size": "int64", "time": "int64", "mark": "string"}
_SHOWN_DIFFERENCES = 3
_LONGEST_VALUE = 40
_MISSING = object()


def write_settings(storage: Storage, settings: dict[str, Any]) -> None:
    """Raises WriteError."""
    storage.write(SETTINGS_NAME, (json.dumps(settings, indent=2) + "\n").encode())


def read_settings(storage: Storage) -> dict[str, Any]:
    """Raises SourceError where they are damaged, FileNotFoundError where there are none."""
    place = storage.place_of(SETTINGS_NAME)
    try:
        settings = json.loads(storage.read(SETTINGS_NAME))
    except ValueError as error:
        raise SourceError(f"{place}: not JSON ({' '.join(str(error).split())}); choose another folder") from None
    if not isinstance(settings, dict):
        raise SourceError(f"{place}: not the settings of a run; choose another folder")
    return settings


def describe_differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    """``with seed 0, this one has seed 1``; "" where they are equal. Of many differences, the first few."""
    found = _differences("", there, here)
    if not found:
        return ""
    some = found[:_SHOWN_DIFFERENCES]
    more = f" (and {len(found) - len(some)} differences more)" if len(found) > len(some) else ""
    sides = [" and ".join(_named(name, pair[side], pair[1 - side]) for name, *pair in some) for side in (0, 1)]
    return f"with {sides[0]}, this one has {sides[1]}{more}"


def _differences(name: str, there: Any, here: Any) -> list[tuple[str, Any, Any]]:
    """The innermost values that differ: their names (transform.ops[2].angle) and both values."""
    if isinstance(there, dict) and isinstance(here, dict):
        prefix = f"{name}." if name else ""
        parts = [(prefix + key, there.get(key, _MISSING), here.get(key, _MISSING)) for key in {**here, **there}]
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        parts = [(f"{name}[{index}]", *pair) for index, pair in enumerate(zip(there, here, strict=True))]
    else:
        # As text: NaN equals itself there, and true is not 1.
        is_same = _MISSING not in (there, here) and json.dumps(there) == json.dumps(here)
        return [] if is_same else [(name, there, here)]
    return [found for part in parts for found in _differences(*part)]


def _named(name: str, value: Any, other: Any) -> str:
    if value is _MISSING:
        return f"no {name}"
    text = json.dumps(value)
    if len(text) <= _LONGEST_VALUE:
        return f"{name} {text}"
    length = _LONGEST_VALUE - 3
    begins_alike = other is not _MISSING and json.dumps(other)[:length] == text[:length]
    return f"{name} ...{text[-length:]}" if begins_alike else f"{name} {text[:length]}..."


def write_source(storage: Storage, stamps: Stamps) -> None:
    """It lasts when this returns. Raises WriteError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    times = pa.array(stamps.times, pa.int64(), mask=stamps.times == UNKNOWN)
    marks = pa.array(stamps.marks, pa.string()) if stamps.marks else pa.nulls(len(stamps), pa.string())
    fields = [(name, pa.type_for_alias(kind)) for name, kind in _TYPES.items()]
    schema = pa.schema(fields, {"variegate.format": str(FORMAT)})
    with storage.writer(SOURCE_NAME) as out:
        pq.write_table(
            pa.Table.from_arrays([stamps.names, stamps.sizes, times, marks], schema=schema),
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
    """None where there is none, as of earlier versions. Raises SourceError for a damaged one."""
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
        if table["name"].null_count or table["size"].null_count:
            raise ValueError("files without a name or a size")
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
            f"{storage.place_of(SOURCE_NAME)}: damaged ({reason}); delete it to resume without a check "
            "that the source is unchanged"
        ) from None


def describe_changed(was: Stamps, now: Stamps, files: npt.NDArray[np.int64]) -> str:
    """``photos/a.jpg: was ..., is ...; and 3 more``."""
    lines = [f"{now.place(file)}: {describe_change(was.at(file), now.at(file))}" for file in files[:_SHOWN].tolist()]
    return "; ".join(lines) + (f"; and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else "")


def describe_other(was: Stamps, now: Stamps) -> str:
    """Files that are new, and those that are gone; else those that have changed; "" where all are the same."""
    before, here, found = set(was.names), set(now.names), []
    new = [name for name in now.names if name not in before]
    gone = [name for name in was.names if name not in here]
    for names, word in ((new, "new"), (gone, "gone")):
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        found += [f"{', '.join(names[:_SHOWN])}{more} {'is' if len(names) == 1 else 'are'} {word}"] if names else []
    if not found and len(files := differences(was, now)):
        return describe_changed(was, now, files)
    return " and ".join(found)
