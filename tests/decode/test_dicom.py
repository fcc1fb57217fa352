"""DICOM files: values as pydicom gives them, windows as the standard has them, limits before pixels are decoded."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import variegate as vg
from tests.needed import needs
from variegate import transforms as T
from variegate.decode import image_size, read_image
from variegate.decode.depth import note_once
from variegate.errors import DecodeError
from variegate.program.depth import Depth

pytestmark = [needs("pydicom"), pytest.mark.filterwarnings("ignore::UserWarning:pydicom")]

Array = npt.NDArray[Any]
CT = np.random.default_rng(0).integers(-1100, 3000, (12, 20)).astype(np.int16)
TWELVE_BITS = np.random.default_rng(1).integers(0, 4096, (12, 20), np.uint16)
COLOR = np.random.default_rng(2).integers(0, 256, (12, 20, 3), np.uint8)
HOUNSFIELD: dict[str, Any] = {"RescaleSlope": 2, "RescaleIntercept": -1024}
RLE = "1.2.840.10008.1.2.5"
JPEG_2000 = "1.2.840.10008.1.2.4.90"
DEFLATED = "1.2.840.10008.1.2.1.99"


def dicom(stored: Array, *, syntax: str = "1.2.840.10008.1.2.1", **elements: Any) -> bytes:
    """A file with these pixels, without compression."""
    from pydicom import Dataset
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import CTImageStorage

    file = Dataset()
    file.file_meta = FileMetaDataset()
    file.file_meta.TransferSyntaxUID = syntax
    file.file_meta.MediaStorageSOPClassUID = file.SOPClassUID = CTImageStorage
    file.file_meta.MediaStorageSOPInstanceUID = file.SOPInstanceUID = "1.2.3"
    file.Rows, file.Columns = stored.shape[:2]
    file.SamplesPerPixel = 3 if stored.ndim == 3 else 1
    file.PhotometricInterpretation = "RGB" if stored.ndim == 3 else "MONOCHROME2"
    if stored.ndim == 3:
        file.PlanarConfiguration = 0
    file.BitsAllocated = file.BitsStored = 8 * stored.itemsize
    file.PixelRepresentation = int(stored.dtype.kind == "i")
    file.PixelData = stored.tobytes()
    for name, value in elements.items():
        setattr(file, name, value)
    file.HighBit = file.BitsStored - 1
    stream = io.BytesIO()
    file.save_as(stream, enforce_file_format=True)
    return stream.getvalue()


def compressed(stored: Array, code: bytes, syntax: str, **elements: Any) -> bytes:
    """A file with one compressed frame."""
    from pydicom import dcmread
    from pydicom.encaps import encapsulate

    file = dcmread(io.BytesIO(dicom(stored, **elements)))
    file.PixelData = encapsulate([code])
    file["PixelData"].is_undefined_length = True
    file.file_meta.TransferSyntaxUID = syntax
    stream = io.BytesIO()
    file.save_as(stream)
    return stream.getvalue()


def read(data: bytes, depth: Depth | None = Depth.FLOAT32, channels: int | None = 1, **options: Any) -> Array:
    with note_once(set(), depth, dicom=vg.Dicom(**options)):
        return read_image(data, "scan.dcm", channels=channels)


def plain(stored: Array, **elements: Any) -> Any:
    from pydicom import dcmread

    return dcmread(io.BytesIO(dicom(stored, **elements)))


def test_values_have_slope_and_intercept() -> None:
    made = read(dicom(CT, **HOUNSFIELD))
    assert made.dtype == np.float32
    assert np.array_equal(made[..., 0], CT * 2.0 - 1024)
    three = read(dicom(CT, **HOUNSFIELD), channels=None)
    assert np.array_equal(three, np.repeat(made, 3, axis=2))


OF_PYDICOM = (
    *("CT_small", "MR_small", "MR_small_bigendian", "MR_small_implicit", "MR_small_RLE", "MR_small_jp2klossless"),
    *("693_J2KI", "liver_1frame", "rtdose_1frame", "examples_overlay", "ExplVR_BigEnd", "SC_rgb_rle_16bit"),
    *("SC_rgb_jpeg_dcmtk", "SC_ybr_full_422_uncompressed", "SC_rgb_small_odd", "examples_rgb_color"),
)


@pytest.mark.parametrize("name", OF_PYDICOM)
def test_files_of_pydicom(name: str) -> None:
    from pydicom import dcmread
    from pydicom.data import get_testdata_file
    from pydicom.pixels import apply_modality_lut, pixel_array

    path = str(get_testdata_file(f"{name}.dcm", download=False))
    file = dcmread(path)
    wanted = apply_modality_lut(pixel_array(file), file)
    if wanted.ndim == 3:
        wanted = wanted / np.iinfo(wanted.dtype).max
    wanted = np.broadcast_to(wanted.reshape(*wanted.shape[:2], -1), (*wanted.shape[:2], 3))
    data = Path(path).read_bytes()
    made = read(data, channels=None)
    np.testing.assert_allclose(made, wanted, rtol=1e-6)
    assert image_size(data) == made.shape[:2]


WINDOWS: dict[str, dict[str, Any]] = {
    "linear": {},
    "exact": {"VOILUTFunction": "LINEAR_EXACT"},
    "sigmoid": {"VOILUTFunction": "SIGMOID"},
}


@pytest.mark.parametrize("function", WINDOWS.values(), ids=list(WINDOWS))
@pytest.mark.parametrize("depth", [Depth.UINT8, Depth.UINT16])
def test_the_window_of_the_file(function: dict[str, Any], depth: Depth) -> None:
    from pydicom.pixels import apply_modality_lut, apply_windowing

    elements = {**HOUNSFIELD, "WindowCenter": [40, 300], "WindowWidth": [400, 1500], **function}
    file = plain(CT, **elements)
    windowed = apply_windowing(apply_modality_lut(CT, file), file)
    low, high = (np.array([-32768.0, 32767.0]) * 2 - 1024).tolist()  # what pydicom scales to
    wanted = np.rint((windowed - low) / (high - low) * depth.white)
    made = read(dicom(CT, **elements), depth)
    assert made.dtype == depth.dtype
    assert np.abs(made[..., 0] - wanted).max() <= (0 if depth is Depth.UINT8 else 1)


def test_a_window_as_an_argument() -> None:
    data = dicom(CT, **HOUNSFIELD, WindowCenter=5, WindowWidth=9)
    share = np.clip((CT * 2.0 - 1024 - (40 - 200)) / 400, 0, 1)
    assert np.array_equal(read(data, Depth.UINT8, window=(40, 400))[..., 0], np.rint(share * 255))
    np.testing.assert_allclose(read(data, window=(40, 400))[..., 0], share, atol=1e-7)


FULL: dict[str, tuple[Array, dict[str, Any], Array]] = {
    "12 bits": (TWELVE_BITS, {"BitsStored": 12}, TWELVE_BITS / 4095),
    "16 bits": (TWELVE_BITS, {}, TWELVE_BITS / 65535),
    "signed": (CT, HOUNSFIELD, (CT + 32768.0) / 65535),
    "a negative slope": (TWELVE_BITS, {"RescaleSlope": -1, "RescaleIntercept": 0}, 1 - TWELVE_BITS / 65535),
    "white is 0": (TWELVE_BITS, {"PhotometricInterpretation": "MONOCHROME1"}, 1 - TWELVE_BITS / 65535),
    "32 bits": (TWELVE_BITS.astype(np.uint32) << 20, {}, TWELVE_BITS * 2.0**20 / (2.0**32 - 1)),
}


@pytest.mark.parametrize(("stored", "elements", "share"), FULL.values(), ids=list(FULL))
def test_the_full_range_of_a_file_without_a_window(stored: Array, elements: dict[str, Any], share: Array) -> None:
    data = dicom(stored, **elements)
    for options in ({}, {"window": "full"}):
        assert np.array_equal(read(data, Depth.UINT16, **options)[..., 0], np.rint(share * 65535))
    np.testing.assert_allclose(read(data, window="full")[..., 0], share, atol=1e-7)


def test_own_units_are_not_inverted() -> None:
    assert np.array_equal(read(dicom(CT, PhotometricInterpretation="MONOCHROME1"))[..., 0], CT)


def test_8_bits_with_one_note() -> None:
    with pytest.warns(UserWarning, match="scan.dcm: pixels of DICOM files are scaled to 8 bits, by the window of each"):
        made = read_image(dicom(TWELVE_BITS, BitsStored=12), "scan.dcm")
    assert np.array_equal(made, np.repeat(np.rint(TWELVE_BITS[..., None] / 4095 * 255), 3, axis=2))


@pytest.mark.parametrize("depth", Depth)
def test_color(depth: Depth) -> None:
    made = read(dicom(COLOR), depth, channels=None)
    np.testing.assert_allclose(made, COLOR / 255 * depth.white, atol=1e-7)


def test_frames_and_their_groups() -> None:
    """Enhanced objects have slope and window for each frame."""
    from pydicom import Dataset

    def group(slope: float, center: float) -> Dataset:
        values, window, made = Dataset(), Dataset(), Dataset()
        values.RescaleSlope, values.RescaleIntercept = slope, 0
        window.WindowCenter, window.WindowWidth = center, 1000
        made.PixelValueTransformationSequence, made.FrameVOILUTSequence = [values], [window]
        return made

    elements = {
        "NumberOfFrames": 2,
        "PixelData": np.stack([CT, CT[::-1]]).tobytes(),
        "PerFrameFunctionalGroupsSequence": [group(1, 0), group(3, 600)],
    }
    data = dicom(CT, **elements)
    assert np.array_equal(read(data, frame=1)[..., 0], CT[::-1] * 3.0)
    share = np.clip((CT[::-1] * 3.0 - 100) / 999, 0, 1)
    assert np.array_equal(read(data, Depth.UINT8, frame=1)[..., 0], np.rint(share * 255))
    with pytest.raises(DecodeError, match=r"it has 2 frames; accepted: one, or dicom=vg.Dicom\(frame=0 to 1\)"):
        read(data)
    with pytest.raises(DecodeError, match=r"it has no frame 2; accepted: vg.Dicom\(frame=0 to 1\) \(--frame\)"):
        read(data, frame=2)


def rle(segment: bytes) -> bytes:
    """A frame of one segment."""
    return (1).to_bytes(4, "little") + (64).to_bytes(4, "little") + bytes(56) + segment


def larger_jpeg_2000() -> bytes:
    """A file whose frame is larger than the file's header says."""
    from PIL import Image

    stream = io.BytesIO()
    Image.new("L", (200, 120)).save(stream, "JPEG2000", no_jp2=True)
    return compressed(TWELVE_BITS.astype(np.uint8), stream.getvalue(), JPEG_2000)


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "no pixels": (lambda: dicom(CT).replace(b"\xe0\x7f\x10\x00", b"\xe0\x7f\x11\x00"), "a DICOM file without pixels"),
    "deflated": (lambda: dicom(CT, syntax=DEFLATED), "its transfer syntax is deflated; accepted"),
    "a film": (
        lambda: compressed(CT, bytes(4), "1.2.840.10008.1.2.4.102"),
        "its transfer syntax is MPEG-4 .*; accepted",
    ),
    "a package": (
        lambda: compressed(CT, bytes(4), "1.2.840.10008.1.2.4.81"),
        "its transfer syntax is JPEG-LS .* pydicom needs one of these packages: ",
    ),
    "more in RLE": (
        lambda: compressed(TWELVE_BITS.astype(np.uint8), rle(b"\x81\0" * 1000), RLE),
        "damaged: its compressed pixels are not of the size that its header says",
    ),
    "more in JPEG 2000": (larger_jpeg_2000, "damaged: its compressed pixels are not of the size"),
    "CMYK": (
        lambda: dicom(CT, PhotometricInterpretation="CMYK"),
        "got CMYK of 1 samples a pixel; accepted: MONOCHROME1",
    ),
    "deep color": (lambda: dicom(COLOR.astype(np.uint32)), "color of uint32; accepted: unsigned integers"),
    "truncated": (lambda: dicom(CT)[:-100], "cannot be decoded: The number of bytes of pixel data is less"),
    "no slope": (lambda: dicom(CT, RescaleSlope=0, RescaleIntercept=0), "its values are from 0.0 to 0.0"),
    "no width": (
        lambda: dicom(CT, WindowCenter=1, WindowWidth=-3),
        "its window is from .*accepted: one of its own, or",
    ),
}


@pytest.mark.parametrize(("make", "reason"), REFUSED.values(), ids=list(REFUSED))
def test_refused(make: Callable[[], bytes], reason: str) -> None:
    with pytest.raises(DecodeError, match=rf"^scan\.dcm: {reason}"):
        read(make(), Depth.UINT8, channels=None)


def test_limits_hold_by_the_header() -> None:
    data = dicom(CT, Rows=60000, Columns=60000)
    for function in (read_image, image_size):
        with pytest.raises(DecodeError, match=r"60,000 x 60,000 pixels by its header, more than the limit of"):
            function(data, "scan.dcm")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dicom(CT)
    monkeypatch.setitem(__import__("sys").modules, "pydicom", None)
    with pytest.raises(DecodeError, match=r"needs pydicom: pip install 'variegate\[dicom\]'"):
        read(data)


@pytest.mark.filterwarnings("ignore:pixels of")
@pytest.mark.parametrize("name", ["CT_small", "MR_small_RLE", "SC_rgb_jpeg_dcmtk", "JPEG2000", "examples_palette"])
def test_damaged_files_are_named(name: str) -> None:
    from pydicom.data import get_testdata_file

    data = Path(str(get_testdata_file(f"{name}.dcm", download=False))).read_bytes()[:60_000]
    rng = random.Random(name)
    for _ in range(40):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[rng.randrange(132, 2400)] = rng.choice((0, 1, 127, 128, 255))
        try:
            with note_once(set(), rng.choice([None, *Depth])):
                read_image(bytes(damaged), "scan", max_pixels=1_000_000)
        except DecodeError as error:
            assert str(error).startswith("scan: ")  # noqa: PT017


@pytest.mark.process
@pytest.mark.parametrize("workers", ["thread", vg.ProcessWorkers(1)], ids=["threads", "process"])
def test_loaders_read_folders_and_resume(tmp_path: Path, workers: Any) -> None:
    for number in range(6):
        (tmp_path / f"{number}.dcm").write_bytes(dicom(np.roll(CT, number), **HOUNSFIELD))

    def make() -> vg.Loader:
        options: dict[str, Any] = {"batch_size": 2, "seed": 1, "device": "cpu", "workers": workers, "channels": 1}
        return vg.Loader(tmp_path, T.Pad(0), depth="uint16", dicom=vg.Dicom(window=(0, 2000)), **options)

    first = make()
    batches = iter(first)
    ids = next(batches).ids
    state = first.state_dict()
    second = make()
    second.load_state_dict(state)
    rest = list(second)
    assert len(rest) == 2
    for batch in rest:
        for image, number in zip(batch.images, batch.ids.tolist(), strict=True):
            assert number not in ids.tolist()
            share = np.clip((np.roll(CT, number) * 2.0 - 1024 + 1000) / 2000, 0, 1)
            assert np.array_equal(image[0], np.rint(share * 65535))


OPTIONS = {
    "width": (
        {"window": (40, 0)},
        "window: got (40, 0); accepted: (center, width) with a width above 0, 'full' or None",
    ),
    "word": ({"window": "lung"}, "window: got 'lung'; accepted: (center, width)"),
    "frame": ({"frame": -1}, "frame: got -1"),
}


@pytest.mark.parametrize(("options", "message"), OPTIONS.values(), ids=list(OPTIONS))
def test_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        vg.Dicom(**options)


def test_options_of_a_loader(tmp_path: Path) -> None:
    (tmp_path / "a.dcm").write_bytes(dicom(CT))
    with pytest.raises(TypeError, match=r"dicom: got \(40, 400\); accepted: vg.Dicom\(...\), or None"):
        vg.Loader(tmp_path, dicom=(40, 400))
    made = []
    for window in ((40, 400), "full"):
        loader = vg.Loader(tmp_path, dicom=vg.Dicom(window=window), cache=tmp_path / ".cache", device="cpu")
        made += [images for images, _ in [*loader, *loader]]
    assert [bool((images == made[0]).all()) for images in made] == [True, True, False, False]
