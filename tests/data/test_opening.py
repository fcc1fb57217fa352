"""open_source: what each kind of place and object is opened as, and what is said of the rest."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variegate as vg
from tests.data.tars import encoded, labelled, read_all, tar_bytes, write_shards, write_tar
from variegate.data import kinds as file_kinds
from variegate.data.base import SourceError
from variegate.data.kinds import FILE_KINDS
from variegate.data.samples import Samples
from variegate.data.sharded import ShardedSource


def test_tars_by_every_way_to_name_them(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 3)
    (tmp_path / "README.md").touch()
    expected = vg.open_source(shards).fingerprint
    specs = [
        *(tmp_path, str(tmp_path) + "/", tmp_path / "*.tar", f"{tmp_path}/train-{{00..02}}.tar"),
        *(shards[::-1], tuple(map(Path, shards)), [f"{tmp_path}/train-00.tar", f"{tmp_path}/*0[12].tar"]),
    ]
    for spec in specs:
        source = vg.open_source(spec)
        assert source.fingerprint == expected
        assert source.read(11) == (encoded(3), 1)
    sharded = vg.open_source(tmp_path, stream=True)
    assert sharded.num_shards == 3
    assert vg.open_source(sharded) is sharded
    assert vg.open_source(sharded, stream=False).fingerprint == expected
    assert vg.open_source(source) is source


def test_options_reach_the_shards(tmp_path: Path) -> None:
    path = Path(write_tar(tmp_path / "a.tar", [*labelled(2), ("x.jpg", encoded(1)), ("x.cls", b"dog")]))
    assert vg.open_source(path, classes=["cat", "dog"], cache_dir=tmp_path / "cache").read(2).label == 1
    assert (tmp_path / "cache").is_dir()
    packed = tmp_path / "b.tar.gz"
    packed.write_bytes(gzip.compress(tar_bytes(labelled(2))))
    for stream in (False, True):
        assert read_all(vg.open_source(packed, stream=stream)) == [(encoded(0), 0), (encoded(1), 1)]


def test_folders_images_and_addresses(tmp_path: Path, memory: Any) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.jpg").write_bytes(encoded(1))
    source = vg.open_source(tmp_path)
    assert source.classes == ("cat",)
    one = vg.open_source(tmp_path / "cat" / "1.jpg")
    assert len(one) == 1
    assert one.read(0) == (encoded(1), 0)
    assert one.name(0) == source.name(0)
    for number in range(2):
        memory.pipe(f"/shards/{number}.tar", tar_bytes(labelled(2, 2 * number)))
    for spec in ("memory://shards", "memory://shards/*.tar", "memory://shards/{0..1}.tar", ["memory://shards/0.tar"]):
        assert isinstance(vg.open_source(spec), ShardedSource)
        assert isinstance(vg.open_source(spec, stream=False), Samples)


@pytest.mark.parametrize("spec", [3, None, {"a": 1}, b"bytes", [], [1, 2], (1, 2, 3), ["a.tar", 3]])
def test_objects_of_other_kinds(spec: Any) -> None:
    with pytest.raises(TypeError, match=r"open_source: got .*; accepted: a folder of images or of class folders,"):
        vg.open_source(spec)


# Below a folder with Shards/train-00.tar to 02, mixed/{a.txt, a.parquet, train-00.tar}, cat/1.jpg and b.tar.gz.
KINDS = ", ".join(kind.suffixes[0] for kind in FILE_KINDS)
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ("shard", {}, "^{root}/shard: no such file or folder; did you mean {root}/Shards[?]$"),
    (
        "Shards/train-3.tar",
        {},
        "^{root}/Shards/train-3.tar: no such file or folder; did you mean {root}/Shards/train-0",
    ),
    ("zzz", {}, "^{root}/zzz: no such file or folder"),
    ("Shards/train-{00..05}.tar", {}, r"train-03\.tar: no such file or folder; did you mean .*train-0\d\.tar\?"),
    ("Shards/*.parquet", {}, r"\*\.parquet: matches nothing"),
    ("", {}, "an empty path; accepted: a folder"),
    ("mixed/a.txt", {}, r"a\.txt: a file of a kind that is not read; accepted: a folder of images"),
    ("mixed", {}, r"holds \.tar and \.parquet files; say which: .*/\*\.tar or .*/\*\.parquet"),
    ("mixed/{a.parquet,train-00.tar}", {}, r"a\.parquet and .*train-00\.tar: files of different kinds"),
    (["mixed/a.txt"] * 2, {}, rf"a\.txt: in a list or pattern, {re.escape(KINDS)} files are accepted"),
    ("cat", {"stream": True}, r"stream=True is for \.tar shards"),
    ("cat", {"classes": ["a"]}, "classes= is for"),
    ("Shards", {"on_error": "igno"}, "on_error: got 'igno'; accepted: 'raise', 'skip'"),
    ("b.tar.gz", {"cache_limit": 0}, "cache_limit: got 0; accepted: an integer from 1 on"),
    ("b.tar.gz", {"cache_limit": 999}, r"b\.tar\.gz: cache_limit=999 has no room for it; accepted: more than 10,240"),
    ("memory://gone", {}, "^memory://gone: no such file or folder$"),
    ("https://u:p@host/data?x", {}, "^https://host/data: http servers cannot list a folder"),
    ("packed", {}, "its shards are gone; variegate verify"),
]


@pytest.mark.parametrize(("place", "options", "message"), REFUSED, ids=[row[-1][:40] for row in REFUSED])
def test_other_places_are_refused_by_name(tmp_path: Path, place: Any, options: dict[str, Any], message: str) -> None:
    write_shards(tmp_path / "Shards", 3)
    write_shards(tmp_path / "mixed", 1)
    for name in ("mixed/a.txt", "mixed/a.parquet", "cat/1.jpg", "packed/manifest.parquet", "packed/variegate.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(tar_bytes(labelled(2))))
    is_below = not isinstance(place, list) and place and "://" not in place
    spec = f"{tmp_path}/{place}" if is_below else place
    spec = [tmp_path / one for one in place] if isinstance(place, list) else spec
    with pytest.raises(ValueError, match=message.replace("{root}", str(tmp_path))):
        vg.open_source(spec, cache_dir=tmp_path / "cache" if "cache_limit" in options else None, **options)


def test_every_kind_of_file_is_told_of() -> None:
    page = (Path(__file__).parents[2] / "docs" / "loader.md").read_text(encoding="utf-8")
    for kind in file_kinds.FILE_KINDS:
        assert f"{kind.suffix}" in page.partition("## Sources")[2].partition("\n## ")[0]


def test_folders_and_patterns_skip_files_that_commands_write_beside_shards(tmp_path: Path) -> None:
    images = pa.table({"image": pa.array([encoded(0), encoded(1)], pa.binary())})
    pq.write_table(images, tmp_path / "shard-000000.parquet")
    for name in ("manifest.parquet", "findings.parquet"):
        pq.write_table(pa.table({"file": ["a.jpg"]}), tmp_path / name)
    (tmp_path / "variegate.json").touch()
    for spec in (tmp_path, tmp_path / "*.parquet", tmp_path / "*", f"{tmp_path}/{{shard-*,manifest*}}.parquet"):
        assert len(vg.open_source(spec)) == 2
    with pytest.raises(SourceError, match=r"manifest\.parquet: no column of images"):
        vg.open_source(tmp_path / "manifest.parquet")
