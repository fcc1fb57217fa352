"""Training and searching on images of uint16 and float32."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image

import variegate as vg
from tests.decode.test_dicom import dicom
from tests.needed import needs
from variegate import transforms as T
from variegate.cli import main
from variegate.data.base import SourceError
from variegate.learn.attribution import attribution
from variegate.learn.checkpoints import ResumeError
from variegate.learn.images import BaselineAugmentation, load_images
from variegate.learn.trainer import train
from variegate.options.training import TrainOptions

LINEAR = "tests.learn.search.crashing:linear"
MODEL = {"model": LINEAR, "batch_size": 16, "lr": 0.05, "devices": "cpu"}
# A difference that 8 bits do not hold.
FAINT = 60


def stripes(count: int = 64) -> tuple[Any, Any]:
    """uint16 [N, 8, 8, 3]: lines or columns, which are equal at 8 bits; and labels."""
    labels = np.arange(count) % 2
    lines = np.where(np.arange(8) % 2, FAINT, -FAINT)
    noise = np.random.default_rng(0).integers(-9, 10, (count, 8, 8))
    images = 128 * 257 + noise + np.where(labels[:, None, None], lines[:, None], lines[None])
    return np.repeat(images.astype(np.uint16)[..., None], 3, axis=3), labels


def put(root: Path, format: str) -> Path:
    """As PNG, floats in TIFF, or a window of DICOM."""
    for number, (color, label) in enumerate(zip(*stripes(), strict=True)):
        image = color[..., 0]
        path = root / "ab"[label] / f"{number}.{format}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if format == "png":
            Image.fromarray(image).save(path)
        elif format == "tif":
            tifffile.imwrite(path, image.astype(np.float32) - 32896)
        else:
            path.write_bytes(dicom(image))
    return root


def options(out: Path, **chosen: Any) -> TrainOptions:
    return TrainOptions(**{**MODEL, "policy": "none", "epochs": 3, "out": out, **chosen})


@pytest.mark.parametrize(
    ("format", "chosen"),
    [
        ("png", {"depth": "uint16"}),
        ("png", {"depth": "float32"}),
        ("tif", {"depth": "float32"}),
        pytest.param("dcm", {"depth": "float32", "window": "32896,400"}, marks=needs("pydicom")),
        pytest.param("dcm", {"window": "32896,400"}, marks=needs("pydicom")),
    ],
)
@pytest.mark.filterwarnings("ignore:values are from -", "ignore:.*DICOM files are scaled")
def test_a_model_sees_what_8_bits_do_not_hold(tmp_path: Path, format: str, chosen: dict[str, Any]) -> None:
    scans = put(tmp_path / "scans", format)
    assert train(scans, options(tmp_path / "run", **chosen), validation=scans)["top1"] == 1.0
    model, scoring, _ = vg.load_model(tmp_path / "run", model=LINEAR)
    read: dict[str, Any] = {"depth": chosen.get("depth"), "dicom": None}
    if "window" in chosen:
        read["dicom"] = vg.Dicom((32896, 400))
    images, labels = next(iter(vg.Loader(scans, scoring, batch_size=64, device="cpu", **read)))
    assert images.dtype == torch.float32
    assert (model(images).argmax(1) == labels).all()


def test_8_bits_do_not_hold_it(tmp_path: Path) -> None:
    scans = put(tmp_path / "scans", "png")
    with pytest.warns(UserWarning, match="pixels of 16 bits are scaled to 8 bits"):
        assert train(scans, options(tmp_path / "run"), validation=scans)["top1"] < 0.8


@pytest.mark.parametrize("depth", [np.uint16, np.float32])
def test_statistics_are_of_the_images(depth: Any) -> None:
    pixels, labels = stripes()
    images = (pixels * 0.25 - 1e4).astype(depth) if depth is np.float32 else pixels
    baseline = BaselineAugmentation.of(load_images((images, labels), device="cpu"), padding=0, flip=False, cutout=0)
    shares = images.astype(np.float64) / (65535 if depth is np.uint16 else 1)
    assert baseline.mean == pytest.approx((shares.mean(),) * 3, rel=1e-5)
    assert baseline.std == pytest.approx((shares.std(),) * 3, rel=1e-5)
    normalized = vg.Augmenter(baseline.plain)(images)
    assert normalized.mean().item() == pytest.approx(0, abs=1e-3)
    assert normalized.std().item() == pytest.approx(1, abs=1e-3)
    assert min(baseline.fill) >= 0
    constant = np.full((4, 8, 8, 3), 7, depth), [0, 1, 0, 1]
    assert BaselineAugmentation.of(load_images(constant, device="cpu"), 0, False, 0).std == (1.0,) * 3


def jpeg_policy(folder: Path) -> str:
    path = folder / "jpeg.json"
    path.write_text(json.dumps(T.RandomApply([T.JPEG((50, 90))], 0.1).to_dict()))
    return str(path)


def test_what_a_training_refuses(tmp_path: Path) -> None:
    scans = put(tmp_path / "scans", "png")
    message = "jpeg.json': JPEG: got images of uint16, and is defined on 256 levels; accepted: uint8 images"
    with pytest.raises(ValueError, match=message):
        train(scans, options(tmp_path / "refused", depth="uint16", policy=jpeg_policy(tmp_path)))
    assert not (tmp_path / "refused").exists()
    train(scans, options(tmp_path / "run", depth="uint16", epochs=1))
    for changes, named in (({"depth": "float32"}, "depth 'uint16'"), ({"window": "full"}, "window None")):
        with pytest.raises(ResumeError, match=f"holds a training run with --{named}, this one has"):
            train(scans, options(tmp_path / "run", **{"depth": "uint16", "epochs": 1, **changes}))


def test_attribution_reads_as_the_training_did(tmp_path: Path) -> None:
    scans = put(tmp_path / "scans", "png")
    train(scans, options(tmp_path / "run", depth="uint16", policy="randaugment-1-5", epochs=4))
    found = attribution(tmp_path / "run", model=LINEAR, images=64, draws=4, device="cpu")
    assert found.draws == 256
    # At 8 bits, the model would guess.
    assert found.loss < 0.55


def searched(tmp_path: Path, name: str, *more: object) -> int:
    small = ("--model", LINEAR, "--batch-size", 16, "--devices", "cpu", "--lr", "0.05", "--out", tmp_path / name)
    return main([str(text) for text in ("search", tmp_path / "scans", *small, "--depth", "uint16", *more)])


RACE = ("--policies", "none,randaugment-1-5", "--rounds", 2, "--epochs", 2)
POPULATION = ("--method", "pba", "--population", 2, "--epochs", 2, "--interval", 1, "--repeats", 1)


def test_searches_at_a_depth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "scans", "png")
    for name, method, stored in (("race", RACE, "race.jsonl"), ("pba", POPULATION, "search.json")):
        assert searched(tmp_path, name, *method) == 0
        assert '"depth": "uint16"' in (tmp_path / name / stored).read_text()
        assert searched(tmp_path, name, *method) == 0
        capsys.readouterr()
        assert searched(tmp_path, name, *method, "--depth", "float32") == 2
        assert re.search("with (--)?depth .uint16., this one has .float32.", capsys.readouterr().err)
    assert json.loads((tmp_path / "race" / "race.json").read_text())["standings"][0]["mean"] > 0.9
    refused = "JPEG: got images of uint16, and is defined on 256 levels; accepted: uint8 images"
    assert searched(tmp_path, "more", *POPULATION, "--operations", "Rotate:0..30,JPEG:50..90") == 2
    assert f"--operations: {refused}" in capsys.readouterr().err
    assert searched(tmp_path, "more", "--policies", f"none,{jpeg_policy(tmp_path)}") == 2
    assert refused in capsys.readouterr().err
    assert not (tmp_path / "more").exists()


def test_arrays_keep_their_dtype_in_searches(tmp_path: Path) -> None:
    found = vg.race(stripes(), ["none", "flip"], rounds=2, epochs=2, **MODEL)
    assert found.standings[0].mean > 0.9
    with pytest.raises(SourceError, match=r"none of its first 100 images can be read; the first: .*are float32"):
        train(put(tmp_path / "scans", "tif"), options(tmp_path / "run", depth="uint16"))
