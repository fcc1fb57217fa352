"""Data sets with boxes, masks and key points, written in their own layout: what an Augmenter gives is what is there."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.data.annotated.made import CLASSES, NAMES, SIZES, coco_entries, put_coco, put_voc, put_yolo
from tests.data.annotated.test_masks import put as put_masks
from tests.jobs.augment.crashing import CrashingObjects
from tests.jobs.augment.samples import digest, rows, threads
from tests.jobs.bounded import fail_after
from variegate import transforms as T
from variegate.augmenter.augmenter import Augmenter
from variegate.data.annotated.outlines import runs_of
from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.decode import read_image
from variegate.jobs.augment import AnnotatedPlan, Expansion, Plan, plan_for
from variegate.jobs.augment.replay import replay
from variegate.jobs.engine import Engine
from variegate.jobs.output.verify import delete_damaged, verify
from variegate.targets.settings import Targets

POLICY = T.Compose([T.RandomAffine(20, scale=(0.7, 1.3), translate=(0.1, 0.1)), T.RandomHorizontalFlip()])
LAYOUTS = ("coco", "voc", "yolo")


def laid(layout: str, root: Path) -> tuple[Path, Any]:
    """A data set -> where it is, and what says how it is annotated."""
    if layout == "coco":
        file = put_coco(root)
        return root / "images", str(file)
    return (put_voc if layout == "voc" else put_yolo)(root), layout


def expansion(place: Path, annotations: Any, out: Path, engine: Engine | None = None, **settings: Any) -> Expansion:
    options = {"transform": POLICY, "copies": 3, "seed": 4, "format": "png", "place": str(place)} | settings
    own = {name: options.pop(name) for name in ("on_error", "resume", "stop", "on_event") if name in options}
    exclude = options.pop("exclude", None)
    source: Any = open_source(place, annotations=annotations, exclude=exclude)
    plan = plan_for(source, options.pop("transform"), annotations=annotations, **options)
    return Expansion(plan, out, engine or threads(1), **own)


def reopened(layout: str, out: Path, **options: Any) -> Any:
    if layout == "coco":
        return open_source(out / "images", annotations={"file": out / "annotations.json", **options})
    return open_source(out, annotations={"format": layout, **options}, classes=CLASSES)


@pytest.mark.parametrize(("layout", "tolerance"), [("coco", 0.0011), ("voc", 0.501), ("yolo", 0.0015)])
def test_what_is_read_back_is_the_augmenters(tmp_path: Path, layout: str, tolerance: float) -> None:
    place, annotations = laid(layout, tmp_path / "data")
    if layout == "coco":  # boxes of objects with outlines fit these
        entries = json.loads(Path(annotations).read_text())
        for annotation in entries["annotations"]:
            del annotation["segmentation"]
        Path(annotations).write_text(json.dumps(entries))
    expansion(place, annotations, tmp_path / "out").run()
    source: Any = open_source(place, annotations=annotations)
    back = reopened(layout, tmp_path / "out")
    assert back.classes == CLASSES
    assert len(back) == 9
    augmenter = Augmenter(POLICY, seed=4, layout="NHWC")
    by_path = {path: n for n, path in enumerate(back.paths())}
    counted = 0
    for row in rows(tmp_path / "out"):
        item = source.read(row["index"])
        sample = {"image": read_image(item.data), **item.targets}
        [made] = augmenter([sample], ids=[row["index"]], copy=row["copy"])
        found = back.read(by_path[row["file"].removeprefix("images/" if layout == "coco" else "")])
        np.testing.assert_array_equal(read_image(found.data), made["image"].numpy())
        np.testing.assert_allclose(found.targets["boxes"], made["boxes"].numpy(), atol=tolerance)
        assert found.targets["labels"].tolist() == made["labels"].tolist()
        counted += len(made["labels"])
    assert counted > 6


@pytest.mark.parametrize("layout", LAYOUTS)
def test_devices_and_workers_change_no_byte(tmp_path: Path, layout: str) -> None:
    place, annotations = laid(layout, tmp_path / "data")
    expansion(place, annotations, tmp_path / "one").run()
    expansion(place, annotations, tmp_path / "three", threads(3)).run()
    assert digest(tmp_path / "one") == digest(tmp_path / "three")


def coco_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "annotations.json").read_text())
    return found


def test_coco_keeps_categories_and_has_ids_of_its_own(tmp_path: Path) -> None:
    entries = coco_entries()
    entries["categories"][1] |= {
        "supercategory": "insect",
        "colour": "é",
        "keypoints": ["b", "a"],
        "a": {"z": 1, "b": 2},
    }
    put_coco(tmp_path / "data", entries)
    # With key points of a class; one of the images has no objects.
    expansion(tmp_path / "data/images", str(tmp_path / "data/instances.json"), tmp_path / "out").run()
    found = coco_of(tmp_path / "out")
    assert found["categories"] == entries["categories"]
    assert verify(tmp_path / "out").problems == []  # though settings keep no order of keys
    assert [image["id"] for image in found["images"]] == list(range(1, 10))
    assert [annotation["id"] for annotation in found["annotations"]] == list(range(1, 1 + len(found["annotations"])))
    for row, image in zip(rows(tmp_path / "out"), found["images"], strict=True):
        assert f"images/{image['file_name']}" == row["file"]
        assert (image["height"], image["width"]) == SIZES[row["index"]]
    assert {annotation["category_id"] for annotation in found["annotations"]} == {70, 3, 18}
    images = {image["id"] for image in found["images"]}
    assert {annotation["image_id"] for annotation in found["annotations"]} < images  # of one image, nothing is there


def test_outlines_are_the_masks_of_the_augmenter(tmp_path: Path) -> None:
    """Polygons stay polygons, runs stay runs, and areas are those of the pixels; crowds are told."""
    entries = coco_entries()
    counts = [0, 40 * 20, 40 * 40]  # the first 20 columns of the first image
    entries["annotations"][0] |= {"segmentation": {"size": [40, 60], "counts": counts}, "iscrowd": 1}
    place = put_coco(tmp_path / "data", entries).parent / "images"
    annotations = {"file": tmp_path / "data/instances.json", "ignored": True}
    expansion(place, annotations, tmp_path / "out").run()
    source: Any = open_source(place, annotations=annotations | {"mask": "each"})
    back = reopened("coco", tmp_path / "out", mask="each", ignored=True)
    augmenter = Augmenter(POLICY, seed=4, layout="NHWC")
    for number, row in enumerate(rows(tmp_path / "out")):
        item = source.read(row["index"])
        [made] = augmenter([{"image": read_image(item.data), **item.targets}], ids=[row["index"]], copy=row["copy"])
        np.testing.assert_array_equal(back.read(number).targets["masks"], made["masks"].numpy())
        told = [entry for entry in coco_of(tmp_path / "out")["annotations"] if entry["image_id"] == number + 1]
        assert [entry["area"] for entry in told] == made["masks"].sum(dim=(1, 2)).tolist()
        for entry in told:
            is_crowd = entry["category_id"] == 18
            assert entry["iscrowd"] == is_crowd
            assert isinstance(entry["segmentation"], dict) == is_crowd


def test_boxes_of_outlines_fit_them_however_they_are_turned(tmp_path: Path) -> None:
    entries = coco_entries()
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    circle = np.stack([30 + 9 * np.cos(angles), 20 + 9 * np.sin(angles)], 1).ravel().round(2).tolist()
    runs = runs_of(np.add.outer(np.arange(-20, 20) ** 2, np.arange(-30, 30) ** 2) < 81)
    entries["annotations"] = [
        {"id": 1, "image_id": 100, "category_id": 3, "bbox": [21, 11, 18, 18], "segmentation": [circle]},
        {"id": 2, "image_id": 100, "category_id": 18, "bbox": [21, 11, 18, 18]},
        {"id": 3, "image_id": 100, "category_id": 70, "bbox": [21, 11, 18, 18]},
    ]
    entries["annotations"][1]["segmentation"] = {"size": [40, 60], "counts": runs}
    place = put_coco(tmp_path / "data", entries).parent / "images"
    turned = T.RandomAffine((45, 45), translate=(0.3, 0.3))
    expansion(place, str(tmp_path / "data/instances.json"), tmp_path / "out", transform=turned, copies=8).run()
    back = reopened("coco", tmp_path / "out", mask="each")
    sides = []
    for number in range(8):
        targets = back.read(number).targets
        for label, (x1, y1, x2, y2), mask in zip(targets["labels"], targets["boxes"], targets["masks"], strict=True):
            if label:
                rows_with, columns_with = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
                seen = columns_with[0], rows_with[0], columns_with[-1] + 1, rows_with[-1] + 1
                np.testing.assert_allclose((x1, y1, x2, y2), seen, atol=1.001)
            else:
                sides.append(x2 - x1)
    assert max(sides) > 25  # of the object that has a box alone


def test_key_points_of_coco(tmp_path: Path) -> None:
    entries = coco_entries()
    entries["categories"][0] |= {"keypoints": ["head", "tail", "wing"], "skeleton": [[1, 2]]}
    entries["annotations"][1] |= {"keypoints": [30, 10, 2, 0, 0, 0, 59, 39, 1], "num_keypoints": 2}
    place = put_coco(tmp_path / "data", entries).parent / "images"
    annotations = str(tmp_path / "data/instances.json")
    expansion(place, annotations, tmp_path / "out", transform=T.RandomHorizontalFlip(1.0), copies=1).run()
    ant, *_ = (entry for entry in coco_of(tmp_path / "out")["annotations"] if entry["category_id"] == 70)
    assert ant["keypoints"] == [29.0, 10.0, 2, 0.0, 0.0, 0, 0.0, 39.0, 1]
    assert ant["num_keypoints"] == 2
    assert all("keypoints" not in one for one in coco_of(tmp_path / "out")["annotations"] if one["category_id"] != 70)
    back = reopened("coco", tmp_path / "out").read(0).targets
    assert back["keypoints"][1].tolist() == [[29.5, 10.5, 2], [0, 0, 0], [0.5, 39.5, 1]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_row_can_be_made_again(tmp_path: Path, layout: str) -> None:
    place, annotations = laid(layout, tmp_path / "data")
    out = tmp_path / "out"
    expansion(place, annotations, out, targets=Targets(min_visibility=0.3, mask_fill=1)).run()
    for number, row in enumerate(rows(out)):
        made = replay(out, number)
        assert made.is_same
        assert made.data == (out / row["file"]).read_bytes()
        assert made.targets == row["targets"]


def test_a_data_set_that_moved_is_the_same(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    expansion(place, annotations, tmp_path / "out").run()
    (tmp_path / "data").rename(tmp_path / "moved")
    assert replay(tmp_path / "out", 4, tmp_path / "moved/images").is_same
    report = expansion(tmp_path / "moved/images", str(tmp_path / "moved/instances.json"), tmp_path / "out").run()
    assert report.resumed == 9


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lost_and_damaged_files_are_found_and_made_again(tmp_path: Path, layout: str) -> None:
    place, annotations = laid(layout, tmp_path / "data")
    out = tmp_path / "out"
    expansion(place, annotations, out).run()
    whole = digest(out)
    name = {"coco": "annotations.json", "voc": "Annotations/a_1.xml", "yolo": "labels/c_0.txt"}[layout]
    (out / name).unlink()
    assert [(problem.file, problem.kind) for problem in verify(out).problems] == [(name, "missing")]
    for damaged in (None, (out / rows(out)[2]["file"]), out / name):
        if damaged is not None:
            damaged.write_bytes(damaged.read_bytes()[:-1] + b"~")
            found = verify(out)
            assert delete_damaged(out, found) == [damaged.relative_to(out).as_posix()]
        with pytest.warns(
            UserWarning, match="9 outputs of an earlier run are made again|written again: annotations.json"
        ):
            expansion(place, annotations, out).run()
        assert digest(out) == whole
    assert verify(out).problems == []


def test_images_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    (place / NAMES[0]).write_bytes(b"no image")
    report = expansion(place, annotations, tmp_path / "out").run()
    assert [name for name, _ in report.skipped] == [NAMES[0]]
    assert [image["id"] for image in coco_of(tmp_path / "out")["images"]] == [4, 5, 6, 7, 8, 9]
    assert verify(tmp_path / "out").problems == []


def test_images_are_excluded_and_the_others_stay_as_they_are(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    expansion(place, annotations, tmp_path / "whole").run()
    expansion(place, annotations, tmp_path / "out", exclude=[NAMES[0]]).run()
    names = {image["file_name"] for image in coco_of(tmp_path / "out")["images"]}
    assert names == {f"{name[0]}_{copy}.png" for name in NAMES[1:] for copy in range(3)}
    records = [{row["file"]: row["targets"] for row in rows(tmp_path / name)} for name in ("whole", "out")]
    assert records[1].items() < records[0].items()


@pytest.mark.process
def test_what_crashes_its_worker_is_left_out_by_name(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    engine = Engine(["cpu:0"], "process", num_threads=1, max_failures=1)
    run = expansion(place, annotations, tmp_path / "out", engine)
    source: Any = run.plan.source
    run.plan = replace(run.plan, source=replace(source, objects=CrashingObjects.like(source.objects)))
    with fail_after(240):  # it starts three processes
        report = run.run()
    reason = "killed by signal 11 (SIGSEGV)"
    assert (report.skipped, report.written, report.missing) == ([(NAMES[2], reason)], 6, 3)
    assert {image["file_name"][0] for image in coco_of(tmp_path / "out")["images"]} == {"a", "b"}
    assert {row["reason"] for row in rows(tmp_path / "out") if row["status"] == "quarantined"} == {reason}


def test_mosaics_join_what_belongs_to_their_images(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    transform = T.Compose([T.Resize((48, 48)), T.Mosaic(num_classes=3)])
    expansion(place, annotations, tmp_path / "out", threads(2), transform=transform, copies=8).run()
    found = coco_of(tmp_path / "out")
    of_b = {image["id"] for image in found["images"] if image["file_name"].startswith("b_")}
    joined = [entry for entry in found["annotations"] if entry["image_id"] in of_b]
    assert joined  # it has no object of its own
    assert all(entry["area"] > 0 for entry in joined)
    assert replay(tmp_path / "out", 5).is_same


def test_copied_objects_and_conditions_by_objects(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    flip = T.Cond(by="objects", none_of=[CLASSES[0]], then=T.RandomHorizontalFlip(1.0))
    transform = T.Compose([flip, T.CopyPaste(share=1.0, scale=(0.5, 1.0), feather=0)])
    expansion(place, annotations, tmp_path / "out", threads(2), transform=transform, copies=8).run()
    source: Any = open_source(place, annotations=f"{annotations},mask=each")
    back = reopened("coco", tmp_path / "out", mask="each")
    partner_ids, pasted = set(), 0
    for n, row in enumerate(rows(tmp_path / "out")):
        item = source.read(row["index"])
        [mixed] = json.loads(row["operations"])
        is_flipped = mixed["chains"][0]["operations"] == [{"op": "HorizontalFlip"}]
        assert is_flipped == (0 not in item.targets["labels"].tolist())
        partner_ids |= {chain["id"] for chain in mixed["chains"][1:]}
        found = back.read(n).targets
        assert all(mask.any() for mask in found["masks"])
        pasted += len(found["labels"]) > len(item.targets["labels"])
    assert pasted
    assert len(partner_ids) > 1
    assert replay(tmp_path / "out", 5).is_same
    with pytest.raises(SourceError, match="CopyPaste: got images without boxes"):
        Plan(open_source(np.zeros((1, 8, 8, 3), np.uint8)), T.CopyPaste())
    with pytest.raises(SourceError, match="Cond: got images without objects"):
        Plan(open_source(np.zeros((1, 8, 8, 3), np.uint8)), flip)


def test_annotations_that_have_changed_are_another_run(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    expansion(place, annotations, tmp_path / "out").run()
    entries = coco_entries()
    entries["annotations"][0]["bbox"][2] = 11
    (tmp_path / "data/instances.json").write_text(json.dumps(entries))
    with pytest.raises(SourceError, match="holds a run of other annotations"):
        expansion(place, annotations, tmp_path / "out").run()


def test_what_is_asked_of_other_sources_is_refused(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    source: Any = open_source(place, annotations=annotations)
    with pytest.raises(ValueError, match=r"layout: got 'webdataset'; accepted: 'folder' for this source"):
        AnnotatedPlan(source, POLICY, layout="webdataset")
    with pytest.raises(SourceError, match="has boxes, masks or key points; accepted: AnnotatedPlan"):
        Plan(source, POLICY)
    with pytest.raises(ValueError, match="accepted: mask_fill, min_area, min_visibility, and no others"):
        AnnotatedPlan(source, POLICY, targets=Targets(box_format="xywh"))
    plain: Any = open_source(place)
    with pytest.raises(SourceError, match="accepted, to be written with what belongs to its images"):
        AnnotatedPlan(plain, POLICY)
    with pytest.raises(ValueError, match=r"min_area: got 3; accepted: 0.0 with images alone; --annotations tells"):
        plan_for(plain, POLICY, targets=Targets(min_area=3))


def test_key_points_and_outlines_of_yolo(tmp_path: Path) -> None:
    """Outlines give the masks of the Augmenter again."""
    data, out = put_yolo(tmp_path / "data"), tmp_path / "out"
    (data / "labels/a.txt").write_text("1 0.1 0.1 0.9 0.1 0.9 0.8 0.4 0.3 0.1 0.8\n0 0.5 0.5 0.2 0.2\n")
    options = {"mask": "each", "unoutlined": "background"}
    expansion(data, {"format": "yolo", **options}, out).run()
    source: Any = open_source(data, annotations={"format": "yolo", **options})
    back = reopened("yolo", out, **options)
    augmenter = Augmenter(POLICY, seed=4, layout="NHWC")
    for copy in range(3):
        item = source.read(0)
        [made] = augmenter([{"image": read_image(item.data), **item.targets}], ids=[0], copy=copy)
        [with_outline] = (mask for mask in made["masks"].numpy() if mask.any())
        found = back.read(copy).targets
        np.testing.assert_array_equal(found["masks"][found["labels"].tolist().index(1)], with_outline)

    (data / "data.yaml").write_text("names: [ant, bee, cat]\nkpt_shape: [2, 2]\n")
    for name in ("b", "c"):
        (data / f"labels/{name}.txt").write_text("")
    (data / "labels/a.txt").write_text("1 0.5 0.5 0.4 0.4 0.3 0.5 0 0\n")
    expansion(data, None, tmp_path / "points", transform=T.RandomHorizontalFlip(1.0), copies=1).run()
    assert (tmp_path / "points/labels/a_0.txt").read_text() == (
        "1 0.500000 0.500000 0.400000 0.400000 0.700000 0.500000 0.000000 0.000000\n"
    )
    again: Any = open_source(tmp_path / "points")
    assert again.read(0).targets["keypoints"].tolist() == [[[42, 20, 2], [0, 0, 0]]]


def check_by_ultralytics(out: Path) -> dict[str, Any]:
    """What Ultralytics' ``check_det_dataset`` (8.3) asks of a data.yaml -> its content."""
    found: dict[str, Any] = yaml.safe_load((out / "data.yaml").read_text())
    assert {"train", "val", "names"} <= found.keys()
    assert "path" not in found  # the file's own folder then, wherever that is moved
    for split in ("train", "val", "test"):
        folders = found.get(split, [])
        for folder in [folders] if isinstance(folders, str) else folders:
            assert any((out / folder).rglob("*.png"))
    return found


def test_yolo_is_written_as_ultralytics_reads_it(tmp_path: Path) -> None:
    data = put_yolo(tmp_path / "data")
    expansion(data, "yolo", tmp_path / "one").run()
    found = check_by_ultralytics(tmp_path / "one")
    assert (found["train"], found["val"]) == ("images", "images")
    assert "# val: no validation images were written" in (tmp_path / "one/data.yaml").read_text()

    for kind in ("images", "labels"):  # a, b and c; c becomes the validation set
        for n, split in enumerate(("train", "val")):
            (data / kind / split).mkdir()
            for file in [one for one in (data / kind).iterdir() if one.is_file()]:
                if n or not file.stem.startswith("c"):
                    file.rename(data / kind / split / file.name)
    (data / "data.yaml").write_text(
        "train: images/train\nval: [images/val]\ntest: images/none\nnames: [ant, bee, cat]\n"
    )
    expansion(data, "yolo", tmp_path / "both").run()
    found = check_by_ultralytics(tmp_path / "both")
    assert (found["train"], found["val"]) == ("images/train", "images/val")
    assert "#" not in (tmp_path / "both/data.yaml").read_text()
    assert len(reopened("yolo", tmp_path / "both", split="val")) == 3
    assert verify(tmp_path / "both").problems == []
    expansion(data, "yolo,split=train", tmp_path / "train").run()
    found = check_by_ultralytics(tmp_path / "train")
    assert (found["train"], found["val"]) == ("images/train", "images/train")


def test_masks_stay_beside_their_images(tmp_path: Path) -> None:
    numbers = put_masks(tmp_path / "data")
    out = tmp_path / "out"
    settings: dict[str, Any] = {"targets": Targets(mask_fill=3), "copies": 2}
    expansion(tmp_path / "data", "masks", out, **settings).run()
    back: Any = open_source(out, annotations="masks")
    assert len(back) == 6
    augmenter = Augmenter(POLICY, seed=4)
    source: Any = open_source(tmp_path / "data", annotations="masks")
    for number, row in enumerate(rows(out)):
        sample = {"image": read_image(source.read(row["index"]).data), "mask": numbers[row["index"]].astype(np.int32)}
        [made] = augmenter([sample], ids=[row["index"]], copy=row["copy"], targets=settings["targets"])
        np.testing.assert_array_equal(back.read(number).targets["mask"], made["mask"].numpy())
        again = replay(out, number)
        assert again.is_same
        assert again.mask == (out / row["mask_file"]).read_bytes()
    whole = digest(out)
    lost = [out / row["mask_file"] for row in rows(out)[1:3]]
    lost[0].unlink()
    lost[1].write_bytes(lost[1].read_bytes()[:-1] + b"~")
    found = verify(out)
    assert [(out / problem.file, problem.kind) for problem in found.problems] == list(
        zip(lost, ("missing", "damaged"), strict=True)
    )
    delete_damaged(out, found)
    with pytest.warns(UserWarning, match="^6 outputs of an earlier run are made again"):
        assert expansion(tmp_path / "data", "masks", out, **settings).run().written == 6
    assert digest(out) == whole


def test_masks_that_have_changed_are_noticed(tmp_path: Path) -> None:
    put_masks(tmp_path / "data")
    out, settings = tmp_path / "out", {"copies": 2}
    expansion(tmp_path / "data", "masks", out, **settings).run()
    source: Any = open_source(tmp_path / "data", annotations="masks")
    mask = tmp_path / "data" / source.mask_paths()[1]
    times = mask.stat()
    mask.write_bytes((tmp_path / "data" / source.mask_paths()[1]).read_bytes())
    os.utime(mask, ns=(times.st_atime_ns, times.st_mtime_ns - 5_000_000_000))
    with pytest.raises(SourceError, match=f"{mask.name} of .* bytes, changed at .*restore the source"):
        expansion(tmp_path / "data", "masks", out, **settings).run()
