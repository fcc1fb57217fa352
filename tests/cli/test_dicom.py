"""DICOM files in commands: windows and frames, in runs that are resumed and replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

import variegate as vg
from tests.decode.test_dicom import dicom
from tests.needed import needs
from variegate.cli import main
from variegate.data.samples import Samples
from variegate.decode.depth import note_once

pytestmark = [needs("pydicom"), pytest.mark.filterwarnings("ignore:.*DICOM files are scaled")]
QUICK = ["--workers", "thread", "--devices", "cpu:0", "--threads", "1"]
# By the arguments of a command: those of ``vg.Dicom``.
READ: dict[str, tuple[list[str], dict[str, Any]]] = {
    "window": (["--window", "-600,1500", "--frame", "1"], {"window": (-600, 1500), "frame": 1}),
    "full": (["--window", "full", "--frame", "0"], {"window": "full", "frame": 0}),
    "frame": (["--frame", "1"], {"frame": 1}),
}


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """Files of two frames each, in two classes."""
    rng = np.random.default_rng(0)
    for number in range(4):
        stored = rng.integers(-1500, 1500, (2, 20, 24)).astype(np.int16)
        path = tmp_path / "scans" / "ab"[number % 2] / f"{number}.dcm"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dicom(stored[0], NumberOfFrames=2, PixelData=stored.tobytes(), RescaleIntercept=-24))
    return tmp_path / "scans"


@pytest.mark.parametrize("depth", ["uint8", "float32"])
@pytest.mark.parametrize(("typed", "given"), READ.values(), ids=list(READ))
def test_files_are_read_as_by_a_loader(
    scans: Path, tmp_path: Path, typed: list[str], given: dict[str, Any], depth: Any
) -> None:
    read: dict[str, Any] = {"depth": depth, "dicom": vg.Dicom(**given)}
    options: dict[str, Any] = {"batch_size": 4, "shuffle": False, "device": "cpu", "layout": "NHWC"}
    expected = next(iter(vg.Loader(scans, vg.transforms.Identity(), **options, **read))).images.numpy()
    typed = [*typed, "--depth", depth]
    augment = ["augment", str(scans), str(tmp_path / "out"), "--policy", "none", "--format", "tif", *QUICK]
    pack = ["pack", str(scans), str(tmp_path / "raw"), "--format", "raw", *QUICK]
    assert main([*augment, *typed]) == main([*pack, *typed]) == 0
    source = vg.open_source(tmp_path / "raw")
    assert isinstance(source, Samples)
    for index, image in enumerate(expected):
        written = tifffile.imread(tmp_path / f"out/{'aabb'[index]}/{'0213'[index]}_0.tif")
        np.testing.assert_array_equal(written, image, strict=True)
        with note_once(set(), keeps_depth=True):
            np.testing.assert_array_equal(source.read(index).data, image, strict=True)
    assert main(["replay", str(tmp_path / "out"), "2", "--out", str(tmp_path / "again.tif")]) == 0
    assert main([*augment, *typed]) == 0
    sheet = ["preview", str(scans), "--out", str(tmp_path / "sheet.png"), "--images", "1", *typed]
    assert main(sheet) == 0


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["--window", "40"], "--window: got '40'; accepted: CENTER,WIDTH with a width above 0, such as '40,400', or"),
        (["--window", "40,0"], "--window: got '40,0'; accepted: CENTER,WIDTH with a width above 0"),
        (["--window", "nan,400"], "--window: got 'nan,400'; accepted: CENTER,WIDTH with a width above 0"),
        (["--frame", "-1"], "--frame: got -1; accepted: an integer from 0 on"),
        (["--window", "40,401"], 'this one has window "40.0,401.0"'),
        (["--window", "40,400", "--frame", "0"], "holds a run with frame 1, this one has frame 0"),
    ],
)
def test_other_windows_and_frames_are_refused(
    scans: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: list[str], message: str
) -> None:
    command = ["augment", str(scans), str(tmp_path / "out"), "--policy", "none", *QUICK, "--frame", "1"]
    assert main([*command, "--window", "40,400"]) == 0
    capsys.readouterr()
    assert main([*command, *typed]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_file_of_frames_names_the_option(scans: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", str(scans), str(tmp_path / "out"), *QUICK]) == 1
    assert "it has 2 frames; accepted: one, or dicom=vg.Dicom(frame=0 to 1) (--frame)" in capsys.readouterr().err
