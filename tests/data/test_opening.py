"""open_source: what each kind of place and object is opened as, and what is said of the rest."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variegate as vg
from tests.data.tars import encoded, labelled, read_all, tar_bytes, write_shards, write_tar
from variegate.data import kinds as file_kinds
from variegate.data.base import SourceError
from variegate.data.samples import Samples
from variegate.data.tar.webdataset import TarShards


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
        assert isinstance(source, Samples)
        assert source.fingerprint == expected
        assert source.read(11) == (encoded(3), 1)
    assert len(vg.open_source(shards[0])) == 4
    sharded = vg.open_source(tmp_path, stream=True)
    assert isinstance(sharded, TarShards)
    assert sharded.num_shards == 3
    assert vg.open_source(sharded) is sharded
    assert vg.open_source(sharded, stream=False).fingerprint == expected
    assert vg.open_source(source) is source


def test_options_reach_the_shards(tmp_path: Path) -> None:
    path = Path(write_tar(tmp_path / "a.tar", [*labelled(2), ("x.jpg", encoded(1)), ("x.cls", b"dog")]))
    assert vg.open_source(path, classes=["cat", "dog"], cache_dir=tmp_path / "cache").read(2).label == 1
    assert (tmp_path / "cache").is_dir()
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(encoded(1)) + 100])
    with pytest.raises(SourceError, match="cut off"):
        vg.open_source(path)
    assert len(vg.open_source(path, on_error="skip")) == 3
    with pytest.raises(SourceError, match="on_error: got 'igno'; accepted: 'raise', 'skip'"):
        vg.open_source(path, on_error="igno")
    packed = tmp_path / "b.tar.gz"
    packed.write_bytes(gzip.compress(tar_bytes(labelled(2))))
    for stream in (False, True):
        assert read_all(vg.open_source(packed, stream=stream)) == [(encoded(0), 0), (encoded(1), 1)]
    with pytest.raises(ValueError, match="cache_limit: got 0; accepted: an integer from 1 on"):
        vg.open_source(packed, cache_limit=0)
    with pytest.raises(
        SourceError, match=r"b\.tar\.gz: cache_limit=999 has no room for it; accepted: more than 10,240"
    ):
        vg.open_source(packed, cache_dir=tmp_path / "small", cache_limit=999)


def test_folders_and_images(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.jpg").write_bytes(encoded(1))
    source = vg.open_source(tmp_path)
    assert isinstance(source, Samples)
    assert source.classes == ("cat",)
    one = vg.open_source(tmp_path / "cat" / "1.jpg")
    assert len(one) == 1
    assert one.read(0) == (encoded(1), 0)
    assert one.name(0) == source.name(0)
    for options, what in (
        ({"stream": True}, r"stream=True is for \.tar shards"),
        ({"classes": ["a"]}, "classes= is for"),
    ):
        with pytest.raises(SourceError, match=what):
            vg.open_source(tmp_path, **options)


def test_addresses(tmp_path: Path, memory: Any) -> None:
    for number in range(2):
        memory.pipe(f"/shards/{number}.tar", tar_bytes(labelled(2, 2 * number)))
    memory.pipe("/images/cat/1.jpg", encoded(1))
    assert isinstance(vg.open_source("memory://images"), Samples)
    for spec in ("memory://shards", "memory://shards/*.tar", "memory://shards/{0..1}.tar", ["memory://shards/0.tar"]):
        assert isinstance(vg.open_source(spec), TarShards)
        assert isinstance(vg.open_source(spec, stream=False), Samples)
    assert (
        vg.open_source("memory://shards/", stream=False).fingerprint
        == vg.open_source("memory://shards/*.tar", stream=False).fingerprint
    )
    with pytest.raises(SourceError, match=r"^memory://gone: no such file or folder$"):
        vg.open_source("memory://gone")
    with pytest.raises(SourceError, match=r"^https://host/data: http servers cannot list a folder"):
        vg.open_source("https://u:p@host/data?x")


@pytest.mark.parametrize("spec", [3, None, {"a": 1}, b"bytes", [], [1, 2], (1, 2, 3), ["a.tar", 3]])
def test_objects_of_other_kinds(spec: Any) -> None:
    with pytest.raises(
        TypeError, match=r"open_source: got .*; accepted: a folder of images or of class folders, \.tar"
    ):
        vg.open_source(spec)


def test_paths_that_are_not_there(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "Shards", 3)
    cases = {
        tmp_path / "shard": f"{tmp_path}/shard: no such file or folder; did you mean {tmp_path}/Shards?",
        tmp_path / "Shards" / "train-3.tar": f"{tmp_path}/Shards/train-3.tar: no such file or folder; did you mean "
        f"{shards[0][:-6]}",
        tmp_path / "zzz": f"{tmp_path}/zzz: no such file or folder",
    }
    for path, message in cases.items():
        with pytest.raises(SourceError) as raised:
            vg.open_source(path)
        assert str(raised.value).startswith(message)
    with pytest.raises(SourceError, match=r"train-03\.tar: no such file or folder; did you mean .*train-0\d\.tar\?"):
        vg.open_source(f"{tmp_path}/Shards/train-{{00..05}}.tar")
    with pytest.raises(SourceError, match=r"\*\.parquet: matches nothing"):
        vg.open_source(f"{tmp_path}/Shards/*.parquet")
    with pytest.raises(SourceError, match="an empty path; accepted: a folder"):
        vg.open_source("")


def test_places_that_hold_something_else(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "a.parquet").touch()
    write_shards(tmp_path, 1)
    with pytest.raises(SourceError, match=r"a\.txt: a file of a kind that is not read; accepted: a folder of images"):
        vg.open_source(tmp_path / "a.txt")
    with pytest.raises(SourceError, match=r"holds \.tar and \.parquet files; say which: .*/\*\.tar or .*/\*\.parquet"):
        vg.open_source(tmp_path)
    with pytest.raises(SourceError, match=r"a\.parquet and .*train-00\.tar: files of different kinds"):
        vg.open_source(f"{tmp_path}/{{a.parquet,train-00.tar}}")
    with pytest.raises(
        SourceError, match=r"a\.txt: in a list or pattern, \.tar, \.parquet, \.arrow files are accepted"
    ):
        vg.open_source([tmp_path / "a.txt", tmp_path / "a.txt"])
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "logs").mkdir()
    with pytest.raises(SourceError, match=r"no images \(\d other files\)"):
        vg.open_source(tmp_path)


@pytest.mark.process
def test_local_files_need_no_fsspec_and_no_torch(tmp_path: Path) -> None:
    write_shards(tmp_path, 1)
    probe = (
        "import sys, variegate as vg; assert len(vg.open_source(sys.argv[1])) == 4\n"
        "assert len(vg.open_source(sys.argv[1], stream=True).shard(0)) == 4\n"
        "print([m for m in ('fsspec', 'torch') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", probe, str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "[]", run.stderr


def test_every_kind_of_file_is_told_of() -> None:
    page = (Path(__file__).parents[2] / "docs" / "loader.md").read_text(encoding="utf-8")
    for kind in file_kinds.FILE_KINDS:
        assert f"``{kind.suffix}``" in str(vg.open_source.__doc__)
        assert f"{kind.suffix}" in page.partition("## Sources")[2].partition("\n## ")[0]


def test_a_packed_folder_whose_shards_are_gone_is_no_data_set(tmp_path: Path) -> None:
    """Its manifest is no Parquet file of images."""
    for name in ("manifest.parquet", "variegate.json", "statistics.json"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(SourceError, match="its shards are gone; variegate verify"):
        vg.open_source(str(tmp_path))


def test_folders_and_patterns_pass_over_files_that_commands_write_beside_shards(tmp_path: Path) -> None:
    images = pa.table({"image": pa.array([encoded(0), encoded(1)], pa.binary())})
    pq.write_table(images, tmp_path / "shard-000000.parquet")
    for name in ("manifest.parquet", "findings.parquet"):
        pq.write_table(pa.table({"file": ["a.jpg"]}), tmp_path / name)
    (tmp_path / "variegate.json").touch()
    for spec in (tmp_path, tmp_path / "*.parquet", tmp_path / "*", f"{tmp_path}/{{shard-*,manifest*}}.parquet"):
        assert len(vg.open_source(spec)) == 2
    with pytest.raises(SourceError, match=r"manifest\.parquet: no column of images"):
        vg.open_source(tmp_path / "manifest.parquet")
