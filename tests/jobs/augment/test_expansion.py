"""Expanding data sets: the same bytes whatever makes them, and nothing lost on errors and interruption."""

from __future__ import annotations

import json
import re
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
from variegate.jobs.augment import Expansion, ExpansionProgress, Plan, Report, check_not_nested
from variegate.jobs.engine import Engine
from variegate.ops.tone import Invert
from variegate.transforms import from_dict


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return lay_photos(tmp_path / "photos")


def test_every_copy_is_written_and_listed(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = expansion(photos, out, epoch=2).run()
    assert (report.files, report.written, report.total, report.resumed) == (7, 21, 21, 0)
    assert (report.skipped, report.is_interrupted, report.rate > 0) == ([], False, True)
    listed = rows(out)
    assert [(row["index"], row["id"], row["copy"]) for row in listed] == [(i, i, c) for i in range(7) for c in range(3)]
    files = [row["file"] for row in listed]
    assert files[:4] == ["a/1.jpg_0.jpg", "a/1.jpg_1.jpg", "a/1.jpg_2.jpg", "a/1.png_0.jpg"]
    found = digest(out)
    assert {name: found.pop(name) for name in files} == {row["file"]: row["sha256"] for row in listed}
    assert set(found) == {"manifest.parquet", "manifest.sha256", "variegate.json", "variegate.source"}
    assert all(row["bytes"] == (out / row["file"]).stat().st_size for row in listed)
    assert {row["class"] for row in listed} == {"a", "b"}
    assert all(row["seed"] == 7 and row["epoch"] == 2 and row["status"] == "written" for row in listed)
    assert {row["source"] for row in listed} == set(NAMES)
    again = expansion(photos, out, epoch=2).run()
    assert (again.written, again.resumed, again.repaired) == (0, 21, 0)
    anew = expansion(photos, out, epoch=2, resume=False).run()
    assert (anew.written, anew.resumed) == (21, 0)


def test_a_row_holds_all_that_a_replay_by_hand_needs(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out, format="png", epoch=2).run()
    settings = json.loads((out / "variegate.json").read_text())
    augmenter = Augmenter(from_dict(settings["transform"]), seed=settings["seed"], layout="NHWC")
    row = rows(out)[13]
    image = read_image(photos / row["source"])
    again = augmenter([image], ids=[row["id"]], epoch=row["epoch"], copy=row["copy"])[0].numpy()
    np.testing.assert_array_equal(again, read_image(out / row["file"]))
    expansion(photos, tmp_path / "plain", policy="none", size=None, format="png", copies=1).run()
    for row in rows(tmp_path / "plain"):
        assert row["operations"] == "[]"
        np.testing.assert_array_equal(read_image(tmp_path / "plain" / row["file"]), read_image(photos / row["source"]))


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
        engines.append(Engine(["cpu:0"], "process", num_threads=1))
    for n, engine in enumerate(engines):
        expansion(photos, tmp_path / str(n), engine, layout=layout, shard_size=6).run()
        assert digest(tmp_path / str(n)) == digest(tmp_path / "0")


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
        for place in (None, index.path):
            out = tmp_path / f"{copies} {place is None}"
            expansion(photos, out, copies=copies, policy=str(policy), index=place).run()
        assert digest(tmp_path / f"{copies} True") == digest(tmp_path / f"{copies} False")
        assert bool(cut) == (copies == 1)
        cut.clear()
    with pytest.raises(ValueError, match=r"index: .*missing.* is no file"):
        expansion(photos, tmp_path / "out", index=tmp_path / "missing")
    index.path.write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="is not used"):
        expansion(photos, tmp_path / "damaged", threads(1), copies=1, policy=str(policy), index=index.path).run()
    assert digest(tmp_path / "damaged") == digest(tmp_path / "1 True")


@pytest.mark.parametrize(("layout", "ending"), [("webdataset", "tar"), ("parquet", "parquet")])
def test_shards_hold_what_folders_hold_and_can_be_expanded(
    photos: Path, tmp_path: Path, layout: str, ending: str
) -> None:
    expansion(photos, tmp_path / "files").run()
    expansion(photos, tmp_path / "shards", layout=layout, shard_size=6).run()
    files, shards = rows(tmp_path / "files"), rows(tmp_path / "shards")
    assert sorted({row["file"] for row in shards}) == [f"shard-{n:06d}.{ending}" for n in range(4)]
    opened: Any = open_source(str(tmp_path / "shards"))
    assert opened.classes == ("a", "b")
    for n, (row, other) in enumerate(zip(files, shards, strict=True)):
        for name in row.keys() - {"file", "member", "shard_bytes", "shard_sha256"}:
            assert row[name] == other[name]
        data, label = opened.read(n)
        assert data == (tmp_path / "files" / row["file"]).read_bytes()
        assert label == row["label"]
    for source in (opened, open_source((np.full((5, 9, 9, 3), 7, np.uint8), [0, 1, 0, 1, 1]))):
        out = tmp_path / f"out{len(source)}"
        plan = Plan(source, build_transform("none", None), copies=2, format="png")
        assert Expansion(plan, out, threads()).run().written == 2 * len(source)
        listed = rows(out)
        assert [row["label"] for row in listed[::2]] == [source.read(n).label for n in range(len(source))]
        assert sorted(p.relative_to(out).as_posix() for p in out.rglob("*.png")) == sorted(r["file"] for r in listed)


def test_classes_without_images_keep_their_index(photos: Path, tmp_path: Path) -> None:
    for name in ("aaa", "zzz"):
        (photos / name).mkdir()
    expansion(photos, tmp_path / "out", threads(1)).run()
    assert open_source(tmp_path / "out").classes == open_source(photos).classes == ("a", "aaa", "b", "zzz")


class _Pairs:
    """A data set of equal images with these labels."""

    def __init__(self, labels: list[Any]) -> None:
        self._labels = labels

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return np.full((8, 8, 3), index, np.uint8), self._labels[index]


@pytest.mark.parametrize("layout", ["folder", "parquet"])
def test_what_an_earlier_run_gave_up_is_not_counted_as_written(tmp_path: Path, layout: str) -> None:
    def begun(stop_at: int) -> Report:
        plan = Plan(open_source(_Pairs([0, "none", 2, "none", 4])), Invert(), layout=layout, shard_size=2)
        run = Expansion(plan, tmp_path / "out", threads(1, ordered=True))

        def after_some(event: Any) -> None:
            if isinstance(event, ExpansionProgress) and event.total - event.remaining >= stop_at:
                run.stop.set()

        run.on_event = after_some
        return run.run()

    first, second, third = begun(2), begun(5), begun(5)
    assert first.resumed == 0
    assert second.resumed == first.written
    assert (second.missing, third.missing, third.resumed) == (2, 2, 3)


@pytest.mark.parametrize(
    ("labels", "copies", "layout", "skipped"),
    [
        ([0, 0.5, 2], 1, "webdataset", [1]),
        ([0, 0.5, 2], 1, "parquet", [1]),
        ([0, 0.5, 0.5], 40, "parquet", [1, 2]),  # each sample is several items
        ([0, 1 << 63], 1, "folder", [1]),
    ],
)
def test_a_label_of_another_kind_costs_its_sample_alone(
    tmp_path: Path, labels: list[Any], copies: int, layout: Any, skipped: list[int]
) -> None:
    plan = Plan(open_source(_Pairs(labels)), Invert(), copies=copies, layout=layout)
    report = Expansion(plan, tmp_path / "out", threads()).run()
    assert [name for name, _ in report.skipped] == [f"_Pairs: item {index}" for index in skipped]
    accepted = (
        r"the label 0\.5; accepted: a whole number, as the first sample has|\d+; accepted: whole numbers up to \d+"
    )
    assert all(re.match(f"label: got ({accepted})", reason) for _, reason in report.skipped)
    assert report.written == copies * (len(labels) - len(skipped))
    listed = rows(tmp_path / "out")[::copies]
    assert [row["status"] == "quarantined" for row in listed] == [index in skipped for index in range(len(labels))]


SPOILT = ("a/1.png", "b/x.jpg", "b/deep/x.png")


def spoil(photos: Path) -> None:
    (photos / "a/1.png").write_bytes(b"")
    (photos / "b/x.jpg").write_text("no picture")
    whole = (photos / "b/deep/x.png").read_bytes()
    (photos / "b/deep/x.png").write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize("layout", ["folder", "webdataset"])
def test_bad_files_are_in_quarantine_by_name(photos: Path, tmp_path: Path, layout: str) -> None:
    expansion(photos, tmp_path / "good", layout=layout).run()
    before = {row["sha256"] for row in rows(tmp_path / "good")}
    spoil(photos)
    report = expansion(photos, tmp_path / "out", layout=layout, shard_size=6).run()
    assert (report.written, report.missing) == (12, 9)
    assert sorted(name for name, _ in report.skipped) == ["a/1.png", "b/deep/x.png", "b/x.jpg"]
    listed = rows(tmp_path / "out")
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
    stop = threading.Event()

    def after_some(event: object) -> None:
        if isinstance(event, ExpansionProgress) and event.written >= 10:
            stop.set()

    out = tmp_path / "out"
    first = expansion(photos, out, stop=stop, on_event=after_some, copies=50).run()
    assert first.is_interrupted
    assert 10 <= first.written < 350
    assert not (out / "manifest.parquet").exists()
    second = expansion(photos, out, copies=50).run()
    # The first run may have recorded parts that it did not come to count.
    assert second.resumed >= first.written
    assert second.written == 350 - second.resumed
    expansion(photos, tmp_path / "reference", threads(1), copies=50).run()
    assert digest(out) == digest(tmp_path / "reference")


def test_places_that_are_refused(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(photos)
    (tmp_path / "file").touch()
    processes = Engine(["cpu:0"], "process")
    for bad, engine, reason in (
        (photos, None, "is the source itself"),
        (tmp_path / "link", None, "is the source itself"),
        (photos / "a" / "new", None, "lies inside the source"),
        ((photos / "a" / "new").as_uri(), None, "lies inside the source"),
        ("memory://lost/out", processes, "workers='thread'"),  # a memory of their own
    ):
        with pytest.raises(SourceError, match=reason):
            expansion(photos, bad, engine).run()
    with pytest.raises(SourceError, match="is a file"):
        check_not_nested(photos, tmp_path / "file")


def test_sizes() -> None:
    for text, size in (("none", None), ("224", (224, 224)), ("192x256", (192, 256))):
        assert parse_size(text) == size
    for bad in ("0", "-3", "12x", "big", "1.5", "70000"):
        with pytest.raises(ValueError, match=r"size: got .*; accepted: a side such as 224"):
            parse_size(bad)
