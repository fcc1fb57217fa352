"""Packing: what comes out, that it is the same however it went, and what becomes of odd files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps

from tests.data.annotated.made import put_voc
from tests.jobs.augment.samples import digest, expansion
from tests.jobs.pack.samples import KINDS, lay_kinds, packed
from variegate import Loader, dataset_statistics, open_source
from variegate import transforms as T
from variegate.data.base import Source, SourceError
from variegate.data.packed import statistics_of
from variegate.decode import read_image
from variegate.errors import DecodeError
from variegate.jobs.augment.replay import replay
from variegate.jobs.output.verify import delete_damaged, verify
from variegate.jobs.pack import pack

pytestmark = pytest.mark.filterwarnings("ignore:.*16 bits", "ignore:.*made again", "ignore:.*written again")
FORMATS = ["webdataset", "parquet", "raw"]
# Small enough for several shards.
SHARD = 3


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_kinds(tmp_path_factory.mktemp("kinds") / "photos")


def opened(place: Path) -> Source:
    source = open_source(place)
    assert isinstance(source, Source)
    return source


def pixels(source: Source, index: int) -> Any:
    data = source.read(index).data
    return data if isinstance(data, np.ndarray) else read_image(data)


def test_boxes_are_not_lost_quietly(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has boxes, masks or key points, which shards lose; accepted: images alone"):
        packed(put_voc(tmp_path / "data"), tmp_path / "out")
    assert packed(tmp_path / "data/JPEGImages", tmp_path / "out").images == 3


@pytest.mark.parametrize("format", FORMATS)
def test_images_labels_and_names_come_out(photos: Path, tmp_path: Path, format: str) -> None:
    out = tmp_path / "out"
    found = packed(photos, out, size=32, format=format, shard_size=SHARD)
    assert found.bytes_after == sum(path.stat().st_size for path in out.glob("shard-*"))
    source, names = opened(out), list(KINDS)
    assert (found.images, found.kept, found.skipped) == (8, 0, [])
    assert found.shards == 3
    assert found.bytes_before == sum(path.stat().st_size for path in photos.rglob("*.*"))
    assert source.classes == ("a", "b")
    assert [source.read(i).label for i in range(8)] == [0] * 5 + [1] * 3
    for index, name in enumerate(names):
        with Image.open(photos / name) as image:
            upright = ImageOps.exif_transpose(image)
            if upright.mode.startswith("I"):  # 16 bits
                upright = Image.fromarray(np.round(np.asarray(upright) * (255 / 65535)).astype(np.uint8))
            shown = upright.convert("RGB")
        side = min(shown.size)
        if side > 32:
            shown = shown.resize(tuple(int(32 * one / side) for one in shown.size), Image.Resampling.BILINEAR)  # type: ignore[arg-type]
        wanted, got = np.asarray(shown).astype(int), pixels(source, index).astype(int)
        assert got.shape == wanted.shape
        if format == "raw":
            assert np.abs(got - wanted).max() <= 1
        else:
            assert np.abs(got - wanted).mean() < 6  # what JPEG leaves of it
    assert verify(out).problems == []
    rows = pq.read_table(out / "manifest.parquet").to_pylist()
    assert [(row["source"], row["id"], row["index"]) for row in rows] == [(name, i, i) for i, name in enumerate(names)]


def test_gray_stays_gray_and_members_say_what_they_are(photos: Path, tmp_path: Path) -> None:
    packed(photos, tmp_path / "tars")
    packed(photos, tmp_path / "raw", format="raw")
    source: Any = opened(tmp_path / "tars")
    modes = {name: Image.open(io.BytesIO(source.read(i).data)).mode for i, name in enumerate(KINDS)}
    assert modes == {name: "L" if mode in ("L", "I;16") else "RGB" for name, mode in KINDS.items()}
    shards = sorted((tmp_path / "raw").glob("*.arrow"))
    stored = pa.concat_tables(pa.ipc.open_file(path).read_all() for path in shards)
    assert stored["channels"].to_pylist() == [1 if mode in ("L", "I;16") else 3 for mode in KINDS.values()]
    assert set(stored["shown"].to_pylist()) == {3}
    import tarfile

    with tarfile.open(tmp_path / "tars" / "shard-000000.tar") as tar:
        about = json.load(tar.extractfile("00000005.json"))  # type: ignore[arg-type]
        assert tar.extractfile("00000005.cls").read() == b"1"  # type: ignore[union-attr]
    assert about == {"key": "00000005", "id": 5, "label": 1, "source": "b/deep.png", "class": "b"}


@pytest.mark.parametrize("format", FORMATS)
def test_devices_change_no_byte(photos: Path, tmp_path: Path, format: str) -> None:
    options: dict[str, Any] = {"size": 32, "format": format, "shard_size": SHARD}
    packed(photos, tmp_path / "one", devices="cpu:0", **options)
    packed(photos, tmp_path / "two", **options)
    assert digest(tmp_path / "two") == digest(tmp_path / "one")


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_lost_or_damaged_is_found_and_made_again(photos: Path, tmp_path: Path, format: str) -> None:
    out, options = tmp_path / "out", {"size": 32, "format": format, "shard_size": SHARD}
    packed(photos, out, **options)
    expected, shards = digest(out), sorted(out.glob("shard-*"))
    shards[1].unlink()
    packed(photos, out, **options)
    assert digest(out) == expected
    data = bytearray(shards[0].read_bytes())
    data[len(data) // 3] ^= 1
    shards[0].write_bytes(data)
    (out / "statistics.json").write_text((out / "statistics.json").read_text().replace('"mean"', '"mena"'))
    if format != "raw":
        (out / "index.vgjpeg").write_bytes(b"x")
    found = verify(out)
    named = {problem.file for problem in found.problems}
    assert named == {shards[0].name, "statistics.json"} | ({"index.vgjpeg"} if format != "raw" else set())
    delete_damaged(out, found)
    packed(photos, out, **options)
    assert digest(out) == expected
    assert verify(out).problems == []


def test_a_shard_without_a_readable_image_is_not_written(tmp_path: Path) -> None:
    photos = lay_kinds(tmp_path / "photos")
    for name in list(KINDS)[3:6]:
        (photos / name).write_bytes(b"no image at all")
    found = packed(photos, tmp_path / "out", shard_size=SHARD)
    assert (found.images, found.shards, len(found.skipped)) == (5, 2, 3)
    assert sorted(path.name for path in (tmp_path / "out").glob("shard-*")) == ["shard-000000.tar", "shard-000002.tar"]
    assert verify(tmp_path / "out").problems == []
    assert packed(photos, tmp_path / "out", shard_size=SHARD) == found


def test_what_is_packed_is_not_replayed_nor_augmented(photos: Path, tmp_path: Path) -> None:
    packed(photos, tmp_path / "out")
    with pytest.raises(SourceError, match="out: holds a run of variegate pack; choose another folder"):
        expansion(photos, tmp_path / "out").run()
    expansion(photos, tmp_path / "other").run()
    with pytest.raises(SourceError, match="other: holds a run of variegate augment; choose another folder"):
        packed(photos, tmp_path / "other")
    with pytest.raises(SourceError, match="of a run of variegate pack; accepted: of variegate augment"):
        replay(tmp_path / "out", 0)


def test_jpegs_are_kept_as_they_are(photos: Path, tmp_path: Path) -> None:
    found = packed(photos, tmp_path / "out", keep_jpeg=True)
    source: Any = opened(tmp_path / "out")
    assert found.kept == 5
    for index, name in enumerate(KINDS):
        assert (source.read(index).data == (photos / name).read_bytes()) == name.endswith(".jpg")


def test_statistics_are_those_of_the_pixels(photos: Path, tmp_path: Path) -> None:
    for format in ("raw", "parquet"):
        packed(photos, tmp_path / format, format=format)
        source = opened(tmp_path / format)
        flat = np.concatenate([pixels(source, i).reshape(-1, 3) for i in range(len(source))]).astype(np.float64) / 255
        found = statistics_of(source)
        assert found is not None
        assert found.mean == pytest.approx(flat.mean(0).tolist(), abs=1e-12)
        assert found.std == pytest.approx(flat.std(0).tolist(), abs=1e-9)
        assert (found.images, found.pixels) == (8, len(flat))
        assert dataset_statistics(str(tmp_path / format)) == found
    gray = np.arange(2 * 5 * 4, dtype=np.uint8).reshape(2, 5, 4, 1)
    made = packed((gray, [0, 1]), tmp_path / "gray", format="raw").statistics
    assert made is not None
    assert made.mean == (float(gray.mean() / 255),)
    assert opened(tmp_path / "gray").read(1).data.shape == (5, 4, 1)  # type: ignore[union-attr]


def test_the_loader_finds_the_index_and_the_numbers(photos: Path, tmp_path: Path) -> None:
    packed(photos, tmp_path / "out", shard_size=SHARD)
    before = digest(tmp_path / "out")
    transform = T.Compose([T.RandomResizedCrop(16, scale=(0.05, 0.1)), T.Normalize("dataset")])
    options: Any = {"batch_size": 8, "device": "cpu", "rank": 0, "world_size": 1}
    indexed, plain = (Loader(tmp_path / "out", transform, index=index, **options) for index in ("auto", None))
    index = indexed._pipeline.index
    assert index is not None
    assert index.path == tmp_path / "out" / "index.vgjpeg"
    assert index.summary()["files"] == 8
    assert index.summary()["indexed"] == 8
    (images, _), (same, _) = next(iter(indexed)), next(iter(plain))
    assert (images == same).all()
    found = statistics_of(opened(tmp_path / "out"))
    assert found is not None
    with_numbers = T.Compose([transform.transforms[0], T.Normalize(found.mean, found.std)])
    (images, _) = next(iter(Loader(tmp_path / "out", with_numbers, **options)))
    assert (images == same).all()
    left = {name: one for name, one in digest(tmp_path / "out").items() if not name.endswith(".index")}
    assert left == before


def test_a_bad_image_is_skipped_by_name_or_ends_it(tmp_path: Path) -> None:
    photos = lay_kinds(tmp_path / "photos", bad=True)
    with pytest.raises(DecodeError, match=r"oops\.jpg: not an image"):
        packed(photos, tmp_path / "raise", on_error="raise")
    for format in FORMATS:
        found = packed(photos, tmp_path / format, format=format, shard_size=SHARD)
        assert [name for name, _ in found.skipped] == ["a/oops.jpg"]
        assert (found.images, len(opened(tmp_path / format))) == (8, 8)
        assert packed(photos, tmp_path / format, format=format, shard_size=SHARD) == found
        assert verify(tmp_path / format).problems == []


def test_changed_files_are_refused(tmp_path: Path) -> None:
    photos, options = lay_kinds(tmp_path / "photos"), {"format": "raw", "shard_size": SHARD}
    packed(photos, tmp_path / "out", **options)
    Image.new("RGB", (8, 8)).save(photos / "a" / "same.png")
    with pytest.raises(SourceError, match=r"same\.png: was .* changed since outputs were made"):
        packed(photos, tmp_path / "out", **options)
    packed(photos, tmp_path / "out", resume=False, **options)
    packed(photos, tmp_path / "fresh", **options)
    assert digest(tmp_path / "out") == digest(tmp_path / "fresh")


def test_an_interruption_keeps_what_is_done(photos: Path, tmp_path: Path) -> None:
    stop = Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        packed(photos, tmp_path / "out", stop=stop)
    packed(photos, tmp_path / "out")
    packed(photos, tmp_path / "whole")
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")


def test_wrong_words_are_named(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for options, message in (
        ({"size": 0}, "size: got 0"),
        ({"keep_jpeg": True, "size": 32}, "keep_jpeg: got it with a size"),
        ({"keep_jpeg": True, "format": "raw"}, "keep_jpeg: got it with the format raw"),
        ({"quality": 80, "format": "raw"}, "quality: got it with the format raw"),
        ({"quality": 101}, "quality: got 101; accepted: an integer from 1 to 100"),
        ({"format": "zip"}, "format: got 'zip'; accepted: 'webdataset', 'parquet', 'raw'"),
        ({"shard_size": "256MB"}, "shard_size: got '256MB'; accepted: an integer"),
    ):
        with pytest.raises(ValueError, match=message):
            packed(photos, out, **options)
    with pytest.raises(SourceError, match="lies inside the source"):
        packed(photos, photos / "out")
    with pytest.raises(SourceError, match=r"labels such as 0\.5 do not go into WebDataset's \.cls files; accepted"):
        packed((np.zeros((2, 4, 4, 3), np.uint8), [0.5, 1.0]), out)
    assert not out.exists()
    packed(photos, out, size=32)
    with pytest.raises(
        SourceError, match=r"out: holds a run with size 32, this one has size 24; choose another folder"
    ):
        packed(photos, out, size=24)
    with pytest.raises(TypeError, match="colour"):
        pack(photos, out, colour=1)


def test_labels_of_other_kinds_are_kept_in_raw_and_parquet(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 6, 5, 3)).astype(np.uint8)
    labels = np.array([[0.5, 1], [2, 3], [4, 5]], np.float32)
    for format in ("raw", "parquet"):
        packed((images, labels), tmp_path / format, format=format)
        source = opened(tmp_path / format)
        assert [np.asarray(source.read(i).label).tolist() for i in range(3)] == labels.tolist()
    assert all((pixels(opened(tmp_path / "raw"), i) == images[i]).all() for i in range(3))
