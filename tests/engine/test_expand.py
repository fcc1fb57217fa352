"""Expanding folders: the same bytes whatever runs at the same time, and nothing lost on errors and interruption."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from variegate.augmenter import Augmenter
from variegate.data.decode import read_image
from variegate.data.sources.base import SourceError
from variegate.data.sources.folder import open_folder
from variegate.engine.expand import Expansion, Report
from variegate.engine.manifest import ManifestWriter
from variegate.engine.recipe import build_transform, parse_size
from variegate.errors import DecodeError, PolicyError
from variegate.sinks.folder import FolderSink
from variegate.transforms.base import from_dict


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes, ragged sizes, a clash of stems; a folder one below, as a user would have it."""
    rng = np.random.default_rng(5)
    root = tmp_path / "photos"
    names = ["a/1.jpg", "a/1.png", "a/2.jpg", "b/x.jpg", "b/deep/x.png", "b/y.webp", "b/z.bmp"]
    for n, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        smooth = rng.integers(0, 256, (5, 6, 3)).astype(np.uint8)
        Image.fromarray(smooth).resize((40 + 3 * n, 50 - 2 * n), Image.Resampling.BICUBIC).save(root / name)
    return root


def expansion(photos: Path, out: Path, **settings: object) -> Expansion:
    options: dict[str, object] = {"copies": 3, "seed": 7, "threads": 2} | settings
    policy = str(options.pop("policy", "randaugment"))
    size = options.pop("size", (32, 32))
    transform = build_transform(policy, size)  # type: ignore[arg-type]
    sink = FolderSink(out, str(options.pop("format", "jpg")))
    return Expansion(open_folder(photos), sink, transform, **options)  # type: ignore[arg-type]


def digest(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def rows(root: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (root / "manifest.jsonl").read_text().splitlines()]


def test_every_copy_is_written_and_listed(photos: Path, tmp_path: Path) -> None:
    report = expansion(photos, tmp_path / "out").run()
    assert (report.files, report.read, report.written, report.total) == (7, 7, 21, 21)
    assert report.skipped == []
    assert not report.is_interrupted
    assert report.rate > 0
    listed = rows(tmp_path / "out")
    assert [(row["id"], row["copy"]) for row in listed] == [(i, c) for i in range(7) for c in range(3)]
    files = [str(row["file"]) for row in listed]
    assert files[:6] == [
        "a/1.jpg_0.jpg",
        "a/1.jpg_1.jpg",
        "a/1.jpg_2.jpg",
        "a/1.png_0.jpg",
        "a/1.png_1.jpg",
        "a/1.png_2.jpg",
    ]
    assert "b/deep/x_2.jpg" in files
    on_disk = {name for name in digest(tmp_path / "out") if name.endswith(".jpg")}
    assert on_disk == set(files)
    assert {row["class"] for row in listed} == {"a", "b"}
    assert all(row["seed"] == 7 and row["epoch"] == 0 for row in listed)
    assert all(row["operations"][0]["op"] == "ResizedCrop" for row in listed)  # type: ignore[index]


def test_threads_and_batch_size_change_no_byte(photos: Path, tmp_path: Path) -> None:
    reference = None
    for n, settings in enumerate(
        [
            {"threads": 1, "batch_size": 1},
            {"threads": 2, "batch_size": 3},
            {"threads": 5, "batch_size": 100},
            {"threads": 3, "batch_size": 4, "batch_bytes": 1},
        ]
    ):
        expansion(photos, tmp_path / f"out{n}", **settings).run()
        found = digest(tmp_path / f"out{n}")
        reference = reference or found
        assert found == reference


def test_seed_epoch_and_copy_change_the_pixels(photos: Path, tmp_path: Path) -> None:
    seen = set()
    for n, settings in enumerate([{}, {"seed": 8}, {"epoch": 1}]):
        expansion(photos, tmp_path / f"out{n}", copies=2, **settings).run()
        seen |= {digest(tmp_path / f"out{n}")[name] for name in ("b/y_0.jpg", "b/y_1.jpg")}
    assert len(seen) == 6


def test_any_output_can_be_replayed_from_its_row(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out, format="png", epoch=2).run()
    settings = json.loads((out / "variegate.json").read_text())
    row = rows(out)[13]
    augmenter = Augmenter(from_dict(settings["transform"]), seed=int(str(row["seed"])), layout="NHWC")
    image = read_image(photos / str(row["source"]))
    again = augmenter([image], ids=[row["id"]], epoch=row["epoch"], copy=row["copy"])[0].numpy()
    np.testing.assert_array_equal(again, read_image(out / str(row["file"])))


def test_without_policy_and_size_pixels_stay(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out, policy="none", size=None, format="png", copies=1).run()
    for row in rows(out):
        assert row["operations"] == []
        np.testing.assert_array_equal(read_image(out / str(row["file"])), read_image(photos / str(row["source"])))


def spoil(photos: Path) -> None:
    (photos / "a/1.png").write_bytes(b"")
    (photos / "b/x.jpg").write_text("no picture")
    whole = (photos / "b/deep/x.png").read_bytes()
    (photos / "b/deep/x.png").write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_bad_files_are_skipped_by_name(photos: Path, tmp_path: Path, batch_size: int) -> None:
    good = tmp_path / "good"
    expansion(photos, good).run()
    spoil(photos)
    out = tmp_path / "out"
    report = expansion(photos, out, on_error="skip", batch_size=batch_size).run()
    assert report.written == 12
    assert [path for path, _ in report.skipped] == ["a/1.png", "b/x.jpg", "b/deep/x.png"]
    listed = rows(out)
    bad = [row for row in listed if row["status"] == "skipped"]
    assert [(row["id"], row["copy"], row["file"]) for row in bad] == [(1, None, None), (3, None, None), (6, None, None)]
    assert [row["id"] for row in listed] == sorted(int(str(row["id"])) for row in listed)
    # The others are what they would have been without the bad ones.
    before = digest(good)
    assert all(before[name] == found for name, found in digest(out).items() if name.endswith(".jpg"))


def test_raise_names_the_file_and_keeps_what_came_before(photos: Path, tmp_path: Path) -> None:
    spoil(photos)
    running = expansion(photos, tmp_path / "out", batch_size=16)
    with pytest.raises(DecodeError, match=r"a/1\.png: zero bytes"):
        running.run()
    assert running.report.written == 3
    assert [row["file"] for row in rows(tmp_path / "out")] == [f"a/1.jpg_{copy}.jpg" for copy in range(3)]
    assert set(digest(tmp_path / "out")) == {
        "manifest.jsonl",
        "variegate.json",
        *(f"a/1.jpg_{c}.jpg" for c in range(3)),
    }


def test_stop_leaves_whole_files_and_lists_exactly_those(photos: Path, tmp_path: Path) -> None:
    reference = tmp_path / "reference"
    expansion(photos, reference, copies=8).run()
    whole = digest(reference)
    out = tmp_path / "out"
    stop = threading.Event()

    def after_some(report: Report) -> None:
        if report.written >= 10:
            stop.set()

    report = expansion(photos, out, copies=8, batch_size=2, batch_bytes=1, stop=stop, on_progress=after_some).run()
    assert report.is_interrupted
    assert 10 <= report.written < 56
    pictures = {name: found for name, found in digest(out).items() if name.endswith(".jpg")}
    assert len(pictures) == report.written
    assert set(pictures) == {row["file"] for row in rows(out)}
    assert all(whole[name] == found for name, found in pictures.items())
    assert not list(out.rglob(".*"))


def test_a_full_disk_is_an_error_that_loses_nothing(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FolderSink.write

    def full_at_b(self: FolderSink, img_HWC: object, stem: str, copy: int) -> str:
        if stem.startswith("b/x"):
            raise OSError(28, "No space left on device", "b/x")
        return write(self, img_HWC, stem, copy)  # type: ignore[arg-type]

    monkeypatch.setattr(FolderSink, "write", full_at_b)
    running = expansion(photos, tmp_path / "out", batch_size=2)
    with pytest.raises(OSError, match="No space left"):
        running.run()
    listed = {row["file"] for row in rows(tmp_path / "out")}
    assert listed == {name for name in digest(tmp_path / "out") if name.endswith(".jpg")}
    assert len(listed) == running.report.written > 0


def test_destination_must_lie_outside_the_source(photos: Path, tmp_path: Path) -> None:
    for bad, reason in [(photos, "is the source itself"), (photos / "a" / "new", "lies inside the source")]:
        with pytest.raises(SourceError, match=reason):
            expansion(photos, bad).run()
    (tmp_path / "link").symlink_to(photos)
    with pytest.raises(SourceError, match="is the source itself"):
        expansion(photos, tmp_path / "link").run()
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="is a file"):
        expansion(photos, tmp_path / "file").run()


def test_normalized_output_is_refused(photos: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.json"
    policy.write_text(json.dumps({"type": "Normalize", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}))
    with pytest.raises(ValueError, match="Normalize"):
        expansion(photos, tmp_path / "out", policy=str(policy)).run()


# -- settings ----------------------------------------------------------------------------------------------------


def test_sizes() -> None:
    assert parse_size("none") is None
    assert parse_size("224") == (224, 224)
    assert parse_size("192x256") == (192, 256)
    for bad in ("0", "-3", "12x", "big", "1.5", "70000"):
        with pytest.raises(ValueError, match=r"size: got .*; accepted: a side such as 224"):
            parse_size(bad)


def test_unknown_policy() -> None:
    with pytest.raises(PolicyError, match=r"accepted: .*imagenet"):
        build_transform("no-such-policy", None)


def test_manifest_is_in_order_whatever_the_order_of_writing(tmp_path: Path) -> None:
    wanted = [(0, 0), (0, 1), (1, None), (2, 0), (2, 1), (3, 1)]
    for n, order in enumerate([wanted, wanted[::-1], wanted[::2] + wanted[1::2]]):
        manifest = ManifestWriter(tmp_path / str(n), {}, copies=2)
        for sample_id, copy in order:
            manifest.add({"id": sample_id, "copy": copy})
        manifest.close()
        assert [(row["id"], row["copy"]) for row in rows(tmp_path / str(n))] == wanted
