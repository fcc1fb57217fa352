"""Expanding data sets: the same bytes whatever makes them, and nothing lost on errors and interruption."""

from __future__ import annotations

import errno
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.jobs.augment.samples import NAMES, digest, expansion, lay_photos, rows, threads
from variegate import open_source
from variegate.augmenter.augmenter import Augmenter
from variegate.data.base import SourceError
from variegate.data.storage.local import LocalStorage
from variegate.decode import read_image
from variegate.decode.entropy.index import EntropyIndex
from variegate.errors import DecodeError
from variegate.jobs.arguments import build_transform, parse_size
from variegate.jobs.augment import Expansion, ExpansionProgress, Plan, Report, check_apart
from variegate.jobs.engine import Engine
from variegate.ops.tone import Invert
from variegate.transforms import from_dict
from variegate.workers.protocol import EngineError


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return lay_photos(tmp_path / "photos")


def test_every_copy_is_written_and_listed(photos: Path, tmp_path: Path) -> None:
    report = expansion(photos, tmp_path / "out").run()
    assert (report.files, report.written, report.total, report.resumed) == (7, 21, 21, 0)
    assert report.skipped == []
    assert not report.is_interrupted
    assert report.rate > 0
    listed = rows(tmp_path / "out")
    assert [(row["index"], row["id"], row["copy"]) for row in listed] == [(i, i, c) for i in range(7) for c in range(3)]
    files = [row["file"] for row in listed]
    assert files[:4] == ["a/1.jpg_0.jpg", "a/1.jpg_1.jpg", "a/1.jpg_2.jpg", "a/1.png_0.jpg"]
    assert "b/deep/x_2.jpg" in files
    found = digest(tmp_path / "out")
    assert {name: found[name] for name in found if name.endswith(".jpg")} == {
        row["file"]: row["sha256"] for row in listed
    }
    beside = {"manifest.parquet", "manifest.sha256", "variegate.json", "variegate.source"}
    assert set(found) - set(files) == beside
    assert all(row["bytes"] == (tmp_path / "out" / row["file"]).stat().st_size for row in listed)
    assert {row["class"] for row in listed} == {"a", "b"}
    assert all(row["seed"] == 7 and row["epoch"] == 0 and row["status"] == "written" for row in listed)
    assert {row["source"] for row in listed} == set(NAMES)


@pytest.mark.parametrize("layout", ["folder", "webdataset"])
def test_a_part_lasts_before_it_is_recorded(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """A loss of power must not leave a record of files whose names are gone."""
    calls: list[str] = []
    put, sync = LocalStorage._put, LocalStorage.sync

    def noted_put(self: LocalStorage, temporary: str, path: str) -> None:
        put(self, temporary, path)
        name = Path(path).name
        calls.append("record" if name.startswith("0000") else "file" if name[0] not in "vmc" else "other")

    def noted_sync(self: LocalStorage) -> None:
        sync(self)
        calls.append("sync")

    monkeypatch.setattr(LocalStorage, "_put", noted_put)
    monkeypatch.setattr(LocalStorage, "sync", noted_sync)
    expansion(photos, tmp_path / "out", threads(1), layout=layout, shard_size=12).run()
    records = [number for number, call in enumerate(calls) if call == "record"]
    assert len(records) == 2
    for number in records:
        assert calls[number - 1] == "sync"
        assert "file" in calls[:number]


@pytest.mark.process
@pytest.mark.parametrize("layout", ["folder", "webdataset", "parquet"])
def test_devices_workers_and_strategies_change_no_byte(photos: Path, tmp_path: Path, layout: str) -> None:
    engines = [
        threads(1),
        threads(3, allocation="random", steal=False, ordered=True),
        Engine(["cpu:0", "cpu:1"], "thread", "round_robin", ordered=False, num_threads=2),
    ]
    if layout == "folder":
        engines.append(Engine(["cpu:0", "cpu:1"], "process", num_threads=1))
    found = []
    for n, engine in enumerate(engines):
        expansion(photos, tmp_path / str(n), engine, layout=layout, shard_size=6).run()
        found.append(digest(tmp_path / str(n)))
    assert all(one == found[0] for one in found)


def test_an_index_of_the_jpegs_changes_no_byte(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "mix.json"
    policy.write_text(json.dumps({"type": "MixUp", "num_classes": 2}))
    index = EntropyIndex(tmp_path / "photos.vgjpeg")
    for name in NAMES:
        if name.endswith(".jpg"):
            index.add((photos / name).read_bytes())
    index.save()
    cut = []
    decode_part = EntropyIndex.decode_part
    monkeypatch.setattr(EntropyIndex, "decode_part", lambda *args, **more: cut.append(1) or decode_part(*args, **more))
    for copies in (1, 2):
        found = []
        for place in (None, index.path):
            out = tmp_path / f"{copies} {place is None}"
            expansion(photos, out, copies=copies, policy=str(policy), index=place).run()
            found.append(digest(out))
        assert found[0] == found[1]
        assert bool(cut) == (copies == 1)
        cut.clear()
    with pytest.raises(ValueError, match=r"index: .*missing.* is no file"):
        expansion(photos, tmp_path / "out", index=tmp_path / "missing")
    index.path.write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="is not used"):
        expansion(photos, tmp_path / "damaged", threads(1), copies=1, policy=str(policy), index=index.path).run()
    assert digest(tmp_path / "damaged") == digest(tmp_path / "1 True")


@pytest.mark.parametrize("layout", ["webdataset", "parquet"])
def test_shards_hold_what_folders_hold(photos: Path, tmp_path: Path, layout: str) -> None:
    expansion(photos, tmp_path / "files").run()
    expansion(photos, tmp_path / "shards", layout=layout, shard_size=6).run()
    files, shards = rows(tmp_path / "files"), rows(tmp_path / "shards")
    own = ("file", "member", "shard_bytes", "shard_sha256")
    assert [{k: v for k, v in row.items() if k not in own} for row in files] == [
        {k: v for k, v in row.items() if k not in own} for row in shards
    ]
    assert sorted({row["file"] for row in shards}) == [
        f"shard-{n:06d}.{'tar' if layout == 'webdataset' else 'parquet'}" for n in range(4)
    ]
    opened: Any = open_source(str(tmp_path / "shards" / f"shard-*.{'tar' if layout == 'webdataset' else 'parquet'}"))
    assert opened.classes == ("a", "b")
    for n, row in enumerate(files):
        data, label = opened.read(n)
        assert data == (tmp_path / "files" / row["file"]).read_bytes()
        assert label == row["label"]


def test_any_source_can_be_expanded(photos: Path, tmp_path: Path) -> None:
    expansion(photos, tmp_path / "shards", layout="webdataset", shard_size=6, copies=1, format="png").run()
    for spec in (str(tmp_path / "shards" / "*.tar"), (np.full((5, 9, 9, 3), 7, np.uint8), [0, 1, 0, 1, 1])):
        source: Any = open_source(spec)
        out = tmp_path / f"out{len(source)}"
        plan = Plan(source, build_transform("none", None), copies=2, format="png")
        assert Expansion(plan, out, threads()).run().written == 2 * len(source)
        listed = rows(out)
        assert len({row["file"] for row in listed}) == 2 * len(source)
        assert [row["label"] for row in listed[::2]] == [source.read(n).label for n in range(len(source))]
        assert sorted(p.relative_to(out).as_posix() for p in out.rglob("*.png")) == sorted(r["file"] for r in listed)


def test_classes_without_images_keep_their_index(photos: Path, tmp_path: Path) -> None:
    for name in ("aaa", "zzz"):
        (photos / name).mkdir()
    source = open_source(photos)
    expansion(photos, tmp_path / "out", threads(1)).run()
    assert open_source(tmp_path / "out").classes == source.classes
    assert {"aaa", "zzz"} < set(source.classes)


def test_processes_do_not_write_to_a_memory_of_their_own(photos: Path) -> None:
    with pytest.raises(SourceError, match="workers='thread'"):
        expansion(photos, "memory://lost/out", Engine(["cpu:0"], "process")).run()


@pytest.mark.parametrize("layout", ["folder", "parquet"])
def test_what_an_earlier_run_gave_up_is_not_counted_as_written(tmp_path: Path, layout: str) -> None:
    def begun(stop_at: int) -> Report:
        plan = Plan(open_source(_Pairs([0, "none", 2, "none", 4])), Invert(), layout=layout, shard_size=2)
        run = Expansion(plan, tmp_path / "out", threads(1, ordered=True))

        def after_some(event: object) -> None:
            if isinstance(event, ExpansionProgress) and event.total - event.remaining >= stop_at:
                run.stop.set()

        run.on_event = after_some
        return run.run()

    first, second, third = begun(2), begun(5), begun(5)
    assert first.resumed == 0
    assert second.resumed == first.written
    assert (second.missing, third.missing, third.resumed) == (2, 2, 3)


@pytest.mark.parametrize("layout", ["webdataset", "parquet"])
def test_a_label_of_another_kind_costs_its_sample_alone(tmp_path: Path, layout: str) -> None:
    source = open_source(_Pairs([0, 0.5, 2]))
    report = Expansion(Plan(source, Invert(), layout=layout), tmp_path / "out", threads()).run()
    assert (report.written, report.missing) == (2, 1)
    assert [reason for _, reason in report.skipped] == [
        "label: got the label 0.5; accepted: a whole number, as the first sample has"
    ]
    assert [row["status"] for row in rows(tmp_path / "out")] == ["written", "quarantined", "written"]


def test_a_label_beyond_64_bits_is_null_in_the_manifest(tmp_path: Path) -> None:
    Expansion(Plan(open_source(_Pairs([0, 1 << 63])), Invert()), tmp_path / "out", threads()).run()
    assert [row["label"] for row in rows(tmp_path / "out")] == [0, None]


def test_a_bad_sample_of_many_copies_is_skipped_once(tmp_path: Path) -> None:
    source = open_source(_Pairs([0, 0.5, 0.5]))
    report = Expansion(Plan(source, Invert(), copies=40, layout="parquet"), tmp_path / "out", threads()).run()
    assert [name for name, _ in report.skipped] == ["_Pairs: item 1", "_Pairs: item 2"]


class _Pairs:
    """A data set of equal images with these labels."""

    def __init__(self, labels: list[Any]) -> None:
        self._labels = labels

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return np.full((8, 8, 3), index, np.uint8), self._labels[index]


def test_without_policy_and_size_pixels_stay(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out, policy="none", size=None, format="png", copies=1).run()
    for row in rows(out):
        assert row["operations"] == "[]"
        np.testing.assert_array_equal(read_image(out / row["file"]), read_image(photos / row["source"]))


def test_a_row_holds_all_that_a_replay_by_hand_needs(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out, format="png", epoch=2).run()
    settings = json.loads((out / "variegate.json").read_text())
    row = rows(out)[13]
    augmenter = Augmenter(from_dict(settings["transform"]), seed=row["seed"], layout="NHWC")
    image = read_image(photos / row["source"])
    again = augmenter([image], ids=[row["id"]], epoch=row["epoch"], copy=row["copy"])[0].numpy()
    np.testing.assert_array_equal(again, read_image(out / row["file"]))


SPOILT = ("a/1.png", "b/x.jpg", "b/deep/x.png")


def spoil(photos: Path) -> None:
    (photos / "a/1.png").write_bytes(b"")
    (photos / "b/x.jpg").write_text("no picture")
    whole = (photos / "b/deep/x.png").read_bytes()
    (photos / "b/deep/x.png").write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize("layout", ["folder", "webdataset"])
def test_bad_files_are_in_quarantine_by_name(photos: Path, tmp_path: Path, layout: str) -> None:
    good = tmp_path / "good"
    expansion(photos, good, layout=layout).run()
    before = {row["sha256"] for row in rows(good)}
    spoil(photos)
    out = tmp_path / "out"
    report = expansion(photos, out, layout=layout, shard_size=6).run()
    assert (report.written, report.missing) == (12, 9)
    assert sorted(name for name, _ in report.skipped) == ["a/1.png", "b/deep/x.png", "b/x.jpg"]
    listed = rows(out)
    bad = [row for row in listed if row["status"] == "quarantined"]
    assert [(row["id"], row["copy"]) for row in bad] == [(i, copy) for i in (1, 3, 6) for copy in range(3)]
    assert all(row["file"] is None and row["reason"] for row in bad)
    # The others are what they would have been without the bad ones.
    assert {row["sha256"] for row in listed if row["status"] == "written"} < before


def test_raise_names_the_file_and_keeps_parts_that_came_before(photos: Path, tmp_path: Path) -> None:
    spoil(photos)
    running = expansion(photos, tmp_path / "out", threads(1, ordered=True), on_error="raise", copies=20)
    with pytest.raises(DecodeError, match=r"a/1\.png: zero bytes"):
        running.run()
    assert running.report.written == 20
    assert not (tmp_path / "out" / "manifest.parquet").exists()
    whole = lay_photos(tmp_path / "again")
    for name in SPOILT:
        shutil.copy(whole / name, photos / name)
    # Nothing was made of them yet.
    with pytest.warns(UserWarning, match=r"changed since the run began, before anything was made of it: .*a/1\.png"):
        again = expansion(photos, tmp_path / "out", copies=20).run()
    assert (again.written, again.resumed) == (120, 20)
    expansion(photos, tmp_path / "reference", copies=20).run()
    assert digest(tmp_path / "out") == digest(tmp_path / "reference")


def test_stop_keeps_what_is_done_and_the_next_run_goes_on(photos: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"copies": 50}
    stop = threading.Event()

    def after_some(event: object) -> None:
        if isinstance(event, ExpansionProgress) and event.written >= 10:
            stop.set()

    out = tmp_path / "out"
    first = expansion(photos, out, stop=stop, on_event=after_some, **settings).run()
    assert first.is_interrupted
    assert 10 <= first.written < 350
    assert not (out / "manifest.parquet").exists()
    second = expansion(photos, out, **settings).run()
    # The first run may have recorded parts that it did not come to count.
    assert second.resumed >= first.written
    assert second.written == 350 - second.resumed
    expansion(photos, tmp_path / "reference", threads(1), **settings).run()
    assert digest(out) == digest(tmp_path / "reference")


def test_a_complete_run_is_not_done_again_unless_asked_to(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out).run()
    before = digest(out)
    again = expansion(photos, out).run()
    assert (again.written, again.resumed, again.repaired) == (0, 21, 0)
    anew = expansion(photos, out, resume=False).run()
    assert (anew.written, anew.resumed) == (21, 0)
    assert digest(out) == before


def test_a_full_disk_loses_nothing(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_many = LocalStorage.write_many

    def full_at_b(self: LocalStorage, files: list[tuple[str, bytes]]) -> None:
        for relative, _ in files:
            if relative.startswith("b/x"):
                raise OSError(errno.ENOSPC, "No space left on device", relative)
        write_many(self, files)

    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "write_many", full_at_b)
        running = expansion(photos, out, threads(1), copies=20)
        with pytest.raises(EngineError, match="No space left"):
            running.run()
    kept = running.report.written
    assert kept > 0
    assert expansion(photos, out, copies=20).run().resumed >= kept
    expansion(photos, tmp_path / "reference", copies=20).run()
    assert digest(out) == digest(tmp_path / "reference")


def test_destination_must_lie_outside_the_source(photos: Path, tmp_path: Path) -> None:
    for bad, reason in [(photos, "is the source itself"), (photos / "a" / "new", "lies inside the source")]:
        with pytest.raises(SourceError, match=reason):
            expansion(photos, bad).run()
    with pytest.raises(SourceError, match="lies inside the source"):
        expansion(photos, (photos / "a" / "new").as_uri()).run()
    (tmp_path / "link").symlink_to(photos)
    with pytest.raises(SourceError, match="is the source itself"):
        expansion(photos, tmp_path / "link").run()
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="is a file"):
        check_apart(photos, tmp_path / "file")


# -- settings ----------------------------------------------------------------------------------------------------


def test_sizes() -> None:
    assert parse_size("none") is None
    assert parse_size("224") == (224, 224)
    assert parse_size("192x256") == (192, 256)
    for bad in ("0", "-3", "12x", "big", "1.5", "70000"):
        with pytest.raises(ValueError, match=r"size: got .*; accepted: a side such as 224"):
            parse_size(bad)
