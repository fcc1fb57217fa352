"""Packing: what comes out, that it is the same however it went, and what becomes of odd files."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tifffile
from PIL import Image, ImageOps

from tests.data.annotated.made import put_voc
from tests.decode.test_dicom import dicom
from tests.jobs.augment.samples import digest, expansion, threads
from tests.jobs.pack.samples import KINDS, lay_kinds, packed
from tests.needed import needs
from variegate import Loader, Mixture, dataset_statistics, open_source
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.data.packed import statistics_of
from variegate.decode import read_image
from variegate.decode.depth import in_depth, note_once
from variegate.errors import DecodeError
from variegate.jobs.augment import Expansion, plan_for
from variegate.jobs.augment.replay import replay
from variegate.jobs.output.verify import delete_damaged, verify
from variegate.program.depth import Depth

pytestmark = pytest.mark.filterwarnings("ignore:.*16 bits", "ignore:.*made again", "ignore:.*written again")
FORMATS = ["webdataset", "parquet", "raw"]
# Small enough for several shards.
SHARD = 3


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_kinds(tmp_path_factory.mktemp("kinds") / "photos")


def pixels(source: Any, index: int) -> Any:
    data = source.read(index).data
    return data if isinstance(data, np.ndarray) else read_image(data)


def expected_pixels(path: Path) -> Any:
    """The shorter side reduced to 32 pixels."""
    with Image.open(path) as image:
        upright = ImageOps.exif_transpose(image)
        if upright.mode.startswith("I"):  # 16 bits
            upright = Image.fromarray(np.round(np.asarray(upright) * (255 / 65535)).astype(np.uint8))
        shown = upright.convert("RGB")
    side = min(shown.size)
    if side > 32:
        shown = shown.resize((int(32 * shown.width / side), int(32 * shown.height / side)), Image.Resampling.BILINEAR)
    return np.asarray(shown).astype(int)


@pytest.mark.parametrize("format", FORMATS)
def test_images_labels_and_names_come_out(photos: Path, tmp_path: Path, format: str) -> None:
    """The same on any devices; and what is lost or damaged is made again."""
    out, options = tmp_path / "out", {"size": 32, "format": format, "shard_size": SHARD}
    found = packed(photos, out, **options)
    expected = digest(out)
    packed(photos, tmp_path / "one", devices="cpu:0", **options)
    assert digest(tmp_path / "one") == expected
    assert packed(photos, out, **options) == found
    shards = sorted(out.glob("shard-*"))
    assert found.bytes_after == sum(path.stat().st_size for path in shards)
    assert found.bytes_before == sum(path.stat().st_size for path in photos.rglob("*.*"))
    assert (found.images, found.shards, found.kept, found.skipped) == (8, 3, 0, [])
    rows = pq.read_table(out / "manifest.parquet").to_pylist()
    assert [(row["source"], row["id"], row["index"]) for row in rows] == [(name, i, i) for i, name in enumerate(KINDS)]

    shards[1].unlink()
    data = bytearray(shards[0].read_bytes())
    data[len(data) // 3] ^= 1
    shards[0].write_bytes(data)
    damaged = [out / "statistics.json", *([out / "index.vgjpeg"] if format != "raw" else [])]
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-1] + b"~")
    problems = verify(out)
    assert {problem.file for problem in problems.problems} == {path.name for path in (*damaged, *shards[:2])}
    delete_damaged(out, problems)
    packed(photos, out, **options)
    assert digest(out) == expected
    assert verify(out).problems == []

    source: Any = open_source(out)
    assert source.classes == ("a", "b")
    assert [source.read(i).label for i in range(8)] == [0] * 5 + [1] * 3
    for index, name in enumerate(KINDS):
        wanted, got = expected_pixels(photos / name), pixels(source, index).astype(int)
        assert got.shape == wanted.shape
        difference = np.abs(got - wanted)
        assert difference.max() <= 1 if format == "raw" else difference.mean() < 6  # what JPEG leaves of it


DEEP: dict[str, Any] = {
    "a/color.tif": np.random.default_rng(1).integers(0, 65536, (40, 50, 3), np.uint16),
    "a/gray.png": np.random.default_rng(2).integers(0, 65536, (45, 41, 1), np.uint16),
    "b/floats.tif": np.random.default_rng(3).normal(0, 9, (42, 44, 1)).astype(np.float32),
    "b/scan.dcm": np.random.default_rng(4).integers(0, 4096, (47, 40, 1), np.uint16),
}


def lay_deep(root: Path) -> Path:
    for name, image in DEEP.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".dcm"):
            path.write_bytes(dicom(image[..., 0], BitsStored=12))
        elif name.endswith(".tif"):
            tifffile.imwrite(path, image, photometric="rgb" if image.shape[2] == 3 else "minisblack")
        else:
            Image.fromarray(image[..., 0]).save(path)
    return root


@needs("pydicom")
def test_deep_images_come_out(tmp_path: Path) -> None:
    """As a Loader reads them from their files: from the pack of any devices, and through ``augment`` and its replay."""
    scans = lay_deep(tmp_path / "scans")
    for number, devices in enumerate(("cpu:0", "cpu:0,cpu:1")):
        options = {"format": "raw", "depth": "float32", "shard_size": 2, "devices": devices}
        made = packed(scans, tmp_path / f"raw{number}", **options)
    assert digest(tmp_path / "raw0") == digest(tmp_path / "raw1")
    assert (made.images, made.shards, made.skipped) == (4, 2, [])
    assert made.statistics == dataset_statistics(scans, depth="float32") == dataset_statistics(tmp_path / "raw0")
    (tmp_path / "raw1" / "shard-000001.arrow").unlink()
    packed(scans, tmp_path / "raw1", **options)
    assert digest(tmp_path / "raw0") == digest(tmp_path / "raw1")
    assert verify(tmp_path / "raw0").problems == []
    for depth in (None, "float32"):
        loader = Loader(tmp_path / "raw0", T.Identity(), batch_size=4, device="cpu", layout="NHWC", depth=depth)
        for image, label in zip(*next(iter(loader)), strict=True):
            name, expected = next(pair for pair in DEEP.items() if pair[1].shape[:2] == tuple(image.shape[:2]))
            expected = expected if "scan" in name else in_depth(expected, Depth.FLOAT32, name)
            np.testing.assert_array_equal(image, np.broadcast_to(expected, image.shape))
            assert label == "ab".index(name[0])
    plan = plan_for(open_source(tmp_path / "raw0"), T.RandomRotation(9), format="tif", depth=Depth.FLOAT32)
    Expansion(plan, tmp_path / "out", threads(1)).run()
    assert replay(tmp_path / "out", 1, tmp_path / "raw0").is_same
    with pytest.raises(SourceError, match='raw0: holds a run with depth "float32", this one has depth "uint16"'):
        packed(scans, tmp_path / "raw0", format="raw", depth="uint16", shard_size=2)
    skipped = packed(scans, tmp_path / "16", format="raw", depth="uint16", size=32).skipped
    assert [name for name, _ in skipped] == ["b/floats.tif"]
    source: Any = open_source(tmp_path / "16")
    with note_once(set(), keeps_depth=True):
        assert [(min(image.shape[:2]), image.dtype) for image, _ in map(source.read, range(3))] == [(32, np.uint16)] * 3


def lay_bands(root: Path, channels: int, dtype: Any) -> Path:
    """NumPy files, or TIFFs of uint16, of several sizes, the last with equal channels."""
    rng = np.random.default_rng(channels)
    for number in range(5):
        image = rng.integers(0, 255, (20 + number, 33 - number, channels)).astype(dtype)
        image = image * 250 - 7000 if dtype == np.float32 else image
        if number == 4:
            image[:] = image[:, :, :1]
        path = root / "ab"[number % 2] / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        if dtype == np.uint16:
            tifffile.imwrite(f"{path}.tif", image, photometric="minisblack", planarconfig="contig")
        else:
            np.save(f"{path}.npy", image)
    return root


def loaded(source: Any, **options: Any) -> list[Any]:
    loader = Loader(source, T.Identity(), batch_size=5, device="cpu", layout="NHWC", shuffle=False, **options)
    return [image.numpy() for image in next(iter(loader))[0]]


@pytest.mark.parametrize(
    ("channels", "dtype"),
    [(2, np.uint8), (4, np.uint16), (5, np.float32), (13, np.uint16), (13, np.uint8), (32, np.float32)],
)
def test_images_of_many_channels_come_out(tmp_path: Path, channels: int, dtype: Any) -> None:
    """A Loader gives what it reads from the files, with ``channels`` and alone; and from a mixture."""
    depth: Any = np.dtype(dtype).name
    place = lay_bands(tmp_path / "bands", channels, dtype)
    options = {"format": "raw", "depth": depth, "shard_size": 2}
    for name, more in (("raw", {}), ("same", {"devices": "cpu:0"}), ("said", {"channels": channels})):
        made = packed(place, tmp_path / name, **options, **more)
        assert (made.images, made.shards, made.skipped) == (5, 3, [])
    assert digest(tmp_path / "raw") == digest(tmp_path / "same")
    assert verify(tmp_path / "raw").problems == []
    for reading in ({}, {"channels": channels}, {"depth": depth}):
        for one, other, said in zip(
            loaded(place, **{"depth": depth, **reading}),
            loaded(tmp_path / "raw", **reading),
            loaded(tmp_path / "said", **reading),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other, strict=True)
            np.testing.assert_array_equal(one, said, strict=True)
    with pytest.raises(DecodeError, match=rf"it has {channels} channels; accepted: 7 \(channels=7\)"):
        loaded(tmp_path / "raw", channels=7)
    found = dataset_statistics(tmp_path / "raw")
    assert found == made.statistics == dataset_statistics(tmp_path / "raw", channels=channels)
    assert found == dataset_statistics(place, depth=depth)
    mixture = Mixture({"one": tmp_path / "raw", "other": tmp_path / "said"}, weights=[0.5, 0.5])
    crop = T.Compose([T.RandomCrop(16), T.Normalize(found.mean, found.std)])
    if dtype != np.float32:
        assert next(iter(Loader(mixture, crop, 5, "cpu"))).images.shape == (5, channels, 16, 16)
    last = pa.ipc.open_file(tmp_path / "raw" / "shard-000002.arrow").read_all()
    assert (last["channels"].to_pylist(), last["shown"].to_pylist()) == ([channels], [channels])


def test_gray_files_are_packed_with_one_channel_or_three(tmp_path: Path) -> None:
    place = tmp_path / "gray"
    place.mkdir()
    for number in range(3):
        gray = np.random.default_rng(number).integers(0, 65536, (9, 8 + number), np.uint16)
        Image.fromarray(gray).save(place / f"{number}.png")
    for name, channels in (("plain", None), ("one", 1), ("three", 3)):
        options = {"format": "raw", "depth": "uint16", "channels": channels}
        made = packed(place, tmp_path / name, **options)
        assert made.statistics == dataset_statistics(place, depth="uint16", channels=channels)
        for reading in ({"channels": channels}, {"channels": 1}) if channels != 3 else ({},):
            expected = loaded(place, depth="uint16", **reading)
            for one, other in zip(expected, loaded(tmp_path / name, **reading), strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
    color = DEEP["a/color.tif"]
    tifffile.imwrite(place / "color.tif", color, photometric="rgb")
    assert [name for name, _ in packed(place, tmp_path / "mixed", **{**options, "channels": 1}).skipped] == [
        "color.tif"
    ]


def test_packs_of_several_numbers_of_channels_have_no_statistics(tmp_path: Path) -> None:
    lay_bands(tmp_path / "bands", 4, np.uint16)
    tifffile.imwrite(tmp_path / "bands/a/other.tif", DEEP["a/color.tif"], photometric="rgb")
    made = packed(tmp_path / "bands", tmp_path / "raw", format="raw", depth="uint16")
    assert (made.images, made.statistics) == (6, None)
    assert not (tmp_path / "raw/statistics.json").exists()
    skipped = packed(tmp_path / "bands", tmp_path / "tars").skipped
    assert len(skipped) == 5
    assert "4); accepted: 1 or 3 channels; others with format='raw'" in skipped[0][1]


def test_gray_stays_gray_members_say_what_they_are_and_jpegs_may_be_kept(photos: Path, tmp_path: Path) -> None:
    packed(photos, tmp_path / "raw", format="raw")
    shards = sorted((tmp_path / "raw").glob("*.arrow"))
    stored = pa.concat_tables(pa.ipc.open_file(path).read_all() for path in shards)
    assert stored["channels"].to_pylist() == [1 if mode in ("L", "I;16") else 3 for mode in KINDS.values()]
    assert set(stored["shown"].to_pylist()) == {3}
    for name, kept in (("tars", 0), ("kept", 5)):
        assert packed(photos, tmp_path / name, keep_jpeg=bool(kept)).kept == kept
        source: Any = open_source(tmp_path / name)
        for index, (file, mode) in enumerate(KINDS.items()):
            data = source.read(index).data
            assert (data == (photos / file).read_bytes()) == (bool(kept) and file.endswith(".jpg"))
            gray = mode in ("L", "I;16")
            assert kept or Image.open(io.BytesIO(data)).mode == ("L" if gray else "RGB")
    with tarfile.open(tmp_path / "tars" / "shard-000000.tar") as tar:
        metadata = json.load(tar.extractfile("00000005.json"))  # type: ignore[arg-type]
        assert tar.extractfile("00000005.cls").read() == b"1"  # type: ignore[union-attr]
    assert metadata == {"key": "00000005", "id": 5, "label": 1, "source": "b/deep.png", "class": "b"}


def test_what_is_packed_is_not_replayed_nor_augmented(photos: Path, tmp_path: Path) -> None:
    packed(photos, tmp_path / "out")
    expansion(photos, tmp_path / "other").run()
    with pytest.raises(SourceError, match="out: holds a run of variegate pack; choose another folder"):
        expansion(photos, tmp_path / "out").run()
    with pytest.raises(SourceError, match="other: holds a run of variegate augment; choose another folder"):
        packed(photos, tmp_path / "other")
    with pytest.raises(SourceError, match="of a run of variegate pack; accepted: of variegate augment"):
        replay(tmp_path / "out", 0)


def test_statistics_are_those_of_the_pixels(photos: Path, tmp_path: Path) -> None:
    for format in ("raw", "parquet"):
        packed(photos, tmp_path / format, format=format)
        source: Any = open_source(tmp_path / format)
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
    assert pixels(open_source(tmp_path / "gray"), 1).shape == (5, 4, 1)


def test_the_loader_finds_the_index_and_the_numbers(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    packed(photos, out, shard_size=SHARD)
    before = digest(out)
    crop = T.RandomResizedCrop(16, scale=(0.05, 0.1))
    found = dataset_statistics(str(out))

    def first(normalize: Any, index: Any = None) -> tuple[Any, Any]:
        transform = T.Compose([crop, normalize])
        loader = Loader(out, transform, index=index, batch_size=8, device="cpu", rank=0, world_size=1)
        return loader._pipeline.index, next(iter(loader))[0]

    index, images = first(T.Normalize("dataset"), "auto")
    assert index.path == out / "index.vgjpeg"
    assert (index.summary()["files"], index.summary()["indexed"]) == (8, 8)
    for normalize in (T.Normalize("dataset"), T.Normalize(found.mean, found.std)):
        assert (first(normalize)[1] == images).all()
    assert {name: one for name, one in digest(out).items() if not name.endswith(".index")} == before


@pytest.mark.parametrize("format", FORMATS)
def test_bad_images_are_skipped_by_name_or_end_it(tmp_path: Path, format: str) -> None:
    """A shard without a readable one is not written."""
    photos = lay_kinds(tmp_path / "photos", bad=True)
    with pytest.raises(DecodeError, match=r"oops\.jpg: not an image"):
        packed(photos, tmp_path / "raise", on_error="raise", format=format)
    bad = sorted([*KINDS, "a/oops.jpg"])[3:6]
    for name in bad:
        (photos / name).write_bytes(b"no image at all")
    found = packed(photos, tmp_path / "out", format=format, shard_size=SHARD)
    assert [name for name, _ in found.skipped] == bad
    assert (found.images, found.shards, len(open_source(tmp_path / "out"))) == (6, 2, 6)  # type: ignore[arg-type]
    assert {path.name[:12] for path in (tmp_path / "out").glob("shard-*")} == {"shard-000000", "shard-000002"}
    assert packed(photos, tmp_path / "out", format=format, shard_size=SHARD) == found
    assert verify(tmp_path / "out").problems == []


def test_changed_files_are_refused_and_an_interruption_keeps_what_is_done(tmp_path: Path) -> None:
    photos, options = lay_kinds(tmp_path / "photos"), {"format": "raw", "shard_size": SHARD}
    stop = Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        packed(photos, tmp_path / "out", stop=stop, **options)
    packed(photos, tmp_path / "out", **options)
    Image.new("RGB", (8, 8)).save(photos / "a" / "same.png")
    with pytest.raises(SourceError, match=r"same\.png: was .* changed since outputs were made"):
        packed(photos, tmp_path / "out", **options)
    packed(photos, tmp_path / "out", resume=False, **options)
    packed(photos, tmp_path / "fresh", **options)
    assert digest(tmp_path / "out") == digest(tmp_path / "fresh")


def test_wrong_words_are_named(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    floats = np.zeros((2, 4, 4, 3), np.uint8), [0.5, 1.0]
    refused: tuple[tuple[Any, Path, dict[str, Any], str], ...] = (
        (photos, out, {"size": 0}, "size: got 0"),
        (photos, out, {"keep_jpeg": True, "size": 32}, "size: got 32; accepted: with keep_jpeg=False"),
        (photos, out, {"keep_jpeg": True, "format": "raw"}, "keep_jpeg: got True; accepted: with format='webdataset'"),
        (photos, out, {"quality": 80, "format": "raw"}, "quality: got 80; accepted: with format='webdataset'"),
        (photos, out, {"quality": 101}, "quality: got 101; accepted: an integer from 1 to 100"),
        (photos, out, {"format": "zip"}, "format: got 'zip'; accepted: 'webdataset', 'parquet', 'raw'"),
        (
            photos,
            out,
            {"depth": "uint16"},
            "format: got 'webdataset', which holds no images of uint16; accepted: 'raw'",
        ),
        (
            photos,
            out,
            {"channels": 4},
            "format: got 'webdataset', which holds no images of 4 channels; accepted: 'raw'",
        ),
        (photos, out, {"channels": 33, "format": "raw"}, "channels: got 33; accepted: an integer from 1 to 32"),
        (photos, out, {"depth": ">u2", "format": "raw"}, "depth: got '>u2'; accepted: 'uint8', 'uint16', 'float32'"),
        (photos, out, {"shard_size": "256MB"}, "shard_size: got '256MB'; accepted: an integer"),
        (photos, photos / "out", {}, "lies inside the source"),
        (floats, out, {}, r"labels such as 0\.5 do not go into WebDataset's \.cls files; accepted"),
        (put_voc(tmp_path / "voc"), out, {}, "has boxes, masks or key points, which shards lose; accepted: images"),
    )
    for source, place, options, message in refused:
        with pytest.raises(ValueError, match=message):
            packed(source, place, **options)
    with pytest.raises(TypeError, match="colour"):
        packed(photos, out, colour=1)
    assert not out.exists()
    assert packed(tmp_path / "voc/JPEGImages", out).images == 3
    with pytest.raises(SourceError, match=r"out: holds a run with .*, this one has .*; choose another folder"):
        packed(tmp_path / "voc/JPEGImages", out, size=24)


@pytest.mark.parametrize("format", ["raw", "parquet"])
def test_labels_of_other_kinds_are_kept(tmp_path: Path, format: str) -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 6, 5, 3)).astype(np.uint8)
    labels = np.array([[0.5, 1], [2, 3], [4, 5]], np.float32)
    packed((images, labels), tmp_path / "out", format=format)
    source: Any = open_source(tmp_path / "out")
    assert [np.asarray(source.read(i).label).tolist() for i in range(3)] == labels.tolist()
    assert format != "raw" or all((pixels(source, i) == images[i]).all() for i in range(3))
