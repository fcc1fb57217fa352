"""Sheets of sources with annotations: what is drawn is what an Augmenter gives, at every copy and step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import variegate as vg
from tests.data.annotated.made import coco_entries, put_coco, put_images, put_voc, put_yolo
from tests.jobs.augment.test_annotated_shards import laid
from variegate import transforms as T
from variegate.apps.preview import Annotations, policy_sheet, sweep_sheet
from variegate.apps.preview.choosing import choose_images
from variegate.apps.preview.rows import sample_rows, sweep_of, sweep_rows
from variegate.cli.commands import app
from variegate.data.base import SourceError


def test_rows_have_what_an_augmenter_gives(tmp_path: Path) -> None:
    file = put_coco(tmp_path)
    t = T.Compose([T.RandomHorizontalFlip(), T.RandomAffine(30, scale=(0.7, 1.4)), T.ColorJitter(0.3)])
    choice = choose_images(tmp_path / "images", 3, f"{file},mask=each")
    rows = sample_rows(choice, t, range(3), seed=4, epoch=2)
    source = vg.open_source(tmp_path / "images", annotations=f"{file},mask=each")
    samples = [{"image": image.img_HWC, **source.read(n).targets} for n, image in enumerate(choice.images)]
    for copy in range(3):
        results = vg.Augmenter(t, seed=4, layout="NHWC")(samples, ids=[0, 1, 2], epoch=2, copy=copy)
        for row, result in zip(rows, results, strict=True):
            cell = row[1 + copy]
            assert cell.overlay is not None
            np.testing.assert_array_equal(cell.img_HWC, result["image"].numpy())
            np.testing.assert_array_equal(cell.overlay.boxes, result["boxes"].numpy())
            assert list(cell.overlay.names) == [source.classes[label] for label in result["labels"]]
            order = np.argsort(-result["masks"].numpy().sum(axis=(1, 2), dtype=int), kind="stable")
            for area, n in zip(cell.overlay.areas, order, strict=True):
                np.testing.assert_array_equal(area.mask_HW, result["masks"].numpy()[n] != 0)


def test_copied_objects_and_conditions_by_objects(tmp_path: Path) -> None:
    file = put_coco(tmp_path)
    names = vg.open_source(tmp_path / "images", annotations=str(file)).classes
    flip = T.Cond(by="objects", any_of=[names[0]], then=T.RandomHorizontalFlip(1.0))
    t = T.Compose([flip, T.CopyPaste(share=1.0)])
    choice = choose_images(tmp_path / "images", 3, f"{file},mask=each")
    rows = sample_rows(choice, t, range(4), seed=0, epoch=0)
    counts = [[len(cell.overlay.areas) for cell in row if cell.overlay is not None] for row in rows]
    assert any(max(row[1:]) > row[0] for row in counts)
    with pytest.raises(TypeError, match="got no masks of objects, by which CopyPaste pastes; accepted:"):
        sample_rows(choose_images(tmp_path / "images", 3, str(file)), t, range(1), seed=0, epoch=0)
    wrong = T.Cond(by="objects", any_of=["catt"], then=T.Invert())
    with pytest.raises(ValueError, match="Cond: got the class 'catt'; accepted: the source's classes"):
        sample_rows(choice, wrong, range(1), seed=0, epoch=0)


def test_captions_count_boxes_where_their_number_changes(tmp_path: Path) -> None:
    choice = choose_images(tmp_path / "images", 3, put_coco(tmp_path))
    [first, second, third] = sample_rows(choice, T.Compose([T.CenterCrop(8)]), range(1), seed=0, epoch=0)
    assert first[0].lines == ["original, 60 x 40", "2 boxes"]
    assert second[0].lines[1:] == ["no boxes"]
    assert second[1].lines == ["Crop 8x8 at 6,11"]
    assert third[1].lines[-1] == "no boxes", "its only box is at the top"


def test_numbers_of_instances_keep_their_classes_when_boxes_go(tmp_path: Path) -> None:
    choice = choose_images(tmp_path / "images", 1, f"{put_coco(tmp_path)},mask=instances")
    # The right half, without the first object.
    right = T.Compose([T.Pad([0, 0, 40, 0]), T.CenterCrop((40, 30))])
    [[before, after]] = sample_rows(choice, right, range(1), seed=0, epoch=0)
    assert before.overlay is not None
    assert after.overlay is not None
    assert dict(before.overlay.areas[0].names) == {1: "cat", 2: "ant"}
    assert list(after.overlay.names) == ["ant"]
    assert dict(after.overlay.areas[0].names) == {2: "ant"}


def test_numbers_of_instances_mean_nothing_once_images_are_joined(tmp_path: Path) -> None:
    choice = choose_images(tmp_path / "images", 3, f"{put_coco(tmp_path)},mask=instances")
    mosaic = T.Compose([T.Resize((40, 40)), T.Mosaic()])
    rows = sample_rows(choice, mosaic, range(1), seed=0, epoch=0)
    joined = [row[1].overlay for row in rows]
    assert any(set(one.names) > {"bee"} for one in joined if one is not None)
    assert {name for one in joined if one is not None for area in one.areas for name in area.names.values()} == {None}
    written = policy_sheet(tmp_path / "images", "none", annotations=f"{tmp_path / 'instances.json'},mask=instances")
    assert written.num_images == 3


def test_sweeps_move_what_belongs_to_images(tmp_path: Path) -> None:
    choice = choose_images(tmp_path / "images", 1, put_coco(tmp_path))
    [row] = sweep_rows(choice, sweep_of("TranslateX", 4), 0)
    left = [
        cell.overlay.boxes[-1, 0] for cell in row[1:] if cell.overlay is not None and cell.overlay.boxes is not None
    ]
    assert left == sorted(left)
    assert left[0] < 20 < left[-1]
    flipped = sweep_rows(choice, sweep_of("HorizontalFlip", 1), 0)[0][1].overlay
    assert flipped is not None
    np.testing.assert_allclose(flipped.boxes, [[35, 10, 55, 30], [0, 5, 40, 40]], atol=1e-4)


def test_key_points_and_their_lines(tmp_path: Path) -> None:
    entries = coco_entries()
    for category in entries["categories"]:
        category |= {"keypoints": ["nose", "tail"], "skeleton": [[1, 2], [1, 9], "odd"]}
    for annotation in entries["annotations"]:
        annotation["keypoints"] = [10, 12, 2, 20, 25, 1]
    choice = choose_images(tmp_path / "images", 1, put_coco(tmp_path, entries))
    [[before, after]] = sample_rows(choice, T.Compose([T.RandomVerticalFlip(1.0)]), range(1), seed=0, epoch=0)
    assert before.overlay is not None
    assert after.overlay is not None
    points = after.overlay.points[0]
    np.testing.assert_allclose(points.places, [[10.5, 27.5, 2], [20.5, 14.5, 1]], atol=1e-4)
    assert (points.name, list(points.bones)) == ("cat", [(0, 1)])


@pytest.mark.parametrize("layout", ["coco", "voc", "yolo", "masks"])
def test_every_layout_is_drawn_by_the_command(tmp_path: Path, layout: str) -> None:
    typed, place = layout, tmp_path
    if layout == "coco":
        typed, place = f"{put_coco(tmp_path)},mask=classes", tmp_path / "images"
    elif layout == "masks":
        put_images(tmp_path / "images")
        (tmp_path / "masks").mkdir()
        for path in (tmp_path / "images").iterdir():
            size = Image.open(path, formats=["PNG"]).size
            Image.new("L", size, 3).save(tmp_path / "masks" / path.name)
    else:
        (put_voc if layout == "voc" else put_yolo)(tmp_path)
    out = tmp_path / "sheet.png"
    chosen = ["--samples", "1", "--cell", "64", "--out", str(out)]
    run = CliRunner().invoke(app, ["preview", str(place), "--annotations", typed, *chosen, "--json"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["images"] == 3
    seen = np.asarray(Image.open(out, formats=["PNG"]).convert("RGB"))
    # The first class of all, in the key and on pictures.
    assert (np.abs(seen.astype(int) - (255, 77, 77)).sum(-1) < 30).sum() > 200, "more than the swatch"
    if layout in ("voc", "yolo"):
        assert sweep_sheet(place, "Rotate", steps=2).num_images == 3, "known by its folders"


def test_what_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    entries = coco_entries()
    entries["annotations"][0]["category_id"] = 999
    file = put_coco(tmp_path, entries)
    sheet = policy_sheet(tmp_path / "images", "none", samples=1, annotations=file)
    assert any("category_id 999" in note for note in sheet.source_notes)
    with pytest.raises(SourceError, match=r"--annotations: got voc, and .*a\.png is one image; give its folder"):
        policy_sheet(tmp_path / "images" / "a.png", "none", annotations="voc")
    choice = choose_images(tmp_path / "images", 1, file)
    views = T.MultiView([T.Compose([T.CenterCrop(5), T.Normalize(0.5, 0.5)])], [2])
    with pytest.raises(ValueError, match="a policy that makes views; accepted: policies that keep one image"):
        sample_rows(choice, views, range(1), seed=0, epoch=0)


def test_options_are_those_of_augment(tmp_path: Path) -> None:
    file = put_coco(tmp_path)
    t = T.Compose([T.RandomAffine(0, translate=(0.5, 0.5))])
    targets = vg.Targets(min_visibility=0.9, mask_fill=7)
    choice = choose_images(tmp_path / "images", 3, Annotations(f"{file},mask=instances", targets))
    rows = sample_rows(choice, t, range(4), seed=4, epoch=0)
    source = vg.open_source(tmp_path / "images", annotations=f"{file},mask=instances")
    samples = [{"image": image.img_HWC, **source.read(n).targets} for n, image in enumerate(choice.images)]
    numbers = []
    for copy in range(4):
        results = vg.Augmenter(t, seed=4, layout="NHWC")(samples, ids=[0, 1, 2], copy=copy, targets=targets)
        for row, result in zip(rows, results, strict=True):
            overlay = row[1 + copy].overlay
            assert overlay is not None
            np.testing.assert_array_equal(overlay.boxes, result["boxes"].numpy())
            np.testing.assert_array_equal(overlay.areas[0].mask_HW, result["mask"].numpy())
            numbers.append(len(result["boxes"]))
    assert min(numbers) == 0
    assert max(numbers) > 0


def test_crops_that_choose_by_boxes_are_shown(tmp_path: Path) -> None:
    file, out = put_coco(tmp_path), tmp_path / "sheet.png"
    choice = choose_images(tmp_path / "images", 2, file)
    rows = sample_rows(choice, T.RandomBoxSafeCrop(), range(4), seed=0, epoch=0)
    for row in rows:
        first, *copies = [cell.overlay for cell in row]
        assert first is not None
        assert all(len(one.boxes) == len(first.boxes) for one in copies if one is not None)  # type: ignore[arg-type]
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(T.Compose([T.RandomIoUCrop(), T.Resize((32, 32))]).to_dict()))
    args = ["preview", str(tmp_path / "images"), "--policy", str(policy), "--out", str(out), "--samples", "1", "--json"]
    run = CliRunner().invoke(app, [*args, "--annotations", str(file), "--min-area", "4", "--mask-fill", "255"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout.splitlines()[-1])["images"] == 3


def test_options_of_boxes_where_there_are_none(tmp_path: Path) -> None:
    put_images(tmp_path / "images")
    args = ["preview", str(tmp_path / "images"), "--out", str(tmp_path / "sheet.png"), "--min-area", "4"]
    run = CliRunner().invoke(app, args)
    assert run.exit_code == 2
    assert "has no boxes or masks to be left out or filled" in " ".join(run.output.split())


@pytest.mark.parametrize("layout", ["webdataset", "parquet"])
def test_shards_are_shown_with_what_belongs_to_their_images(tmp_path: Path, layout: str) -> None:
    place, annotations = laid(layout, tmp_path)
    source = vg.open_source(place, annotations=annotations, stream=False)
    for given in (place, tmp_path):
        images = choose_images(given, 3, Annotations(annotations)).images
        assert [one.name.startswith(f"{place.name}: ") for one in images] == [True] * 3
        for one in images:
            assert one.targets is not None
            targets = source.read(one.sample_id).targets
            np.testing.assert_array_equal(one.targets["boxes"], targets["boxes"])
            np.testing.assert_array_equal(one.targets["mask"], targets["mask"])
