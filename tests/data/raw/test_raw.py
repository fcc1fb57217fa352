"""Raw shards: views into the map, ranges behind an address, and files that are not what they should be."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from tests.data import contract
from variegate import open_source
from variegate.data.base import SourceError
from variegate.data.raw import RawShard
from variegate.data.samples import Samples
from variegate.data.shards import Labels, Record
from variegate.data.storage import open_storage
from variegate.decode.depth import in_depth, note_once
from variegate.errors import DecodeError
from variegate.program.depth import Depth


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


DEEP = {
    Depth.UINT16: np.random.default_rng(1).integers(0, 65536, (4, 6, 5, 3), np.uint16),
    Depth.FLOAT32: np.random.default_rng(2).normal(0, 900, (4, 6, 5, 1)).astype(np.float32),
}


def put_deep(root: Path, depth: Depth, number: int = 0) -> Path:
    storage = open_storage(root)
    storage.prepare()
    with RawShard(storage, f"shard-{number:06}.arrow", Labels("int", 0, contract.CLASSES), depth) as shard:
        for i, image in enumerate(DEEP[depth]):
            shape = (*image.shape, 3)
            shard.add(Record(i, None, image.tobytes(), "raw", i % 2, None, f"{i}.png", i, shape))
        shard.commit()
    return root


@pytest.mark.parametrize("depth", DEEP)
def test_deep_pixels_are_views_of_the_map(tmp_path: Path, depth: Depth) -> None:
    """A Loader reads them in their dtype, or in the one that is asked for, alone and in a mixture."""
    place = put_deep(tmp_path / "raw", depth)
    expected = np.broadcast_to(DEEP[depth], (4, 6, 5, 3))

    def loaded(source: Any, **more: Any) -> Any:
        options: dict[str, Any] = {"batch_size": 4, "shuffle": False, "device": "cpu", "layout": "NHWC", **more}
        return next(iter(vg.Loader(source, vg.transforms.Identity(), **options))).images.numpy()

    np.testing.assert_array_equal(loaded(place), expected, strict=True)
    np.testing.assert_array_equal(loaded(place, depth="float32"), in_depth(expected, Depth.FLOAT32, ""), strict=True)
    mixture = vg.Mixture({"one": place, "other": place}, weights=[0.5, 0.5])
    mixed = loaded(mixture, shuffle=True)
    assert mixed.dtype == depth.dtype
    assert {image.tobytes() for image in mixed} <= {image.tobytes() for image in expected}
    (mapped,) = maps_of(source := laid_deep(place))
    with note_once(set(), keeps_depth=True):
        assert np.shares_memory(source.read(0).data, mapped)


def laid_deep(place: Path) -> Samples:
    source = open_source(place)
    assert isinstance(source, Samples)
    return source


def test_dtypes_of_a_pack_are_one_and_earlier_packs_have_uint8(tmp_path: Path) -> None:
    put_deep(put_deep(tmp_path, Depth.UINT16), Depth.FLOAT32, 1)
    with pytest.raises(SourceError, match=r"shard-000001\.arrow: has pixels of another dtype than .*000000\.arrow"):
        open_source(tmp_path)
    source = laid(tmp_path / "earlier")
    for path in (tmp_path / "earlier").glob("*.arrow"):
        with pa.ipc.open_file(path) as file:
            table = file.read_all()
        metadata = {b"format": b"variegate raw pixels 2", b"classes": table.schema.metadata[b"classes"]}
        earlier = table.replace_schema_metadata(metadata)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, earlier.schema) as writer:
            writer.write_table(earlier)
    again = open_source(tmp_path / "earlier")
    assert isinstance(again, Samples)
    for index in range(len(source)):
        np.testing.assert_array_equal(again.read(index).data, contract.as_read(contract.pictures())[index][0])


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
