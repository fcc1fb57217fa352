"""Outputs that are mixed with other samples: the same in any run, told in the manifest, made again from a row."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import variegate as vg
from tests.jobs.augment.samples import digest, expansion, lay_photos, rows
from variegate.jobs.augment.replay import replay
from variegate.jobs.engine import Engine

MIXED = {
    "type": "Compose",
    "transforms": [{"type": "RandomHorizontalFlip"}, {"type": "MixUp", "alpha": 0.4, "num_classes": 2}],
}


@pytest.fixture
def policy(tmp_path: Path) -> str:
    (tmp_path / "mix.json").write_text(json.dumps(MIXED))
    return str(tmp_path / "mix.json")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return lay_photos(tmp_path / "photos")


@pytest.mark.parametrize("layout", ["folder", "webdataset"])
def test_what_it_is_mixed_with_is_in_the_manifest(photos: Path, policy: str, tmp_path: Path, layout: str) -> None:
    out = tmp_path / "out"
    expansion(photos, out, policy=policy, layout=layout, copies=2, format="png").run()
    expansion(
        photos, tmp_path / "again", Engine(["cpu:0"], "thread"), policy=policy, layout=layout, copies=2, format="png"
    ).run()
    assert {k: v for k, v in digest(out).items() if "manifest" not in k and "json" not in k} == {
        k: v for k, v in digest(tmp_path / "again").items() if "manifest" not in k and "json" not in k
    }
    listed = rows(out)
    labels = {row["id"]: row["label"] for row in listed}
    assert len(listed) == 14
    for number, row in enumerate(listed):
        mixed = json.loads(row["operations"])[-1]
        own, other = mixed["chains"]
        assert mixed["op"] == "MixUp"
        assert own["weight"] + other["weight"] == pytest.approx(1.0, abs=1e-5)
        assert other["id"] != row["id"]
        assert other["label"] == labels[other["id"]]
        assert replay(out / "manifest.parquet", number).is_same


def test_outputs_are_the_loaders_pictures(photos: Path, policy: str, tmp_path: Path) -> None:
    made = expansion(photos, tmp_path / "out", policy=policy, copies=1, epoch=2, format="png")
    made.run()
    loader = vg.Loader(photos, made.plan.transform, batch_size=3, device="cpu", seed=7, layout="NHWC")
    loader.set_epoch(2)
    images = {i: image.numpy() for batch in loader for i, image in zip(batch.ids.tolist(), batch.images, strict=True)}
    for row in rows(tmp_path / "out"):
        written = np.asarray(Image.open(tmp_path / "out" / row["file"]))
        np.testing.assert_array_equal(written, images[row["id"]])


def test_a_bad_partner_and_a_changed_one(photos: Path, policy: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out, policy=policy, copies=1, format="png").run()
    before, names = digest(out), {row["id"]: row["file"] for row in rows(out)}
    partner_of = {row["id"]: json.loads(row["operations"])[-1]["chains"][1]["id"] for row in rows(out)}
    Image.fromarray(np.full((40, 40, 3), 99, np.uint8)).save(photos / "b/y.webp")
    changed = next(row["id"] for row in rows(out) if row["source"] == "b/y.webp")
    expansion(photos, out, policy=policy, copies=1, format="png", resume=False).run()
    other = {i for i, name in names.items() if digest(out)[name] != before[name]}
    assert other == {changed} | {i for i, partner in partner_of.items() if partner == changed}
    (photos / "b/y.webp").write_bytes(b"")
    report = expansion(photos, tmp_path / "bad", policy=policy, copies=1, format="png").run()
    assert report.missing == 1
    assert report.written == 6
