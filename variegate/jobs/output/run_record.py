"""Settings of a run and stamps of its source files, which identify the run when it resumes.

``variegate.source`` is a Parquet file not called so, since readers take all such files of a folder for data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from variegate.arrays import Int64Array
from variegate.data.base import SourceError, summarize_names
from variegate.data.stamps import UNKNOWN, Stamps, describe_change, differences
from variegate.data.storage import Storage
from variegate.errors import one_line

SETTINGS_NAME = "variegate.json"
SOURCE_NAME = "variegate.source"
FORMAT = 1
_SHOWN = 3
_ROWS_A_GROUP = 1 << 16
_TYPES = {"name": "string", "size": "int64", "time": "int64", "mark": "string"}
_LONGEST_VALUE = 40


def write_settings(storage: Storage, settings: dict[str, Any]) -> None:
    """Raises WriteError."""
    storage.write(SETTINGS_NAME, (json.dumps(settings, indent=2) + "\n").encode())


def read_settings(storage: Storage) -> dict[str, Any]:
    """Raises SourceError for damaged settings, FileNotFoundError without settings."""
    place = storage.place_of(SETTINGS_NAME)
    try:
        settings = json.loads(storage.read(SETTINGS_NAME))
    except ValueError as error:
        raise SourceError(f"{place}: not JSON ({one_line(error)}); choose another folder") from None
    if not isinstance(settings, dict):
        raise SourceError(f"{place}: not the settings of a run; choose another folder")
    return settings


def describe_difference(there: dict[str, Any], here: dict[str, Any]) -> str:
    """The first difference, as in ``with seed 0, this one has seed 1``; "" for equal settings."""
    values_there = dict(_values("", there))
    values_here = dict(_values("", here))
    for name in values_here | values_there:
        was, now = values_there.get(name), values_here.get(name)
        if was != now:
            return f"with {_named(name, was)}, this one has {_named(name, now)}"
    return ""


def _values(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The innermost values by their names (transform.ops[2].angle), as JSON."""
    if isinstance(value, dict) and value:
        for key, of_key in value.items():
            yield from _values(f"{name}.{key}" if name else key, of_key)
    elif isinstance(value, list) and value:
        for index, element in enumerate(value):
            yield from _values(f"{name}[{index}]", element)
    elif name:
        yield name, json.dumps(value)


def _named(name: str, text: str | None) -> str:
    """A long value is shortened at its beginning, because paths often begin alike."""
    if text is None:
        return f"no {name}"
    return f"{name} {text}" if len(text) <= _LONGEST_VALUE else f"{name} ...{text[3 - _LONGEST_VALUE :]}"


def write_source(storage: Storage, stamps: Stamps) -> None:
    """The file is durable on return. Raises WriteError."""
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
    """None if missing, as in earlier versions. Raises SourceError for a damaged one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = storage.read(SOURCE_NAME)
    except FileNotFoundError:
        return None
    try:
        # In this thread: threads of read_table may still run when a refused command ends.
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
        reason = one_line(error).rstrip(".")
        raise SourceError(
            f"{storage.place_of(SOURCE_NAME)}: damaged ({reason}); delete it to resume without a check "
            "that the source is unchanged"
        ) from None


def describe_changed(was: Stamps, now: Stamps, files: Int64Array) -> str:
    """``photos/a.jpg: was ..., is ...; and 3 more``."""
    lines = [f"{now.place(file)}: {describe_change(was.at(file), now.at(file))}" for file in files[:_SHOWN].tolist()]
    return "; ".join(lines) + (f"; and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else "")


def describe_other(was: Stamps, now: Stamps) -> str:
    """Describe new and missing files, or else changed files; "" if the files are the same."""
    before = set(was.names)
    here = set(now.names)
    found = []
    new = [name for name in now.names if name not in before]
    gone = [name for name in was.names if name not in here]
    for names, word in ((new, "new"), (gone, "gone")):
        if names:
            found.append(f"{summarize_names(names, _SHOWN)} {'is' if len(names) == 1 else 'are'} {word}")
    if not found and len(files := differences(was, now)):
        return describe_changed(was, now, files)
    return " and ".join(found)
