"""Images of more than 256 levels through a Loader: from arrays, NumPy files, PNG and TIFF, in the depth asked for."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import variegate as vg
from tests.data.tars import write_tar
from tests.decode.pngs import png_16
from tests.decode.test_dicom import dicom
from variegate import transforms as T
from variegate.data.objects.dataset import open_dataset
from variegate.decode.depth import note_once
from variegate.decode.pillow import PillowFile
from variegate.errors import DecodeError
from variegate.program.depth import Depth

tifffile = pytest.importorskip("tifffile")

Array = npt.NDArray[Any]
GRAY = np.random.default_rng(3).integers(0, 65536, (6, 20, 24), np.uint16)
COLOR = np.random.default_rng(4).integers(0, 65536, (20, 24, 3), np.uint16)
LEVELS = np.random.default_rng(5).integers(0, 256, (20, 24, 3), np.uint8)
FLOATS = np.random.default_rng(6).normal(0, 500, (20, 24)).astype(np.float32)
NOTHING = T.Pad(0)


def saved(image: Array, kind: str) -> bytes:
    stream = io.BytesIO()
    PIL.Image.fromarray(image).save(stream, kind)
    return stream.getvalue()


def tiff(pixels: Array, **options: Any) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, pixels, **options)
    return stream.getvalue()


def npy(pixels: Array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, pixels)
    return stream.getvalue()


def load(source: Any, **options: Any) -> torch.Tensor:
    loader = vg.Loader(source, NOTHING, batch_size=6, shuffle=False, device="cpu", layout="NHWC", **options)
    images, _ = next(iter(loader))
    return torch.as_tensor(images)


def three(gray: Array) -> Array:
    return np.repeat(gray[..., None], 3, axis=-1)


def scaled(levels: Array) -> Array:
    return levels.astype(np.uint16) * np.uint16(257)


TWELVE_BITS = GRAY[0] >> 4
# A file, its ending, and what is read of it as uint16; None if it is refused.
FILES: dict[str, tuple[bytes, str, Array | None]] = {
    "PNG, gray": (saved(GRAY[0], "PNG"), "png", three(GRAY[0])),
    "PNG, color": (png_16(COLOR), "png", COLOR),
    "PNG, interlaced": (png_16(COLOR, is_interlaced=True), "png", COLOR),
    "PNG, alpha": (png_16(np.dstack([COLOR, GRAY[0]])), "png", COLOR),
    "PNG, gray and alpha": (png_16(np.dstack([GRAY[0], GRAY[1]])), "png", three(GRAY[0])),
    "PNG, 8 bits": (saved(LEVELS, "PNG"), "png", scaled(LEVELS)),
    "JPEG": (saved(np.full((20, 24, 3), 77, np.uint8), "JPEG"), "jpg", np.full((20, 24, 3), 77 * 257, np.uint16)),
    "TIFF, gray": (saved(GRAY[0], "TIFF"), "tif", three(GRAY[0])),
    "TIFF, big-endian": (tiff(GRAY[0], byteorder=">", photometric="minisblack"), "tif", three(GRAY[0])),
    "TIFF, color": (tiff(COLOR, photometric="rgb"), "tif", COLOR),
    "TIFF, white is 0": (tiff(65535 - GRAY[0], photometric="miniswhite"), "tif", three(GRAY[0])),
    "TIFF, alpha": (tiff(np.dstack([COLOR, GRAY[0]]), photometric="rgb", extrasamples=["unassalpha"]), "tif", COLOR),
    "PGM": (saved(GRAY[0].astype(np.int32), "PPM"), "pgm", three(GRAY[0])),
    "NumPy, gray": (npy(GRAY[0]), "npy", GRAY[0][..., None]),
    "NumPy, big-endian": (npy(COLOR.astype(">u2")), "npy", COLOR),
    "DICOM": (dicom(GRAY[0]), "dcm", three(GRAY[0])),
    "TIFF, floats": (tiff(FLOATS), "tif", None),
    "TIFF, float64": (tiff(FLOATS.astype(np.float64)), "tif", None),
    "TIFF, 8 bits signed": (tiff(GRAY[0].astype(np.int8)), "tif", None),
    "NumPy, floats": (npy(FLOATS), "npy", None),
    "NumPy, signed": (npy(GRAY[0].astype(np.int32)), "npy", None),
}


@pytest.mark.parametrize(("data", "ending", "wanted"), FILES.values(), ids=list(FILES))
def test_files_as_uint16(tmp_path: Path, data: bytes, ending: str, wanted: Array | None) -> None:
    (tmp_path / f"a.{ending}").write_bytes(data)
    if wanted is None:
        message = r"its pixels are (float|int)\d+; accepted with depth='uint16': unsigned integers of 8 or 16 bits"
        with pytest.raises(DecodeError, match=message):
            load(tmp_path, depth="uint16")
        return
    made = load(tmp_path, depth="uint16")
    assert made.dtype == torch.uint16
    assert np.array_equal(made[0], wanted)


@pytest.mark.parametrize(("data", "ending", "wanted"), FILES.values(), ids=list(FILES))
def test_files_as_float32(tmp_path: Path, data: bytes, ending: str, wanted: Array | None) -> None:
    """Unsigned integers on 0..1; DICOM, floats and signed integers as they are."""
    (tmp_path / f"a.{ending}").write_bytes(data)
    made = load(tmp_path, depth="float32")
    assert made.dtype == torch.float32
    if wanted is None:
        own = three(tifffile.imread(io.BytesIO(data))) if ending == "tif" else np.load(io.BytesIO(data))[..., None]
        assert np.array_equal(made[0], own.astype(np.float32))
    else:
        np.testing.assert_allclose(made[0], wanted if ending == "dcm" else wanted / 65535, atol=1e-7)


def test_12_bits_of_a_tiff_are_white_at_4095() -> None:
    file = PillowFile(saved(TWELVE_BITS, "TIFF"), "a.tif")
    file._image.tag_v2[258] = (12,)  # type: ignore[attr-defined]  # as those have that Pillow cannot write
    with note_once(set(), Depth.UINT16):
        made = file.decode(mode="L")
    assert np.array_equal(made[..., 0], np.rint(np.minimum(TWELVE_BITS, 4095) * (65535 / 4095)))


ALPHAS = {
    "color": (png_16(np.dstack([COLOR, GRAY[0]])), np.dstack([COLOR, GRAY[0]])),
    "gray": (png_16(np.dstack([GRAY[0], GRAY[1]])), np.dstack([three(GRAY[0]), GRAY[1]])),
    "without": (png_16(GRAY[0][..., None]), np.dstack([three(GRAY[0]), np.full_like(GRAY[0], 65535)])),
}


@pytest.mark.parametrize(("data", "wanted"), ALPHAS.values(), ids=list(ALPHAS))
def test_alpha_of_16_bits(tmp_path: Path, data: bytes, wanted: Array) -> None:
    (tmp_path / "a.png").write_bytes(data)
    assert np.array_equal(load(tmp_path, depth="uint16", channels=4)[0], wanted)


@pytest.mark.parametrize(("is_12_bits", "full"), [(False, 1023), (True, 4095)], ids=["10 bits", "12 bits"])
@pytest.mark.parametrize("mode", ["RGB;16", "RGBA;16", "L;16"])
def test_heic_of_more_than_8_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, is_12_bits: bool, full: int
) -> None:
    heif = pytest.importorskip("pillow_heif")
    monkeypatch.setattr(heif.options, "SAVE_HDR_TO_12_BIT", is_12_bits)
    pixels = {"L": GRAY[0][..., None], "RGB": COLOR, "RGBA": np.dstack([COLOR, GRAY[0]])}[mode.partition(";")[0]]
    heif.from_bytes(mode, (24, 20), pixels.tobytes()).save(tmp_path / "a.heic", quality=-1, chroma=444)
    stored = np.broadcast_to(pixels[..., :3] >> (6 if full == 1023 else 4), (20, 24, 3))
    levels = load(tmp_path, depth="uint16")[0].numpy() * (full / 65535)
    assert np.abs(levels - np.rint(levels)).max() <= full / 65535
    # Colors are stored as luma and chroma, which are rounded.
    assert np.abs(np.rint(levels) - stored).max() <= (0 if mode == "L;16" else 1)


DEEP_REFUSED = {
    "gray of 32 bits": (tiff(GRAY[0].astype(np.uint32)), "got uint32"),
    "CMYK": (tiff(np.dstack([COLOR, GRAY[0]]), photometric="separated"), "color of 16 bits in CMYK pixels; accepted"),
}


@pytest.mark.parametrize(("data", "reason"), DEEP_REFUSED.values(), ids=list(DEEP_REFUSED))
def test_tiffs_that_are_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "a.tif").write_bytes(data)
    for depth in ("uint16", "float32"):
        with pytest.raises(DecodeError, match=rf"a\.tif: .*{reason}"):
            load(tmp_path, depth=depth)


def test_what_is_accepted_depends_on_the_depth(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy(GRAY[0].astype(np.uint32)))
    for depth, accepted in (
        ("uint8", r"uint8 \[H, W\] .*, or uint16, scaled to 8 bits"),
        ("uint16", r"uint8 or uint16 \[H, W\] or \[H, W, C\] with up to 32 channels; channels last"),
        ("float32", r"uint8, uint16, signed integers or floats \[H, W\]"),
    ):
        with pytest.raises(DecodeError, match=rf"a\.npy: got uint32\[20, 24\]; accepted: {accepted}"):
            load(tmp_path, depth=depth)


def deep_avif() -> bytes:
    """An AVIF whose header says that it has more than 8 bits."""
    data = bytearray(saved(LEVELS, "AVIF"))
    data[data.index(b"av1C") + 6] |= 0x40
    bits = data.index(b"pixi") + 9
    data[bits : bits + 3] = bytes([10, 10, 10])
    return bytes(data)


# JPEG XL of black pixels, 20 x 24.
_BOX = "0000000c4a584c200d0a870a00000014667479706a786c20000000006a786c20000000096a786c6c0a000000"
JPEG_XLS = {
    "JPEG XL of 10 bits": "ff0a98201450b408080401001c004b188b15820300",
    "JPEG XL of 12 bits": "ff0a98201850b408080401001c004b188b15820300",
    "JPEG XL of 16 bits": f"{_BOX}1e6a786c63ff0a9820fc00142d02080401001c004b188b15820300",
    "JPEG XL of floats": f"{_BOX}1c6a786c63ff0a98207200458b0804010018004b188b158201",
}


@pytest.mark.parametrize("data", [deep_avif(), *map(bytes.fromhex, JPEG_XLS.values())], ids=["AVIF", *JPEG_XLS])
def test_deep_color_of_which_8_bits_would_be_read(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.avif").write_bytes(data)
    for depth in ("uint16", "float32"):
        with pytest.raises(
            DecodeError, match=r"a\.avif: RGB pixels of 16 bits, of which 8 would be read; accepted: PNG"
        ):
            load(tmp_path, depth=depth)


def test_deep_color_obeys_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_bytes(tiff(COLOR, photometric="rgb"))
    with pytest.raises(DecodeError, match=r"a\.tif: 24 x 20 pixels by its header, more than the limit of 100"):
        load(tmp_path, depth="uint16", max_pixels=100)


SOURCES: dict[str, Callable[[Array], Any]] = {
    "array": lambda images: (images, list(range(6))),
    "list": lambda images: (list(images), list(range(6))),
    "tensor": lambda images: (torch.from_numpy(images), list(range(6))),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_arrays_keep_their_dtype(source: Callable[[Array], Any], kind: Any) -> None:
    images = three(GRAY).astype(kind)
    made = load(source(images))
    assert np.array_equal(made, images)
    assert np.dtype(kind).name == str(made.dtype).removeprefix("torch.")


@pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))
def test_arrays_in_another_depth(source: Callable[[Array], Any]) -> None:
    made = load(source(three(GRAY)), depth="float32")
    np.testing.assert_allclose(made, three(GRAY) / 65535, atol=1e-7)
    assert np.array_equal(load(source(three(GRAY)), depth="uint8"), np.rint(three(GRAY) * (255 / 65535)))
    assert np.array_equal(
        load(source(three(GRAY.astype(np.uint8))), depth="uint16"), scaled(three(GRAY.astype(np.uint8)))
    )


class Scans(torch.utils.data.Dataset[Any]):
    def __getitem__(self, index: int) -> Any:
        return GRAY[index].astype(np.int16) if index % 2 else torch.from_numpy(GRAY[index].astype(np.int16)), index

    def __len__(self) -> int:
        return 6


def test_data_sets_of_signed_integers_as_floats() -> None:
    made = load(Scans(), depth="float32")
    assert np.array_equal(made[..., 0], GRAY.astype(np.int16).astype(np.float32))
    with pytest.raises((TypeError, DecodeError), match="got an image of dtype"):
        load(Scans())


@pytest.mark.process
@pytest.mark.parametrize("workers", ["thread", vg.ProcessWorkers(1)], ids=["threads", "process"])
def test_resumed_in_the_middle_of_an_epoch(tmp_path: Path, workers: Any) -> None:
    transform = T.Compose([T.RandomRotation(30), T.RandomCrop(16), T.ColorJitter(0.3, 0.3)])

    def make() -> vg.Loader:
        options: dict[str, Any] = {"batch_size": 2, "seed": 3, "device": "cpu", "workers": workers}
        return vg.Loader(tmp_path / "scans", transform, depth="uint16", cache=tmp_path / "cache", **options)

    (tmp_path / "scans").mkdir()
    for number, scan in enumerate(GRAY):
        (tmp_path / "scans" / f"{number}.npy").write_bytes(npy(three(scan)))

    first = make()
    batches = iter(first)
    next(batches)
    state = first.state_dict()
    rest = [images for images, _ in batches]
    second = make()
    second.load_state_dict(state)
    for images, wanted in zip([images for images, _ in second], rest, strict=True):
        assert images.dtype == torch.uint16
        assert torch.equal(images, wanted)


@pytest.mark.parametrize("kind", ["host", "disk"])
def test_a_cache_changes_no_pixel(tmp_path: Path, kind: str) -> None:
    """One folder for all depths and numbers of channels, one after another and again."""
    folder = tmp_path / "scans"
    folder.mkdir()
    for number, scan in enumerate(GRAY):
        (folder / f"{number}.png").write_bytes(saved(scan, "PNG"))
    where: Any = "host" if kind == "host" else tmp_path / "cache"
    cases: list[dict[str, Any]] = [{"depth": "uint16"}, {"depth": "float32", "channels": 1}]
    for options in [*cases, {"depth": "uint16", "channels": 1}, *cases]:
        expected = load(folder, **options)
        given = {"batch_size": 6, "shuffle": False, "device": "cpu", "layout": "NHWC", **options}
        loader = vg.Loader(folder, NOTHING, cache=where, **given)
        for images, _ in [*loader, *loader]:
            assert images.dtype == expected.dtype
            assert torch.equal(torch.as_tensor(images), expected)
        assert loader.cache is not None
        assert loader.cache.nbytes == expected.nbytes
    if kind == "disk":
        assert len(list(where.iterdir())) == 3


def test_cached_images_are_reduced_in_their_depth(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy(COLOR))
    made = {depth: load(tmp_path, depth=depth, cache="host", cache_side=10) for depth in ("uint8", "uint16", "float32")}
    assert {images.shape[1:] for images in made.values()} == {(10, 12, 3)}
    levels, numbers, floats = (images.numpy().astype(np.float64) for images in made.values())
    np.testing.assert_allclose(numbers / 65535, floats, atol=1 / 65535)
    np.testing.assert_allclose(levels / 255, floats, atol=1.5 / 255)


REFUSED = {
    "another name": (
        {"depth": "int16"},
        ValueError,
        "depth: got 'int16'; accepted: one of None, 'uint8', 'uint16', 'float32'",
    ),
}


@pytest.mark.parametrize(("options", "error", "message"), REFUSED.values(), ids=list(REFUSED))
def test_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        load((three(GRAY), list(range(6))), **options)


def in_a_folder(root: Path, files: list[tuple[str, bytes]]) -> Any:
    for name, data in files:
        (root / name).write_bytes(data)
    return root


def in_a_tar(root: Path, files: list[tuple[str, bytes]]) -> Any:
    write_tar(root / "a.tar", [member for file in files for member in (file, (f"{file[0][0]}.cls", b"0"))])
    return root / "a.tar"


def in_parquet(root: Path, files: list[tuple[str, bytes]]) -> Any:
    images = [{"bytes": data, "path": name} for name, data in files]
    pq.write_table(pa.table({"image": images, "label": [0] * len(files)}), root / "a.parquet")
    return root / "a.parquet"


def in_a_data_set(root: Path, files: list[tuple[str, bytes]]) -> Any:
    return open_dataset([(data, 0) for _, data in files])


PLACES = {"folder": in_a_folder, "tar": in_a_tar, "Parquet": in_parquet, "data set": in_a_data_set}
DEEP_FILES = ["PNG, gray", "PNG, color", "TIFF, color", "NumPy, gray", "DICOM"]


@pytest.mark.parametrize("place", PLACES.values(), ids=list(PLACES))
@pytest.mark.parametrize("kind", DEEP_FILES)
def test_deep_files_in_every_place(tmp_path: Path, place: Callable[[Path, Any], Any], kind: str) -> None:
    data, ending, wanted = FILES[kind]
    made = load(place(tmp_path, [(f"{number}.{ending}", data) for number in range(2)]), depth="uint16")
    assert np.array_equal(made, np.stack([wanted] * 2))


def test_mixtures_of_arrays_keep_their_dtype() -> None:
    def load_mixed(other: Any, depth: Any = None) -> Any:
        mixture = vg.Mixture({"a": (three(GRAY), [0] * 6), "b": other}, weights=[1, 1])
        images, _ = next(iter(vg.Loader(mixture, NOTHING, batch_size=6, device="cpu", depth=depth)))
        return images.dtype

    assert load_mixed((three(GRAY[::-1]), [1] * 6)) == torch.uint16
    files = open_dataset([(png_16(COLOR), 1)] * 6)
    with pytest.warns(UserWarning, match="16 bits are scaled to 8 bits"):
        assert load_mixed(files) == torch.uint8
    assert load_mixed(files, "uint16") == torch.uint16


@pytest.mark.parametrize(
    ("transform", "is_noted"),
    [
        (T.Compose([T.RandomRotation(10), T.RandAugment()]), True),
        (T.MultiView([T.RandomHorizontalFlip(), T.ColorJitter(0.2)]), True),
        (T.Compose([T.RandomRotation(10), T.GaussianBlur(3)]), False),
        (T.Compose([T.Window(40, 400), T.RandAugment()]), False),
    ],
)
@pytest.mark.parametrize("kind", ["arrays", "files"])
def test_values_that_would_be_clipped_are_noted(tmp_path: Path, kind: str, transform: Any, is_noted: bool) -> None:
    scans = np.linspace(-1000, 3000, 4 * 64, dtype=np.float32).reshape(4, 8, 8, 1)
    source: Any = (scans, [0, 1, 0, 1])
    options: dict[str, Any] = {"depth": None}
    if kind == "files":
        source = tmp_path
        options = {"depth": "float32", "channels": 1}
        for i, scan in enumerate(scans):
            np.save(tmp_path / f"{i}.npy", scan)
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        vg.Loader(source, transform, batch_size=2, device="cpu", **options)
    texts = [str(one.message) for one in noted]
    assert any(text.startswith("values are from -1000 to ") for text in texts) == is_noted, texts
