"""Data sets with boxes, masks and key points, written in their own layout: what an Augmenter gives is what is there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import numpy as np
import pytest
import yaml

from tests.data.annotated.made import CLASSES, NAMES, SIZES, coco_entries, put_coco, put_voc, put_yolo
from tests.data.annotated.test_masks import put as put_masks
from tests.jobs.augment.samples import digest, rows, threads
from variegate import transforms as T
from variegate.augmenter.augmenter import Augmenter
from variegate.data.annotated.objects import Objects
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


def laid(layout: str, root: Path) -> tuple[Path, Any]:
    """A data set -> where it is, and what says how it is annotated."""
    if layout == "coco":
        return root / "images", str(put_coco(root))
    if layout == "masks":
        put_masks(root)
    else:
        (put_voc if layout == "voc" else put_yolo)(root)
    return root, layout


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
    classes = {} if layout == "masks" else {"classes": CLASSES}
    return open_source(out, annotations={"format": layout, **options}, **classes)


def coco_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "annotations.json").read_text())
    return found


def without_outlines(place: Path) -> None:
    """Boxes of objects with outlines fit these."""
    entries = coco_entries()
    for annotation in entries["annotations"]:
        del annotation["segmentation"]
    (place / "instances.json").write_text(json.dumps(entries))


def with_a_crowd(place: Path) -> None:
    entries = coco_entries()
    counts = [0, 40 * 20, 40 * 40]  # the first 20 columns of the first image
    entries["annotations"][0] |= {"segmentation": {"size": [40, 60], "counts": counts}, "iscrowd": 1}
    (place / "instances.json").write_text(json.dumps(entries))


def with_an_outline(place: Path) -> None:
    (place / "labels/a.txt").write_text("1 0.1 0.1 0.9 0.1 0.9 0.8 0.4 0.3 0.1 0.8\n0 0.5 0.5 0.2 0.2\n")


# Layout, a change of the data set, options of reading, settings, and how far boxes may be off; None: they fit outlines.
CASES: dict[str, tuple[str, Callable[[Path], None], dict[str, Any], dict[str, Any], float | None]] = {
    "coco": ("coco", without_outlines, {}, {}, 0.0011),
    "coco, outlines": ("coco", with_a_crowd, {"mask": "each", "ignored": True}, {}, None),
    "voc": ("voc", lambda place: None, {}, {"targets": Targets(min_visibility=0.3)}, 0.501),
    "yolo": ("yolo", lambda place: None, {}, {}, 0.0015),
    "yolo, outlines": ("yolo", with_an_outline, {"mask": "each", "unoutlined": "background"}, {}, None),
    "masks": ("masks", lambda place: None, {}, {"targets": Targets(mask_fill=3)}, None),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_back_is_the_augmenters(tmp_path: Path, name: str) -> None:
    """Whatever made it; and every row can be made again."""
    layout, change, options, settings, tolerance = CASES[name]
    place, annotations = laid(layout, tmp_path / "data")
    change(tmp_path / "data")
    if options:
        annotations = {"file" if layout == "coco" else "format": annotations, **options}
    out = tmp_path / "out"
    expansion(place, annotations, out, **settings).run()
    expansion(place, annotations, tmp_path / "three", threads(3), **settings).run()
    assert digest(out) == digest(tmp_path / "three")
    assert verify(out).problems == []
    source: Any = open_source(place, annotations=annotations)
    back = reopened(layout, out, **options)
    assert (len(back), back.classes) == (9, source.classes)
    augmenter = Augmenter(POLICY, seed=4, layout="NHWC")
    by_path = {path: n for n, path in enumerate(back.paths())}
    counted = 0
    for number, row in enumerate(rows(out)):
        item = source.read(row["index"])
        sample = {"image": read_image(item.data), **item.targets}
        [made] = augmenter([sample], ids=[row["index"]], copy=row["copy"], targets=settings.get("targets"))
        found = back.read(by_path[row["file"].removeprefix("images/" if layout == "coco" else "")])
        np.testing.assert_array_equal(read_image(found.data), made["image"].numpy())
        for key in found.targets.keys() & {"labels", "mask", "masks"}:
            np.testing.assert_array_equal(found.targets[key], made[key].numpy())
        if tolerance is not None:
            np.testing.assert_allclose(found.targets["boxes"], made["boxes"].numpy(), atol=tolerance)
        counted += len(made.get("labels", (0,)))
        again = replay(out, number)
        assert again.is_same
        assert again.data == (out / row["file"]).read_bytes()
        assert again.targets == row["targets"]
        assert again.mask == ((out / row["mask_file"]).read_bytes() if layout == "masks" else None)
    assert counted > 6


def test_coco_keeps_categories_and_has_ids_of_its_own(tmp_path: Path) -> None:
    entries = coco_entries()
    entries["categories"][1] |= {"supercategory": "insect", "keypoints": ["b", "a"], "a": {"z": 1, "b": "é"}}
    place = put_coco(tmp_path / "data", entries).parent / "images"
    out = tmp_path / "out"
    with_a_crowd(tmp_path / "data")
    expansion(place, str(tmp_path / "data/instances.json"), out).run()
    found = coco_of(out)
    assert found["categories"] == coco_entries()["categories"]
    assert [image["id"] for image in found["images"]] == list(range(1, 10))
    assert [annotation["id"] for annotation in found["annotations"]] == list(range(1, 1 + len(found["annotations"])))
    for row, image in zip(rows(out), found["images"], strict=True):
        assert f"images/{image['file_name']}" == row["file"]
        assert (image["height"], image["width"]) == SIZES[row["index"]]
    for entry in found["annotations"]:  # polygons stay polygons, and runs of crowds stay runs
        is_crowd = entry["category_id"] == 18
        assert entry["iscrowd"] == is_crowd == isinstance(entry["segmentation"], dict)
    put_coco(tmp_path / "more", entries)
    expansion(tmp_path / "more/images", str(tmp_path / "more/instances.json"), tmp_path / "named").run()
    assert coco_of(tmp_path / "named")["categories"] == entries["categories"]


def test_boxes_of_outlines_fit_them_however_they_are_turned(tmp_path: Path) -> None:
    entries = coco_entries()
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    circle = np.stack([30 + 9 * np.cos(angles), 20 + 9 * np.sin(angles)], 1).ravel().round(2).tolist()
    runs = runs_of(np.add.outer(np.arange(-20, 20) ** 2, np.arange(-30, 30) ** 2) < 81)
    box = {"image_id": 100, "bbox": [21, 11, 18, 18]}
    entries["annotations"] = [
        box | {"id": 1, "category_id": 3, "segmentation": [circle]},
        box | {"id": 2, "category_id": 18, "segmentation": {"size": [40, 60], "counts": runs}},
        box | {"id": 3, "category_id": 70},
    ]
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


def test_key_points(tmp_path: Path) -> None:
    entries = coco_entries()
    entries["categories"][0] |= {"keypoints": ["head", "tail", "wing"], "skeleton": [[1, 2]]}
    entries["annotations"][1] |= {"keypoints": [30, 10, 2, 0, 0, 0, 59, 39, 1], "num_keypoints": 2}
    place = put_coco(tmp_path / "data", entries).parent / "images"
    flipped: dict[str, Any] = {"transform": T.RandomHorizontalFlip(1.0), "copies": 1}
    expansion(place, str(tmp_path / "data/instances.json"), tmp_path / "out", **flipped).run()
    found = coco_of(tmp_path / "out")["annotations"]
    (ant,) = (entry for entry in found if "keypoints" in entry)
    assert ant["category_id"] == 70
    assert ant["keypoints"] == [29.0, 10.0, 2, 0.0, 0.0, 0, 0.0, 39.0, 1]
    assert ant["num_keypoints"] == 2
    back = reopened("coco", tmp_path / "out").read(0).targets
    assert back["keypoints"][1].tolist() == [[29.5, 10.5, 2], [0, 0, 0], [0.5, 39.5, 1]]

    yolo = put_yolo(tmp_path / "yolo")
    (yolo / "data.yaml").write_text("names: [ant, bee, cat]\nkpt_shape: [2, 2]\n")
    for name in "bc":
        (yolo / f"labels/{name}.txt").write_text("")
    (yolo / "labels/a.txt").write_text("1 0.5 0.5 0.4 0.4 0.3 0.5 0 0\n")
    expansion(yolo, None, tmp_path / "points", **flipped).run()
    assert (tmp_path / "points/labels/a_0.txt").read_text() == (
        "1 0.500000 0.500000 0.400000 0.400000 0.700000 0.500000 0.000000 0.000000\n"
    )
    again: Any = open_source(tmp_path / "points")
    assert again.read(0).targets["keypoints"].tolist() == [[[42, 20, 2], [0, 0, 0]]]


# A file of annotations, or of a mask, of each layout.
BESIDE = {"coco": "annotations.json", "voc": "Annotations/a_1.xml", "yolo": "labels/c_0.txt", "masks": "masks/b_1.png"}


@pytest.mark.parametrize("layout", BESIDE)
def test_lost_and_damaged_files_are_found_and_made_again(tmp_path: Path, layout: str) -> None:
    place, annotations = laid(layout, tmp_path / "data")
    out = tmp_path / "out"
    expansion(place, annotations, out).run()
    whole = digest(out)
    beside = out / BESIDE[layout]
    beside.unlink()
    assert [(problem.file, problem.kind) for problem in verify(out).problems] == [(BESIDE[layout], "missing")]
    for damaged in (None, (out / rows(out)[2]["file"]), beside):
        if damaged is not None:
            damaged.write_bytes(damaged.read_bytes()[:-1] + b"~")
            assert delete_damaged(out, verify(out)) == [damaged.relative_to(out).as_posix()]
        with pytest.warns(UserWarning, match="writing 9 outputs of an earlier run again|again: annotations.json"):
            expansion(place, annotations, out).run()
        assert digest(out) == whole
    assert verify(out).problems == []


def test_a_data_set_that_moved_is_the_same_and_one_that_changed_is_not(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    out = tmp_path / "out"
    expansion(place, annotations, out).run()
    (tmp_path / "data").rename(tmp_path / "moved")
    place, annotations = tmp_path / "moved/images", str(tmp_path / "moved/instances.json")
    assert replay(out, 4, place).is_same
    assert expansion(place, annotations, out).run().resumed == 9
    entries = coco_entries()
    entries["annotations"][0]["bbox"][2] = 11
    Path(annotations).write_text(json.dumps(entries))
    with pytest.raises(SourceError, match="holds a run of other annotations"):
        expansion(place, annotations, out).run()

    place, annotations = laid("masks", tmp_path / "masked")
    expansion(place, annotations, tmp_path / "of masks").run()
    mask = place / open_source(place, annotations="masks").mask_paths()[1]  # type: ignore[union-attr]
    times = mask.stat()
    os.utime(mask, ns=(times.st_atime_ns, times.st_mtime_ns - 5_000_000_000))
    with pytest.raises(SourceError, match=f"{mask.name} of .* bytes, changed at .*restore the source"):
        expansion(place, annotations, tmp_path / "of masks").run()


def test_unreadable_and_excluded_images_are_left_out_and_the_others_stay_as_they_are(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    expansion(place, annotations, tmp_path / "whole").run()
    expansion(place, annotations, tmp_path / "excluded", exclude=[NAMES[0]]).run()
    (place / NAMES[0]).write_bytes(b"no image")
    report = expansion(place, annotations, tmp_path / "unreadable").run()
    assert [name for name, _ in report.skipped] == [NAMES[0]]
    whole = {row["file"]: row["targets"] for row in rows(tmp_path / "whole")}
    for name, ids in (("excluded", range(1, 7)), ("unreadable", range(4, 10))):
        images = coco_of(tmp_path / name)["images"]
        assert [image["id"] for image in images] == list(ids)
        assert {image["file_name"] for image in images} == {f"{n[0]}_{c}.png" for n in NAMES[1:] for c in range(3)}
        listed = {row["file"]: row["targets"] for row in rows(tmp_path / name) if row["file"]}
        assert listed.items() < whole.items()
        assert verify(tmp_path / name).problems == []


def test_what_ends_its_worker_is_left_out_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    targets = Objects.targets

    def ending(objects: Objects, image: int, *more: Any) -> dict[str, Any]:
        if image == 2:
            assert current_thread() is not main_thread(), "it would end everything"
            raise SystemExit(3)
        return targets(objects, image, *more)

    monkeypatch.setattr(Objects, "targets", ending)
    report = expansion(place, annotations, tmp_path / "out", threads(1, max_failures=1)).run()
    reason = "ended by SystemExit: 3"
    assert (report.skipped, report.written, report.missing) == ([(NAMES[2], reason)], 6, 3)
    assert {image["file_name"][0] for image in coco_of(tmp_path / "out")["images"]} == {"a", "b"}
    assert {row["reason"] for row in rows(tmp_path / "out") if row["status"] == "quarantined"} == {reason}


def test_mixed_images_have_the_objects_of_all(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    mosaic = T.Compose([T.Resize((48, 48)), T.Mosaic(num_classes=3)])
    expansion(place, annotations, tmp_path / "mosaics", threads(2), transform=mosaic, copies=8).run()
    found = coco_of(tmp_path / "mosaics")
    of_b = {image["id"] for image in found["images"] if image["file_name"].startswith("b_")}
    joined = [entry for entry in found["annotations"] if entry["image_id"] in of_b]
    assert joined  # it has no object of its own
    assert all(entry["area"] > 0 for entry in joined)
    assert replay(tmp_path / "mosaics", 5).is_same

    flip = T.Cond(by="objects", none_of=[CLASSES[0]], then=T.RandomHorizontalFlip(1.0))
    pasting = T.Compose([flip, T.CopyPaste(share=1.0, scale=(0.5, 1.0), feather=0)])
    expansion(place, annotations, tmp_path / "pasted", threads(2), transform=pasting, copies=8).run()
    source: Any = open_source(place, annotations=f"{annotations},mask=each")
    back = reopened("coco", tmp_path / "pasted", mask="each")
    partner_ids, pasted = set(), 0
    for n, row in enumerate(rows(tmp_path / "pasted")):
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
    assert replay(tmp_path / "pasted", 5).is_same


def test_what_is_asked_of_other_sources_is_refused(tmp_path: Path) -> None:
    place, annotations = laid("coco", tmp_path / "data")
    source: Any = open_source(place, annotations=annotations)
    plain: Any = open_source(place)
    by_objects = T.Cond(by="objects", none_of=[CLASSES[0]], then=T.RandomHorizontalFlip(1.0))
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: AnnotatedPlan(source, POLICY, layout="webdataset"), "layout: got 'webdataset'; accepted: 'folder'"),
        (lambda: Plan(source, POLICY), "has boxes, masks or key points; accepted: AnnotatedPlan"),
        (
            lambda: AnnotatedPlan(source, POLICY, targets=Targets(box_format="xywh")),
            "accepted: mask_fill, min_area, min_visibility, and no others",
        ),
        (lambda: AnnotatedPlan(plain, POLICY), "accepted, to be written with what belongs to its images"),
        (
            lambda: plan_for(plain, POLICY, targets=Targets(min_area=3)),
            "min_area: got 3; accepted: 0.0 with images alone; --annotations tells",
        ),
        (lambda: Plan(plain, T.CopyPaste()), "CopyPaste: got images without boxes"),
        (lambda: Plan(plain, by_objects), "Cond: got images without objects"),
    ]
    for make, message in refused:
        with pytest.raises(ValueError, match=message):
            make()


def test_yolo_is_written_as_ultralytics_reads_it(tmp_path: Path) -> None:
    """As its ``check_det_dataset`` (8.3) asks of a data.yaml."""
    data = put_yolo(tmp_path / "data")

    def written(name: str, annotations: str) -> tuple[Any, Any]:
        out = tmp_path / name
        expansion(data, annotations, out).run()
        found: dict[str, Any] = yaml.safe_load((out / "data.yaml").read_text())
        assert "names" in found
        assert "path" not in found  # the file's own folder then, wherever that is moved
        for split in ("train", "val", "test"):
            assert split not in found or any((out / found[split]).rglob("*.png"))
        return found["train"], found["val"]

    assert written("one", "yolo") == ("images", "images")
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
    assert written("both", "yolo") == ("images/train", "images/val")
    assert "#" not in (tmp_path / "both/data.yaml").read_text()
    assert len(reopened("yolo", tmp_path / "both", split="val")) == 3
    assert written("train", "yolo,split=train") == ("images/train", "images/train")
