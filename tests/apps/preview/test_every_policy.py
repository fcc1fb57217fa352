"""``variegate preview`` of whatever policy there is: by name, from files, of views, mixing, ending in numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import variegate as vg
from tests.data.annotated.made import put_coco
from variegate import transforms as T
from variegate.apps.preview import Sheet, policy_sheet
from variegate.apps.preview.choosing import choose_images
from variegate.apps.preview.rows import sample_rows
from variegate.apps.preview.sheet import NARROWEST_COLUMN, SCREEN, lines_of
from variegate.cli.commands import app
from variegate.data.folder import open_folder
from variegate.decode import read_image
from variegate.jobs.augment import Expansion, Plan
from variegate.jobs.engine import Engine
from variegate.policies.load import POLICY_NAMES
from variegate.policies.timm import EXAMPLES

END = T.Normalize(0.5, 0.25)
CROP = T.RandomResizedCrop(16)
VIEWS = ("simclr", "byol", "dino", "mocov3")
FILES = {
    "normalize": T.Compose([CROP, T.RandAugment(), T.ToDtype("float32", scale=True), END]),
    "floats": T.Compose([T.ColorJitter(0.4), T.ToDtype("float64")]),
    "integers": T.ToDtype("int16", scale=True),
    "erasing": T.Compose([CROP, END, T.RandomErasing(1.0, value="random")]),
    "crops": T.Compose([T.Resize((24, 24)), T.FiveCrop(16), END]),
    "gray": T.Compose([T.RandomHorizontalFlip(), T.Grayscale(), END]),
    "views": T.MultiView([T.Compose([T.Resize((8, 9)), END]), T.Compose([CROP, END])], [1, 4]),
    "mixing": T.Compose([CROP, T.RandomChoice([T.MixUp(), T.CutMix(), T.ResizeMix(), T.Mosaic()]), END]),
    "timm": vg.from_timm(16, is_training=True, auto_augment="rand-m9-mstd0.5-inc1", re_prob=1.0, re_mode="pixel"),
    "albumentations": vg.from_albumentations(
        {
            "transform": {
                "__class_fullname__": "Compose",
                "p": 1.0,
                "transforms": [
                    {"__class_fullname__": "HorizontalFlip", "p": 0.5},
                    {"__class_fullname__": "Normalize", "p": 1.0},
                ],
            }
        }
    ),
    "by_label": T.Cond("label", {0: T.Invert()}, T.Identity()),
}


def drawn(folder: Path, policy: str, *more: str) -> Image.Image:
    out = folder / "sheet.png"
    place = ["preview", str(folder / "images"), "--policy", policy, "--out", str(out)]
    result = CliRunner().invoke(app, [*place, "--images", "1", "--samples", "1", "--cell", "32", *more])
    assert result.exit_code == 0, result.output
    return Image.open(out)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put_coco(tmp_path)
    return tmp_path


@pytest.mark.parametrize("policy", ["none", *POLICY_NAMES, *re.split(", | or ", EXAMPLES)])
def test_a_policy_by_name(folder: Path, policy: str) -> None:
    alone = drawn(folder, policy)
    if policy not in VIEWS:
        assert drawn(folder, policy, "--annotations", str(folder / "instances.json")).height > alone.height


@pytest.mark.parametrize("name", FILES)
def test_a_policy_in_a_file(folder: Path, name: str) -> None:
    policy = folder / "policy.json"
    policy.write_text(json.dumps(FILES[name].to_dict()))
    alone = drawn(folder, str(policy))
    if name not in ("views", "by_label"):
        assert drawn(folder, str(policy), "--annotations", str(folder / "instances.json")).height > alone.height


def test_bytes_are_those_before_numbers(folder: Path) -> None:
    choice = choose_images(folder / "images", 3)
    plain = T.Compose([T.RandomHorizontalFlip(), T.Invert()])
    for last in (END, T.ToDtype("float32", scale=True), T.ToDtype("int16"), T.Lambda(lambda image: image / 0)):
        rows = sample_rows(choice, T.Compose([plain, last]), range(2), seed=1, epoch=2)
        for row, wanted in zip(rows, sample_rows(choice, plain, range(2), seed=1, epoch=2), strict=True):
            for cell, same in zip(row, wanted, strict=True):
                np.testing.assert_array_equal(cell.img_HWC, same.img_HWC)


def test_what_is_erased_of_numbers_is_seen(folder: Path) -> None:
    choice = choose_images(folder / "images", 1)
    # Half a deviation above the mean.
    erased = T.Compose([T.Normalize(0.5, 0.25), T.RandomErasing(1.0, scale=(0.2, 0.3), value=[0.5, 0.1, -9.0])])
    [[before, after]] = sample_rows(choice, erased, range(1), seed=0, epoch=0)
    changed = (before.img_HWC != after.img_HWC).any(axis=2)
    assert 0.15 < changed.mean() < 0.35
    assert {*map(tuple, after.img_HWC[changed].tolist())} == {(159, 134, 0)}


def test_images_are_mixed_with_those_of_the_source(folder: Path, tmp_path: Path) -> None:
    t = T.Compose([T.RandomResizedCrop(32), T.Mosaic()])
    chosen = choose_images(folder / "images", 1)
    [row] = sample_rows(chosen, t, range(2), seed=3, epoch=1)
    plan = Plan(open_folder(folder / "images"), t, copies=2, seed=3, epoch=1, format="png")
    Expansion(plan, tmp_path / "out", Engine(["cpu:0"], "thread", num_threads=1)).run()
    for copy, cell in enumerate(row[1:]):
        np.testing.assert_array_equal(cell.img_HWC, read_image(tmp_path / "out" / f"a_{copy}.png"))
        named = {name for line in cell.lines for name in ("b.png", "c.png") if f" {name}: " in line}
        assert named, cell.lines


def test_views_have_rows_of_their_own_that_fit_on_a_screen(folder: Path) -> None:
    def sheet_and_lines(counts: list[int]) -> tuple[Sheet, list[list[str]]]:
        t = T.MultiView([T.Compose([T.RandomResizedCrop(size), END]) for size in (32, 16)], counts)
        policy = folder / "views.json"
        policy.write_text(json.dumps(t.to_dict()))
        [row] = sample_rows(choose_images(folder / "images", 1), t, range(1), seed=0, epoch=0)
        return policy_sheet(folder / "images", str(policy), images=1), [
            [cell.title for cell in line] for line in lines_of(row)
        ]

    sheet, lines = sheet_and_lines([2, 6])
    assert sheet.picture.width <= SCREEN[0]
    assert sheet.picture.height <= SCREEN[1]
    assert lines == [
        ["a.png", "copy 0, group 0, view 0", "copy 0, group 0, view 1"],
        ["", *(f"copy 0, group 1, view {n}" for n in range(6))],
    ]
    sheet, lines = sheet_and_lines([1, 1])
    assert lines == [["a.png", "copy 0, group 0", "copy 0, group 1"]], "small groups stand side by side"
    assert sheet.picture.width > 7 * NARROWEST_COLUMN, "three copies by default, in one line"
    assert sheet.picture.width <= SCREEN[0]
