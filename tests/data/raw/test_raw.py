"""Raw shards: views into the map, ranges behind an address, and files that are not what they should be."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.data import contract
from variegate import open_source
from variegate.data.base import SourceError
from variegate.data.samples import Samples
from variegate.errors import DecodeError


def laid(root: Path) -> Samples:
    source = contract.raw(root, contract.pictures()).source
    assert isinstance(source, Samples)
    return source


def maps_of(source: Samples) -> list[Any]:
    store: Any = source.store
    return [np.frombuffer(store.map_file(file), np.uint8) for file in source.files]


def test_pixels_are_views_of_the_map_that_cannot_be_written_to(tmp_path: Path) -> None:
    source = laid(tmp_path)
    maps = maps_of(source)
    for index in range(len(source)):
        image: Any = source.read(index).data
        assert not image.flags.writeable
        assert any(np.shares_memory(image, mapped) for mapped in maps)
    again = pickle.loads(pickle.dumps(source))
    assert (again.read(0).data == source.read(0).data).all()
    assert again.ids(np.array([2])).tolist() == [17]
    assert again.name(2).member == "2.png"


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    source = laid(tmp_path)
    source.read(0)
    first = tmp_path / "shard-000000.arrow"
    whole = first.read_bytes()
    other = pa.BufferOutputStream()
    with pa.ipc.new_file(other, pa.schema([("a", pa.int64())])) as writer:
        writer.write_batch(pa.record_batch({"a": [1]}))
    for data, reason in (
        (whole[:-1], "cut off: it does not end as an Arrow file"),
        (whole[: len(whole) // 2], "cut off: it does not end as an Arrow file"),
        (b"x" + whole[1:], "it does not begin as an Arrow file"),
        (b"", "it does not begin as an Arrow file"),
        (other.getvalue().to_pybytes(), "an Arrow file of another kind"),
    ):
        first.write_bytes(data)
        with pytest.raises(SourceError, match=rf"shard-000000\.arrow: .*{reason}"):
            open_source(tmp_path)
    fresh = pickle.loads(pickle.dumps(source))  # which has no map yet
    with pytest.raises(DecodeError, match="the file has changed since it was opened"):
        fresh.read(0)
